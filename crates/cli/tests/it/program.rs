//! Runs the program `eventring` as its users do.

use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::exec::ExecEvent;
use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use eventring_stress::child;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::sync::{Arc, Once};

pub use eventring_stress::files::{directory, names_in, place, places};

/// A snapshot that is kept with the project.
pub const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/all-exec-events.snapshot.zst");

/// Returns the names of all formats of `export`, as its help lists them.
pub fn formats() -> Vec<String> {
    let help = run!("export", "--help").out;
    let (_, of_format) = help.split_once("--format <FORMAT>").unwrap();
    let list = of_format.split("\n\n").find(|part| part.contains("Possible values:")).unwrap();
    let names = list.lines().filter_map(|line| Some(line.trim().strip_prefix("- ")?.split_once(':')?.0.to_owned()));
    let names: Vec<String> = names.collect();
    assert!(names.len() >= 7, "{names:?}");
    names
}

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_eventring");

/// The output and exit code of a run of the program, and what was run.
#[derive(Debug)]
#[expect(dead_code, reason = "`command` is for the messages of tests that fail")]
pub struct Run {
    pub command: String,
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Run {
    /// Returns the run, which must have ended with this exit code.
    #[track_caller]
    pub fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// Returns the run, which must have ended with this exit code and said this.
    #[track_caller]
    pub fn fails(self, code: i32, said: impl AsRef<str>) -> Self {
        assert!(self.code == Some(code) && self.err.contains(said.as_ref()), "not `{}`: {self:?}", said.as_ref());
        self
    }

    /// Returns the run, which must have said this on stderr.
    #[track_caller]
    pub fn warns(self, said: impl AsRef<str>) -> Self {
        assert!(self.err.contains(said.as_ref()), "not `{}`: {self:?}", said.as_ref());
        self
    }

    /// Returns the run, which must have shown this on stdout.
    #[track_caller]
    pub fn shows(self, shown: impl AsRef<str>) -> Self {
        assert!(self.out.contains(shown.as_ref()), "not `{}`: {self:?}", shown.as_ref());
        self
    }

    /// Returns the run, which must have said nothing on stderr.
    #[track_caller]
    pub fn quiet(self) -> Self {
        assert_eq!(self.err, "", "{self:?}");
        self
    }

    /// Returns the run, which must have shown nothing on stdout.
    #[track_caller]
    pub fn shows_nothing(self) -> Self {
        assert_eq!(self.out, "", "{self:?}");
        self
    }

    /// Returns the JSON on stdout, however the run has ended.
    #[track_caller]
    pub fn said(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the JSON on stdout. Panics unless the run has succeeded.
    pub fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.said()
    }

    /// Returns the lines of JSON on stdout.
    pub fn json_lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Lets programs that this process starts have the default actions of SIGINT and SIGHUP. A shell that starts this
/// process in its background makes it ignore the first, `nohup` the second. Programs inherit that, but no handler.
pub fn let_interrupts_reach_programs() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).map(str::trim);
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or_default();
        for signal in [SIGINT, SIGHUP] {
            if ignored >> (signal - 1) & 1 != 0 {
                // Nobody looks at the flag: this process still does nothing when the signal comes.
                signal_hook::flag::register(signal, Arc::default()).unwrap();
            }
        }
    });
}

pub fn program(arguments: &[&str]) -> Command {
    let_interrupts_reach_programs();
    let mut command = Command::new(PROGRAM);
    command.args(arguments).stdin(Stdio::null());
    // The environment of the user who runs the tests may set colours and a time zone. These settings must not change
    // the output.
    command.env("NO_COLOR", "1").env("TZ", "UTC").env_remove("CLICOLOR_FORCE");
    command
}

/// Does the work with a subscriber that records into this recorder.
pub fn in_recorder<T>(recorder: PerfRecorder, work: impl FnOnce() -> T) -> T {
    tracing::subscriber::with_default(RecorderSubscriber::new(recorder), work)
}

/// Makes the command whose rings lie in this directory, if nothing says where.
pub fn program_in(rings: &Path, arguments: &[&str]) -> Command {
    let mut command = program(arguments);
    command.env("EVENTRING_DIR", rings);
    command
}

