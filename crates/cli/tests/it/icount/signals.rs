//! `eventring icount` ends its program, and leaves nothing behind: at signals, after its own death, and after a run
//! that has failed. Without QEMU these tests say that they skip.

use crate::fixtures::*;
use crate::qemu;
use std::process::ChildStderr;

/// A run whose program does not end by itself.
struct EndlessRun {
    eventring: Child,
    stderr: BufReader<ChildStderr>,
    qemu: Pid,
    /// The directory of the rings.
    directory: PathBuf,
}

impl EndlessRun {
    /// Starts a shell that first does what `before` says, and then works for ever.
    fn start(plugin: &Path, before: &str) -> Self {
        let (_own, [begun]) = places(["begun"]);
        let script = format!("{before} : > {}; while :; do :; done", argument(&begun));
        let mut command = program!("icount", "--", "sh", "-c", &script);
        command.env("EVENTRING_QEMU_PLUGIN", plugin).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut eventring = command.spawn().unwrap();
        let stderr = BufReader::new(eventring.stderr.take().unwrap());
        wait_until(|| begun.exists());
        let id = eventring.id();
        // A thread of eventring has started it.
        let children = fs::read_dir(format!("/proc/{id}/task")).unwrap().flatten();
        let children = children.map(|task| fs::read_to_string(task.path().join("children")).unwrap());
        let qemu: i32 = children.collect::<String>().split_whitespace().next().unwrap().parse().unwrap();
        let arguments = fs::read_to_string(format!("/proc/{qemu}/cmdline")).unwrap();
        let (_, report) = arguments.split_once("report=").unwrap();
        let report = Path::new(report.split('\0').next().unwrap());
        let directory = report.parent().unwrap().to_owned();
        assert!(directory.exists());
        Self { eventring, stderr, qemu: Pid::from_raw(qemu).unwrap(), directory }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.eventring), signal).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    /// Waits for the end. Checks the exit code, and that nothing is left.
    fn check_end(mut self) {
        assert_eq!(self.eventring.wait().unwrap().code(), Some(1));
        assert!(self.line().contains("interrupted; nothing was counted"));
        assert!(!self.directory.exists() && !is_running(self.qemu));
    }
}

impl Drop for EndlessRun {
    /// Leaves no process behind if a check has failed.
    fn drop(&mut self) {
        if self.eventring.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = kill_process(self.qemu, Signal::KILL);
            let _ = self.eventring.kill();
            let _ = self.eventring.wait();
        }
    }
}

fn is_running(process: Pid) -> bool {
    rustix::process::test_kill_process(process).is_ok()
}

fn wait_until(is_so: impl Fn() -> bool) {
    wait_while(|| !is_so());
}

#[test]
fn a_signal_is_handed_on_to_the_program() {
    let Some(plugin) = qemu::plugin() else { return };
    for signal in [Signal::TERM, Signal::HUP] {
        let mut run = EndlessRun::start(plugin, "");
        run.signal(signal);
        assert!(run.line().contains("SIGTERM was sent to the program; a second signal kills it"));
        run.check_end();
    }
}

#[test]
fn a_second_signal_kills_a_program_that_does_not_end() {
    let Some(plugin) = qemu::plugin() else { return };
    for (signal, words) in [(Signal::TERM, "SIGTERM was sent"), (Signal::INT, "waiting for the program to end")] {
        let mut run = EndlessRun::start(plugin, "trap '' TERM INT;");
        run.signal(signal);
        assert!(run.line().contains(words));
        assert!(is_running(run.qemu) && run.directory.exists());
        run.signal(signal);
        run.check_end();
    }
}

#[test]
fn the_next_run_removes_the_directory_of_one_that_was_killed() {
    let Some(plugin) = qemu::plugin() else { return };
    let other = EndlessRun::start(plugin, "");
    let mut killed = EndlessRun::start(plugin, "");
    signal(&killed.eventring, Signal::KILL);
    killed.eventring.wait().unwrap();
    kill_process(killed.qemu, Signal::KILL).unwrap();
    // Another test may have removed it by now.
    let mut next = program!("icount", "--", "true");
    next.env("EVENTRING_QEMU_PLUGIN", plugin);
    finish(next).ends(3);
    assert!(!killed.directory.exists() && other.directory.exists());
    other.signal(Signal::TERM);
    let mut other = other;
    assert!(other.line().contains("SIGTERM was sent"));
    other.check_end();
}

#[test]
fn a_run_that_fails_leaves_an_older_capture_as_it_is() {
    let Some(plugin) = qemu::plugin() else { return };
    let example = Path::new(program::PROGRAM).parent().unwrap().join("examples/instruction_clock");
    let names = |directory: &TempDir| fs::read_dir(directory.path()).unwrap().count();
    // A program without spans, and one whose spans are not counted.
    for script in ["exit 5".to_owned(), format!("{}; exit 5", argument(&example))] {
        let (directory, [kept]) = places(["kept.evc"]);
        let icount = || {
            let mut command = program!("icount", "--force", "-o", &kept, "--", "sh", "-c", &script);
            command.env("EVENTRING_QEMU_PLUGIN", plugin);
            let failed = finish(command);
            assert!(!matches!(failed.code, Some(0 | 5)), "{failed:?}");
        };
        icount();
        assert_eq!(names(&directory), 0, "{script}");
        fs::write(&kept, "an older capture").unwrap();
        icount();
        assert_eq!((names(&directory), &*fs::read_to_string(&kept).unwrap()), (1, "an older capture"));
    }
}
