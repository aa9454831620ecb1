//! Tests that need a second process. A test starts its own executable again as a child process, which runs only this
//! test. An environment variable names the part that the child plays.

use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PART: &str = "EVENTRING_TEST_PART";
const PLACE: &str = "EVENTRING_TEST_PLACE";

/// Returns the part that this process plays. Returns `None` in the process that the user started, because only a
/// parent process sets the variable.
pub fn part() -> Option<String> {
    std::env::var(PART).ok()
}

/// Returns the path that the parent process has handed over.
pub fn place() -> std::path::PathBuf {
    std::env::var_os(PLACE).expect("the parent sets it").into()
}

/// Makes the command that starts this executable again, to play the given part of `test` and no other test.
/// [`test_name!`](crate::test_name) makes the name.
pub fn play(test: &str, part: &str, place: &Path) -> Command {
    let mut command = again(test);
    command.env(PART, part).env(PLACE, place);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Names the test in which this stands, or another one of this file, as the test harness does, for
/// [`child::play`](crate::child::play).
#[macro_export]
macro_rules! test_name {
    () => {{
        fn here() {}
        $crate::child::name_of(::std::any::type_name_of_val(&here))
    }};
    ($name:literal) => {
        concat!(module_path!(), "::", $name)
    };
}

/// In a test that starts its own executable again: in a child, does what stands here, and returns from the test. In the
/// process that the user started, this is the name of the test, for [`child::play`](crate::child::play).
#[macro_export]
macro_rules! plays {
    (|$part:ident| $play:expr) => {{
        if let Some($part) = $crate::child::part() {
            $play;
            // Some plays have no end.
            #[allow(unreachable_code)]
            return;
        }
        $crate::test_name!()
    }};
    ($play:expr) => {
        $crate::plays!(|_part| $play)
    };
}

/// Returns the name of the test around the function `here`.
pub fn name_of(here: &str) -> &str {
    here.trim_end_matches("::here").trim_end_matches("::{{closure}}")
}

/// At the head of a test: runs the rest of the test in a process of its own, in which no other test runs.
#[macro_export]
macro_rules! alone {
    () => {{
        fn here() {}
        if $crate::child::has_run_alone(::std::any::type_name_of_val(&here)) {
            return;
        }
    }};
}

const ALONE: &str = "EVENTRING_TEST_ALONE";

/// Runs the test around the function `here` in a process of its own. Returns false in that process, and in one that
/// plays a part. Use [`alone!`](crate::alone).
pub fn has_run_alone(here: &str) -> bool {
    if part().is_some() || std::env::var_os(ALONE).is_some() {
        return false;
    }
    let mut command = again(name_of(here));
    let output = command.env(ALONE, "1").stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}", output.status);
    // The harness succeeds also if no test has this name.
    assert!(text.contains("1 passed"), "{here} was not run");
    true
}

/// Makes the command that runs one test of this executable. The harness's names begin after the crate's.
fn again(test: &str) -> Command {
    let test = test.split_once("::").map_or(test, |(_, name)| name);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--include-ignored", "--nocapture", "--test-threads=1"]);
    command
}

/// Runs a command whose end is in question. Panics if it does not end in time.
pub fn ends_within(mut command: Command, limit: Duration) -> Output {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > limit {
            child.kill().unwrap();
            panic!("did not end: {command:?}: {}", String::from_utf8_lossy(&child.wait_with_output().unwrap().stderr));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

/// Waits as long as this holds. Panics after a minute.
#[track_caller]
pub fn wait_while(mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it still holds");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Kills a process. Nothing is left of it but its files.
pub fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A child process whose messages the parent reads line by line. [`Talk::end`], or dropping this value, ends the child.
pub struct Talk {
    pub child: Child,
    lines: BufReader<ChildStdout>,
}

/// The mark at the beginning of each message, which distinguishes messages from the test harness's own output.
const MARK: &str = "talk: ";

/// Sends a message to the parent.
pub fn say(line: impl std::fmt::Display) {
    // The message begins a new line, because the harness may have printed part of a line.
    println!("\n{MARK}{line}");
}

/// Waits until the parent closes this process's stdin.
pub fn wait_for_parent() {
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
}

impl Talk {
    pub fn with(mut command: Command) -> Self {
        // Another thread may have forked while a copy of a program was still open for writing.
        let mut child = loop {
            match command.spawn() {
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => sleep(Duration::from_millis(1)),
                spawned => break spawned.unwrap(),
            }
        };
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Starts this executable again, to play a part of `test`.
    pub fn start(test: &str, part: &str, place: &Path) -> Self {
        Self::with(play(test, part, place))
    }

    /// Starts this executable again, to play a part of `test`, and waits until it says this.
    #[track_caller]
    pub fn told(test: &str, part: &str, place: &Path, says: impl AsRef<str>) -> Self {
        let mut talk = Self::start(test, part, place);
        assert_eq!(talk.hear(), says.as_ref());
        talk
    }

    /// Kills the child. Nothing is left of it but its files.
    pub fn kill(&mut self) {
        kill(&mut self.child);
    }

    /// Returns the child's next message. Panics if the child ends without one.
    pub fn hear(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the child said nothing");
            if let Some(printed) = line.trim_end().strip_prefix(MARK) {
                return printed.to_owned();
            }
        }
    }

    /// Closes the child's stdin and waits for its end.
    pub fn end(&mut self) -> std::process::ExitStatus {
        drop(self.child.stdin.take());
        // The output is drained so that the child cannot block on a full pipe.
        std::io::copy(&mut self.lines, &mut std::io::sink()).unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