pub fn finish(mut command: Command) -> Run {
    // A program that a test has copied is busy as long as a child of another test, forked meanwhile, has its file open.
    let is_busy = |ended: &std::io::Result<Output>| {
        ended.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ExecutableFileBusy)
    };
    let mut ended = command.output();
    for _ in 0..500 {
        if !is_busy(&ended) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        ended = command.output();
    }
    let output = ended.unwrap();
    Run {
        command: format!("{command:?}"),
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs a program to its end. Returns whether it has succeeded, and the largest amount of memory in KiB that it had
/// until it was last asked.
pub fn memory_of(mut command: Command) -> (bool, u64) {
    let mut child = command.spawn().unwrap();
    let mut memory_kib = 0;
    loop {
        if let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", child.id()))
            && let Some(line) = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))
        {
            memory_kib = line.trim().trim_end_matches(" kB").parse().unwrap();
        }
        match child.try_wait().unwrap() {
            Some(status) => return (status.success(), memory_kib),
            None => std::thread::sleep(std::time::Duration::from_millis(1)),
        }
    }
}

pub fn run(arguments: &[&str]) -> Run {
    finish(program(arguments))
}

/// A run of the program whose output is read while the program continues.
pub struct Live {
    command: String,
    pub child: Child,
    pub out: BufReader<ChildStdout>,
    pub err: BufReader<ChildStderr>,
}

impl Live {
    pub fn start(arguments: &[&str]) -> Self {
        Self::from_command(program(arguments))
    }

    pub fn from_command(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let err = BufReader::new(child.stderr.take().unwrap());
        Self { command: format!("{command:?}"), child, out, err }
    }

    /// Returns the next line of stdout. Panics at its end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.out.read_line(&mut line).unwrap(), 0, "stdout has ended");
        line.trim_end().to_owned()
    }

    pub fn json_line(&mut self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Returns the next line of stderr that has this text. Panics if there is none.
    pub fn notice(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.err.read_line(&mut line).unwrap(), 0, "stderr has ended without `{text}`");
            if line.contains(text) {
                return line;
            }
        }
    }

    pub fn interrupt(&self) {
        signal(&self.child, Signal::INT);
    }

    /// Kills the program. Nothing is left of it but its files.
    pub fn kill(&mut self) {
        child::kill(&mut self.child);
    }

    /// Waits for the end and returns the rest of the output.
    pub fn end(mut self) -> Run {
        let (mut out, mut err) = (String::new(), String::new());
        std::io::Read::read_to_string(&mut self.out, &mut out).unwrap();
        std::io::Read::read_to_string(&mut self.err, &mut err).unwrap();
        Run { command: self.command, code: self.child.wait().unwrap().code(), out, err }
    }
}

/// Creates a small ring for execution events at `path`.
pub fn exec_ring(path: &Path) -> Recorder {
    let description = ContentDescription::from_event_type::<ExecEvent>();
    Recorder::builder(description).config(path).compact(true).shifts(15, 21).build().unwrap()
}

/// Returns a path as an argument.
pub fn argument(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Sends a signal to a process.
pub fn signal(process: &Child, signal: Signal) {
    kill_process(Pid::from_child(process), signal).unwrap();
}

/// Returns the lines of JSON that the program exports from a ring or capture.
pub fn exported(place: impl AsRef<Path>) -> Vec<Value> {
    run!("export", place.as_ref(), "--format", "jsonl").ends(0).json_lines()
}

/// Returns a number of an answer.
pub fn number(value: &Value) -> u64 {
    value.number()
}

/// What a test expects of a part of an answer. Another part ends the test, which shows it.
pub trait Expect {
    fn number(&self) -> u64;
    fn text(&self) -> &str;
    fn list(&self) -> &Vec<Value>;
}

impl Expect for Value {
    fn number(&self) -> u64 {
        self.as_u64().unwrap_or_else(|| panic!("no number: {self}"))
    }

    fn text(&self) -> &str {
        self.as_str().unwrap_or_else(|| panic!("no text: {self}"))
    }

    fn list(&self) -> &Vec<Value> {
        self.as_array().unwrap_or_else(|| panic!("no list: {self}"))
    }
}

/// Returns the time, in nanoseconds since the epoch.
pub fn now_nanos() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64
}
