//! The program that a capture starts.

use super::open_files;
use crate::exit::{Exit, Failure};
use crate::input::directories::is_first_shard;
use crate::input::ring::history::now_epoch_nanos;
use eventring::internal::remove_dead_tables;
use eventring::reader::{Reader, RingState, WriterInfo};
use eventring::recorder::KEEP_VARIABLE;
use rustix::process::{Pid, Signal};
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The longest time that the capture goes on after the program's end, even if another process still writes to the
/// program's rings.
const LINGER: Duration = Duration::from_secs(1);

/// The pause between two looks at whether the program says why it records nothing.
const PROBLEM_INTERVAL: Duration = Duration::from_millis(10);

/// A program that the capture has started.
pub(crate) struct Program {
    child: Child,
    name: String,
    started_epoch_nanos: u64,
    /// True if the capture has set `EVENTRING_KEEP` for the program. The program's rings then stay after the program's
    /// end. The capture removes them later.
    keeps_for_us: bool,
    ended: Option<(ExitStatus, Instant)>,
    /// The reason why the program records nothing, if it has said one.
    problem: Option<String>,
    next_problem_look: Instant,
}

impl Program {
    /// Starts the program. Sets `EVENTRING_KEEP` for it unless the user has set this variable. So the program's rings
    /// stay when the program ends, and the capture cannot miss them. With `spares_stdout`, the program's output goes
    /// to stderr, because stdout is for the capture's own output.
    pub(crate) fn start(command: &[OsString], spares_stdout: bool) -> Result<Self, Failure> {
        Self::start_with(command, spares_stdout, &[])
    }

    /// Starts the program as [`Self::start`] does, and sets environment variables for it.
    pub(crate) fn start_with(
        command: &[OsString],
        spares_stdout: bool,
        variables: &[(&str, OsString)],
    ) -> Result<Self, Failure> {
        let [program, arguments @ ..] = command else {
            return Exit::Usage.fail("no program is named after `--`; name it there, with its arguments");
        };
        let name = program.to_string_lossy().into_owned();
        let cannot = |error: io::Error| {
            let failure = Failure::io(format_args!("cannot start {name}"), &error);
            match error.kind() {
                io::ErrorKind::NotFound => failure.and("check its name and its path"),
                io::ErrorKind::PermissionDenied => failure.and("make it executable for this user"),
                _ => failure,
            }
        };
        let keeps_for_us = std::env::var_os(KEEP_VARIABLE).is_none_or(|value| value.is_empty());
        let mut command = Command::new(program);
        command.args(arguments).envs(variables.iter().cloned());
        if keeps_for_us {
            command.env(KEEP_VARIABLE, "1");
        }
        if spares_stdout {
            let stderr = io::stderr().as_fd().try_clone_to_owned().map_err(cannot)?;
            command.stdout(Stdio::from(stderr));
        }
        let started_epoch_nanos = now_epoch_nanos();
        let child = command.spawn().map_err(cannot)?;
        Ok(Self {
            child,
            name,
            started_epoch_nanos,
            keeps_for_us,
            ended: None,
            problem: None,
            next_problem_look: Instant::now(),
        })
    }

