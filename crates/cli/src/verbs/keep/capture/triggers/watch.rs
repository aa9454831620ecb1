//! The watch: follows the rings, tests the conditions, and orders files from the writer.

use super::manifest::{Shot, WrittenFile};
use super::policy::{Limits, Policy, TriggerVerdict};
use super::shared::{WaitingShots, WatchEnd, WriterMessage};
use super::shown_lines::ShownLines;
use crate::input::LOOK_PAUSE;
use crate::input::awaited::AwaitedRings;
use crate::input::programs::program::Program;
use crate::interrupt::{Interrupt, UserSignal};
use crate::text::format::TimeFormat;
use crate::verbs::keep::capture::args::Args;
use eventring::reader::{Reader, RingSet};
use eventring_capture::{EndReason, NextRing};
use eventring_live::{Condition, ConditionSet, Live, LiveOptions, LiveProgress, LiveState, Observation, Occurrence};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

/// The time between two looks at Ctrl-C and at further rings.
pub(super) const PAUSE: Duration = Duration::from_millis(50);
/// The longest time for reading what happened before the watch, and what is not read yet at its end.
pub(super) const HISTORY_TIME_MAX: Duration = Duration::from_secs(30);
/// The number of times that tables of the present are looked for.
const LOOKS_FOR_TABLES: u32 = 10;
/// The largest number of occurrences that wait for their files. Further ones are suppressed.
const WAITING_MAX: usize = 10_000;

/// The numbers of commands that have ended, and how.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct ActionCounts {
    pub(super) done: u64,
    pub(super) failed: u64,
    pub(super) timed_out: u64,
    pub(super) left_out: u64,
}

/// A watch that goes on.
pub(super) struct Watch<'a> {
    pub(super) args: &'a Args,
    pub(super) live: Live,
    pub(super) conditions: ConditionSet,
    pub(super) judge: Judge,
    /// Where further rings go; `None` if no more will come.
    ring_out: Option<Sender<Reader>>,
    signal: UserSignal,
    pub(super) files: Vec<WrittenFile>,
    pub(super) failure: Option<anyhow::Error>,
    /// The problems with files and commands.
    pub(super) problems: Vec<String>,
    pub(super) actions: ActionCounts,
    /// The number of shots whose files were left out at the end.
    pub(super) not_written: u64,
    /// The number of events that were not read any more at the end.
    pub(super) unread: u64,
    /// True if a second interrupt has come.
    pub(super) is_hurried: bool,
    /// True if the files took too long after the end.
    pub(super) is_slow: bool,
    pub(super) screen: ShownLines,
    pub(super) times: TimeFormat,
    pub(super) started: Instant,
}

impl<'a> Watch<'a> {
    pub(super) fn new(args: &'a Args, ring_out: Sender<Reader>, signal: UserSignal) -> Self {
        let conditions = ConditionSet::new(args.triggers.conditions.clone());
        // Without rates and percentiles, nothing is counted.
        let options = conditions.options(LiveOptions::new().windows([]).without_self_times());
        Self {
            args,
            live: Live::new(RingSet::options().from_readers([]), &options),
            judge: Judge {
                policy: Policy::new(Limits::of(&args.triggers), conditions.conditions().len()),
                waiting: Arc::default(),
                until_nanos: u64::MAX,
            },
            conditions,
            ring_out: Some(ring_out),
            signal,
            files: Vec::new(),
            failure: None,
            problems: Vec::new(),
            actions: ActionCounts::default(),
            not_written: 0,
            unread: 0,
            is_hurried: false,
            is_slow: false,
            screen: ShownLines::new(),
            times: TimeFormat::new(false),
            started: Instant::now(),
        }
    }

    /// Has the capture keep rings whose events fulfil no conditions.
    pub(super) fn keep(&self, rings: Vec<Reader>) {
        let send = |ring| self.ring_out.as_ref().map(|ring_out| ring_out.send(ring));
        rings.into_iter().for_each(|ring| _ = send(ring));
    }

    /// Takes the rings that were found since the last call.
    pub(super) fn take_rings(&mut self, rings: &mut AwaitedRings) {
        while let Some(ring_out) = &self.ring_out {
            match rings.next() {
                NextRing::Ring(ring) => {
                    // If the capture has failed, its error is reported at the end.
                    let _ = ring_out.send(ring.clone());
                    self.live.add(ring);
                }
                NextRing::NotYet => return,
                NextRing::NoMore => self.ring_out = None,
            }
        }
    }

