//! The filter overrides of this program in running programs, for itself or for another verb.

use crate::exit::{Exit, Failure};
use eventring::control::{ControlError, OverrideTime, Process};
use eventring::internal::check_override;
use eventring::tracing::TargetFilter;
use std::path::{Path, PathBuf};

/// A recording that another verb has switched on: connections to programs. It is switched off when they are dropped.
pub(crate) type Enabled = Vec<Process>;

/// Switches on `directive` in the programs of these rings, as long as the returned value lives.
pub(crate) fn enable_in_programs_of(rings: &[PathBuf], directive: &str) -> anyhow::Result<Enabled> {
    let mut processes = Enabled::new();
    for ring in rings {
        for process in program_of(ring)? {
            // One connection to each program is enough.
            if !processes.iter().any(|known| known.address() == process.address()) {
                add_override(&process, directive, OverrideTime::Connection)?;
                processes.push(process);
            }
        }
    }
    Ok(processes)
}

/// Connects to the program that records to a ring. The ring is written as a file, or as `PROCESS/RING`.
fn program_of(ring: &Path) -> Result<Vec<Process>, ControlError> {
    let process = ring.parent().and_then(Path::to_str).filter(|_| !ring.exists());
    if let Some(found) = process.filter(|process| !process.is_empty()).and_then(|process| Process::find(process).ok()) {
        return Ok(found);
    }
    Process::find(&ring.file_name().unwrap_or_default().to_string_lossy())
}

/// Checks directives before any program is started or asked.
pub(crate) fn check_directives(directives: &str) -> Result<(), Failure> {
    let of_spans = |list: &str| list.split(',').all(|directive| !directive.trim().starts_with("domain:"));
    let checked = check_override(directives).and_then(|()| match of_spans(directives) {
        true => TargetFilter::parse(directives).map(|_| ()).map_err(|error| error.to_string()),
        // The program checks lists that have domains.
        false => Ok(()),
    });
    checked.map_err(|fault| Exit::Usage.failure(format!("--enable: {fault}")))
}

/// Makes a filter override, and shows what the server says about it. Returns true if the server has said something.
pub(crate) fn add_override(process: &Process, directive: &str, time: OverrideTime) -> Result<bool, ControlError> {
    let note = process.add_override(directive, time)?;
    if !note.is_empty() {
        say!("{}: {}", described(process), note);
    }
    Ok(!note.is_empty())
}

/// Returns the process in words: its program and its number, and its user if this is a stranger.
pub(crate) fn described(process: &Process) -> String {
    format!("{} ({})", process.program(), process.in_words())
}
