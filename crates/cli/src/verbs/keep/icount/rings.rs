//! The rings that a program makes in a ring directory of its own.

use super::signals::RunSignals;
use crate::input::directories;
use crate::input::programs::program::Program;
use eventring::reader::Reader;
use eventring_capture::NextRing;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The pause between two looks for new rings.
const PAUSE: Duration = Duration::from_millis(2);

/// Returns the variables by which the program makes its rings in `directory`. A program that records only if
/// EVENTRING_PERF is set records, too.
pub(super) fn environment(directory: &Path, program: &Path) -> Vec<(&'static str, OsString)> {
    let mut variables = vec![("EVENTRING_DIR", directory.as_os_str().to_owned())];
    let is_set = std::env::var_os("EVENTRING_PERF").is_some_and(|value| !value.is_empty());
    if !is_set {
        let name = program.file_name().unwrap_or(OsStr::new("program"));
        variables.push(("EVENTRING_PERF", name.to_owned()));
    }
    variables
}

/// The program, and the rings that it makes.
pub(super) struct ProgramRings {
    pub(super) program: Program,
    directory: PathBuf,
    found: Vec<Reader>,
    /// The first ring, until the capture asks for it.
    waiting: Vec<Reader>,
    next_look: Instant,
    is_over: bool,
}

impl ProgramRings {
    pub(super) fn new(program: Program, directory: PathBuf) -> Self {
        let next_look = Instant::now();
        Self { program, directory, found: Vec::new(), waiting: Vec::new(), next_look, is_over: false }
    }

    /// Waits until there is a ring, or until the program has ended. Returns true if there is a ring.
    pub(super) fn wait_for_first(&mut self, signals: &RunSignals) -> bool {
        while !self.is_over && !signals.hand_on(&mut self.program) {
            self.look();
            if !self.waiting.is_empty() {
                return true;
            }
            std::thread::sleep(PAUSE);
        }
        false
    }

    /// Waits until the program has ended. Returns its exit code as a shell reports it.
    pub(super) fn wait(&mut self, signals: &RunSignals) -> i32 {
        while !self.program.has_ended() {
            signals.hand_on(&mut self.program);
            std::thread::sleep(PAUSE);
        }
        self.program.wait()
    }

    /// Returns the next ring for the capture.
    pub(super) fn next(&mut self) -> NextRing {
        if self.waiting.is_empty() && !self.is_over && Instant::now() >= self.next_look {
            self.next_look = Instant::now() + PAUSE;
            self.look();
        }
        match self.waiting.pop() {
            Some(ring) => NextRing::Ring(ring),
            None if self.is_over => NextRing::NoMore,
            None => NextRing::NotYet,
        }
    }

    /// Opens the rings that were made since the last look.
    fn look(&mut self) {
        // If the program has ended by now, the look below finds all rings that it has made.
        let has_ended = self.program.has_ended();
        if self.found.is_empty() {
            self.program.look_for_problem();
        }
        let files = directories::finished_files(std::slice::from_ref(&self.directory), false).unwrap_or_default();
        for file in files {
            // A file that is not a ring yet is one at the next look. A later ring of the same name is another file.
            let Ok(ring) = Reader::open(&file) else { continue };
            let is_known = self.found.iter().any(|known| is_same(known, &ring));
            if directories::is_first_shard(&ring) && !is_known {
                self.found.push(ring.clone());
                self.waiting.push(ring);
            }
        }
        self.is_over = has_ended;
    }
}

/// Returns true if both are the same ring: the names and the moments of their making are equal.
fn is_same(known: &Reader, ring: &Reader) -> bool {
    let made = |ring: &Reader| ring.info().extension.map(|extension| (extension.created_epoch_nanos, extension.writer));
    known.path() == ring.path() && made(known) == made(ring)
}
