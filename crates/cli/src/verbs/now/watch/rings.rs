//! The rings that are watched, with their shards.

mod entries;
mod next_rings;
mod open;

use super::ring::Ring;
use crate::exit::{Exit, Failure};
use crate::input::names::fields::KnownFields;
use crate::input::patterns::FollowedPatterns;
use crate::text::paint::WARNING;
use entries::Entries;
use eventring::reader::{Descriptor, ReaderError, ReaderOptions, RingItem, RingSet};
use eventring::tracing::ThreadKey;
use eventring_capture::CaptureFile;
use eventring_capture::recording::{CaptureEntries, RecordingEntry};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The time between two checks for Ctrl-C while the watch waits for a ring.
const INTERVAL: Duration = Duration::from_millis(100);

/// All rings that are watched. First come the rings of the command line, in the order in which the user named them.
/// Then come their shards.
pub(super) struct Rings {
    entries: Entries,
    /// The descriptions of the rings. Each ring has the same index here and in `entries`.
    rings: Vec<Ring>,
    /// The number of shard errors in the set's list that have been printed.
    shown_shard_errors: usize,
    /// True if the watch goes on with the next rings of the same names, so that it must soon notice the end of a ring.
    reopens: bool,
    /// The time of the last look for next rings of the same names.
    last_look: Instant,
    /// The result of this look, if there were such rings, or an error: the index of the first of them. `rings` does
    /// not describe them yet.
    found: Option<Result<usize, ReaderError>>,
    /// The patterns of the command line, and the options with which rings are opened that fit them.
    pub(super) patterns: (FollowedPatterns, ReaderOptions),
    /// True if the rings that were found last are none that were made anew, but others that fit a pattern.
    are_others: bool,
    /// A thread that has ended, after the last entry: nobody asks for its name any more.
    ended_thread: Option<ThreadKey>,
    /// The time of the last question whether the rings have writers, and true if they had none.
    no_writers: (Option<Instant>, bool),
}

/// What comes next.
pub(super) enum NextItem<'r> {
    /// An event or a loss of a ring.
    Entry(&'r Ring, RecordingEntry<'r>),
    /// An event of which nobody needs more than its descriptor.
    NotNeeded,
}

impl Rings {
    /// Begins with rings that are not described yet.
    fn of(entries: Entries) -> Self {
        Self {
            entries,
            rings: Vec::new(),
            shown_shard_errors: 0,
            reopens: false,
            last_look: Instant::now(),
            found: None,
            patterns: Default::default(),
            are_others: false,
            ended_thread: None,
            no_writers: (None, false),
        }
    }

    /// Describes the rings of a capture.
    pub(super) fn of_capture(capture: &CaptureFile) -> Self {
        let describe = |(ring, index): (_, u32)| {
            let stats = capture.end().and_then(|end| end.stats.rings.get(index as usize));
            let last_seqno = stats.map_or(0, |stats| stats.last_seqno);
            Ring::captured(ring, index, last_seqno, capture.known_blocks(index))
        };
        let rings = capture.rings().iter().zip(0..).map(describe).collect();
        Self { rings, ..Self::of(Entries::Capture(CaptureEntries::of_all_rings(capture).into())) }
    }

    /// Names the rings of a capture as the command line names them, which may be by paths.
    pub(super) fn label_as(&mut self, names: &[PathBuf]) {
        for ring in &mut self.rings {
            let shard0 = ring.label.rsplit_once('.').filter(|_| ring.is_shard).map_or(&*ring.label, |(of, _)| of);
            let named = names.iter().find(|name| name.file_name().is_some_and(|file| file == shard0));
            if let Some(parent) = named.and_then(|name| name.parent()) {
                ring.label = parent.join(&ring.label).display().to_string();
            }
        }
    }

    /// Returns true if these are the rings of a capture.
    pub(super) fn are_captured(&self) -> bool {
        matches!(self.entries, Entries::Capture(_))
    }

    /// Returns the problems that were found in a capture so far.
    pub(super) fn problems(&self) -> &[String] {
        self.entries.problems()
    }

    /// Returns how many events of a capture were not selected because their payload was lost.
    pub(super) fn untested(&self) -> u64 {
        self.entries.untested()
    }

    /// Describes the rings that were added to the set since the last call. Prints the errors of shards that could not
    /// be added.
    fn take_new(&mut self) {
        let Entries::Rings(entries) = &self.entries else { return };
        let set = entries.set();
        if set.rings().len() == self.rings.len() && set.shard_errors().len() == self.shown_shard_errors {
            return;
        }
        for error in &set.shard_errors()[self.shown_shard_errors..] {
            let why = &error.error;
            say!("{WARNING}warning:{WARNING:#} shard {} is left out: {why}", error.shard);
        }
        self.shown_shard_errors = set.shard_errors().len();
        while let Some(ring) = set.rings().get(self.rings.len()) {
            let ring = match (ring.recorder(), ring.reader()) {
                (Some(shard0), _) => Ring::shard(&self.rings[shard0], ring),
                (None, reader) => reader.map(Ring::named),
            };
            // A ring without a recorder is one that the command line names, and it has a reader.
            let Some(ring) = ring else { return };
            self.rings.push(ring);
        }
    }

    /// Returns true if all rings have no writer any more. Asks the operating system ten times a second.
    pub(super) fn are_written_no_more(&mut self) -> bool {
        let (asked, answer) = &mut self.no_writers;
        if asked.is_none_or(|asked| asked.elapsed() >= INTERVAL) {
            *asked = Some(Instant::now());
            let mut readers = self.rings.iter().filter_map(|ring| ring.reader.as_ref());
            *answer = readers.all(|reader| !reader.state().may_be_written());
        }
        *answer
    }

