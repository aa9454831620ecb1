//! Tests with "bombs": small capture files that are very large when they are decompressed. An export of a bomb must
//! take no more memory than [`export`] promises.

use crate::output::formats::{Format, export, export_files};
use eventring::schema::perf::{CallSiteKind, CallSiteLevel, CallSiteView, PerfEvent, PerfExt};
use eventring_capture::fixtures::{CaptureFixture, int, text};
use eventring_capture::{CaptureError, CaptureFile};
use eventring_export::{ExportFiles, View, summarize};
use rayon::prelude::*;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

const PLACE: &str = "EVENTRING_BOMB";
/// The variable with the number of the bomb, which says in which formats it is exported.
const WHICH: &str = "EVENTRING_BOMB_NUMBER";
/// The number of a bomb that is exported in all formats.
const ALL: usize = usize::MAX;
/// The number of parts of the other formats. Each bomb is exported as JSON lines, as Parquet, and in the formats of one
/// part. All formats take some minutes more (`EVENTRING_BOMBS=all`).
const OTHERS_PARTS: usize = 3;

fn of_spans(made: &mut CaptureFixture, span: u64) {
    made.span_new(1000, 1, (span + 1, 0), 1, &[text(0, "x")]);
}

/// Adds a span that is closed again.
fn of_closed_spans(made: &mut CaptureFixture, span: u64) {
    let nanos = 1000 + span * 1000;
    made.span_new(nanos, 1, (span + 1, 0), 1, &[text(0, "x")]);
    made.span(PerfEvent::SpanEnter, nanos + 100, 1, span + 1, 1);
    made.span(PerfEvent::SpanExit, nanos + 200, 1, span + 1, 1);
    made.span(PerfEvent::SpanClose, nanos + 300, 1, span + 1, 1);
}

fn of_threads(made: &mut CaptureFixture, n: u64) {
    made.span(PerfEvent::SpanEnter, 1000, n as u32, 1, 1);
}

fn of_fields(made: &mut CaptureFixture, span: u64) {
    let fields: Vec<Vec<u8>> = (0..200).map(|index| text(index, "")).collect();
    made.span_new(1000, 1, (span + 1, 0), 1, &fields);
}

/// Adds a slice of one span with a long field.
fn of_slices(made: &mut CaptureFixture, n: u64) {
    if n == 0 {
        let field = [&[0, 7, 0xff, 0xff][..], &[b'x'; 0xffff]].concat();
        made.span_new(1000, 1, (1, 0), 1, &[field]);
    }
    made.span(PerfEvent::SpanEnter, 1000, 1, 1, 1);
}

fn of_call_sites(made: &mut CaptureFixture, n: u64) {
    made.call_site(1000, n as u32, CallSiteKind::Span, "s", &["a"; 200]);
}

fn of_losses(made: &mut CaptureFixture, _: u64) {
    made.gap(1, 1, eventring::reader::GapCause::Overwritten);
    made.event(1, 20, 1000, [0; 4], b"");
}

/// Adds a log record with 50 fields, whose types no other log record has.
fn of_field_types(made: &mut CaptureFixture, n: u64) {
    let field = |index: u8| if n >> (index % 16) & 1 == 0 { text(index, "") } else { int(index, 0) };
    let fields: Vec<Vec<u8>> = (0..50).map(field).collect();
    let ext = PerfExt { call_site_id: 1, thread_id: 1, field_count: 50, ..PerfExt::default() };
    made.perf(PerfEvent::Event, 1000, ext, &fields.concat());
}

