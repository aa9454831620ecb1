//! Two processes, each with a clock of its own, agree on the time. A forked child continues with its parent's clock.

use eventring_stress::alone;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use eventring::recorder::Clock;
use rustix::time::{ClockId, clock_gettime};

/// The largest allowed difference between the times of two processes.
const DISAGREEMENT_NANOS_MAX: u64 = 1_000;

const ANSWERING: &str = "EVENTRING_TEST_CLOCK_ANSWERS";

/// Plays the other process: answers every line with the time.
fn answer() {
    for _ in std::io::stdin().lines() {
        // The answer is not printed with `println`, because the test harness may hold back what `println` prints.
        let mut out = std::io::stdout();
        writeln!(out, "time {}", Clock::global().now_epoch_nanos()).unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn two_processes_agree_on_the_time() {
    alone!();
    if std::env::var_os(ANSWERING).is_some() {
        return answer();
    }
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "clock_agrees_between_processes::two_processes_agree_on_the_time", "--nocapture"])
        .env(ANSWERING, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ask = other.stdin.take().unwrap();
    let mut answers = BufReader::new(other.stdout.take().unwrap()).lines();
    for round in 0..2_000u64 {
        let before = Clock::global().now_epoch_nanos();
        ask.write_all(b"\n").unwrap();
        let there = answers
            .by_ref()
            .map(Result::unwrap)
            .find_map(|line| line.rsplit_once("time ").map(|(_, nanos)| nanos.parse::<u64>().unwrap()))
            .unwrap();
        let after = Clock::global().now_epoch_nanos();
        assert!(
            before <= there + DISAGREEMENT_NANOS_MAX && there <= after + DISAGREEMENT_NANOS_MAX,
            "round {round}: asked at {before}, answered at {there}, heard at {after}"
        );
        if round % 100 == 0 {
            std::thread::sleep(Duration::from_millis(3));
        }
    }
    drop(ask);
    assert!(other.wait().unwrap().success());
}

/// Checks the clock in a forked child. Returns an exit status: 0 if the clock is right, otherwise the number of the
/// fault.
fn fault_of_a_childs_clock(mut last: u64) -> i32 {
    let realtime = || {
        let now = clock_gettime(ClockId::Realtime);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    };
    for _ in 0..10 {
        std::thread::sleep(Duration::from_micros(700));
        for _ in 0..10 {
            let before = realtime();
            let now = Clock::global().now_epoch_nanos();
            let after = realtime();
            if now < last {
                return 1;
            }
            if now + DISAGREEMENT_NANOS_MAX < before || now > after + DISAGREEMENT_NANOS_MAX {
                return 2;
            }
            last = now;
        }
    }
    0
}

#[test]
fn a_forked_child_goes_on_with_the_clock_while_its_parents_threads_calibrate() {
    alone!();
    static DONE: AtomicBool = AtomicBool::new(false);
    let busy: Vec<_> = (0..2)
        .map(|_| {
            std::thread::spawn(|| {
                while !DONE.load(Ordering::Relaxed) {
                    Clock::global().now_epoch_nanos();
                }
            })
        })
        .collect();
    for _ in 0..40 {
        let before_fork = Clock::global().now_epoch_nanos();
        // SAFETY: the child allocates nothing, takes no lock and leaves by `_exit`. All functions that it calls are
        // async-signal-safe, also those of the clock.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            let fault = fault_of_a_childs_clock(before_fork);
            // SAFETY: `_exit` ends the child without running any code of its parent.
            unsafe { libc::_exit(fault) };
        }
        let mut status = 0;
        // SAFETY: `child` is a child of this process that no other code waits for; `status` is a live int.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(waited, child);
        assert!(libc::WIFEXITED(status), "the child was ended by a signal: status {status}");
        assert_eq!(libc::WEXITSTATUS(status), 0, "1: time fell; 2: it was over a microsecond off");
    }
    DONE.store(true, Ordering::Relaxed);
    busy.into_iter().for_each(|thread| thread.join().unwrap());
}