    /// Returns true if the engine looks at tables of the present alone. A program makes its tables just after its ring.
    pub(super) fn is_looking(&mut self) -> bool {
        let only_present = self.conditions.conditions().iter().all(Condition::is_about_present);
        for _ in 0..LOOKS_FOR_TABLES {
            if !only_present || self.live.is_looking() {
                return only_present;
            }
            std::thread::sleep(PAUSE / 5);
            self.live.find_tables();
        }
        false
    }

    /// Reads what happened before the watch began. It does not fire, except that a program had died.
    pub(super) fn read_past(&mut self, shots: &Sender<Shot>) {
        self.read(shots, |live, see| {
            let mut only_ends = |observation: &Observation<'_>, state: LiveState<'_>| {
                if let Observation::ProgramEnded(_) = observation {
                    see(observation, state);
                }
            };
            live.read_history(HISTORY_TIME_MAX, &mut only_ends)
        });
    }

    /// Watches until the programs have ended, the time is over, or the user ends it.
    pub(super) fn run(
        &mut self,
        rings: &mut AwaitedRings,
        shots: &Sender<Shot>,
        told: &Receiver<WriterMessage>,
        interrupt: &Interrupt,
    ) -> WatchEnd {
        loop {
            while let Ok(told) = told.try_recv() {
                self.hear(told);
            }
            self.take_rings(rings);
            if let Some(line) = rings.awaited_line() {
                self.screen.say(line);
            }
            // An event may be in a span of a ring that is awaited: it is read when that ring was looked for.
            let looked_nanos = rings.looked_nanos();
            self.live.hold_after(looked_nanos);
            let pause = if looked_nanos.is_some() { LOOK_PAUSE } else { PAUSE };
            let progress = self.read(shots, |live, see| live.read(pause, see));
            for _ in 0..self.signal.count() {
                let state = self.live.state();
                let judge = &mut self.judge;
                self.conditions.signal(state, &mut |index, condition, occurrence| {
                    judge.take(shots, index, condition, occurrence);
                });
            }
            self.show();
            let is_late = self.args.duration.is_some_and(|time| self.started.elapsed() >= time);
            let has_ended = progress == LiveProgress::Ended && self.ring_out.is_none();
            // On a busy machine, its last events may still have to be read.
            let has_read_all = progress != LiveProgress::Behind;
            let is_long_gone = has_read_all && rings.program.as_mut().is_some_and(Program::is_long_gone);
            let reason = match (interrupt.came() || is_long_gone, is_late) {
                _ if has_ended => Some(EndReason::WritersEnded),
                (true, _) => Some(EndReason::Interrupted),
                (false, true) => Some(EndReason::Duration),
                (false, false) => None,
            };
            if let Some(reason) = reason {
                return WatchEnd::now(reason, self.started);
            }
            if progress == LiveProgress::Ended {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Has the engine read, and tests the conditions on what it sees.
    pub(super) fn read<R>(
        &mut self,
        shots: &Sender<Shot>,
        read: impl FnOnce(&mut Live, &mut dyn FnMut(&Observation<'_>, LiveState<'_>)) -> R,
    ) -> R {
        let (conditions, judge) = (&mut self.conditions, &mut self.judge);
        read(&mut self.live, &mut |observation, state| {
            conditions.see(observation, state, &mut |index, condition, occurrence| {
                judge.take(shots, index, condition, occurrence);
            });
        })
    }
}

/// The judge of occurrences, and those that wait for their files.
pub(super) struct Judge {
    pub(super) policy: Policy,
    pub(super) waiting: Arc<WaitingShots>,
    /// The time after which nothing counts, in nanoseconds since the epoch.
    pub(super) until_nanos: u64,
}

impl Judge {
    /// Decides what becomes of what has fulfilled a condition.
    fn take(&mut self, shots: &Sender<Shot>, index: usize, condition: &Condition, occurrence: &Occurrence<'_>) {
        let epoch_nanos = occurrence.epoch_nanos();
        if epoch_nanos > self.until_nanos {
            return;
        }
        let verdict = match occurrence.is_death_or_signal() {
            true => self.policy.judge_single(epoch_nanos),
            false => self.policy.judge(index, epoch_nanos),
        };
        if verdict != TriggerVerdict::Fires {
            return;
        }
        if !self.waiting.add(epoch_nanos, WAITING_MAX) {
            return self.policy.suppress();
        }
        // The writer hears as long as the watch goes on.
        let _ = shots.send(Shot::new(condition, occurrence));
    }
}
