//! Following programs by *looks*: reading their tables of the present from time to time, instead of all their events.

use super::consumer::{LiveConsumer, See, replay, show_records};
use super::looks::{Looks, Sought};
use crate::core::LiveCore;
use crate::engine::{Live, LiveProgress, Watchers};
use crate::observation::Observation;
use crate::state::LiveState;
use eventring::recorder::Clock;
use eventring_capture::recording::ReplayConsumer;
use std::io;
use std::time::{Duration, Instant};

/// The least pause between two looks. What has reached an age is seen so long afterwards, at most.
const PAUSE: Duration = Duration::from_millis(40);
/// The pause between two questions whether programs have ended.
const TICK: Duration = Duration::from_millis(100);

impl Live {
    /// Returns true if the engine looks at tables of the present, and reads nothing of the rings: nobody wants to know
    /// more, and all recorders have tables.
    #[must_use]
    pub fn is_looking(&self) -> bool {
        self.options.present.as_ref().is_some_and(|ages| ages.is_all) && self.core.tables.are_whole()
    }

    /// Looks for tables that programs may have made meanwhile.
    #[doc(hidden)]
    pub fn find_tables(&mut self) {
        self.grow();
    }

    /// Looks for this time, or until the programs have ended.
    pub(crate) fn look_for<S: See, C: ReplayConsumer>(
        &mut self,
        time: Duration,
        to: &mut Watchers<'_, S, C>,
    ) -> io::Result<LiveProgress> {
        let until = Instant::now() + time;
        loop {
            let now = Instant::now();
            if now >= self.next_tick {
                self.next_tick = now + TICK;
                let known = self.core.tables.0.len();
                self.grow();
                self.notice_ends(now);
                if self.core.tables.0.len() > known {
                    self.looks.next = None;
                }
            }
            if self.looks.next.is_none_or(|next| now >= next) {
                self.look(now, to.see)?;
            }
            if self.core.processes.iter().all(|process| process.has_ended) {
                self.look(now, to.see)?;
                self.end(to)?;
                return Ok(LiveProgress::Ended);
            }
            let wait = until.min(self.next_tick).min(self.looks.next.unwrap_or(until));
            std::thread::sleep(wait.saturating_duration_since(Instant::now()));
            if Instant::now() >= until {
                return Ok(LiveProgress::UpToDate);
            }
        }
    }

    /// Looks once. If something has reached an age, lets `see` see it.
    fn look<S: See>(&mut self, now: Instant, see: &mut S) -> io::Result<()> {
        let Some(ages) = &self.options.present else { return Ok(()) };
        let now_nanos = Clock::global().now_epoch_nanos();
        let next_nanos = now_nanos.saturating_add(ages.least_nanos());
        let mut sought = Sought { ages, after_nanos: self.looks.last_nanos, now_nanos, next_nanos };
        let mut records = Vec::new();
        for of in self.core.tables.0.iter_mut().filter(|of| !of.is_over) {
            of.is_over = self.core.processes.get(of.process).is_some_and(|process| process.has_ended);
            let Some(tables) = of.whole() else { continue };
            let found = sought.find(tables);
            if !found.spans.is_empty() {
                let made = self.entries.present_of(of.recorder, found).unwrap_or_default();
                records.extend(made.into_iter().map(|record| (of.recorder, record)));
            }
        }
        let wait = Duration::from_nanos(sought.next_nanos.saturating_sub(now_nanos)).max(PAUSE);
        // Large tables are looked at less often.
        let wait = wait.max((now.elapsed() * 20).min(PAUSE * 5));
        self.looks = Looks { last_nanos: now_nanos, next: now.checked_add(wait) };
        if records.is_empty() {
            return Ok(());
        }
        records.sort_by_key(|(_, record)| record.epoch_nanos());
        let (mut replay, mut core) = (replay(&self.options), LiveCore::new(&self.options));
        core.grow(self.entries.tables());
        replay.grow(self.entries.tables());
        let records = records.iter().map(|(recorder, record)| (*recorder, record));
        show_records(&mut self.entries, records, &mut replay, &mut core);
        for (shown, known) in core.processes.iter_mut().zip(&self.core.processes) {
            (shown.has_ended, shown.end) = (known.has_ended, known.end);
        }
        let nobody = &mut |_: &Observation<'_>, _: LiveState<'_>| ();
        let mut consumer = LiveConsumer { core: &mut core, see: nobody, also: &mut () };
        replay.advance(now_nanos, self.entries.tables(), &mut consumer)?;
        let replayed = replay.state(self.entries.tables());
        see(&Observation::Tick, LiveState { replayed, core: &core });
        Ok(())
    }
}
