//! The rings of a capture, as they are made. Each ring is held open from the moment it is seen, so that its program may
//! end and remove it.

use super::program::Program;
use crate::cli::advice;
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::silence::Silence;
use eventring::__internals::layout::header::CONTENT_TYPE_PERF;
use eventring::capture::{NextRing, ReadFiles};
use eventring::reader::{Reader, ReaderError, ReaderErrorKind};
use eventring::schema::perf::PerfEvent;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The pause between two looks for a ring. It is short, because a program may live for milliseconds only.
const INTERVAL: Duration = Duration::from_millis(2);
/// The pause between two looks for a ring of a program that this process has started.
const SHORT_INTERVAL: Duration = Duration::from_millis(1);

/// The rings that the command line names.
pub(super) struct AwaitedRings {
    /// The program that makes them, if this process has started one.
    pub(super) program: Option<Program>,
    /// Names of rings that do not exist yet.
    awaited: Vec<PathBuf>,
    /// Rings that were opened and not handed to the capture yet.
    found: VecDeque<Reader>,
    /// All rings that were opened.
    opened: Vec<Reader>,
    /// True once nobody can make the awaited rings any more.
    is_over: bool,
    /// The error of a ring that exists and cannot be captured.
    failed: Option<ReaderError>,
    next_look: Instant,
    silence: Silence,
}

impl AwaitedRings {
    /// Makes a set of these names; the rings must be those of `program` if there is one. Opens no ring yet.
    pub(super) fn new(names: &[PathBuf], program: Option<Program>) -> Self {
        Self {
            program,
            awaited: names.to_vec(),
            found: VecDeque::new(),
            opened: Vec::new(),
            is_over: false,
            failed: None,
            next_look: Instant::now(),
            silence: Silence::new(false),
        }
    }

    /// Opens all rings, which must exist.
    pub(super) fn open_all(&mut self) -> Result<(), ReaderError> {
        for name in std::mem::take(&mut self.awaited) {
            self.hold(open(&name)?);
        }
        Ok(())
    }

    /// Waits until at least one ring exists. Returns true if that was so at the first look.
    ///
    /// # Errors
    /// No ring was made; the error says why.
    pub(super) fn wait_for_first(&mut self, interrupt: &Interrupt) -> anyhow::Result<bool> {
        let mut is_at_once = true;
        loop {
            self.look();
            if let Some(error) = self.failed.take() {
                return Err(error.into());
            }
            if !self.found.is_empty() {
                return Ok(is_at_once);
            }
            if self.is_over {
                return Err(self.missing_rings_error("nothing was captured"));
            }
            if interrupt.came() {
                let message = format!(
                    "the capture was interrupted before {} made; nothing was captured, and no file was written",
                    self.those_awaited("was", "were")
                );
                return Err(Failure::new(Exit::NotFound, message).into());
            }
            is_at_once = false;
            self.say_what_is_awaited();
            std::thread::sleep(self.interval());
        }
    }

    fn interval(&self) -> Duration {
        if self.program.is_some() { SHORT_INTERVAL } else { INTERVAL }
    }

    /// Returns the next ring for the capture, which calls this often.
    pub(super) fn next(&mut self) -> NextRing {
        let now = Instant::now();
        if self.found.is_empty() && !self.awaited.is_empty() && !self.is_over && now >= self.next_look {
            self.next_look = now + self.interval();
            self.look();
        }
        match self.found.pop_front() {
            Some(reader) => NextRing::Ring(reader),
            None if self.awaited.is_empty() || self.is_over => NextRing::NoMore,
            None => NextRing::NotYet,
        }
    }

    /// Opens the rings that were made since the last look.
    fn look(&mut self) {
        // The program's end is checked before the look, so that the look finds all rings that the program has made.
        let has_ended = self.program.as_mut().is_some_and(Program::has_ended);
        for name in std::mem::take(&mut self.awaited) {
            match open(&name) {
                Ok(reader) if self.program.as_ref().is_none_or(|program| program.is_creator_of(&reader)) => {
                    self.hold(reader)
                }
                Ok(_) => self.awaited.push(name),
                // Nobody will ever make a ring of a name with sizes.
                Err(error)
                    if error.kind() == ReaderErrorKind::NotFound && advice::instead_of_a_name(&name).is_none() =>
                {
                    self.awaited.push(name);
                }
                // Waiting would not help.
                Err(error) => {
                    self.failed.get_or_insert(error);
                }
            }
        }
        self.is_over = has_ended;
    }

