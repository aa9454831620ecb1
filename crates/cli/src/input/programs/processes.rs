//! Processes on the command line: `pid:N`, the path of a socket and `--process` mean all rings of a program.

use crate::exit::{Exit, Failure};
use crate::input::patterns::{self, FollowedPatterns};
use crate::input::programs::filter_overrides::{Enabled, enable_in_programs_of};
use crate::input::programs::open_files;
use crate::interrupt::Interrupt;
use eventring::control::{ControlError, ControlErrorKind, Process, ServedFile, ServerAddress};
use eventring::files::RingDirectories;
use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The pause between two looks for a program that is not there yet.
const PROGRAM_PAUSE: Duration = Duration::from_millis(20);
/// The time that a server has for an answer in a command that ends sooner.
const TIMEOUT_MIN: Duration = Duration::from_millis(300);
/// The largest number of rings of one program. A program that claims to have more is hostile.
const RINGS_MAX: usize = 4096;
/// The time after which paths are no longer checked. The rings are then named by their server.
const CHECKS_MAX: Duration = Duration::from_secs(1);

/// The options of verbs that read the rings of running programs.
#[derive(clap::Args, Default)]
pub(crate) struct ProcessArgs {
    /// Read all rings of this running program: its name, or the name of one of its rings, or pid:N
    #[arg(long = "process", value_name = "NAME")]
    processes: Vec<String>,
    /// Switch this on in the programs of the rings, as long as this command runs; see `eventring enable`
    #[arg(long, value_name = "DIRECTIVE")]
    enable: Option<String>,
}

impl ProcessArgs {
    /// Returns the names of all rings: those of `names`, and those of the named processes. A name that means a process
    /// is replaced by the names of its rings.
    pub(crate) fn rings(&self, names: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
        let mut rings = expand(names)?;
        for name in &self.processes {
            rings.extend(rings_of(&find(name, None)?, None)?);
        }
        if rings.is_empty() {
            return Err(nothing_to_read().into());
        }
        Ok(rings)
    }

    /// Returns the names of rings, and the programs of which all rings are read. With `waits`, the programs need not be
    /// there yet. A command that ends after a time gives each server no longer than this for an answer.
    pub(crate) fn followed(
        &self,
        names: &[PathBuf],
        waits: bool,
        time: Option<Duration>,
    ) -> anyhow::Result<(Vec<PathBuf>, FollowedPrograms)> {
        let timeout = time.map(|time| time.max(TIMEOUT_MIN));
        let mut programs = FollowedPrograms { timeout, ..FollowedPrograms::default() };
        let is_program = |name: &&PathBuf| name.to_str().is_some_and(Process::is_named_by);
        let (processes, rings): (Vec<&PathBuf>, Vec<&PathBuf>) = names.iter().partition(is_program);
        programs.patterns = FollowedPatterns::new(names);
        let written =
            processes.iter().filter_map(|name| name.to_str()).chain(self.processes.iter().map(String::as_str));
        let mut removed = Vec::new();
        for name in written {
            match programs.add(name) {
                Err(error) if error.kind() == ControlErrorKind::NoServer && !open_files::rings_of(name).is_empty() => {
                    removed.extend(open_files::rings_of(name));
                }
                Err(error) if waits && error.kind() == ControlErrorKind::NoServer => {
                    programs.awaited.push(name.to_owned());
                }
                added => added?,
            }
        }
        let of_programs = programs.new_rings()?;
        let rings = rings.into_iter().filter(|name| !patterns::is_pattern(name)).cloned();
        let rings: Vec<PathBuf> = rings.chain(removed).chain(of_programs).collect();
        if rings.is_empty() && !waits {
            // Returns the error of a pattern that no ring fits.
            self.rings(names)?;
            return Err(nothing_to_read().into());
        }
        if rings.is_empty() && programs.awaited().is_empty() && programs.followed.is_empty() {
            return Err(nothing_to_read().into());
        }
        Ok((rings, programs))
    }

