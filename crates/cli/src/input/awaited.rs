//! The rings of a capture. Some rings may not exist yet when the capture begins. Each ring is opened when it is found,
//! so the ring can be read even after its file was removed.

use crate::exit::Exit;
use crate::input::directories::instance_of;
use crate::input::directories::named_or_usual;
use crate::input::programs::family::Family;
use crate::input::programs::open_files::WhyAwaited;
use crate::input::programs::processes::{FollowedPrograms, is_of_process};
use crate::input::programs::program::Program;
use crate::input::programs::strangers;
use crate::input::{LOOK_PAUSE, advice};
use crate::interrupt::Interrupt;
use crate::text::format::{counted, duration};
use crate::text::losses::report_problem;
use crate::text::silence::Silence;
use eventring::reader::{Reader, ReaderError, ReaderErrorKind, RingState};
use eventring::recorder::Clock;
use eventring_capture::{NextRing, ReadFiles};
use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The pause between two searches for a ring if this process has started the program that makes the ring.
const SHORT_INTERVAL: Duration = Duration::from_millis(1);

/// The pause between two looks for new rings of running programs.
const PROGRAM_INTERVAL: Duration = Duration::from_millis(20);
/// The time after which a look opens no more rings, so that a slow server delays the capture only shortly.
const LOOK_MAX: Duration = Duration::from_millis(500);
/// The same for the rings that are opened before a capture begins, which may itself be shorter.
const OPENING_MAX: Duration = Duration::from_secs(5);

/// The largest number of rings that a message names.
const NAMED_MAX: usize = 20;

/// The rings that the command line names.
pub(crate) struct AwaitedRings {
    /// The program that makes the rings. `None` if this process has started no program.
    pub(crate) program: Option<Program>,
    /// Running programs of which all rings are captured.
    programs: FollowedPrograms,
    /// Processes of which the rings are captured that they have mapped, with a server or without.
    family: Option<Family>,
    /// The names of rings of programs that were not opened yet.
    named: VecDeque<PathBuf>,
    /// The time after which no more rings of programs are opened before the capture begins.
    opening_max: Duration,
    /// The names of all rings, whether they exist or not.
    names: Vec<PathBuf>,
    /// Names of rings that do not exist yet.
    awaited: Vec<PathBuf>,
    /// The names that were looked for. Rings of the others may exist: their server is slow.
    looked_for: HashSet<PathBuf>,
    /// True if each ring that has ended may be followed by the next one of its name, as long as another ring lives.
    /// When all have ended, [`Self::wait_for_successors`] goes on.
    pub(crate) reopens: bool,
    /// The latest ring of each name, if others may be made under these names: by the program that was started, or
    /// because of `reopens`.
    latest: Vec<Reader>,
    /// Rings that were opened and that [`AwaitedRings::next`] has not returned yet.
    found: VecDeque<Reader>,
    /// All rings that were opened.
    pub(crate) opened: Vec<Reader>,
    /// True when no process can make the awaited rings any more.
    is_over: bool,
    /// True while running programs may make more rings. A program whose rings have all ended makes no more.
    are_programs_live: bool,
    /// The first error of a program that was awaited.
    refused: Option<anyhow::Error>,
    /// The first error of a ring that exists but cannot be captured.
    failed: Option<ReaderError>,
    /// True if `failed` was printed.
    is_failure_said: bool,
    next_look: Instant,
    /// The time just before the last look, in nanoseconds since the epoch.
    looked_nanos: u64,
    next_program_look: Instant,
    why_awaited: WhyAwaited,
    silence: Silence,
}

impl AwaitedRings {
    /// Checks that these may be names of rings, before a program is started that would then run for nothing.
    pub(crate) fn check_names(names: &[PathBuf]) -> Result<(), ReaderError> {
        let is_none = |name: &&PathBuf| !is_of_process(name) && advice::instead_of_a_name(name).is_some();
        let mut others = names.iter().filter(is_none);
        others.try_for_each(|name| open(name).map(drop))
    }