    fn hold(&mut self, reader: Reader) {
        self.opened.push(reader.clone());
        self.found.push_back(reader);
    }

    /// Returns the files of the rings that were opened.
    pub(super) fn read_files(&self) -> ReadFiles {
        let mut read = ReadFiles::default();
        self.opened.iter().for_each(|ring| read.add_ring(ring));
        read
    }

    /// Returns the names of rings that were never made.
    pub(super) fn missing(&self) -> &[PathBuf] {
        &self.awaited
    }

    /// Says on stderr which rings are awaited, if that has lasted for a while.
    pub(super) fn say_what_is_awaited(&mut self) {
        if !self.awaited.is_empty() && !self.is_over {
            let what = format!("waiting for {} to be made", self.those_awaited("", "").trim_end());
            self.silence.say(|| what);
        }
    }

    /// Returns `the ring a was` or `the rings a, b were`.
    fn those_awaited(&self, is: &str, are: &str) -> String {
        let names: Vec<String> = self.awaited.iter().map(|name| name.display().to_string()).collect();
        let (rings, verb) = if names.len() == 1 { ("ring", is) } else { ("rings", are) };
        format!("the {rings} {} {verb}", names.join(", "))
    }

    /// Returns the failure of rings that were not captured though others were; `outcome` describes the capture of the
    /// other rings.
    pub(super) fn failure(&mut self, outcome: &str) -> Option<anyhow::Error> {
        match self.failed.take() {
            Some(error) => Some(error.into()),
            None if self.awaited.is_empty() => None,
            None => Some(self.missing_rings_error(outcome)),
        }
    }

    fn missing_rings_error(&mut self, outcome: &str) -> anyhow::Error {
        let those = self.those_awaited("was", "were");
        let message = match &mut self.program {
            Some(program) => match program.end_in_words() {
                Some(how) => {
                    let made = program.ring_names_in(&directories(&self.awaited));
                    let hint = match made.as_slice() {
                        [] => "give the name under which it records".to_owned(),
                        made => format!("it has made {}: give that name", made.join(", ")),
                    };
                    format!("{how}, and {those} not made by it; {hint} ({outcome})")
                }
                None => format!("{those} not made; give the name under which the program records ({outcome})"),
            },
            None => format!(
                "{those} never made; start the program that records there, or leave the name out: `eventring list` shows the rings ({outcome})"
            ),
        };
        Failure::new(Exit::NotFound, message).into()
    }

    /// Removes the files of the program's rings that stayed for the capture only, after the program's end.
    pub(super) fn remove_what_stayed_for_us(&self) {
        if let Some(program) = &self.program {
            program.remove_rings(&self.opened, &directories(&self.awaited));
        }
    }
}

/// Returns the directories in which rings of these names would be.
fn directories(names: &[PathBuf]) -> Vec<PathBuf> {
    let is_bare = |name: &&PathBuf| name.parent().is_none_or(|parent| parent.as_os_str().is_empty());
    let parents = names.iter().filter(|name| !is_bare(name)).filter_map(|name| name.parent().map(Path::to_path_buf));
    let mut directories: Vec<PathBuf> = parents.collect();
    if names.iter().any(|name| is_bare(&name)) {
        directories.extend(eventring::__internals::shm::RingDirectories::from_environment().for_reading());
    }
    directories
}

/// Opens a ring that can be captured.
fn open(name: &Path) -> Result<Reader, ReaderError> {
    let reader = Reader::open(name)?;
    if reader.info().content_type == CONTENT_TYPE_PERF {
        reader.check_events::<PerfEvent>()?;
    }
    Ok(reader)
}
