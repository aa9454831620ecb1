//! The command that runs after each file (`--exec`).

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The largest number of commands that run at the same time. Further files wait until one has ended.
const RUNNING_MAX: usize = 4;

/// A command line for the shell, in which `{file}` stands for the path of a file and `{manifest}` for that of its
/// manifest.
pub(super) struct Action {
    command: String,
    running: Vec<Child>,
    /// The number of commands that failed.
    failures: u64,
}

impl Action {
    pub(super) fn new(command: &str) -> Self {
        Self { command: command.to_owned(), running: Vec::new(), failures: 0 }
    }

    /// Starts the command for a file. If too many commands run, waits for the oldest.
    pub(super) fn start(&mut self, file: &Path, manifest: &Path) -> io::Result<()> {
        self.reap();
        if self.running.len() >= RUNNING_MAX {
            let mut oldest = self.running.remove(0);
            self.failures += u64::from(!oldest.wait().is_ok_and(|status| status.success()));
        }
        // stdout is for the result of the capture.
        let stderr = std::os::fd::AsFd::as_fd(&io::stderr()).try_clone_to_owned()?;
        let child = Command::new("/bin/sh")
            .arg("-c")
            .arg(with_paths(&self.command, file, manifest))
            .stdin(Stdio::null())
            .stdout(Stdio::from(stderr))
            .spawn()?;
        self.running.push(child);
        Ok(())
    }

    /// Forgets the commands that have ended.
    fn reap(&mut self) {
        let failures = &mut self.failures;
        self.running.retain_mut(|child| match child.try_wait() {
            Ok(None) => true,
            Ok(Some(status)) => {
                *failures += u64::from(!status.success());
                false
            }
            Err(_) => false,
        });
    }

    /// Waits for all commands. Returns how many have failed.
    pub(super) fn finish(mut self) -> u64 {
        for mut child in self.running.drain(..) {
            self.failures += u64::from(!child.wait().is_ok_and(|status| status.success()));
        }
        self.failures
    }
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
    fn the_command_gets_paths_as_single_words_and_its_failure_is_counted() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("it's $(a) \"file\".evc");
        std::fs::write(&file, "x").unwrap();
        let mut action = Action::new("cat {file} > {manifest}; exit 3");
        let manifest = directory.path().join("out put");
        action.start(&file, &manifest).unwrap();
        assert_eq!(action.finish(), 1);
        assert_eq!(std::fs::read_to_string(manifest).unwrap(), "x");
    }
}
