//! The command that runs after each file (`--exec`).

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// The largest number of commands that run at the same time. Further files wait until one has ended.
const RUNNING_MAX: usize = 4;

/// The pause between two looks at the commands that run.
const PAUSE: Duration = Duration::from_millis(10);
/// The parts of a command that stand for something.
const PLACEHOLDERS: [&str; 2] = ["file", "manifest"];

/// A command line for the shell, in which `{file}` stands for the path of a file and `{manifest}` for that of its
/// manifest.
pub(super) struct Action<'a> {
    command: String,
    running: Vec<RunningAction>,
    /// A value if commands are not to be waited for.
    is_hurried: &'a OnceLock<()>,
}

/// A command that was started.
struct RunningAction {
    child: Child,
    file: PathBuf,
    /// The command with its paths.
    command: String,
}

impl<'a> Action<'a> {
    pub(super) fn new(command: &str, is_hurried: &'a OnceLock<()>) -> Self {
        Self { command: command.to_owned(), running: Vec::new(), is_hurried }
    }

    /// Starts the command for a file. If too many commands run, waits until one has ended. Returns messages about the
    /// commands that have failed since the last call.
    pub(super) fn start(&mut self, file: &Path, manifest: &Path) -> Vec<String> {
        let mut failures = self.wait_until(RUNNING_MAX - 1);
        let command = with_paths(&self.command, file, manifest);
        match spawned(&command) {
            Ok(child) => self.running.push(RunningAction { child, file: file.to_path_buf(), command }),
            Err(error) => failures.push(failure(file, &format!("could not be started: {error}"), &command)),
        }
        failures
    }

    /// Waits until no more than `most` commands run, if there is time. Returns messages about those that have failed.
    fn wait_until(&mut self, most: usize) -> Vec<String> {
        let mut failures = Vec::new();
        loop {
            self.running.retain_mut(|RunningAction { child, file, command }| match child.try_wait() {
                Ok(None) => true,
                Ok(Some(status)) if status.success() => false,
                Ok(Some(status)) => {
                    failures.push(failure(file, &format!("has failed ({status})"), command));
                    false
                }
                Err(error) => {
                    failures.push(failure(file, &format!("could not be waited for: {error}"), command));
                    false
                }
            });
            if self.running.len() <= most || self.is_hurried.get().is_some() {
                return failures;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits for all commands, if there is time. Returns messages about those that have failed or still run.
    pub(super) fn finish(mut self) -> Vec<String> {
        let mut failures = self.wait_until(0);
        let left = self.running.iter().map(|it| failure(&it.file, "still runs, and is not waited for", &it.command));
        failures.extend(left);
        failures
    }
}

fn failure(file: &Path, what: &str, command: &str) -> String {
    format!("the command of --exec for {} {what}: {command}", file.display())
}

fn spawned(command: &str) -> io::Result<Child> {
    // stdout is for the result of the capture.
    let stderr = std::os::fd::AsFd::as_fd(&io::stderr()).try_clone_to_owned()?;
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::from(stderr)).spawn()
}

/// Parses the command of `--exec`. A word in braces that stands for nothing is probably a mistake.
pub(super) fn parse_command(text: &str) -> Result<String, String> {
    for (at, _) in text.match_indices('{') {
        let rest = &text[at + 1..];
        let name = &rest[..rest.find(|c: char| !(c.is_ascii_alphabetic() || c == '_')).unwrap_or(rest.len())];
        let is_closed = !name.is_empty() && rest[name.len()..].starts_with('}');
        // `${name}` is a variable of the shell.
        if is_closed && !text[..at].ends_with('$') && !PLACEHOLDERS.contains(&name) {
            return Err(format!(
                "found `{{{name}}}`, expected {{file}} or {{manifest}}; if the braces are for the command, write `{{ {name} }}`"
            ));
        }
    }
    Ok(text.to_owned())
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

    #[test]
    fn the_command_gets_paths_as_single_words_and_its_failure_names_the_file_and_the_command() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("it's $(a) \"file\".evc");
        std::fs::write(&file, "x").unwrap();
        let is_hurried = OnceLock::new();
        let mut action = Action::new("cat {file} > {manifest}; exit 3", &is_hurried);
        let manifest = directory.path().join("out put");
        let mut failures = action.start(&file, &manifest);
        failures.extend(action.finish());
        assert_eq!(failures.len(), 1, "{failures:?}");
        let expected = [file.to_str().unwrap(), "exit status: 3", "out put'; exit 3"];
        assert!(expected.iter().all(|part| failures[0].contains(part)), "{failures:?}");
        assert_eq!(std::fs::read_to_string(manifest).unwrap(), "x");
    }

    #[test]
    fn commands_that_still_run_are_named_and_not_waited_for_if_there_is_no_time() {
        let is_hurried = OnceLock::new();
        let mut action = Action::new("kill -STOP $$ # {file}", &is_hurried);
        assert_eq!(action.start("a.evc".as_ref(), "a.evc.json".as_ref()), Vec::<String>::new());
        is_hurried.set(()).unwrap();
        let pid = rustix::process::Pid::from_child(&action.running[0].child);
        let left = action.finish();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        assert!(left.len() == 1 && left[0].contains("for a.evc still runs"), "{left:?}");
    }

    #[test]
    fn unknown_words_in_braces_are_refused_and_the_braces_of_the_shell_are_not() {
        for command in
            ["cp {file} x", "gzip -k {file} {manifest}", "echo ${HOME} {a,b} {} { true; }", "awk '{ print }'"]
        {
            assert_eq!(parse_command(command).as_deref(), Ok(command));
        }
        let refused = parse_command("cp {fil} x").unwrap_err();
        assert!(refused.starts_with("found `{fil}`, expected {file} or {manifest}"), "{refused}");
        assert!(parse_command("{file} {manifes_t}").is_err());
    }
}
