//! A profile that is recorded during a capture of the last seconds, and the stacks of threads at this moment.

use super::begin::{base, prepared, processes_of};
use super::result::print_missing;
use crate::exit::Exit;
use crate::input::awaited::AwaitedRings;
use eventring::reader::Reader;
use eventring_profile::record::{Prepared, ProfileOptions, ProfileTarget, Recording};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A capture forgets what was told once. So stacks, files and threads are told again after this time.
const REPEATS: Duration = Duration::from_secs(1);

/// What is to be recorded.
pub(crate) struct Beside {
    base: PathBuf,
    options: ProfileOptions,
    /// What was opened for the program that is started next.
    prepared: Option<Prepared>,
}

impl Beside {
    /// Prepares a recording. If a program is to be started, this thread must start it next.
    pub(crate) fn prepare(sched: bool, stacks: bool, names: &[PathBuf], command: &[OsString]) -> anyhow::Result<Self> {
        let options = ProfileOptions {
            has_sched: sched,
            has_stacks: stacks,
            repeats: Some(REPEATS),
            ..ProfileOptions::default()
        };
        let base = base(names, command);
        let prepared = match command.is_empty() {
            true => None,
            false => Some(Prepared::new(&base, ProfileTarget::NextChild, options.clone())?),
        };
        Ok(Self { base, options, prepared })
    }

    /// Begins to look at the program that was started, or at those that write the rings. Returns the rings of the
    /// recording.
    pub(crate) fn start(self, rings: &AwaitedRings) -> anyhow::Result<(Vec<Reader>, Recording)> {
        let child = rings.program.as_ref().map(crate::input::programs::program::Program::id);
        let prepared = match self.prepared {
            Some(prepared) => prepared,
            None => {
                let processes = processes_of(rings, Vec::new())?;
                if processes.is_empty() {
                    let message = "--sched and --stacks look at programs that run when the capture begins, and none does; \
                                   start it first, or by this capture: `capture … -- PROGRAM`";
                    return Exit::NotFound.fail(message);
                }
                prepared(&self.base, rings, &processes, self.options)?
            }
        };
        print_missing(prepared.missing());
        Ok((prepared.readers()?, prepared.start(child)?))
    }
}