/// Adds a closed span with one of 250 fields. Each of them gets a column of its own in tables.
fn of_sparse_fields(made: &mut CaptureFixture, n: u64) {
    if n == 0 {
        let names: Vec<String> = (0..250).map(|index| format!("field{index}")).collect();
        made.call_site(1000, 1, CallSiteKind::Span, "s", &names.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let nanos = 1000 + n * 1000;
    made.span_new(nanos, 1, (n + 1, 0), 1, &[int((n % 250) as u8, 0)]);
    made.span(PerfEvent::SpanClose, nanos + 300, 1, n + 1, 1);
}

/// Adds a log record with a text of 64 KiB in one of 250 fields.
fn of_long_texts(made: &mut CaptureFixture, n: u64) {
    if n == 0 {
        let names: Vec<String> = (0..250).map(|index| format!("field{index}")).collect();
        made.call_site(1000, 1, CallSiteKind::Event, "s", &names.iter().map(String::as_str).collect::<Vec<_>>());
        let fields: Vec<Vec<u8>> = (0..250).map(|index| text(index, "")).collect();
        let ext = PerfExt { call_site_id: 1, thread_id: 1, field_count: 250, ..PerfExt::default() };
        made.perf(PerfEvent::Event, 1000, ext, &fields.concat());
    }
    let field = [&[(n % 250) as u8, 7, 0xff, 0xff][..], &[b'x'; 0xffff]].concat();
    let ext = PerfExt { call_site_id: 1, thread_id: 1, field_count: 1, ..PerfExt::default() };
    made.perf(PerfEvent::Event, 1000, ext, &field);
}

/// Adds an event with a payload of 1 MiB. Every second event has a very late time. All events from the second on have
/// this late time as their sort time, because the sort time of a ring's events never falls. Events with the same sort
/// time can be put in order only when all their blocks are decompressed.
fn of_payloads(made: &mut CaptureFixture, n: u64) {
    made.event(1, 20, if n.is_multiple_of(2) { 1 } else { u64::MAX / 2 }, [0; 4], &[0; 1 << 20]);
}

fn of_tables(made: &mut CaptureFixture, n: u64) {
    let view = CallSiteView {
        kind: CallSiteKind::Span,
        level: CallSiteLevel::Info,
        name: "s".into(),
        target: "".into(),
        module: "".into(),
        file: "".into(),
        line: 0,
        field_names: vec!["a".into(); 200],
    };
    let body = view.encode();
    let mut block = Vec::new();
    for entry in 0..20_000 {
        let head = [0, 1, (n * 20_000 + entry) as u32, body.len() as u32];
        block.extend(head.iter().flat_map(|word: &u32| word.to_le_bytes()));
        block.extend(&body);
    }
    made.tables(&block, 20_000);
}

/// A bomb: its name, the function that records one element, the number of elements, and how many elements a block has.
type Bomb = (&'static str, fn(&mut CaptureFixture, u64), u64, u64);
const BOMBS: [Bomb; 11] = [
    ("spans", of_spans, 260_000, 10_000),
    ("threads", of_threads, 100_000, 10_000),
    ("fields", of_fields, 40_000, 1000),
    ("slices", of_slices, 40_000, 10_000),
    ("call sites", of_call_sites, 60_000, 1000),
    ("losses", of_losses, 20_000, 10_000),
    ("payloads", of_payloads, 100, 1),
    ("tables", of_tables, 10, 1),
    ("field types", of_field_types, 5000, 1000),
    ("sparse fields", of_sparse_fields, 60_000, 10_000),
    ("long texts", of_long_texts, 600, 100),
];

/// Returns the largest resident memory that this process has had, in bytes.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Files that keep nothing.
struct NoFiles;

impl ExportFiles for NoFiles {
    fn create(&mut self, _: &str) -> io::Result<Box<dyn Write + Send>> {
        Ok(Box::new(io::sink()))
    }
}

/// Does the work of the child process: exports a capture. Writes to a file how much memory the exports took, and
/// whether they succeeded.
fn export_alone(path: &Path) {
    let before = peak_bytes();
    let which: usize = std::env::var(WHICH).unwrap().parse().unwrap();
    let outcome = CaptureFile::open(path).and_then(|capture| {
        let to_file = |format, view| export(&capture, format, view, &mut std::io::sink()).map(|_| ());
        let to_files = |format| export_files(&capture, format, &mut NoFiles).map(|_| ());
        let mut all = vec![summarize(&capture).map(|_| ()), to_file(Format::Jsonl, View::Span)];
        all.push(to_files(Format::Parquet));
        let others: &[&dyn Fn() -> Result<(), CaptureError>] = &[
            &|| to_file(Format::Chrome, View::Thread),
            &|| to_file(Format::Chrome, View::Span),
            &|| eventring_report::page::write(&capture, View::Span.into(), None, &mut std::io::sink()).map(|_| ()),
            &|| to_file(Format::OtlpJson, View::Span),
            &|| to_files(Format::Ctf),
        ];
        let is_wanted = |at: usize| which == ALL || at % OTHERS_PARTS == which % OTHERS_PARTS;
        all.extend(others.iter().enumerate().filter(|(at, _)| is_wanted(*at)).map(|(_, export)| export()));
        all.into_iter().collect()
    });
    let outcome = outcome.map_or_else(|error| error.to_string(), |()| "exported".into());
    std::fs::write(path.with_extension("peak"), format!("{} {outcome}", peak_bytes() - before)).unwrap();
}

#[test]
fn a_small_capture_that_holds_very_much_takes_no_more_memory_than_is_promised() {
    if let Some(path) = std::env::var_os(PLACE) {
        return export_alone(Path::new(&path));
    }
    let place = tempfile::tempdir().unwrap();
    let is_all = std::env::var("EVENTRING_BOMBS").is_ok_and(|bombs| bombs == "all");
    let peak_of = |(number, (name, put, count, per_block)): (usize, Bomb)| {
        let path = place.path().join(name.replace(' ', "_"));
        let mut made = CaptureFixture::new();
        for n in 0..count {
            put(&mut made, n);
            if n % per_block == per_block - 1 {
                made.end_block();
            }
        }
        let mut file = made.file();
        std::io::Seek::rewind(&mut file).unwrap();
        let mut copy = std::fs::File::create(&path).unwrap();
        let bytes = std::io::copy(&mut file, &mut copy).unwrap();
        copy.flush().unwrap();
        let test = "bombs::a_small_capture_that_holds_very_much_takes_no_more_memory_than_is_promised";
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", test]).env(PLACE, &path);
        let number = if is_all { ALL } else { number };
        child.env(WHICH, number.to_string()).stdout(std::process::Stdio::null());
        assert!(child.status().unwrap().success(), "{name}");
        let result = std::fs::read_to_string(path.with_extension("peak")).unwrap();
        let (peak, outcome) = result.split_once(' ').unwrap();
        let peak: u64 = peak.parse().unwrap();
        println!("{name}: {bytes} bytes, {} MiB at most: {outcome}", peak >> 20);
        assert!(peak <= (1 << 30) + 192 * bytes, "{name}: {bytes} bytes, {} MiB: {outcome}", peak >> 20);
        (name, outcome == "exported", peak)
    };
    // This is the control: a capture with a tenth of the spans of the first bomb is exported completely.
    let (_, put, count, per_block) = BOMBS[0];
    let few = (ALL, ("few spans", put, count / 10, per_block));
    // Spans that are closed take little memory, however many they are.
    let closed = (ALL, ("closed spans", of_closed_spans as fn(&mut CaptureFixture, u64), 200_000, 10_000));
    let all: Vec<(usize, Bomb)> = [closed, few].into_iter().chain(BOMBS.into_iter().enumerate()).collect();
    // Those that take longest begin first.
    let found: Vec<(&str, bool, u64)> = all.into_iter().par_bridge().map(peak_of).collect();
    let of =
        |name: &str| found.iter().find(|(its, ..)| *its == name).map(|(_, is_whole, peak)| (*is_whole, peak >> 20));
    let is_refused = |name: &str| of(name).is_some_and(|(is_whole, _)| !is_whole);
    assert!(["spans", "slices", "tables"].into_iter().all(is_refused), "{found:?}");
    assert!(!["payloads", "few spans"].into_iter().any(is_refused), "{found:?}");
    assert!(of("closed spans").is_some_and(|(is_whole, peak_mib)| is_whole && peak_mib < 112), "{found:?}");
}
