//! The writing process of the soak.

use super::directory::remove_directory_of;
use super::spans::SpanStress;
use super::workload::{Stress, noise};
use super::{SHIFTS, perf_ring};
use crate::demo::print_line;
use crate::exit::Exit;
use anyhow::Context as _;
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::exec::ExecEvent;
use eventring::tracing::PerfRecorder;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Number of threads that record spans.
const PERF_THREADS: u64 = 2;
/// Thread number of the short-lived threads.
const SHORT_LIVED: u64 = 1 << 20;

/// Record for the soak
#[derive(clap::Args)]
pub(crate) struct SoakWriterArgs {
    ring: PathBuf,
    #[arg(long)]
    threads: u16,
}

pub(crate) fn run(args: &SoakWriterArgs) -> anyhow::Result<Exit> {
    // This call asks the kernel to send SIGCONT to this process when the parent dies. If this process is stopped at
    // that time, it goes on and finds that its parent is dead.
    let _ = set_parent_process_death_signal(Some(Signal::CONT));
    let parent_lives = record_until_asked_to_end(args);
    if !matches!(parent_lives, Ok(true)) {
        // If the parent is dead, it cannot remove the directory. If this process has failed, the soak is over. In both
        // cases, this process removes the directory.
        remove_directory_of(&args.ring);
    }
    parent_lives.map(|_| Exit::Done)
}

/// Records until the parent asks for the end, or dies. Returns true if the parent lives.
fn record_until_asked_to_end(args: &SoakWriterArgs) -> anyhow::Result<bool> {
    let description = ContentDescription::of::<ExecEvent>();
    let mut config = args.ring.as_os_str().to_owned();
    config.push(SHIFTS);
    let recorder = Recorder::builder(description).config(&config).compact(true).build()?;
    let perf = PerfRecorder::builder().config(perf_ring(&args.ring)).shifts(15, 21).shards(2).build()?;
    print_line(&json!({ "ready": true }))?;
    let bytes = noise();
    let (stop, stalls) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (stop, stalls) = (&stop, &stalls);
        for thread in 0..u64::from(args.threads) {
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
                let _ = print_line(&json!({ "stalls": stalls.load(Ordering::Relaxed) }));
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
pub(super) struct WriterProcess {
    process: Child,
    lines: Option<std::thread::JoinHandle<u64>>,
}

impl WriterProcess {
    /// Starts the process and waits for its ring.
    pub(super) fn start(ring: &Path, threads: u16) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find the program itself")?;
        let mut process = Command::new(program)
            .arg("soak-writer")
            .arg(ring)
            .arg(format!("--threads={threads}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a process")?;
        let mut lines = BufReader::new(process.stdout.take().context("cannot talk to a process")?);
        let mut line = String::new();
        lines.read_line(&mut line)?;
        anyhow::ensure!(line.contains("ready"), "the writing process could not make its ring");
        let lines = Some(std::thread::spawn(move || last_count(lines)));
        Ok(Self { process, lines })
    }

    fn pid(&self) -> anyhow::Result<Pid> {
        i32::try_from(self.process.id()).ok().and_then(Pid::from_raw).context("a process without a number")
    }

    /// Stops all threads of the process for `time`.
    pub(super) fn stop_for(&self, time: Duration) -> anyhow::Result<()> {
        kill_process(self.pid()?, Signal::STOP)?;
        std::thread::sleep(time);
        Ok(kill_process(self.pid()?, Signal::CONT)?)
    }

    /// Kills the process.
    pub(super) fn kill(&mut self) -> anyhow::Result<()> {
        self.process.kill().context("cannot kill a process")
    }

    /// Asks the process to end, and waits for its end. Returns the number of times that its threads stalled.
    pub(super) fn end(mut self) -> anyhow::Result<u64> {
        if let Some(mut stdin) = self.process.stdin.take() {
            // Writing fails if the process was killed.
            let _ = stdin.write_all(b"end\n");
        }
        let status = self.process.wait().context("cannot wait for a process")?;
        anyhow::ensure!(status.success() || status.signal() == Some(9), "the writing process failed: {status}");
        Ok(self.lines.take().and_then(|lines| lines.join().ok()).unwrap_or(0))
    }
}

impl Drop for WriterProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the last count that the process has reported.
fn last_count(lines: BufReader<ChildStdout>) -> u64 {
    let mut count = 0;
    for line in lines.lines().map_while(Result::ok) {
        if let Ok(line) = serde_json::from_str::<serde_json::Value>(&line) {
            count = line.get("stalls").and_then(serde_json::Value::as_u64).unwrap_or(count);
        }
    }
    count
}
