//! `eventring icount`.
//!
//! | file | idea |
//! |---|---|
//! | `qemu` | QEMU and its plugin, and the command that runs a program under them |
//! | `directory` | the directory of a run |
//! | `unfinished` | the capture, which has no name until the run has counted instructions |
//! | `signals` | the signals that end a run |
//! | `rings` | the rings that the program makes |
//! | `count` | the result, or the reason why there is none |
//! | `result` | the output of the result, for people and for programs |

mod count;
mod directory;
mod qemu;
pub(crate) mod result;
mod rings;
mod signals;
mod unfinished;

use crate::exit::Exit;
use crate::input::programs::program::Program;
use crate::output;
use count::InstructionCount;
use directory::RunDirectory;
use eventring_capture::{CaptureFile, CaptureOptions, CaptureSummary, OutputKind, capture_rings};
use eventring_export::summarize;
use qemu::{CountMode, Qemu};
pub(crate) use result::Counted;
use rings::ProgramRings;
use signals::RunSignals;
use std::cell::RefCell;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use unfinished::UnfinishedCapture;

/// Run a program under QEMU and count its spans' instructions
///
/// The program must record `tracing` spans with eventring. The counts are those of the program without the recorder,
/// and are the same in each run if the program does the same. EVENTRING_QEMU is the path of QEMU [default: qemu-x86_64
/// in PATH], and EVENTRING_QEMU_PLUGIN that of the plugin [default: the one beside this program].
#[derive(clap::Args)]
pub(crate) struct IcountArgs {
    /// Keep the capture of the program's rings in this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(short, long)]
    force: bool,
    /// Way to count: by blocks of instructions, or each instruction by itself, which is slow and serves as a check
    #[arg(long, value_name = "MODE", default_value = "tb")]
    mode: CountMode,
    /// The processor that QEMU plays, as for its option -cpu; `max` for programs that need more than the oldest one
    #[arg(long, value_name = "MODEL")]
    cpu: Option<OsString>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The program, with its arguments
    #[arg(last = true, value_name = "COMMAND", required = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &IcountArgs) -> anyhow::Result<Exit> {
    let qemu = Qemu::find()?;
    let [program, arguments @ ..] = args.command.as_slice() else {
        return Exit::Usage.fail("no program is named after `--`; name it there");
    };
    let program = qemu::find_program(program)?;
    if let Some(output) = &args.output {
        let target = output::look(output, args.force)?;
        output::try_to_write(output, Some(&target))?;
        if !matches!(target, OutputKind::File) {
            return Exit::Usage.fail("-o needs a file: the counts are read from it");
        }
    }
    let signals = RunSignals::listen()?;
    let directory = RunDirectory::make()?;
    let report = directory.path().join("report");
    let command = qemu.command(args.mode, args.cpu.as_deref(), &report, &program, arguments);
    let rings_directory = directory.path().join("rings");
    let envs = rings::environment(&rings_directory, &program);
    let unfinished = args.output.as_deref().map(UnfinishedCapture::beside).transpose()?;
    let temporary = directory.path().join("icount.evc");
    let file = unfinished.as_ref().map_or(&*temporary, UnfinishedCapture::path);
    let started = Program::start_with(&command, args.json, &envs)?;
    let rings = RefCell::new(ProgramRings::new(started, rings_directory));
    let is_recording = rings.borrow_mut().wait_for_first(&signals);
    let captured = if is_recording { Some(capture(&rings, file, &signals)?) } else { None };
    let code = rings.borrow_mut().wait(&signals);
    if signals.came() {
        return Exit::Failed.fail("interrupted; nothing was counted");
    }
    let total = count::total(&report, &qemu, code)?;
    let Some(captured) = captured else {
        return Err(count::no_rings(&program, code, rings.borrow().program.problem()).into());
    };
    let summary = summarize(&CaptureFile::open(file)?)?;
    let count = InstructionCount::new(&summary, &captured, total)?;
    if let Some(unfinished) = unfinished {
        unfinished.publish(args.force)?;
    }
    match args.json {
        true => result::print_json(&count)?,
        false => result::print_table(&count, args.output.as_deref())?,
    }
    result::warn(&count, code);
    match code {
        _ if count.lost > 0 => Ok(Exit::Lost),
        0 => Ok(Exit::Done),
        // As for `capture`, the program's exit code is ours.
        code => {
            drop(directory);
            std::process::exit(code)
        }
    }
}

/// Captures the program's rings until it has ended.
fn capture(rings: &RefCell<ProgramRings>, file: &Path, signals: &RunSignals) -> anyhow::Result<CaptureSummary> {
    let mut progress = |_: &_| {
        let program = &mut rings.borrow_mut().program;
        let is_over = program.is_long_gone();
        if signals.hand_on(program) || is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut next_ring = || rings.borrow_mut().next();
    let options = CaptureOptions::new().overwrite(true);
    Ok(capture_rings(&mut next_ring, file, &options, &mut progress)?)
}
