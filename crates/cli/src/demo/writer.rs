//! The writing process of the demo.

use super::workload::Workload;
use super::{INTERVAL, rate, seconds};
use crate::exit::Exit;
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::exec::ExecEvent;
use serde_json::json;
use std::io::Write as _;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Record for the demo
#[derive(clap::Args)]
pub(crate) struct DemoWriterArgs {
    config: String,
    #[arg(long, value_parser = seconds)]
    seconds: f64,
    #[arg(long)]
    threads: u16,
    /// Events a second, all threads together; `max` for no limit
    #[arg(long, value_parser = rate)]
    rate: u64,
    #[arg(long)]
    compact: bool,
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(args: &DemoWriterArgs) -> anyhow::Result<Exit> {
    let description = ContentDescription::of::<ExecEvent>();
    let recorder = Recorder::builder(description).config(&args.config).compact(args.compact).keep(args.keep).build()?;
    print_line(&json!({ "ring": recorder.path().map(|path| path.to_string_lossy()) }))?;

    // The parent sends a line to start the threads. To end the threads, it closes this process's stdin. If the parent
    // dies, stdin is closed, too.
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let stop = OnceLock::new();
    let start = Instant::now();
    let share = args.rate.div_ceil(args.threads.into());
    let work = |thread: u64| work(&recorder, thread, share, start, Duration::from_secs_f64(args.seconds), &stop);
    std::thread::scope(|scope| {
        if line.is_empty() {
            return Ok(());
        }
        let (work, stop) = (&work, &stop);
        // This thread is not part of the scope: its read of stdin may never return, and the scope would wait for it.
        let (ended, end) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut rest = String::new();
            let _ = std::io::stdin().read_line(&mut rest);
            let _ = ended.send(());
        });
        let threads: Vec<_> = (0..u64::from(args.threads)).map(|thread| scope.spawn(move || work(thread))).collect();
        while !threads.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            if end.recv_timeout(INTERVAL).is_ok() {
                stop.get_or_init(|| ());
            }
            print_line(&json!({ "at": start.elapsed().as_secs_f64(), "recorded": recorder.stats().last_seqno }))?;
        }
        let done: Vec<(u64, u64)> = threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect();
        let stats = recorder.stats();
        print_line(&json!({
            "done": true,
            "recorded": done.iter().map(|done| done.0).sum::<u64>(),
            "payload_bytes": done.iter().map(|done| done.1).sum::<u64>(),
            "refused_claims": stats.refused_claims,
            "lapped_claims": stats.lapped_claims,
            "seconds": start.elapsed().as_secs_f64(),
        }))
    })?;
    Ok(Exit::Done)
}

/// Records until the time is over or `stop` is set. Returns the number of events and the number of payload bytes.
fn work(
    recorder: &Recorder,
    thread: u64,
    rate: u64,
    start: Instant,
    time: Duration,
    stop: &OnceLock<()>,
) -> (u64, u64) {
    let mut workload = Workload::new(recorder.clone(), thread);
    loop {
        let elapsed = start.elapsed();
        if elapsed >= time || stop.get().is_some() {
            return (workload.events, workload.payload_bytes);
        }
        if rate > 0 && workload.events as f64 > elapsed.as_secs_f64() * rate as f64 {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        workload.transaction();
    }
}

/// Prints a line for the parent.
pub(crate) fn print_line(line: &serde_json::Value) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
