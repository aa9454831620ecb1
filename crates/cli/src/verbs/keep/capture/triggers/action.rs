//! The commands that run after files are written (`--exec`), at most four at a time. The commands delay neither the
//! watch nor the writing of files.

use super::shared::{ActionEnd, ActionState, PENDING_MAX, WriterMessage};
use crate::text::format::duration;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// The largest number of commands that run at the same time. Those for further files wait until one has ended.
const RUNNING_MAX: usize = 4;
/// The time that a command has to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// The pause between two looks at the commands that run.
const PAUSE: Duration = Duration::from_millis(10);
/// A command line for the shell, in which `{file}` stands for the path of a file and `{manifest}` for that of its
/// manifest; and the commands that were started.
pub(super) struct Action<'a> {
    command: String,
    time_max: Duration,
    state: &'a ActionState,
    tell: Sender<WriterMessage>,
    running: Vec<RunningAction>,
}

/// A command that was started. It leads a group of processes, which a signal reaches together.
struct RunningAction {
    child: Child,
    file: PathBuf,
    /// The command with its paths.
    command: String,
    /// The time at which it is asked to end.
    deadline: Instant,
    /// True if it was asked to end. Until its group is killed, it is not waited for, so no other group gets its number.
    is_asked_to_end: bool,
}

impl<'a> Action<'a> {
    pub(super) fn new(command: &str, time_max: Duration, state: &'a ActionState, tell: Sender<WriterMessage>) -> Self {
        Self { command: command.to_owned(), time_max, state, tell, running: Vec::new() }
    }

    /// Runs the command for each file with its manifest, in their order, until no more come and all commands have
    /// ended or are not to be waited for.
    pub(super) fn run(mut self, files: &Receiver<(PathBuf, PathBuf)>) {
        let mut may_come_more = true;
        while may_come_more || !self.running.is_empty() {
            self.look_at_running();
            if self.state.is_interrupted.get().is_some() {
                self.leave_running();
            }
            if !may_come_more || self.running.len() >= RUNNING_MAX {
                std::thread::sleep(PAUSE);
                continue;
            }
            // If no command runs, only a file or the end is waited for.
            let pause = if self.running.is_empty() { Duration::MAX } else { PAUSE };
            match files.recv_timeout(pause) {
                Ok((file, _)) if self.state.is_hurried.get().is_some() => {
                    let message = failure(&file, "was not started: it waited at the end of the watch", &self.command);
                    self.end(ActionEnd::LeftOut(message));
                }
                Ok((file, manifest)) => self.start(file, &manifest),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => may_come_more = false,
            }
        }
    }

    fn start(&mut self, file: PathBuf, manifest: &Path) {
        let command = with_paths(&self.command, &file, manifest);
        match spawned(&command) {
            Ok(child) => {
                let deadline = Instant::now() + self.time_max;
                self.running.push(RunningAction { child, file, command, deadline, is_asked_to_end: false });
            }
            Err(error) => {
                self.end(ActionEnd::Failed(failure(&file, &format!("could not be started: {error}"), &command)));
            }
        }
    }

    /// Takes note of the commands that have ended, and ends those that take too long.
    fn look_at_running(&mut self) {
        let mut ends = Vec::new();
        self.running.retain_mut(|running| match running.end(self.time_max) {
            Some(end) => {
                ends.push(end);
                false
            }
            None => true,
        });
        ends.into_iter().for_each(|end| self.end(end));
    }

    /// Lets the commands that run go on by themselves, except for those that take too long.
    fn leave_running(&mut self) {
        for running in std::mem::take(&mut self.running) {
            if running.is_asked_to_end {
                running.signal(Signal::KILL);
            }
            let RunningAction { file, command, .. } = running;
            self.end(ActionEnd::LeftOut(failure(&file, "still runs, and is not waited for", &command)));
        }
    }

    fn end(&self, end: ActionEnd) {
        *self.state.pending() -= 1;
        // The watch waits for the commands, so it listens.
        let _ = self.tell.send(WriterMessage::ActionEnded(end));
    }
}

impl RunningAction {
    /// Sends a signal to the command and to all that it has started.
    fn signal(&self, signal: Signal) {
        // Nothing else can be done if that fails.
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }

    /// Returns the end of the command, if it has ended. Ends it if it takes too long: its whole group is asked to end,
    /// and killed a little later.
    fn end(&mut self, time_max: Duration) -> Option<ActionEnd> {
        let now = Instant::now();
        if self.is_asked_to_end {
            if now < self.deadline + GRACE {
                return None;
            }
            self.signal(Signal::KILL);
            let _ = self.child.wait();
            let what = format!("has taken longer than {} (--exec-timeout), and was killed", duration(time_max));
            return Some(ActionEnd::TimedOut(failure(&self.file, &what, &self.command)));
        }
        let failed = |what: String| Some(ActionEnd::Failed(failure(&self.file, &what, &self.command)));
        match self.child.try_wait() {
            Ok(None) if now < self.deadline => None,
            Ok(None) => {
                self.signal(Signal::TERM);
                self.is_asked_to_end = true;
                None
            }
            Ok(Some(status)) if ExitStatus::success(&status) => Some(ActionEnd::Done),
            Ok(Some(status)) => failed(format!("has failed ({status})")),
            Err(error) => failed(format!("could not be waited for: {error}")),
        }
    }
}