    /// Returns the names of all rings as [`Self::rings`] does. If a program is not there or has no rings yet, and
    /// `waits` is true, waits for it. Returns `None` if the user has stopped the wait.
    pub(crate) fn rings_or_wait(
        &self,
        names: &[PathBuf],
        waits: bool,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Option<Vec<PathBuf>>> {
        let has_names = !names.is_empty() || !self.processes.is_empty();
        let is_awaited = |error: &anyhow::Error| {
            let is_nowhere = |error: &ControlError| error.kind() == ControlErrorKind::NoServer;
            error.is::<Failure>() || error.downcast_ref::<ControlError>().is_some_and(is_nowhere)
        };
        loop {
            match self.rings(names) {
                Err(error) if waits && has_names && is_awaited(&error) => {
                    if interrupt.came() {
                        return Ok(None);
                    }
                    std::thread::sleep(PROGRAM_PAUSE);
                }
                rings => return rings.map(Some),
            }
        }
    }

    /// Checks the directive of `--enable`, as far as it can be checked without the program.
    pub(crate) fn check_directive(&self) -> Result<(), Failure> {
        let Some(directive) = &self.enable else { return Ok(()) };
        crate::input::programs::filter_overrides::check_directives(directive)
    }

    /// Returns an error if `--enable` is used for something that no program records.
    pub(crate) fn refuse_enable(&self, what: &str) -> Result<(), Failure> {
        match &self.enable {
            None => Ok(()),
            Some(_) => Exit::Usage
                .fail(format!("--enable switches on what a running program records, and {what} is read; leave it out")),
        }
    }

    /// Checks that a program that is started again has its rings under the same names. A ring in anonymous memory is
    /// found by the address of its program, and some addresses change with each start.
    pub(crate) fn check_lasting(rings: &[PathBuf]) -> Result<(), Failure> {
        let Some(ring) = rings.iter().find(|ring| is_of_one_process(ring)) else { return Ok(()) };
        Exit::Usage.fail(format!(
            "{}: --reopen cannot find this ring again: the server of a program that is started again gets another \
             address. Start the program with an address, such as EVENTRING_SERVER=@my-app, and name it",
            ring.display()
        ))
    }

    /// Switches on what `--enable` names in the programs of these rings, as long as the returned value lives.
    pub(crate) fn enable(&self, rings: &[PathBuf]) -> anyhow::Result<Option<Enabled>> {
        let Some(directive) = &self.enable else { return Ok(None) };
        enable_in_programs_of(rings, directive).map(Some)
    }
}

/// Returns true if the name means a process, or a ring of one: `PROCESS` or `PROCESS/RING`.
pub(crate) fn is_of_process(name: &Path) -> bool {
    let Some(name) = name.to_str() else { return false };
    Process::is_named_by(name) || name.rsplit_once('/').is_some_and(|(process, _)| Process::is_named_by(process))
}

fn nothing_to_read() -> Failure {
    Exit::Usage
        .failure("nothing to read: name a ring, or a program that has rings with --process; `eventring list` shows all")
}

/// Returns true if the ring is named by the process id of its program, or by a socket whose name has this id.
fn is_of_one_process(ring: &Path) -> bool {
    let socket =
        ring.parent().filter(|process| process.to_str().is_some_and(Process::is_named_by)).map(ServerAddress::new);
    ring.to_str().is_some_and(|text| text.starts_with("pid:"))
        || socket.is_some_and(|address| address.pid_hint().is_some())
}

/// Replaces each name that means a process, and each pattern, by the names of the rings.
pub(crate) fn expand(names: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut rings = Vec::new();
    for name in names {
        match name.to_str().filter(|text| Process::is_named_by(text)) {
            None if patterns::is_pattern(name) => rings.extend(patterns::rings(name)?),
            Some(text) => match find(text, None) {
                Ok(found) => rings.extend(rings_of(&found, Some(text))?),
                // A program without a server can be read if the files of its rings were removed.
                Err(error) => match open_files::rings_of(text) {
                    removed if removed.is_empty() => return Err(error.into()),
                    removed => rings.extend(removed),
                },
            },
            None => rings.push(name.clone()),
        }
    }
    Ok(rings)
}

/// Connects to the processes that a name means. Warns of those of other users.
pub(crate) fn find(name: &str, timeout: Option<Duration>) -> Result<Vec<Process>, ControlError> {
    let found = match timeout {
        Some(timeout) => Process::find_timeout(name, timeout),
        None => Process::find(name),
    }?;
    for process in found.iter().filter(|process| process.is_stranger()) {
        crate::input::programs::strangers::warn_of_stranger(&process.address().to_string(), &process.in_words());
    }
    Ok(found)
}

/// Device and inode of a file. A server may claim any path for a ring, so the file that it hands out is compared.
#[derive(PartialEq, Eq)]
pub(crate) struct FileNumbers(u64, u64);

impl FileNumbers {
    /// Returns the numbers of the file at this path.
    pub(crate) fn from_path(path: &Path) -> Option<Self> {
        path.symlink_metadata().ok().map(|found| Self(found.dev(), found.ino()))
    }

