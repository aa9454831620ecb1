//! The watch: follows the rings, tests the conditions, and orders files from the writer.

use super::action::{Action, ActionState};
use super::end::WatchEnd;
use super::history::History;
use super::manifest::{Shot, WrittenFile};
use super::policy::{Policy, TriggerVerdict};
use super::shown_lines::{ShownLines, end_even_if_nobody_reads};
use super::writer::{FileActions, FileWriter, WaitingShots, WriterMessage};
use crate::exit::{Exit, Failure};
use crate::input::awaited::AwaitedRings;
use crate::input::names::fields::{KnownFields, check_fields};
use crate::input::programs::program::Program;
use crate::interrupt::{Interrupt, UserSignal};
use crate::output;
use crate::text::format::TimeFormat;
use crate::verbs::keep::capture;
use crate::verbs::keep::capture::Args;
use crate::verbs::keep::profile::Beside;
use eventring::reader::{Reader, RingSet};
use eventring_capture::{EndReason, NextRing};
use eventring_live::{Condition, ConditionSet, Live, LiveOptions, LiveProgress, LiveState, Observation, Occurrence};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The time between two looks at Ctrl-C and at further rings.
pub(super) const PAUSE: Duration = Duration::from_millis(50);
/// The longest time for reading what happened before the watch, and what is not read yet at its end.
pub(super) const HISTORY_TIME_MAX: Duration = Duration::from_secs(30);
/// The longest time between the end of the programs and that of the capture.
const END_TIME_MAX: Duration = Duration::from_secs(5);
/// The number of times that tables of the present are looked for.
const LOOKS_FOR_TABLES: u32 = 10;
/// The largest number of occurrences that wait for their files. Further ones are suppressed.
const WAITING_MAX: usize = 10_000;

