//! The beginning of a capture: its program, its rings, and what is switched on.

use super::args::Args;
use crate::exit::Exit;
use crate::input::advice;
use crate::input::awaited::AwaitedRings;
use crate::input::programs::filter_overrides::Enabled;
use crate::input::programs::processes::{FollowedPrograms, ProcessArgs};
use crate::input::programs::program::Program;
use crate::interrupt::Interrupt;
use crate::text::paint::WARNING;
use eventring::reader::{ReaderError, ReaderErrorKind};
use std::path::PathBuf;

/// Starts the program, if the command line names one, and finds the rings. Returns true with them if there was a ring
/// at the first search. With `spares_stdout`, the program's output goes to stderr.
pub(super) fn begin(
    args: &Args,
    names: &[PathBuf],
    programs: FollowedPrograms,
    spares_stdout: bool,
    interrupt: &Interrupt,
) -> anyhow::Result<(AwaitedRings, bool)> {
    AwaitedRings::check_names(names).map_err(with_advice_to_wait)?;
    let program = match args.command.as_slice() {
        [] => None,
        command => Some(Program::start(command, spares_stdout)?),
    };
    let mut rings = AwaitedRings::new(names, program, programs);
    if args.reopen {
        ProcessArgs::check_lasting(names)?;
        rings.reopens = true;
    }
    if !args.wait && rings.program.is_none() {
        rings.open_all().map_err(with_advice_to_wait)?;
        return Ok((rings, true));
    }
    match rings.wait_for_first(args.duration, interrupt) {
        Ok(is_at_once) => Ok((rings, is_at_once)),
        Err(error) => {
            rings.remove_what_stayed_for_us();
            Err(error)
        }
    }
}

/// Switches on what `--enable` names. If that fails in a program that was started for this capture, the capture goes
/// on, and the inner error is for its end.
pub(super) fn enable(args: &Args, rings: &AwaitedRings) -> anyhow::Result<anyhow::Result<Option<Enabled>>> {
    match args.process.enable(rings.names()) {
        // The program runs already. What it records without the filter override is captured.
        Err(error) if rings.program.is_some() => {
            say!("{WARNING}warning:{WARNING:#} nothing was switched on, the capture goes on: {error}");
            Ok(Err(error))
        }
        enabled => enabled.map(Ok),
    }
}

fn with_advice_to_wait(error: ReaderError) -> anyhow::Error {
    match error.kind() {
        // A ring of this name may still be made, so the message advises to wait for it. This advice is left out for a
        // name with sizes (`name:15:24`), because no ring ever has such a name.
        ReaderErrorKind::NotFound if error.path().and_then(advice::instead_of_a_name).is_none() => {
            let why = error.path().map(advice::why_gone).unwrap_or_default();
            Exit::NotFound.failure(format!("{error}, or have the capture wait for it (--wait){why}")).into()
        }
        _ => error.into(),
    }
}
