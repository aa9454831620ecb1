//! Parquet files of small captures, read back by the crate that wrote them. `tests/parquet_rows.rs` has others read
//! them.

use super::may_have_file;
use crate::capture::CaptureFile;
use crate::capture::fixtures::{CaptureFixture, int, text};
use crate::export::any_capture::{FilesInMemory, any_element, capture_of};
use crate::export::{Format, View, export, export_files};
use crate::schema::perf::{CallSiteKind, PerfEvent};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;

/// Exports a capture. Returns the row groups of each file.
fn exported(capture: &CaptureFile) -> BTreeMap<String, Vec<RecordBatch>> {
    let mut files = FilesInMemory::default();
    export_files(capture, Format::Parquet, &mut files).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let contents = files.contents().into_iter().map(|(name, bytes)| {
        assert!(may_have_file(&name), "{name}");
        let path = directory.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
        (name, reader.with_batch_size(1 << 20).build().unwrap().collect::<Result<_, _>>().unwrap())
    });
    contents.collect()
}

fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

/// Returns the number of lines of each type in the JSON lines of the capture.
fn lines(capture: &CaptureFile) -> BTreeMap<String, usize> {
    let mut text = Vec::new();
    export(capture, Format::Jsonl, View::Thread, &mut text).unwrap();
    let mut counts = BTreeMap::new();
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line: Value = serde_json::from_slice(line).unwrap();
        *counts.entry(line["type"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_files_of_any_capture_have_a_row_for_each_line(elements in prop::collection::vec(any_element(), 0..60)) {
        let capture = capture_of(&elements);
        let (files, lines) = (exported(&capture), lines(&capture));
        let of_lines = |kind: &str| lines.get(kind).copied().unwrap_or_default();
        let of_file = |name: &str| files.get(&format!("{name}.parquet")).map_or(0, |batches| rows(batches));
        let tables = [
            ("span", "spans"), ("event", "logs"), ("loss", "losses"), ("counter", "counters"), ("marker", "markers"),
            ("not_recorded", "not_recorded"), ("unknown", "unknown"),
        ];
        for (kind, name) in tables {
            prop_assert_eq!(of_file(name), of_lines(kind), "{}", name);
        }
        let typed = files.iter().filter(|(name, _)| name.starts_with("events-"));
        prop_assert_eq!(typed.map(|(_, batches)| rows(batches)).sum::<usize>(), of_lines("typed_event"));
    }
}

#[test]
fn rows_are_in_the_order_of_time_and_fields_of_mixed_types_keep_their_values() {
    let mut made = CaptureFixture::new();
    made.call_site(1000, 1, CallSiteKind::Span, "query", &["n", "user"]);
    // The later span is closed first, so its row comes first from the replay.
    made.span_new(2000, 1, (1, 0), 1, &[int(0, -5), text(1, "a")]);
    made.span_new(3000, 1, (2, 0), 1, &[int(0, 7), int(1, 9)]);
    made.span(PerfEvent::SpanClose, 4000, 1, 2, 1);
    made.span(PerfEvent::SpanClose, 60_000_000, 1, 1, 1);
    let files = exported(&made.open());
    let [spans] = &files["spans.parquet"][..] else { panic!("{files:?}") };
    let column = |name: &str| spans.column_by_name(name).unwrap_or_else(|| panic!("{name} in {:?}", spans.schema()));
    assert_eq!(column("id").as_primitive::<UInt64Type>().values(), &[1, 2]);
    assert_eq!(column("field.n").as_primitive::<Int64Type>().values(), &[-5, 7]);
    assert_eq!(column("field.user").as_string::<i32>().iter().collect::<Vec<_>>(), [Some("a"), Some("9")]);
}

/// Files of which no byte can be written.
struct FullDisk;

impl crate::export::ExportFiles for FullDisk {
    fn create(&mut self, _: &str) -> std::io::Result<Box<dyn std::io::Write + Send>> {
        Ok(Box::new(File::options().write(true).open("/dev/full")?))
    }
}

#[test]
fn a_full_disk_is_the_error_of_the_system() {
    let error = export_files(&capture_of(&[]), Format::Parquet, &mut FullDisk).unwrap_err();
    let io = error.io_error().unwrap_or_else(|| panic!("{error}"));
    assert_eq!(io.kind(), std::io::ErrorKind::StorageFull, "{error}");
}
