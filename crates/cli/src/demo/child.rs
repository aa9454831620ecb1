//! Child processes of the demo. A child runs this same program with a hidden verb, and reports its state in lines of
//! JSON.

use crate::exit::{Exit, Failure};
use crate::format::one_line;
use anyhow::Context as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

/// Task of a child process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Writer,
    Reader,
}

/// A line that a child has printed. `None` stands for the end of the child's output.
#[derive(Clone, Debug)]
pub(super) struct ChildLine(Option<serde_json::Value>);

impl ChildLine {
    pub(super) fn is_end(&self) -> bool {
        self.0.is_none()
    }

    fn field(&self, name: &str) -> Option<&serde_json::Value> {
        self.0.as_ref()?.get(name)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.field(name).is_some()
    }

    pub(super) fn number(&self, name: &str) -> u64 {
        self.field(name).and_then(serde_json::Value::as_u64).unwrap_or(0)
    }

    pub(super) fn decimal(&self, name: &str) -> f64 {
        self.field(name).and_then(serde_json::Value::as_f64).unwrap_or(0.0)
    }

    pub(super) fn text(&self, name: &str) -> String {
        self.field(name).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    }
}

/// A child process of the demo. Dropping this value closes the child's stdin, and then the child ends.
pub(super) struct Child {
    process: std::process::Child,
    stdin: Option<ChildStdin>,
    /// Thread that returns the child's stderr.
    stderr: Option<JoinHandle<String>>,
}

impl Child {
    /// Starts this program as a child with the verb `verb` and `arguments`. Each line that the child prints on stdout
    /// is sent to `lines`.
    pub(super) fn start(
        verb: &str,
        arguments: &[String],
        role: Role,
        lines: Sender<(Role, ChildLine)>,
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find the program itself")?;
        let mut process = Command::new(program)
            .arg(verb)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // The child gets a process group of its own, so that Ctrl-C reaches only the parent. The parent then ends
            // its children.
            .process_group(0)
            .spawn()
            .context("cannot start a process")?;
        let stdin = process.stdin.take();
        let (Some(stdout), Some(mut stderr)) = (process.stdout.take(), process.stderr.take()) else {
            anyhow::bail!("cannot talk to a process");
        };
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Ok(line) = serde_json::from_str(&line)
                    && lines.send((role, ChildLine(Some(line)))).is_err()
                {
                    return;
                }
            }
            let _ = lines.send((role, ChildLine(None)));
        });
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            // If reading fails, the text that was read before is still shown.
            let _ = stderr.read_to_string(&mut text);
            text
        });
        Ok(Self { process, stdin, stderr: Some(stderr) })
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Sends a line to the child's stdin.
    pub(super) fn send_line(&mut self, word: &str) -> anyhow::Result<()> {
        if let Some(stdin) = &mut self.stdin {
            writeln!(stdin, "{word}").context("cannot talk to a process")?;
        }
        Ok(())
    }

    /// Closes the child's stdin.
    pub(super) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for the child's end, and returns a failure with the child's error message and exit code.
    pub(super) fn failure(&mut self) -> Failure {
        self.close_stdin();
        let status = self.process.wait();
        let stderr = self.stderr.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let message = stderr.lines().find_map(|line| line.strip_prefix("error: "));
        let exit = status.as_ref().ok().and_then(std::process::ExitStatus::code).and_then(Exit::from_code);
        match (message, exit) {
            (Some(message), Some(exit)) => Failure::new(exit, one_line(message)),
            (_, _) => {
                let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                Failure::new(Exit::Failed, format!("a process of the demo ended early: {status} {}", one_line(&stderr)))
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.close_stdin();
        // The child ends by itself once its stdin is closed or the ring has ended. This wait removes the ended child
        // from the system's list of processes.
        let _ = self.process.wait();
    }
}
