//! The writing process of the soak.

use crate::directory::remove_directory_of;
use crate::spans::SpanStress;
use crate::workload::{Stress, noise};
use crate::{Result, SHIFTS, perf_ring};
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::exec::ExecEvent;
use eventring::tracing::PerfRecorder;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Number of threads that record spans.
const PERF_THREADS: u64 = 2;
/// Thread number of the short-lived threads.
const SHORT_LIVED: u64 = 1 << 20;

/// Records until the soak asks for the end, or dies.
pub(crate) fn run(ring: &Path, threads: u16) -> Result<()> {
    // This call asks the kernel to send SIGCONT to this process when the parent dies. If this process is stopped at
    // that time, it goes on and finds that its parent is dead.
    let _ = set_parent_process_death_signal(Some(Signal::CONT));
    let parent_lives = record_until_asked_to_end(ring, threads);
    if !matches!(parent_lives, Ok(true)) {
        // If the parent is dead, it cannot remove the directory. If this process has failed, the soak is over. In both
        // cases, this process removes the directory.
        remove_directory_of(ring);
    }
    parent_lives.map(|_| ())
}

/// Records until the parent asks for the end, or dies. Returns true if the parent lives.
fn record_until_asked_to_end(ring: &Path, threads: u16) -> Result<bool> {
    let description = ContentDescription::from_event_type::<ExecEvent>();
    let mut config = ring.as_os_str().to_owned();
    config.push(SHIFTS);
    let recorder = Recorder::builder(description).config(&config).compact(true).build()?;
    let perf = PerfRecorder::builder().config(perf_ring(ring)).shifts(15, 21).shards(2).build()?;
    print_line("ready")?;
    let bytes = noise();
    let (stop, stalls) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (stop, stalls) = (&stop, &stalls);
        for thread in 0..u64::from(threads) {
            let (recorder, bytes) = (recorder.clone(), bytes.clone());
            scope.spawn(move || {
                let mut stress = Stress::new(recorder, thread, bytes);
                while !stop.load(Ordering::Relaxed) {
                    stalls.fetch_add(stress.turn(), Ordering::Relaxed);
                }
            });
        }
        for thread in 0..PERF_THREADS {
            let perf = perf.clone();
            scope.spawn(move || {
                let mut stress = SpanStress::new(perf, thread);
                while !stop.load(Ordering::Relaxed) {
                    stress.turn();
                }
            });
        }
        // This loop starts one short thread after another. Each of them records one span and some typed events, and
        // then ends. So payload cursors pass from one thread to the next.
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let (recorder, bytes) = (recorder.clone(), bytes.clone());
                let perf = perf.clone();
                let short = std::thread::spawn(move || {
                    SpanStress::new(perf, SHORT_LIVED).turn();
                    Stress::new(recorder, SHORT_LIVED, bytes).turn()
                });
                if short.join().is_err() {
                    // The thread has panicked. It is not part of the scope, so its panic does not end this process.
                    // The abort ends the process, and the parent sees the abort in the exit status.
                    std::process::abort();
                }
            }
        });
        // The number of stalls is printed again and again, so that the parent knows it even if this process is killed.
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let _ = print_line(&stalls.load(Ordering::Relaxed).to_string());
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        // The parent sends a line to end the recording. If the parent dies, stdin is closed, and that ends the
        // recording, too.
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        stop.store(true, Ordering::Relaxed);
        Ok(read? != 0)
    })
}

/// The writing process, seen from its parent.
pub(crate) struct WriterProcess {
    process: Child,
    lines: Option<std::thread::JoinHandle<u64>>,
}

impl WriterProcess {
    /// Starts the process and waits for its ring.
    pub(crate) fn start(ring: &Path, threads: u16) -> Result<Self> {
        let program = std::env::current_exe()?;
        let mut process = Command::new(program)
            .arg("writer")
            .arg(ring)
            .arg(threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C reaches only the soak. Its writer then removes the rings.
            .process_group(0)
            .spawn()?;
        let mut lines = BufReader::new(process.stdout.take().ok_or("cannot talk to a process")?);
        let mut line = String::new();
        lines.read_line(&mut line)?;
        if line.trim_end() != "ready" {
            return Err("the writing process could not make its ring".into());
        }
        let lines = Some(std::thread::spawn(move || last_count(lines)));
        Ok(Self { process, lines })
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    /// Stops all threads of the process for `time`.
    pub(crate) fn stop_for(&self, time: Duration) -> Result<()> {
        kill_process(self.pid(), Signal::STOP)?;
        std::thread::sleep(time);
        Ok(kill_process(self.pid(), Signal::CONT)?)
    }

    /// Kills the process.
    pub(crate) fn kill(&mut self) -> Result<()> {
        Ok(self.process.kill()?)
    }

    /// Asks the process to end, and waits for its end. Returns the number of times that its threads stalled.
    pub(crate) fn end(mut self) -> Result<u64> {
        if let Some(mut stdin) = self.process.stdin.take() {
            // Writing fails if the process was killed.
            let _ = stdin.write_all(b"end\n");
        }
        let status = self.process.wait()?;
        if !status.success() && status.signal() != Some(9) {
            return Err(format!("the writing process failed: {status}").into());
        }
        Ok(self.lines.take().and_then(|lines| lines.join().ok()).unwrap_or(0))
    }
}

impl Drop for WriterProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Prints a line for the parent.
fn print_line(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Returns the last count that the process has reported.
fn last_count(lines: BufReader<ChildStdout>) -> u64 {
    lines.lines().map_while(std::io::Result::ok).filter_map(|line| line.parse().ok()).last().unwrap_or(0)
}