    /// Returns the id of the program's process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks whether the program has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.ended = Some((status, Instant::now()));
        }
        self.ended.is_some()
    }

    /// Asks, now and then, whether the program says why it records nothing. It says so only while it runs.
    pub(crate) fn look_for_problem(&mut self) {
        let now = Instant::now();
        if self.ended.is_none() && now >= self.next_problem_look {
            self.next_problem_look = now + PROBLEM_INTERVAL;
            self.problem = open_files::why_nothing(self.child.id()).or_else(|| self.problem.take());
        }
    }

    /// Returns why the program records nothing, as far as it has said so.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Sends a signal to the program's own process, if it still runs.
    pub(crate) fn send(&mut self, signal: Signal) {
        if !self.has_ended() {
            let _ = rustix::process::kill_process(Pid::from_child(&self.child), signal);
        }
    }

    /// Waits until the program has ended. Returns its exit code as a shell reports it.
    pub(crate) fn wait(&mut self) -> i32 {
        if self.ended.is_none()
            && let Ok(status) = self.child.wait()
        {
            self.ended = Some((status, Instant::now()));
        }
        self.exit_code().unwrap_or(1)
    }

    /// Returns true if the program ended more than [`LINGER`] ago. The capture ends then, even if another process
    /// still writes to the program's rings.
    pub(crate) fn is_long_gone(&mut self) -> bool {
        self.has_ended() && self.ended.is_some_and(|(_, when)| when.elapsed() > LINGER)
    }

    /// Returns the program's exit code as a shell reports it, or `None` if the program still runs.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.has_ended();
        let (status, _) = self.ended?;
        Some(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
    }

    /// Returns the signal that has killed the program, if one has.
    pub(crate) fn signal(&mut self) -> Option<i32> {
        self.has_ended();
        self.ended?.0.signal()
    }

    /// Returns true if the ring was made after the program was started. An older ring belongs to an earlier run of the
    /// program.
    pub(crate) fn is_creator_of(&self, reader: &Reader) -> bool {
        let created = reader.info().extension.map(|extension| extension.created_epoch_nanos);
        created.is_none_or(|created| created >= self.started_epoch_nanos)
    }

    /// Returns a text that says how the program has ended, or `None` while it runs.
    pub(crate) fn end_in_words(&mut self) -> Option<String> {
        let code = self.exit_code()?;
        Some(format!("{} has ended with exit code {code}", self.name))
    }

    /// Returns the paths of the rings in these directories that the program's own process has made.
    pub(crate) fn ring_names_in(&self, directories: &[PathBuf]) -> Vec<String> {
        let rings = self.rings_in(directories, |_| false);
        // A user names all shards of a recorder by the name of shard 0, so only shard 0 is listed.
        rings.iter().filter(|(_, ring)| is_first_shard(ring)).map(|(path, _)| path.display().to_string()).collect()
    }

    /// Removes the files of rings that stayed only because the capture has set `EVENTRING_KEEP`. These are the captured
    /// rings, other rings of the processes that have written the captured rings, rings of the program's own process, and
    /// the tables of the present of all of these. The function searches `directories` and the directories of the captured rings.
    pub(crate) fn remove_rings(&self, captured: &[Reader], directories: &[PathBuf]) {
        if !self.keeps_for_us {
            return;
        }
        let captured = captured.iter().filter(|ring| self.is_creator_of(ring));
        let (writers, beside): (Vec<WriterInfo>, Vec<&Path>) =
            captured.filter_map(|ring| writer(ring).zip(ring.path().and_then(Path::parent))).unzip();
        let mut directories = directories.to_vec();
        directories.extend(beside.into_iter().map(Path::to_path_buf));
        for (path, ring) in self.rings_in(&directories, |its| writers.contains(its)) {
            // Only rings that ended normally are removed. The ring of a process that died stays, as it would stay
            // without a capture.
            if ring.state() == RingState::Ended {
                let _ = std::fs::remove_file(&path);
                let group = ring.info().extension.map(|extension| extension.shard_group);
                group.into_iter().for_each(|group| remove_dead_tables(&path, group));
            }
        }
    }

    /// Returns the rings in these directories that were made after the program was started.
    pub(crate) fn younger_rings_in(&self, directories: &[PathBuf]) -> Vec<(PathBuf, Reader)> {
        let mut rings = self.rings_in(directories, |_| true);
        rings.retain(|(_, ring)| self.is_creator_of(ring));
        rings
    }

    /// Returns the rings in these directories whose writer is the program's own process, or a process that `is_other`
    /// accepts.
    fn rings_in(&self, directories: &[PathBuf], is_other: impl Fn(&WriterInfo) -> bool) -> Vec<(PathBuf, Reader)> {
        let mut directories = directories.to_vec();
        directories.sort();
        directories.dedup();
        let files = directories.iter().filter_map(|directory| std::fs::read_dir(directory).ok()).flatten().flatten();
        let files = files.filter(|file| file.file_type().is_ok_and(|kind| kind.is_file()));
        let opened = files.filter_map(|file| Some((file.path(), Reader::open(file.path()).ok()?)));
        let is_its = |(_, ring): &(PathBuf, Reader)| {
            let writer = writer(ring);
            writer.is_some_and(|writer| {
                is_other(&writer) || (is_numbered(&writer, self.child.id()) && self.is_creator_of(ring))
            })
        };
        opened.filter(is_its).collect()
    }
}

/// Returns true if a process that may have ended had this number here. In another pid namespace, the same number is that
/// of another process.
pub(crate) fn is_numbered(writer: &WriterInfo, pid: u32) -> bool {
    writer.pid == pid && writer.is_numbered_here()
}

fn writer(ring: &Reader) -> Option<WriterInfo> {
    ring.info().extension.map(|extension| extension.writer)
}
