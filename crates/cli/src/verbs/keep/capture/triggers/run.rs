//! A capture with triggers, from its options to its exit code.

use super::action::Action;
use super::history::History;
use super::names::NameTemplate;
use super::shared::ActionState;
use super::shown_lines::end_even_if_nobody_reads;
use super::watch::{PAUSE, Watch};
use super::writer::{FileActions, FileWriter};
use crate::exit::{Exit, Failure};
use crate::input::awaited::AwaitedRings;
use crate::input::names::fields::{KnownFields, check_fields};
use crate::input::programs::program::Program;
use crate::interrupt::{Interrupt, UserSignal};
use crate::output;
use crate::text::format::TimeFormat;
use crate::verbs::keep::capture::args::Args;
use crate::verbs::keep::capture::begin::{begin, enable};
use crate::verbs::keep::profile::Beside;
use eventring_live::Condition;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

/// The longest time between the end of the programs and that of the capture.
const END_TIME_MAX: Duration = Duration::from_secs(5);

/// Watches, and returns the exit code.
pub(in crate::verbs::keep::capture) fn run(args: &Args) -> anyhow::Result<Exit> {
    args.process.check_directive()?;
    let (names, programs) = args.process.followed(&args.names, args.wait, args.duration)?;
    let ring = names.first().map_or("ring".as_ref(), PathBuf::as_path);
    let template = NameTemplate::of(args.output.as_deref(), ring)?;
    // A name that nobody has, so that a directory that is missing or without rights is noticed now.
    let probe = template.directory().join(format!(".eventring.{}", std::process::id()));
    output::try_to_write(&probe, Some(&output::look(&probe, false)?))?;
    let signal = UserSignal::listen()?;
    // The first interrupt ends the watch, and the second one leaves out the files that wait.
    let interrupt = Interrupt::listen_to(2)?;
    let (sched, stacks) = (args.triggers.sched, args.triggers.stacks);
    // If a program is started, nothing may be started between these two.
    let beside = (sched || stacks).then(|| Beside::prepare(sched, stacks, &args.names, &args.command)).transpose()?;
    let (mut rings, is_at_once) = begin(args, &names, programs, args.json, &interrupt)?;
    check_condition_fields(&args.triggers.conditions, &rings)?;
    // Rings that are made after the start have no past.
    let has_past = is_at_once && rings.program.is_none();
    let enabled = enable(args, &rings)?;
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