/// Returns what is said of a file whose command is left out because too many wait.
pub(super) fn left_out(file: &Path, command: &str) -> String {
    failure(file, &format!("was left out: {PENDING_MAX} commands run or wait already"), command)
}

fn failure(file: &Path, what: &str, command: &str) -> String {
    crate::text::secrets::without_secrets(&format!("the command of --exec for {} {what}: {command}", file.display()))
}

fn spawned(command: &str) -> io::Result<Child> {
    // stdout is for the result of the capture.
    let stderr = std::os::fd::AsFd::as_fd(&io::stderr()).try_clone_to_owned()?;
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::from(stderr));
    // A group of its own, so that Ctrl-C ends the watch and not the command, and a signal reaches all that it starts.
    shell.process_group(0).spawn()
}

fn with_paths(command: &str, file: &Path, manifest: &Path) -> String {
    command.replace("{file}", &quoted(file)).replace("{manifest}", &quoted(manifest))
}

/// Returns the path so that the shell reads it as one word.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// Runs a command for these files, and returns how each ended. `hurry` is called when the command has begun.
    fn run(
        command: &str,
        time_max: Duration,
        files: &[(&Path, &Path)],
        hurry: impl FnOnce(&ActionState),
    ) -> Vec<ActionEnd> {
        let state = ActionState::default();
        let (tell, told) = channel();
        let (give, files_in) = channel();
        for (file, manifest) in files {
            assert!(state.add());
            give.send((file.to_path_buf(), manifest.to_path_buf())).unwrap();
        }
        drop(give);
        hurry(&state);
        Action::new(command, time_max, &state, tell).run(&files_in);
        assert_eq!(state.len(), 0);
        let ends = told.into_iter().map(|message| match message {
            WriterMessage::ActionEnded(end) => end,
            _ => unreachable!("only commands tell"),
        });
        ends.collect()
    }

    #[test]
    fn the_command_gets_paths_as_single_words_and_its_failure_names_the_file_and_the_command() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("it's $(a) \"file\".evc");
        std::fs::write(&file, "x").unwrap();
        let manifest = directory.path().join("out put");
        let command = "cat {file} > {manifest}; exit 3";
        let ends = run(command, Duration::from_secs(600), &[(&file, &manifest)], |_| ());
        let [ActionEnd::Failed(said)] = ends.as_slice() else { panic!("{} ends", ends.len()) };
        let expected = [file.to_str().unwrap(), "exit status: 3", "out put'; exit 3"];
        assert!(expected.iter().all(|part| said.contains(part)), "{said}");
        assert_eq!(std::fs::read_to_string(manifest).unwrap(), "x");
    }

    #[test]
    fn a_command_that_takes_too_long_is_killed_with_all_that_it_has_started() {
        let directory = tempfile::tempdir().unwrap();
        let pids = directory.path().join("pids");
        // Neither the shell nor what it starts heeds SIGTERM.
        let command = "trap '' TERM; sleep 1000 & echo $$ $! > {manifest}; while :; do sleep 1000; done";
        let ends = run(command, Duration::from_millis(300), &[("a.evc".as_ref(), &pids)], |_| ());
        let [ActionEnd::TimedOut(said)] = ends.as_slice() else { panic!("{} ends", ends.len()) };
        assert!(said.contains("for a.evc has taken longer than 300") && said.contains("was killed"), "{said}");
        for pid in std::fs::read_to_string(pids).unwrap().split_whitespace() {
            // A killed process takes a moment to end, and is a zombie until the first process of the system has waited
            // for it.
            let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let deadline = Instant::now() + Duration::from_secs(20);
            while !(stat().is_empty() || stat().contains(") Z")) {
                assert!(Instant::now() < deadline, "{}", stat());
                std::thread::sleep(PAUSE);
            }
        }
    }

    #[test]
    fn commands_are_not_started_if_there_is_no_time() {
        let file: &Path = "a.evc".as_ref();
        let ends =
            run("false", Duration::from_secs(600), &[(file, file); 3], |state| state.is_hurried.set(()).unwrap());
        assert_eq!(ends.len(), 3);
        assert!(ends.iter().all(|end| matches!(end, ActionEnd::LeftOut(said) if said.contains("was not started"))));
    }
}
