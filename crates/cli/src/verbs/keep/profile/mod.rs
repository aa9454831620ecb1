//! `eventring profile`.

mod args;
mod begin;
mod beside;
mod result;

pub(crate) use args::ProfileArgs;
pub(crate) use beside::Beside;
pub(crate) use result::Profiled;

use crate::exit::Exit;
use crate::input::programs::program::Program;
use crate::interrupt::Interrupt;
use crate::output;
use crate::text::paint::{DIM, WARNING};
use crate::verbs::keep::capture_result::{PROGRAM_ENDED, TIME_OVER, killed};
use begin::Begun;
use eventring_capture::{CaptureOptions, CaptureProgress, EndReason, NextRing, OutputKind, capture_rings};
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

/// The number of looks of the capture after the end of the recording. With the first it knows of the last events.
const LAST_LOOKS: u32 = 2;

/// Why a profile stops.
#[derive(Clone, Copy)]
enum Stop {
    Program,
    User,
    Time,
}

pub(crate) fn run(args: &ProfileArgs) -> anyhow::Result<Exit> {
    let options = args.options();
    if options.sample_hz == 0 && !options.has_sched {
        return Exit::Usage.fail("--stacks with --hz 0 records nothing; add --sched, or give a rate");
    }
    args.process.refuse_enable("a profile changes nothing in a program")?;
    let output = begin::output(args);
    match output::is_stdout(&output) {
        false if matches!(output::look(&output, args.force)?, OutputKind::File) => {}
        _ => return Exit::Usage.fail("a profile is written to a file; name one with -o"),
    }
    output::try_to_write(&output, Some(&OutputKind::File))?;
    let interrupt = Interrupt::listen()?;
    let Begun { rings, own, recording, missing, processes } = begin::begin(args)?;
    result::print_missing(&missing);
    let rings = RefCell::new(rings);
    let begin = Instant::now();
    let (why_stopped, last_looks) = (Cell::new(None), Cell::new(0));
    let mut progress = |_: &CaptureProgress| {
        let is_gone = match &mut rings.borrow_mut().program {
            Some(program) => program.has_ended() && (recording.live_threads() == 0 || program.is_long_gone()),
            None => {
                recording.live_threads() == 0
                    || processes.iter().all(|process| !PathBuf::from(format!("/proc/{process}")).exists())
            }
        };
        let why = match () {
            () if is_gone => Some(Stop::Program),
            () if interrupt.came() => Some(Stop::User),
            () if args.duration.is_some_and(|time| begin.elapsed() >= time) => Some(Stop::Time),
            () => None,
        };
        if why.is_some() && why_stopped.get().is_none() {
            why_stopped.set(why);
            recording.stop();
        }
        // The last search for rings comes after the end of the program.
        let is_searching = matches!(why_stopped.get(), Some(Stop::Program)) && {
            let rings = rings.borrow();
            rings.program.is_some() && !rings.has_handed_out_all()
        };
        if recording.has_stopped() && !is_searching {
            last_looks.set(last_looks.get() + 1);
        }
        if last_looks.get() >= LAST_LOOKS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut own = own.into_iter();
    let mut next_ring = || match own.next() {
        Some(ring) => NextRing::Ring(ring),
        None => match rings.borrow_mut().next() {
            NextRing::NoMore if !recording.has_stopped() => NextRing::NotYet,
            next => next,
        },
    };
    let options = CaptureOptions::new().overwrite(args.force);
    let captured = capture_rings(&mut next_ring, &output, &options, &mut progress);
    let profile = recording.finish();
    let mut rings = rings.into_inner();
    let code = rings.program.as_mut().and_then(Program::exit_code);
    if code.is_some() {
        rings.remove_what_stayed_for_us();
    }
    let captured = captured.inspect_err(|_| {
        if let Some(program) = &mut rings.program
            && !program.has_ended()
        {
            let id = program.id();
            say!("{WARNING}warning:{WARNING:#} the program {id} goes on, and is not looked at");
        }
    })?;
    let signal = rings.program.as_mut().and_then(Program::signal).map(killed);
    let ended = match why_stopped.get() {
        Some(Stop::Time) => Some(TIME_OVER),
        // The capture may end before it has seen the end of all rings.
        Some(Stop::Program) if captured.reason == EndReason::Interrupted => {
            Some(signal.as_deref().unwrap_or(PROGRAM_ENDED))
        }
        _ => None,
    };
    let output = &output;
    let said = result::Said { captured: &captured, profile: &profile, missing: &missing, ended, output };
    match args.json {
        true => said.print_json()?,
        false => said.print(rings.program.as_mut()),
    }
    if args.names.is_empty() {
        rings.say_what_has_failed();
    } else if let Some(failure) = rings.failure("the rest was recorded") {
        return Err(failure);
    }
    if rings.opened.is_empty() {
        let hint = "no ring of the program was found; if it has one, name it: `eventring profile RING …`";
        say!("{DIM}{hint}{DIM:#}");
    }
    match code {
        Some(code) if code != 0 => std::process::exit(code),
        _ => Ok(Exit::Done),
    }
}
