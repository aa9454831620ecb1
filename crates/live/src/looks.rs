//! Looking at programs' tables of the present from time to time, instead of reading all their events.
//!
//! A look finds the cells of spans and tasks that have reached an age since the previous look. The look makes records
//! of these spans and tasks for a small replay, so conditions are tested as usual.

use super::core::{LiveConsumer, LiveCore, replay};
use super::observation::Observation;
use super::rings::{Live, LiveProgress, See, Watchers};
use super::state::LiveState;
use eventring::now::{NowReader, Present, SpanCell};
use eventring::recorder::Clock;
use eventring_capture::recording::{PresentRecord, RecordingReplay, ReplayConsumer, RingEntries};
use eventring_tasks::TaskState;
use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

/// The least pause between two looks. What has reached an age is seen so long afterwards, at most.
const PAUSE: Duration = Duration::from_millis(40);
/// The pause between two questions whether programs have ended.
const TICK: Duration = Duration::from_millis(100);
/// The most spans around one that has reached an age. Damaged tables may have a circle of them.
const AROUND_MAX: usize = 1000;

/// The ages at which spans and tasks are to be seen, in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct PresentAges {
    pub(super) open: Vec<u64>,
    pub(super) phases: Vec<(TaskState, u64)>,
    /// True if nothing else is to be seen.
    pub(super) is_all: bool,
}

impl PresentAges {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.phases.is_empty()
    }

    fn least_nanos(&self) -> u64 {
        let phases = self.phases.iter().map(|(_, nanos)| *nanos);
        self.open.iter().copied().chain(phases).min().unwrap_or(u64::MAX)
    }
}

/// The looks so far.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// The time of the last look, in nanoseconds since the epoch.
    last_nanos: u64,
    /// The time of the next one.
    next: Option<Instant>,
}

/// What a look seeks: what reaches an age after `after_nanos` and until `now_nanos`.
struct Sought<'a> {
    ages: &'a PresentAges,
    after_nanos: u64,
    now_nanos: u64,
    /// The first later time at which something of what was found may reach an age.
    next_nanos: u64,
}

impl Sought<'_> {
    /// Returns true if something that began at this time has reached the age.
    fn has_reached(&mut self, since_nanos: u64, age_nanos: u64) -> bool {
        let at_nanos = since_nanos.saturating_add(age_nanos);
        if at_nanos > self.now_nanos {
            self.next_nanos = self.next_nanos.min(at_nanos);
            return false;
        }
        at_nanos > self.after_nanos
    }

    fn is_found(&mut self, now: &NowReader, span: &SpanCell) -> bool {
        let ages = self.ages;
        // Each age is looked at, for the time of the next look.
        let mut is_found = ages.open.iter().filter(|age| self.has_reached(span.begun_epoch_nanos, **age)).count() > 0;
        if !ages.phases.is_empty()
            && let Some(task) = now.task(span.id)
        {
            let (does, since_nanos) = task.phase(span);
            let same = ages.phases.iter().filter(|(state, _)| *state == does.into());
            is_found |= same.filter(|(_, age)| self.has_reached(since_nanos, *age)).count() > 0;
        }
        is_found
    }

    /// Returns what has reached an age in these tables, and the spans around.
    fn find(&mut self, now: &NowReader) -> Present {
        let mut found = Present::default();
        now.for_each_span(|span| {
            if self.is_found(now, &span) {
                found.spans.push(span);
            }
        });
        let mut known: HashSet<u64> = found.spans.iter().map(|span| span.id).collect();
        for index in 0..found.spans.len() {
            let mut parent = found.spans[index].parent;
            for _ in 0..AROUND_MAX {
                let Some(span) = now.span(parent).filter(|_| known.insert(parent)) else { break };
                parent = span.parent;
                found.spans.push(span);
            }
        }
        found.tasks = found.spans.iter().filter_map(|span| now.task(span.id)).collect();
        found
    }
}

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
    pub(super) fn look_for<S: See, C: ReplayConsumer>(
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

/// Has a replay take records that tables have made.
pub(super) fn show_records<'r>(
    entries: &mut RingEntries,
    records: impl Iterator<Item = (u32, &'r PresentRecord)>,
    replay: &mut RecordingReplay,
    core: &mut LiveCore,
) {
    for (recorder, record) in records {
        let Some(entry) = entries.present_entry(recorder, record) else { continue };
        let nobody = &mut |_: &Observation<'_>, _: LiveState<'_>| ();
        // Nobody writes, so nothing fails.
        let _ = replay.step(&entry, &mut LiveConsumer { core, see: nobody, also: &mut () });
    }
}