    /// Makes a set of these names. No ring is opened yet. If `program` is given, rings that are older than the program
    /// are ignored.
    pub(crate) fn new(names: &[PathBuf], program: Option<Program>, programs: FollowedPrograms) -> Self {
        let is_any_live = programs.may_make_more();
        Self {
            program,
            opening_max: programs.timeout.map_or(OPENING_MAX, |timeout| timeout.min(OPENING_MAX)),
            programs,
            family: None,
            named: VecDeque::new(),
            names: names.to_vec(),
            awaited: names.to_vec(),
            looked_for: HashSet::new(),
            reopens: false,
            latest: Vec::new(),
            found: VecDeque::new(),
            opened: Vec::new(),
            is_over: false,
            are_programs_live: is_any_live,
            refused: None,
            failed: None,
            is_failure_said: false,
            next_look: Instant::now(),
            looked_nanos: 0,
            next_program_look: Instant::now(),
            why_awaited: WhyAwaited::default(),
            silence: Silence::new(false),
        }
    }

    /// Captures also the rings that these processes have mapped.
    #[cfg_attr(
        not(all(feature = "profile", any(target_arch = "x86_64", target_arch = "aarch64"))),
        allow(dead_code, reason = "only `profile` looks for rings of processes")
    )]
    pub(crate) fn with_family(self, family: Family) -> Self {
        Self { family: Some(family), are_programs_live: true, ..self }
    }

    /// Waits until a ring has been followed by another one of its name. From then on, only these are the rings of the
    /// capture, so the memory of the others is free. Calls `meanwhile` often. Returns false if this or the user does
    /// not want to wait any longer, if rings are not reopened, or if no other ring can come: [`Self::failure`] says
    /// why.
    pub(crate) fn wait_for_successors(&mut self, interrupt: &Interrupt, meanwhile: &mut dyn FnMut() -> bool) -> bool {
        if !self.reopens {
            return false;
        }
        self.opened.clear();
        while self.found.is_empty() {
            if interrupt.came() || self.latest.is_empty() || !meanwhile() {
                return false;
            }
            std::thread::sleep(PROGRAM_INTERVAL);
            self.look_for_successors();
        }
        true
    }

    /// Opens all rings, which must exist. One with the schema of another version is left to [`Self::failure`], unless
    /// all are such. If a server is slow, the rest of its rings is opened later.
    pub(crate) fn open_all(&mut self) -> Result<(), ReaderError> {
        let begin = Instant::now();
        for name in std::mem::take(&mut self.awaited) {
            if begin.elapsed() >= self.opening_max && is_of_process(&name) {
                self.named.push_back(name);
                continue;
            }
            match open(&name) {
                Ok(reader) => self.hold(reader),
                Err(error) if matches!(error.kind(), ReaderErrorKind::WrongSchema { .. }) => {
                    self.failed.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        match self.failed.take_if(|_| self.found.is_empty()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Waits until at least one ring exists, at most for the time `limit`. Returns true if the first search found a
    /// ring. Such a ring may hold events from the time before the capture.
    ///
    /// # Errors
    /// No ring was made; the error says why.
    pub(crate) fn wait_for_first(&mut self, limit: Option<Duration>, interrupt: &Interrupt) -> anyhow::Result<bool> {
        let mut is_at_once = true;
        let begin = Instant::now();
        loop {
            self.look();
            if let Some(error) = self.refused.take().or_else(|| self.failed.take().map(Into::into)) {
                return Err(error);
            }
            if !self.found.is_empty() {
                return Ok(is_at_once);
            }
            if self.is_over {
                return Err(self.missing_rings_error("nothing was captured"));
            }
            if interrupt.came() {
                return Exit::NotFound.fail(format!(
                    "interrupted before {} made{}; nothing was captured or sent, and no file was written",
                    self.those_awaited("was", "were"),
                    self.why()
                ));
            }
            if let Some(limit) = limit.filter(|limit| begin.elapsed() >= *limit) {
                return Exit::NotFound.fail(format!(
                    "{} not made within {} (--duration){}; start the program that records there sooner, or give a longer --duration (nothing was \
                     captured, and no file was written)",
                    self.those_awaited("was", "were"),
                    duration(limit),
                    self.why()
                ));
            }
            is_at_once = false;
            self.say_what_is_awaited();
            std::thread::sleep(self.interval());
        }
    }

    fn interval(&self) -> Duration {
        match () {
            () if self.program.is_some() => SHORT_INTERVAL,
            () if self.reopens && self.awaited.is_empty() => PROGRAM_INTERVAL,
            () => LOOK_PAUSE,
        }
    }

    /// Returns true if more rings may come. While a program runs that was started, it may always make another ring.
    fn may_come_more(&self) -> bool {
        let is_awaited = !(self.awaited.is_empty() && self.named.is_empty() && self.programs.awaited().is_empty());
        let may_follow = self.reopens && self.opened.iter().any(|ring| ring.state() == RingState::Live);
        !self.is_over && (self.program.is_some() || may_follow || is_awaited || self.are_programs_live)
    }

    /// Returns true if the program has ended, and all rings that it made were handed out.
    pub(crate) fn has_handed_out_all(&self) -> bool {
        self.is_over && self.found.is_empty()
    }

    /// Returns the next ring for the capture. The capture calls this function often, so it searches for rings only
    /// after a pause.
    pub(crate) fn next(&mut self) -> NextRing {
        let now = Instant::now();
        if self.found.is_empty() && self.may_come_more() && now >= self.next_look {
            self.look();
            // A look that took long is followed by as long a pause, in which the capture goes on.
            self.next_look = Instant::now() + self.interval().max(now.elapsed());
        }
        match self.found.pop_front() {
            Some(reader) => NextRing::Ring(reader),
            None if self.may_come_more() => NextRing::NotYet,
            None => NextRing::NoMore,
        }
    }

    /// Returns the time (nanoseconds since the epoch) of the last look while named rings are awaited. What was recorded
    /// later may belong to spans of a ring that was not found yet.
    pub(crate) fn looked_nanos(&self) -> Option<u64> {
        (!self.is_over && !self.awaited.is_empty()).then_some(self.looked_nanos)
    }

    /// Opens the rings that were made since the last search.
    fn look(&mut self) {
        self.looked_nanos = Clock::global().now_epoch_nanos();
        // This check comes before the search. If the program has ended by now, the search finds all rings that the
        // program has made, and no further search is needed.
        let has_ended = self.program.as_mut().is_some_and(Program::has_ended);
        if let Some(program) = self.program.as_mut().filter(|_| !self.awaited.is_empty()) {
            program.look_for_problem();
        }
        self.look_for_successors();
        self.look_at_programs(has_ended);
        let begin = Instant::now();
        let mut names = std::mem::take(&mut self.awaited).into_iter();
        while begin.elapsed() < LOOK_MAX
            && let Some(name) = names.next()
        {
            // A server has come to the path. All rings of its program are meant, and no ring of this name.
            if self.programs.add_if_named(&name) {
                self.next_program_look = Instant::now();
                continue;
            }
            if !self.looked_for.contains(&name) {
                self.looked_for.insert(name.clone());
            }
            match open(&name) {
                Ok(reader) if self.program.as_ref().is_none_or(|program| program.is_creator_of(&reader)) => {
                    self.hold(reader)
                }
                // An earlier instance has the ring of this name, so that of the program has a number.
                Ok(_) => match self.ring_of_instance(&name) {
                    Some(reader) => self.hold(reader),
                    None => self.awaited.push(name),
                },
                // The ring does not exist yet, so its name stays in the list. A name with sizes (`name:15:24`) does
                // not stay in the list: it is a recorder's configuration. No ring ever has such a name, so waiting
                // would not end.
                Err(error) if error.may_come() && advice::instead_of_a_name(&name).is_none() => self.awaited.push(name),
                // The ring cannot be opened, although it exists, or no ring can have this name. Waiting would not
                // help.
                Err(error) => _ = self.failed.get_or_insert(error),
            }
        }
        // Those that were not looked for have their turn first.
        self.awaited.splice(0..0, names);
        self.is_over = has_ended;
    }

    /// Opens the ring that the program has made as a further instance: `shop~2`, because another process has `shop`.
    fn ring_of_instance(&self, name: &Path) -> Option<Reader> {
        let program = self.program.as_ref()?;
        let of = name.file_name()?.to_str()?;
        let is_instance = |path: &PathBuf| {
            let file = path.file_name().and_then(|file| file.to_str());
            file.and_then(instance_of) == Some(of)
        };
        let directories = directories(&[name.to_path_buf()]);
        let files = directories.iter().filter_map(|directory| directory.read_dir().ok()).flatten().flatten();
        let paths = files.map(|file| file.path()).filter(is_instance);
        paths.filter_map(|path| open(&path).ok()).find(|ring| program.is_creator_of(ring))
    }

    /// Opens the rings that were made under the names of others since the last search.
    fn look_for_successors(&mut self) {
        for ring in std::mem::take(&mut self.latest) {
            match successor(&ring) {
                Ok(Some(next)) => self.hold(next),
                Ok(None) => self.latest.push(ring),
                Err(error) => _ = self.failed.get_or_insert(error),
            }
        }
    }

    /// Opens the rings that running programs have made since the last search, and those that the program has left.
    fn look_at_programs(&mut self, has_ended: bool) {
        let now = Instant::now();
        if now < self.next_program_look && !has_ended {
            return;
        }
        self.next_program_look = now + PROGRAM_INTERVAL;
        match self.programs.new_rings() {
            Ok(names) => {
                let new = names.into_iter().filter(|name| !self.names.contains(name)).collect::<Vec<_>>();
                self.names.extend_from_slice(&new);
                self.named.extend(new);
            }
            Err(error) => {
                self.programs = FollowedPrograms::default();
                self.refused.get_or_insert(error.into());
            }
        }
        if let Some(family) = &mut self.family {
            let mut found = family.new_rings(open);
            if let Some(program) = self.program.as_ref().filter(|_| has_ended) {
                found.extend(family.left_rings(program.younger_rings_in(&named_or_usual(&[])), open));
            }
            for ring in found {
                match ring {
                    Ok(ring) => self.hold(ring),
                    Err(error) => _ = self.failed.get_or_insert(error),
                }
            }
        }
        let begin = Instant::now();
        while begin.elapsed() < LOOK_MAX
            && let Some(name) = self.named.pop_front()
        {
            match open(&name) {
                Ok(reader) => self.hold(reader),
                // The ring has ended meanwhile.
                Err(error) if error.may_come() => {}
                Err(error) => _ = self.failed.get_or_insert(error),
            }
        }
        // A server may live longer than all rings that it has served, as `eventring serve` does.
        let is_live = |ring: &Reader| ring.state() == RingState::Live;
        let is_first = self.opened.is_empty();
        self.are_programs_live = self.programs.may_make_more() && (is_first || self.opened.iter().any(is_live))
            || self.family.as_ref().is_some_and(Family::is_live);
    }

    /// Returns the names of all rings.
    pub(crate) fn names(&self) -> &[PathBuf] {
        &self.names
    }

    /// Takes a ring. One file is one ring, whoever has shown it: its name, its server, or the process that has it mapped.
    fn hold(&mut self, reader: Reader) {
        if self.opened.iter().any(|ring| ring.file_id() == reader.file_id()) {
            return;
        }
        if self.program.is_some() || self.reopens {
            self.latest.push(reader.clone());
        }
        self.opened.push(reader.clone());
        self.found.push_back(reader);
    }

    /// Returns the files of the rings that were opened.
    pub(crate) fn read_files(&self) -> ReadFiles {
        let mut read = ReadFiles::default();
        self.opened.iter().for_each(|ring| read.add_ring(ring));
        read
    }

    /// Returns true if all rings are open that are named, and no program runs for this capture that may make others.
    pub(crate) fn are_all_open(&self) -> bool {
        self.program.is_none()
            && self.awaited.is_empty()
            && self.programs.awaited().is_empty()
            && !self.are_programs_live
    }

    /// Returns the names of rings that were never made.
    pub(crate) fn missing(&self) -> Vec<PathBuf> {
        // If no ring was opened, all are missing.
        let is_missing = |name: &&PathBuf| self.opened.is_empty() || self.looked_for.contains(*name);
        self.awaited.iter().filter(is_missing).cloned().collect()
    }

    /// Prints on stderr which rings of slow servers were not opened in time, if others were captured.
    pub(crate) fn say_late_rings(&self) {
        let is_late = |name: &&PathBuf| !self.opened.is_empty() && !self.looked_for.contains(*name);
        let late = self.named.iter().chain(self.awaited.iter().filter(is_late));
        let names: Vec<String> = late.map(|name| name.display().to_string()).collect();
        if !names.is_empty() {
            let rings = counted(names.len() as u64, "ring was", "rings were");
            let why = "because a server is slow; in a longer time, more are opened";
            report_problem(false, &format!("{rings} not opened in time, {why}: {}", some_of(&names)));
        }
    }

    /// Prints on stderr which rings are awaited, if the wait has lasted for at least a second.
    pub(crate) fn say_what_is_awaited(&mut self) {
        if let Some(line) = self.awaited_line() {
            say!("{line}");
        }
    }

    /// Returns the line that [`Self::say_what_is_awaited`] prints, if it prints one.
    pub(crate) fn awaited_line(&mut self) -> Option<String> {
        let is_awaited = !self.missing().is_empty() || !self.programs.awaited().is_empty();
        if !is_awaited || self.is_over {
            return None;
        }
        let what = format!("waiting for {} to be made{}", self.those_awaited("", "").trim_end(), self.why());
        self.silence.line(|| what)
    }

    /// Returns why an awaited ring was not made, after a colon, if its program says so. Otherwise returns nothing.
    fn why(&mut self) -> String {
        match self.program.as_ref().and_then(Program::problem) {
            Some(problem) => format!(": {problem}"),
            None => self.why_awaited.in_words(&self.missing()),
        }
    }

    /// Prints on stderr which ring could not be captured, while others still are. [`Self::failure`] says it again at
    /// the end.
    pub(crate) fn say_what_has_failed(&mut self) {
        if let Some(error) = self.failed.as_ref().filter(|_| !self.is_failure_said) {
            report_problem(true, &format!("{error}; the other rings go on"));
            self.is_failure_said = true;
        }
    }

    /// Returns `the ring a was` or `the rings a, b were`.
    fn those_awaited(&self, is: &str, are: &str) -> String {
        let missing = self.missing();
        let rings = missing.iter().map(|name| name.display().to_string());
        let programs = self.programs.awaited().into_iter().map(|name| format!("of {name}"));
        let names: Vec<String> = rings.chain(programs).collect();
        let (rings, verb) = if names.len() == 1 { ("ring", is) } else { ("rings", are) };
        format!("the {rings} {} {verb}", some_of(&names))
    }

    /// Returns an error if some of the named rings were not captured, and otherwise `None`. `outcome` is a text about
    /// the rings that were captured.
    pub(crate) fn failure(&mut self, outcome: &str) -> Option<anyhow::Error> {
        match self.refused.take().or_else(|| self.failed.take().map(Into::into)) {
            Some(error) => Some(error),
            None if self.missing().is_empty() && self.programs.awaited().is_empty() => None,
            None => Some(self.missing_rings_error(outcome)),
        }
    }

    fn missing_rings_error(&mut self, outcome: &str) -> anyhow::Error {
        let those = self.those_awaited("was", "were");
        let why = self.why();
        let message = match &mut self.program {
            Some(program) => match program.end_in_words() {
                Some(how) => {
                    let made = program.ring_names_in(&directories(&self.awaited));
                    let hint = match made.as_slice() {
                        _ if !why.is_empty() => String::new(),
                        [] => "; give the name under which it records".to_owned(),
                        made => format!("; it has made {}: give that name", made.join(", ")),
                    };
                    format!("{how}, and {those} not made by it{why}{hint} ({outcome})")
                }
                None => format!("{those} not made{why}; give the name under which the program records ({outcome})"),
            },
            None => format!(
                "{those} never made{why}; start the program that records there, or leave the name out: `eventring list` shows the rings ({outcome})"
            ),
        };
        Exit::NotFound.failure(message).into()
    }

    /// Removes the files of rings that the program has left only because this capture has set `EVENTRING_KEEP` for it.
    pub(crate) fn remove_what_stayed_for_us(&self) {
        if let Some(program) = &self.program {
            let mut directories = directories(&self.awaited);
            if self.family.is_some() {
                directories.extend(named_or_usual(&[]));
            }
            program.remove_rings(&self.opened, &directories);
        }
    }
}

/// Returns the names with commas between them: the first ones, if there are many.
fn some_of(names: &[String]) -> String {
    match names.split_at_checked(NAMED_MAX) {
        Some((first, more)) if !more.is_empty() => format!("{} and {} more", first.join(", "), more.len()),
        _ => names.join(", "),
    }
}

/// Returns the directories in which rings with these names may lie.
fn directories(names: &[PathBuf]) -> Vec<PathBuf> {
    let is_bare = |name: &&PathBuf| name.parent().is_none_or(|parent| parent.as_os_str().is_empty());
    let parents = names.iter().filter(|name| !is_bare(name)).filter_map(|name| name.parent().map(Path::to_path_buf));
    let mut directories: Vec<PathBuf> = parents.collect();
    if names.iter().any(|name| is_bare(&name)) {
        directories.extend(eventring::files::RingDirectories::from_environment().for_reading());
    }
    directories
}

/// Opens a ring that can be captured.
fn open(name: &Path) -> Result<Reader, ReaderError> {
    let reader = Reader::open(name)?;
    advice::check_perf_schema(&reader)?;
    strangers::warn_of_strangers_ring(name, &reader);
    Ok(reader)
}

/// Opens the ring that has replaced `ring` under its name. Returns `None` if there is no such ring.
fn successor(ring: &Reader) -> Result<Option<Reader>, ReaderError> {
    let next = ring.reopen()?;
    next.iter().try_for_each(advice::check_perf_schema)?;
    Ok(next)
}