    /// Returns the numbers of a ring that a server hands out.
    pub(crate) fn of_served(process: &Process, file: &ServedFile) -> Option<Self> {
        let found = std::fs::File::from(process.import(file).ok()?).metadata().ok()?;
        Some(Self(found.dev(), found.ino()))
    }
}

/// Returns the names of the rings of processes.
fn rings_of(processes: &[Process], as_written: Option<&str>) -> anyhow::Result<Vec<PathBuf>> {
    let mut rings = Vec::new();
    for process in processes {
        let files = process.files()?;
        rings.extend(names(process, as_written, &files, |_| true));
    }
    Ok(rings)
}

/// Returns the names of the rings that `is_wanted` chooses, without the further shards of recorders. `files` are all
/// that the process has. A ring with a file is named by it, so that it can be read after the program has ended.
fn names(
    process: &Process,
    as_written: Option<&str>,
    files: &[ServedFile],
    mut is_wanted: impl FnMut(&ServedFile) -> bool,
) -> Vec<PathBuf> {
    let address = as_written.map_or_else(|| process.address().to_string(), ToOwned::to_owned);
    let rings = || files.iter().filter(|file| !file.is_further_shard()).take(RINGS_MAX);
    let mut counts = HashMap::new();
    rings().for_each(|file| *counts.entry(file.name()).or_insert(0) += 1);
    let begin = Instant::now();
    // A path that a stranger claims may lead to a file system that never answers. The ring directories are known.
    let directories = RingDirectories::from_environment().for_reading();
    let is_known = |path: &Path| path.parent().is_some_and(|parent| directories.iter().any(|known| known == parent));
    let is_at = |path: &&Path, file: &ServedFile| {
        begin.elapsed() < CHECKS_MAX
            && (!process.is_stranger() || is_known(path))
            && FileNumbers::from_path(path).is_some_and(|at| FileNumbers::of_served(process, file) == Some(at))
    };
    let name = |file: &ServedFile| match file.path().filter(|path| is_at(path, file)) {
        Some(path) => path.to_path_buf(),
        None if counts.get(file.name()) == Some(&1) => format!("{address}/{}", file.name()).into(),
        None => format!("{address}/#{}", file.id()).into(),
    };
    rings().filter(|file| is_wanted(file)).map(name).collect()
}

/// Programs of which all rings are read: those that they have, and those that they make later. Patterns of names are
/// followed in the same way.
#[derive(Default)]
pub(crate) struct FollowedPrograms {
    patterns: FollowedPatterns,
    /// Names of programs that are not there yet.
    awaited: Vec<String>,
    followed: Vec<FollowedProgram>,
    /// The longest time that each server has for an answer, if the command ends after a time.
    pub(crate) timeout: Option<Duration>,
}

struct FollowedProgram {
    process: Process,
    as_written: Option<String>,
    /// The rings that are known.
    known: HashSet<u64>,
}

impl FollowedPrograms {
    /// Returns the names of programs that are not there yet, and the patterns that no ring has fitted yet.
    pub(crate) fn awaited(&self) -> Vec<String> {
        self.awaited.iter().cloned().chain(self.patterns.awaited()).collect()
    }

    /// Returns true if a program may make more rings.
    pub(crate) fn may_make_more(&self) -> bool {
        !self.patterns.is_empty() || self.followed.iter().any(|program| !program.process.is_gone())
    }

    /// Returns the names of the rings that have come since the last call.
    ///
    /// # Errors
    /// A program that was awaited is there and refuses this user, or does not answer.
    pub(crate) fn new_rings(&mut self) -> Result<Vec<PathBuf>, ControlError> {
        for name in std::mem::take(&mut self.awaited) {
            match self.add(&name) {
                Err(error) if error.kind() == ControlErrorKind::NoServer => self.awaited.push(name),
                added => added?,
            }
        }
        let mut rings = self.patterns.new_rings();
        for program in &mut self.followed {
            let is_first = program.known.is_empty();
            if !is_first && program.process.changes().is_empty() {
                continue;
            }
            // A program that has just ended has no more rings.
            let Ok(files) = program.process.files() else { continue };
            let known = &mut program.known;
            let is_new = |file: &ServedFile| known.len() < RINGS_MAX && known.insert(file.id());
            rings.extend(names(&program.process, program.as_written.as_deref(), &files, is_new));
        }
        Ok(rings)
    }

    /// If the name is that of a program, for example because a socket has come to this path, follows the program and
    /// returns true.
    pub(crate) fn add_if_named(&mut self, name: &Path) -> bool {
        let name = name.to_str().filter(|name| Process::is_named_by(name));
        name.is_some_and(|name| self.add(name).is_ok())
    }

    /// Follows all programs of this name.
    fn add(&mut self, name: &str) -> Result<(), ControlError> {
        let as_written = Process::is_named_by(name).then(|| name.to_owned());
        for process in find(name, self.timeout)? {
            process.follow()?;
            self.followed.push(FollowedProgram { process, as_written: as_written.clone(), known: HashSet::new() });
        }
        Ok(())
    }
}
