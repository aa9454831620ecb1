//! The way of events from the ring to the disk and to an answer: what it costs, and what is lost.
//!
//! `cargo bench -p eventring-export --bench pipeline` prints a table, and writes `pipeline.json` into `crates/export`.
//! `-- --quick` takes about two minutes. See `docs/COST.md`.
//!
//! LTTng records the load, too, if it is installed. As root, `benches/lttng.sh` installs LTTng.

#![allow(missing_docs)]

mod load;
mod work;

use serde_json::{Map, Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The arguments of a child: its part, and what the part needs.
const CHILD: &str = "EVENTRING_PIPELINE_CHILD";

fn main() {
    if let Ok(child) = std::env::var(CHILD) {
        return run_child(&child.split(' ').collect::<Vec<_>>());
    }
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let seconds = if is_quick { 2 } else { 5 };
    let large = if is_quick { 5_000_000 } else { 100_000_000 };
    let directory = tempfile::tempdir_in("/dev/shm").expect("a directory for rings");
    let files = tempfile::tempdir().expect("a directory for files");
    let place = Place { ring: path_in(&directory, "ring"), files };
    let mut numbers = Map::new();
    captures(&place, seconds, &mut numbers);
    lttng(2_000_000 * seconds, 2_000_000, &mut numbers);
    exports(&place, large, &mut numbers);
    let text = serde_json::to_string_pretty(&numbers).expect("numbers");
    std::fs::write("pipeline.json", text + "\n").expect("write pipeline.json");
    println!("\nwritten to pipeline.json");
}

struct Place {
    ring: String,
    files: tempfile::TempDir,
}

impl Place {
    fn file(&self, name: &str) -> String {
        path_in(&self.files, name)
    }
}

fn path_in(directory: &tempfile::TempDir, name: &str) -> String {
    directory.path().join(name).to_str().expect("a path of text").to_owned()
}

fn run_child(arguments: &[&str]) {
    let number = |index: usize| arguments[index].parse().expect("a number");
    match arguments[0] {
        "write" => load::write(arguments[1], number(2), number(3)),
        "write_spans" => load::write_spans(arguments[1], number(2)),
        "capture" => work::run_capture(arguments[1], arguments[2], number(3) as i32),
        "snapshot" => work::run_snapshot(arguments[1], arguments[2]),
        "export" => work::run_export(arguments[1], arguments[2]),
        other => panic!("no part {other}"),
    }
}

/// A child process, and its output.
struct Part {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Part {
    fn begin(arguments: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("own path"));
        command.env(CHILD, arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a child");
        let out = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("a line");
        line.trim().to_owned()
    }

    fn expect_ready(&mut self) {
        assert_eq!(self.line(), "ready");
    }

    fn go(&mut self) {
        self.child.stdin.as_mut().expect("its input").write_all(b"go\n").expect("a line");
    }

    /// Lets the child end, and waits for it.
    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().expect("an end").success());
    }

    fn numbers(mut self) -> Value {
        let line = self.line();
        self.end();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }
}

/// Captures the load at a level, while it is recorded. Returns the capture's numbers, and the nanoseconds of recording
/// one event.
fn capture(place: &Place, level: i32, events: u64, per_second: u64) -> (Value, f64) {
    let mut writer = Part::begin(&format!("write {} {events} {per_second}", place.ring));
    writer.expect_ready();
    let mut capture = Part::begin(&format!("capture {} {} {level}", place.ring, place.file("t.evc")));
    capture.expect_ready();
    writer.go();
    let recording = writer.line().parse().expect("a number");
    writer.end();
    (capture.numbers(), recording)
}