    /// Returns what comes next, or `None` if nothing comes within `timeout`. Of an event of rings for which `needs`
    /// returns false, the payload is not read.
    pub(super) fn next(
        &mut self,
        timeout: Duration,
        needs: impl FnOnce(&Ring, &Descriptor) -> bool,
    ) -> Option<NextItem<'_>> {
        let item = if self.are_captured() { None } else { Some(self.next_item(timeout)?) };
        let Self { entries, rings, ended_thread, .. } = self;
        let entry = match (entries, item) {
            (Entries::Capture(entries), _) => entries.next_entry()?,
            (Entries::Rings(_), Some(RingItem::Event { ring, event })) if !needs(&rings[ring], &event) => {
                return Some(NextItem::NotNeeded);
            }
            (Entries::Rings(entries), item) => entries.entry(item?),
        };
        *ended_thread = entry.ended_thread().or(*ended_thread);
        Some(NextItem::Entry(&rings[entry.ring as usize], entry))
    }

    /// Returns what comes next in rings, before its payload is read.
    fn next_item(&mut self, timeout: Duration) -> Option<RingItem> {
        if self.look_for_more() || (self.reopens && self.look_for_next()) {
            return None;
        }
        let Entries::Rings(entries) = &mut self.entries else { return None };
        if let Some(thread) = self.ended_thread.take() {
            entries.forget_thread(thread);
        }
        let item = if self.reopens { self.next_or_end(timeout) } else { entries.next_item(Some(timeout)) };
        if self.found.is_none() {
            self.take_new();
        }
        item
    }

    /// Returns true if no more events will come after the last one that was read. Also returns true if there is a next
    /// ring of the name of a ring that has ended.
    pub(super) fn have_ended(&self) -> bool {
        self.found.is_some() || self.entries.set().is_none_or(RingSet::has_ended)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Ring> + Clone {
        self.rings.iter()
    }

    /// Returns the fields that the events of each ring have, as far as they are known.
    pub(super) fn known_fields(&self) -> Vec<KnownFields> {
        let tables = self.entries.tables();
        let of_ring = |(ring, index): (&Ring, u32)| match tables.rings.origin(index).shard {
            Some(shard) => KnownFields::of_perf(&tables.catalogs[shard.recorder_index], true),
            None => KnownFields::of_typed(ring.decoder.model(), &ring.words),
        };
        self.rings.iter().zip(0..).map(of_ring).collect()
    }

    /// Returns true if several rings are watched, so that each line must name its ring.
    pub(super) fn has_several(&self) -> bool {
        !self.patterns.0.is_empty() || self.rings.iter().filter(|ring| !ring.is_missed).count() > 1
    }

    /// Returns the rings that the command line names.
    fn named(&self) -> impl Iterator<Item = &Ring> {
        self.rings.iter().filter(|ring| !ring.is_shard)
    }

    /// Returns true if the command line names only one ring. Then all rings are shards of one recorder.
    pub(super) fn are_of_one_name(&self) -> bool {
        self.patterns.0.is_empty() && self.named().count() == 1
    }

    /// Returns the seqno of each ring that is read next.
    pub(super) fn next_seqnos(&self) -> impl Iterator<Item = u64> {
        self.entries.set_rings().iter().filter_map(|ring| ring.cursor()).map(|cursor| cursor.next_seqno().max(1))
    }

    /// Returns the seqno of the event that the watch waits for, and the last seqno that the ring has handed out.
    /// Returns `None` if there are several rings, or if the recorder may add shards.
    pub(super) fn waits_for(&self) -> Option<(u64, u64)> {
        let [ring] = self.entries.set_rings() else { return None };
        let info = ring.reader()?.info();
        let is_sharded = info.extension.is_some_and(|extension| extension.shard_limit > 0);
        Some((ring.cursor()?.next_seqno(), info.last_seqno)).filter(|_| !is_sharded)
    }

    /// Returns an error if a page of a ring's file could not be read, for example because the file was truncated.
    pub(super) fn check_whole(&self) -> Result<(), Failure> {
        let lost = self.rings.iter().find_map(|ring| Some((ring, ring.reader.as_ref()?.lost_pages()?)));
        let Some((ring, lost)) = lost else { return Ok(()) };
        Exit::from_lost_pages(lost).fail(format!("{}: {}", ring.label, lost.advice()))
    }

    /// Returns the index of the extension word with the name `word` in execution events. `option` is the command line
    /// option that needs this word: the error message names it.
    pub(super) fn exec_word(&self, option: &str, word: &str) -> Result<usize, Failure> {
        self.need_exec(option)?;
        let exec = self.rings.iter().filter(|ring| ring.is_exec);
        exec.filter_map(|ring| ring.words.index_of(word))
            .next()
            .ok_or_else(|| Exit::WrongContentType.failure(format!("{option}: these events have no word `{word}`")))
    }

    /// Returns an error if no ring has execution events. `option` is a command line option, such as `--block` or
    /// `--txn`, that has a meaning only for these events.
    pub(super) fn need_exec(&self, option: &str) -> Result<(), Failure> {
        if self.rings.iter().any(|ring| ring.is_exec) {
            return Ok(());
        }
        let found = self.rings.first().map_or(0, |ring| ring.schema.0);
        let message =
            format!("{option} needs a ring of execution events (content type 2), this one has content type {found}");
        Exit::WrongContentType.fail(message)
    }
}
