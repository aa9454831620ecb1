//! The parts that are measured. Each runs in a process of its own, which prints its numbers as JSON.

use eventring::reader::{Reader, SnapshotOptions};
use eventring_capture::{CaptureFile, CaptureOptions, capture};
use eventring_export::{Format, View, export, summarize};
use serde_json::json;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

/// Captures a ring until its writer ends.
pub fn run_capture(ring: &str, output: &str, level: i32) {
    let options = CaptureOptions::new().compression_level(level).overwrite(true);
    let mut is_told = false;
    let mut progress = |_: &_| {
        // The first call comes when the ring is open.
        if !is_told {
            println!("ready");
            is_told = true;
        }
        ControlFlow::Continue(())
    };
    let summary = capture(&[ring.into()], Path::new(output), &options, &mut progress).expect("a capture");
    let stats = &summary.stats;
    let accounted: u64 = stats.rings.iter().map(|ring| ring.events + ring.removed + ring.lost() + ring.skipped()).sum();
    let last: u64 = stats.rings.iter().map(|ring| ring.last_seqno).sum();
    assert_eq!(accounted, last, "the account is not exact: {summary:?}");
    print(json!({
        "events": stats.events(), "lost": stats.lost(), "bytes": summary.bytes, "hurried": summary.lower_level_events,
        "cpu_nanos": cpu_nanos(), "rss_mib": rss_mib(),
    }));
}

/// Takes a snapshot of a ring.
pub fn run_snapshot(ring: &str, output: &str) {
    let reader = Reader::open(ring).expect("a ring");
    let out = std::fs::File::create(output).expect("a file");
    let options = SnapshotOptions::new().temporary_directory(Path::new(output).parent().expect("a directory"));
    let summary = reader.write_snapshot(out, &options).expect("a snapshot");
    print(json!({ "events": summary.events, "rss_mib": rss_mib() }));
}

/// Exports or summarises a capture.
pub fn run_export(file: &str, format: &str) {
    let start = Instant::now();
    let capture = CaptureFile::open(Path::new(file)).expect("a capture");
    let events = capture.end().expect("a whole capture").stats.events();
    let mut out = Counted { bytes: 0 };
    let slices = match format {
        "summary" => summarize(&capture).expect("a summary").spans.iter().map(|span| span.count).sum(),
        _ => {
            let format = match format {
                "perfetto" => Format::Perfetto,
                "chrome" => Format::Chrome,
                "folded" => Format::Folded,
                _ => Format::Jsonl,
            };
            let mut buffered = std::io::BufWriter::with_capacity(1 << 16, &mut out);
            let summary = export(&capture, format, View::Thread, &mut buffered).expect("an export");
            buffered.flush().expect("counting");
            drop(buffered);
            summary.slices
        }
    };
    print(json!({
        "events": events, "slices": slices, "bytes": out.bytes, "seconds": start.elapsed().as_secs_f64(),
        "rss_mib": rss_mib(),
    }));
}

/// A writer that counts, so that no disk is measured.
struct Counted {
    bytes: u64,
}

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Measures the time to copy the bytes of one event, from memory that is as large as the ring.
pub fn copy_nanos() -> f64 {
    const BYTES: usize = 64 + super::load::PAYLOAD_BYTES;
    let from = vec![7_u8; 256 << 20];
    let mut to = vec![0_u8; 2 << 20];
    let mut events = 0;
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(1500) {
        for chunk in from.chunks_exact(to.len()) {
            to.copy_from_slice(std::hint::black_box(chunk));
            std::hint::black_box(&to);
            events += to.len() / BYTES;
        }
    }
    start.elapsed().as_nanos() as f64 / events as f64
}

fn print(object: serde_json::Value) {
    println!("{object}");
}

/// Returns the processor time of this process: user and system.
fn cpu_nanos() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `usage` is valid for writes of a `rusage`.
    let result = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    assert_eq!(result, 0);
    // SAFETY: the call has succeeded, so the structure was filled.
    let usage = unsafe { usage.assume_init() };
    let nanos = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    nanos(usage.ru_utime) + nanos(usage.ru_stime)
}

/// Returns the largest resident memory of this process so far, mapped rings included.
fn rss_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") / 1024.0
}