fn captures(place: &Place, seconds: u64, numbers: &mut Map<String, Value>) {
    let default_level = eventring_capture::CaptureOptions::DEFAULT_LEVEL;
    put(numbers, "memcpy_cpu_ns", json!(work::copy_nanos()));
    let mut alone = Part::begin(&format!("write {} {} 2000000", place.ring, 2_000_000 * seconds));
    alone.expect_ready();
    alone.go();
    put(numbers, "record_alone_ns", json!(alone.line().parse::<f64>().expect("a number")));
    alone.end();
    for (name, level) in [("level0", 0), ("default", default_level)] {
        let (found, recording) = capture(place, level, 2_000_000 * seconds, 2_000_000);
        let events = found["events"].as_f64().expect("a number");
        put(numbers, &format!("capture_cpu_ns_{name}"), json!(found["cpu_nanos"].as_f64().unwrap() / events));
        put(numbers, &format!("capture_bytes_{name}"), json!(found["bytes"].as_f64().unwrap() / events));
        put(numbers, &format!("record_captured_ns_{name}"), json!(recording));
        put(numbers, &format!("capture_hurried_2m_{name}"), found["hurried"].clone());
        if level == default_level {
            put(numbers, "capture_lost_2m", found["lost"].clone());
            put(numbers, "capture_rss_mib", found["rss_mib"].clone());
        }
    }
    let (found, _) = capture(place, default_level, 4_000_000 * seconds, 4_000_000);
    put(numbers, "capture_lost_4m", found["lost"].clone());
    put(numbers, "capture_hurried_4m", found["hurried"].clone());
    snapshot(place, numbers);
}

/// Takes a snapshot of a full ring whose writer lives.
fn snapshot(place: &Place, numbers: &mut Map<String, Value>) {
    let mut writer = Part::begin(&format!("write {} 2000000 100000000", place.ring));
    writer.expect_ready();
    writer.go();
    writer.line();
    let found = Part::begin(&format!("snapshot {} {}", place.ring, place.file("ring.snapshot"))).numbers();
    put(numbers, "snapshot_rss_mib", found["rss_mib"].clone());
    writer.end();
}

fn lttng(events: u64, per_second: u64, numbers: &mut Map<String, Value>) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/lttng.sh");
    let output = Command::new(script).args([events.to_string(), per_second.to_string()]).output();
    let found = output.ok().filter(|output| output.status.success());
    match found.and_then(|output| serde_json::from_slice::<Map<String, Value>>(&output.stdout).ok()) {
        Some(found) => found.into_iter().for_each(|(name, value)| put(numbers, &name, value)),
        None => println!("LTTng is not here, so nothing is compared with it (benches/lttng.sh says why)"),
    }
}

fn exports(place: &Place, events: u64, numbers: &mut Map<String, Value>) {
    let file = place.file("spans.evc");
    let mut writer = Part::begin(&format!("write_spans {} {events}", place.ring));
    writer.expect_ready();
    let default_level = eventring_capture::CaptureOptions::DEFAULT_LEVEL;
    let mut capture = Part::begin(&format!("capture {} {file} {default_level}", place.ring));
    capture.expect_ready();
    writer.go();
    assert_eq!(writer.line(), "done");
    writer.end();
    let found = capture.numbers();
    let events = found["events"].as_f64().expect("a number");
    put(numbers, "spans_bytes", json!(found["bytes"].as_f64().unwrap() / events));
    put(numbers, "spans_cpu_ns", json!(found["cpu_nanos"].as_f64().unwrap() / events));
    put(numbers, "spans_lost", found["lost"].clone());
    let mut rss_mib: f64 = 0.0;
    for format in ["summary", "folded", "perfetto", "chrome", "jsonl"] {
        let found = Part::begin(&format!("export {file} {format}")).numbers();
        let per_second = found["events"].as_f64().unwrap() / found["seconds"].as_f64().unwrap();
        put(numbers, &format!("{format}_events_per_s"), json!(per_second));
        rss_mib = rss_mib.max(found["rss_mib"].as_f64().unwrap());
        if format == "perfetto" {
            let per_slice = found["bytes"].as_f64().unwrap() / found["slices"].as_f64().unwrap();
            put(numbers, "perfetto_bytes_per_slice", json!(per_slice));
        }
    }
    let name = if events > 9e7 { "export_rss_100m_mib" } else { "export_rss_mib" };
    put(numbers, name, json!(rss_mib));
    put(numbers, "export_events", json!(events));
}

/// Adds a number, and prints it.
fn put(numbers: &mut Map<String, Value>, name: &str, value: Value) {
    println!("{name:<32} {:>16.1}", value.as_f64().unwrap_or_default());
    numbers.insert(name.to_owned(), value);
}
