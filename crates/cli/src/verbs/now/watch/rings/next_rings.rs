//! The rings that are made while other rings are watched, and have the same name as a watched ring, or fit a pattern.

use super::{Entries, INTERVAL, Ring, Rings};
use crate::input::{LOOK_PAUSE, advice};
use crate::interrupt::Interrupt;
use crate::output::check_reader;
use crate::text::silence::Silence;
use eventring::reader::{ReaderError, RingItem, RingSet, RingState};
use std::path::Path;
use std::time::{Duration, Instant};

impl Rings {
    /// Adds the rings that have come since the last look and fit a pattern. They are read from their first event on.
    /// Returns true if there are such rings: then [`Self::wait_for_next`] must be called.
    pub(super) fn look_for_more(&mut self) -> bool {
        let (Entries::Rings(entries), None) = (&mut self.entries, &self.found) else { return false };
        let first = entries.set().rings().len();
        let (patterns, options) = &mut self.patterns;
        // A ring that has gone meanwhile has nothing to show.
        patterns.new_rings().iter().filter_map(|path| options.open(path).ok()).for_each(|reader| entries.add(reader));
        if entries.set().rings().len() == first {
            return false;
        }
        self.found = Some(Ok(first));
        self.are_others = true;
        true
    }

    /// Returns true if the watch goes on after its rings have ended, or because another ring has come.
    pub(in crate::verbs::now::watch) fn go_on(&self) -> bool {
        self.reopens || self.found.is_some()
    }

    /// Looks for next rings of the names of rings that have ended. Other rings may still be live. Returns true if there
    /// are such rings, or an error: then [`Self::wait_for_next`] must be called.
    pub(super) fn look_for_next(&mut self) -> bool {
        if let (Entries::Rings(entries), None) = (&mut self.entries, &self.found)
            && self.last_look.elapsed() >= LOOK_PAUSE
        {
            self.found = entries.reopen(Duration::ZERO).transpose();
            self.are_others = false;
            self.last_look = Instant::now();
        }
        self.found.is_some()
    }

    /// Returns the next event or gap, or `None` if none comes within `timeout`. Also returns `None` soon after all
    /// rings have ended. (The ring set alone may notice the end a tenth of a second later. Until then, a whole ring of
    /// the same name may be made and removed.)
    pub(super) fn next_or_end(&mut self, timeout: Duration) -> Option<RingItem> {
        let begin = Instant::now();
        loop {
            let left = timeout.saturating_sub(begin.elapsed());
            let Entries::Rings(entries) = &mut self.entries else { return None };
            let item = entries.next_item(Some(left.min(LOOK_PAUSE)));
            if item.is_some() || left.is_zero() || self.look_for_next() {
                return item;
            }
            let set = self.entries.set()?;
            set.check_liveness();
            if set.has_ended() {
                return None;
            }
        }
    }

    /// Waits until a new ring has been made under the name of a watched ring. The watch then goes on with the new ring.
    /// If several new rings have been made, it goes on with all of them. Returns the new rings, and true if these are
    /// others that fit a pattern. Returns `None` if the user stops the wait. Also returns `None` if all rings are
    /// snapshots, because no program makes a snapshot again.
    pub(in crate::verbs::now::watch) fn wait_for_next(
        &mut self,
        interrupt: &Interrupt,
        silence: &mut Silence,
    ) -> anyhow::Result<Option<(bool, impl Iterator<Item = &Ring>)>> {
        let mut found = self.found.take();
        if found.is_none()
            && self.named().all(|ring| ring.reader.as_ref().is_some_and(|reader| reader.state() == RingState::Saved))
        {
            return Ok(None);
        }
        self.are_others &= found.is_some();
        let first = loop {
            let Entries::Rings(entries) = &mut self.entries else { return Ok(None) };
            let reopened = found.take().map_or_else(|| entries.reopen(INTERVAL), |found| found.map(Some));
            let named = |error: ReaderError| {
                let name = error.path().map(Path::to_path_buf).unwrap_or_default();
                advice::on_expected(&name, error)
            };
            if let Some(first) = reopened.map_err(named)? {
                break first;
            }
            if interrupt.came() {
                return Ok(None);
            }
            check_reader()?;
            if self.look_for_more() {
                found = self.found.take();
                continue;
            }
            silence.say(|| {
                let names: Vec<&str> = self.named().map(|ring| ring.label.as_str()).collect();
                format!("waiting for {} to be made anew", names.join(" or "))
            });
        };
        self.rings.clear();
        self.ended_thread = None;
        let errors = self.entries.set().map_or(&[][..], RingSet::shard_errors);
        self.shown_shard_errors = errors.partition_point(|error| error.recorder < first);
        self.take_new();
        silence.ends();
        Ok(Some((self.are_others, self.rings[first..].iter().filter(|ring| !ring.is_missed))))
    }
}