/// Watches, and returns the exit code.
pub(in crate::verbs::keep::capture) fn run(args: &Args) -> anyhow::Result<Exit> {
    args.process.check_directive()?;
    let (names, programs) = args.process.followed(&args.names, args.wait, args.duration)?;
    let ring = names.first().map_or("ring".as_ref(), PathBuf::as_path);
    let template = args.triggers.names(args.output.as_deref(), ring)?;
    // A name that nobody has, so that a directory that is missing or without rights is noticed now.
    let probe = template.directory().join(format!(".eventring.{}", std::process::id()));
    output::try_to_write(&probe, Some(&output::look(&probe, false)?))?;
    let signal = UserSignal::listen()?;
    // The first interrupt ends the watch, and the second one leaves out the files that wait.
    let interrupt = Interrupt::listen_to(2)?;
    let (sched, stacks) = (args.triggers.sched, args.triggers.stacks);
    // If a program is started, nothing may be started between these two.
    let beside = (sched || stacks).then(|| Beside::prepare(sched, stacks, &args.names, &args.command)).transpose()?;
    let (mut rings, is_at_once) = capture::begin(args, &names, programs, args.json, &interrupt)?;
    check_condition_fields(&args.triggers.conditions, &rings)?;
    // Rings that are made after the start have no past.
    let has_past = is_at_once && rings.program.is_none();
    let enabled = capture::enable(args, &rings)?;
    let (ring_out, ring_in) = mpsc::channel();
    let mut watch = Watch::new(args, ring_out, signal);
    let kernel = beside.map(|beside| beside.start(&rings)).transpose()?;
    let kernel = kernel.map(|(own, recording)| {
        watch.keep(own);
        recording
    });
    watch.take_rings(&mut rings);
    // The kernel's events are in rings of our own, which hold little.
    let is_lazy = !args.triggers.keeps_events() && kernel.is_none() && watch.is_looking();
    let kept = History::begin(ring_in, args.triggers.rolling(args.compression), is_lazy)?;
    watch.say_what_the_rings_hold(&names, is_lazy);
    let (is_over, commands) = (OnceLock::new(), ActionState::default());
    let (tell, told) = mpsc::channel();
    let (for_commands, files) = mpsc::channel();
    let exec = args.triggers.exec.as_deref();
    let action = exec.map(|command| Action::new(command, args.triggers.exec_timeout, &commands, tell.clone()));
    let waiting = Arc::clone(&watch.judge.waiting);
    let writer = FileWriter {
        kept: &kept,
        names: &template,
        args,
        actions: exec.map(|command| FileActions { command, state: &commands, files: for_commands }),
        is_over: &is_over,
        is_hurried: &commands.is_hurried,
        waiting: &waiting,
        times: TimeFormat::new(true),
    };
    let end = std::thread::scope(|scope| {
        let (shots, for_writer) = mpsc::channel();
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        let failed = |error| Failure::io("cannot start a thread", &error);
        thread("capture-files").spawn_scoped(scope, move || writer.run(&for_writer, &tell)).map_err(failed)?;
        if let Some(action) = action {
            thread("capture-exec").spawn_scoped(scope, move || action.run(&files)).map_err(failed)?;
        }
        if has_past {
            watch.read_past(&shots);
        }
        let end = watch.run(&mut rings, &shots, &told, &interrupt);
        // Its rings end with it, and the capture after them.
        if let Some(recording) = kernel {
            recording.finish();
        }
        if end.until_nanos().is_some() {
            // The files have nothing that comes later, so what the capture keeps for those that wait need not go.
            kept.end();
        } else {
            // The capture notices the end of the programs a little later. Then no file lacks the time after its event.
            let until = Instant::now() + END_TIME_MAX;
            while !kept.has_ended() && !interrupt.came() && Instant::now() < until {
                std::thread::sleep(PAUSE);
            }
        }
        let _ = is_over.set(end);
        watch.read_rest(end, &shots, &interrupt);
        // The writer ends after the shots that wait.
        drop(shots);
        watch.finish_files(end, &told, &interrupt, &commands);
        anyhow::Ok(end)
    })?;
    let not_shown = watch.screen.finish();
    watch.problems.extend(not_shown);
    let (summary, failed) = kept.finish().map_or_else(|error| (None, Some(error)), |summary| (summary, None));
    watch.problems.extend(failed.as_ref().map(ToString::to_string));
    // From here on, each signal ends the process.
    drop(interrupt);
    if args.json {
        watch.print_json(end, summary.as_ref())?;
    }
    let code = rings.program.as_mut().and_then(Program::exit_code);
    let failure = rings.failure("the others were watched");
    if code.is_some() {
        rings.remove_what_stayed_for_us();
    }
    let has_lost = summary.as_ref().is_some_and(|summary| summary.stats.lost_since() > 0);
    let has_lost = has_lost || watch.not_written > 0 || watch.conditions.untested() > 0;
    let failure = failed.map(Into::into).or(failure).or(watch.failure.take());
    let outcome = match (failure, code) {
        (Some(failure), _) => Err(failure),
        _ if args.strict && has_lost => Ok(Exit::Lost as i32),
        // `eventring` exits with the exit code of the program that it has started, as a shell does.
        (None, Some(code)) if code != 0 => Ok(code),
        _ => enabled.map(|_| Exit::Done as i32),
    };
    end_even_if_nobody_reads(outcome.as_ref().map_or_else(|error| Exit::from_error(error) as i32, |code| *code));
    watch.print(end, summary.as_ref());
    rings.say_late_rings();
    let code = outcome?;
    Exit::from_code(code).map_or_else(|| std::process::exit(code), Ok)
}

/// Refuses conditions that name fields which no event of the rings has. While rings are missing that may have them,
/// this is not known.
fn check_condition_fields(conditions: &[Condition], rings: &AwaitedRings) -> Result<(), Failure> {
    if !rings.are_all_open() {
        return Ok(());
    }
    let known: Vec<KnownFields> = rings.opened.iter().map(KnownFields::of_reader).collect();
    for condition in conditions {
        let refuse = |why: String| Exit::Usage.failure(format!("--on '{condition}': {why}"));
        check_fields(condition, &known).map_err(refuse)?;
    }
    Ok(())
}

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
    fn new(args: &'a Args, ring_out: Sender<Reader>, signal: UserSignal) -> Self {
        let conditions = ConditionSet::new(args.triggers.conditions.clone());
        // Without rates and percentiles, nothing is counted.
        let options = conditions.options(LiveOptions::new().windows([]).without_self_times());
        Self {
            args,
            live: Live::new(RingSet::options().from_readers([]), &options),
            judge: Judge {
                policy: Policy::new(args.triggers.limits(), conditions.conditions().len()),
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
    fn keep(&self, rings: Vec<Reader>) {
        let send = |ring| self.ring_out.as_ref().map(|ring_out| ring_out.send(ring));
        rings.into_iter().for_each(|ring| _ = send(ring));
    }

    /// Takes the rings that were found since the last call.
    fn take_rings(&mut self, rings: &mut AwaitedRings) {
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
    fn is_looking(&mut self) -> bool {
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
    fn read_past(&mut self, shots: &Sender<Shot>) {
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
    fn run(
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
            let progress = self.read(shots, |live, see| live.read(PAUSE, see));
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
