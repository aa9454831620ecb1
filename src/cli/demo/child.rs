//! The demo's processes: this program again, with another verb, telling its state in lines of JSON.

use crate::cli::exit::{Exit, Failure};
use crate::cli::format::one_line;
use anyhow::Context as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

/// Which child it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Writer,
    Reader,
}

/// A line of a child, or its end.
#[derive(Clone, Debug)]
pub(super) struct Line(Option<serde_json::Value>);

impl Line {
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

/// A child. Its stdin ends with this value, and that ends the child.
pub(super) struct Child {
    process: std::process::Child,
    stdin: Option<ChildStdin>,
    /// Gives what it said on stderr.
    complaint: Option<JoinHandle<String>>,
}

impl Child {
    /// Starts `verb` with `arguments`; what it prints goes to `tell`.
    pub(super) fn start(
        verb: &str,
        arguments: &[String],
        role: Role,
        tell: Sender<(Role, Line)>,
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find the program itself")?;
        let mut process = Command::new(program)
            .arg(verb)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for us; we end them in order.
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
                    && tell.send((role, Line(Some(line)))).is_err()
                {
                    return;
                }
            }
            let _ = tell.send((role, Line(None)));
        });
        let complaint = std::thread::spawn(move || {
            let mut text = String::new();
            // What came before an error counts.
            let _ = stderr.read_to_string(&mut text);
            text
        });
        Ok(Self { process, stdin, complaint: Some(complaint) })
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Sends a line.
    pub(super) fn say(&mut self, word: &str) -> anyhow::Result<()> {
        if let Some(stdin) = &mut self.stdin {
            writeln!(stdin, "{word}").context("cannot talk to a process")?;
        }
        Ok(())
    }

    /// Ends its stdin.
    pub(super) fn hush(&mut self) {
        self.stdin = None;
    }

    /// Why it ended: its message and exit code, which are those of any verb.
    pub(super) fn failure(&mut self) -> Failure {
        self.hush();
        let status = self.process.wait();
        let complaint = self.complaint.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let message = complaint.lines().find_map(|line| line.strip_prefix("error: "));
        let exit = status.as_ref().ok().and_then(std::process::ExitStatus::code).and_then(Exit::from_code);
        match (message, exit) {
            (Some(message), Some(exit)) => Failure::new(exit, one_line(message)),
            (_, _) => {
                let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                Failure::new(
                    Exit::Failed,
                    format!("a process of the demo ended early: {status} {}", one_line(&complaint)),
                )
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.hush();
        // It ends by itself once its stdin, or the ring, has ended; this only takes its exit status.
        let _ = self.process.wait();
    }
}
