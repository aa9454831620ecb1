//! Tests that read Parquet files of small captures back with the crate `parquet`.

use super::field_types::FieldTypes;
use super::may_have_file;
use super::tables::{ParquetTables, TailState};
use crate::columns::row_columns::{RowColumns, TableSetup};
use crate::tables::table::ParquetTable;
use crate::tables::table_sink::{RowGroup, TableSink};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array as _, ArrayRef};
use arrow_schema::SchemaRef;
use eventring::reader::{Gap, GapCause};
use eventring::schema::perf::{CallSiteKind, PerfEvent, PerfExt, ValueType, flags};
use eventring_capture::CaptureFile;
use eventring_capture::fixtures::{CaptureFixture, int, text};
use eventring_capture::recording::{CaptureRecording, RecordingReplay, ReplayBounds};
use eventring_export::any_capture::{any_element, capture_of, files_of};
use eventring_export::rows::LossRow;
use eventring_export::{Format, View, export};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;

/// Exports a capture. Returns the row groups of each file.
fn exported(capture: &CaptureFile) -> BTreeMap<String, Vec<RecordBatch>> {
    let directory = tempfile::tempdir().unwrap();
    super::write(capture, &mut directory.path().to_path_buf()).unwrap();
    let contents = files_of(directory.path()).into_keys().map(|name| {
        assert!(may_have_file(&name), "{name}");
        let file = File::open(directory.path().join(&name)).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
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
        let logs = if files.contains_key("log_records.parquet") { "log_records" } else { "logs" };
        let tables = [
            ("span", "spans"), ("event", logs), ("loss", "losses"), ("counter", "counters"), ("marker", "markers"),
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
    // A field that a record has twice has the last value.
    made.span_new(2000, 1, (1, 0), 1, &[int(0, 9), int(0, -5), text(1, "a")]);
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

/// Returns the only row group of a file.
fn only<'f>(files: &'f BTreeMap<String, Vec<RecordBatch>>, name: &str) -> &'f RecordBatch {
    let [rows] = &files[name][..] else { panic!("{files:?}") };
    rows
}

fn column<'r>(rows: &'r RecordBatch, name: &str) -> &'r ArrayRef {
    rows.column_by_name(name).unwrap_or_else(|| panic!("{name} in {:?}", rows.schema()))
}

/// Encodes a field of type `u64`.
fn unsigned(index: u8, value: u64) -> Vec<u8> {
    [&[index, ValueType::U64 as u8, 8, 0][..], &value.to_le_bytes()].concat()
}

#[test]
fn integers_that_fit_no_common_type_are_text() {
    let mut made = CaptureFixture::new();
    made.call_site(1000, 1, CallSiteKind::Span, "query", &["hash", "small", "plain"]);
    made.span_new(2000, 1, (1, 0), 1, &[int(0, -5), int(1, -5), unsigned(2, 1)]);
    made.span_new(3000, 1, (2, 0), 1, &[unsigned(0, u64::MAX), unsigned(1, 7), unsigned(2, u64::MAX)]);
    let files = exported(&made.open());
    let spans = only(&files, "spans.parquet");
    let hashes: Vec<_> = column(spans, "field.hash").as_string::<i32>().iter().collect();
    assert_eq!(hashes, [Some("-5"), Some("18446744073709551615")]);
    assert_eq!(column(spans, "field.small").as_primitive::<Int64Type>().values(), &[-5, 7]);
    assert_eq!(column(spans, "field.plain").as_primitive::<UInt64Type>().values(), &[1, u64::MAX]);
}

#[test]
fn a_span_says_whether_it_is_a_scope_and_whether_it_ended_with_its_parent() {
    let mut made = CaptureFixture::new();
    made.call_site(1000, 1, CallSiteKind::Span, "parse", &[]);
    made.span_new(2000, 1, (1, 0), 1, &[]);
    for (span_id, end) in [(2, flags::CLOSED), (3, flags::CLOSED | flags::ENDED_WITH_PARENT)] {
        let scope = PerfExt { related: 1, thread_id: 1, ..PerfExt::of_span(span_id, 1) };
        made.perf(PerfEvent::SpanNew, 2000, PerfExt { flags: flags::SCOPE | flags::ENTERED, ..scope }, &[]);
        made.perf(PerfEvent::SpanExit, 3000, PerfExt { flags: end, ..scope }, &[]);
    }
    let files = exported(&made.open());
    let spans = only(&files, "spans.parquet");
    let flags = |name: &str| column(spans, name).as_boolean().iter().map(Option::unwrap).collect::<Vec<_>>();
    assert_eq!(column(spans, "id").as_primitive::<UInt64Type>().values(), &[1, 2, 3]);
    assert_eq!((flags("scope"), flags("ended_with_parent")), (vec![false, true, true], vec![false, false, true]));
}

#[test]
fn columns_of_fields_differ_by_more_than_case_and_have_no_zero_bytes() {
    let mut made = CaptureFixture::new();
    made.call_site(1000, 1, CallSiteKind::Span, "query", &["user", "User", "USER", "a\0b", "É", "é"]);
    made.span_new(2000, 1, (1, 0), 1, &[0, 1, 2, 3, 4, 5].map(|index| int(index, index.into())));
    let files = exported(&made.open());
    let spans = only(&files, "spans.parquet");
    let names = ["field.user", "field.field.User", "field.field.USER_2", "field.a_b", "field.É", "field.field.é"];
    for (name, value) in names.into_iter().zip(0..) {
        assert_eq!(column(spans, name).as_primitive::<Int64Type>().values(), &[value], "{name}");
    }
}

#[test]
fn a_loss_before_the_first_event_has_no_time() {
    let mut made = CaptureFixture::new();
    made.gap(1, 5, GapCause::Overwritten);
    made.event(1, 20, 7000, [0; 4], b"");
    made.gap(1, 6, GapCause::Overwritten);
    let files = exported(&made.open());
    let seen: Vec<_> = column(only(&files, "losses.parquet"), "seen_ns").as_primitive::<Int64Type>().iter().collect();
    assert_eq!(seen, [None, Some(7000)]);
}

/// A consumer that keeps the rows of each table.
#[derive(Default)]
struct KeptTables(Vec<(String, SchemaRef, Vec<RecordBatch>)>);

impl TableSink for KeptTables {
    fn create(&mut self, name: &str, schema: SchemaRef, time_column: usize) -> std::io::Result<usize> {
        assert!(time_column < schema.fields().len());
        self.0.push((name.to_owned(), schema, Vec::new()));
        Ok(self.0.len() - 1)
    }

    fn send_rows(&mut self, table: usize, rows: RowGroup) -> std::io::Result<()> {
        self.0[table].2.push(rows.sorted()?);
        Ok(())
    }
}

#[test]
fn each_batch_of_a_tail_has_the_same_tables_and_goes_on_with_the_time() {
    let batch = |put: &dyn Fn(&mut CaptureFixture)| {
        let mut made = CaptureFixture::new();
        put(&mut made);
        made.open()
    };
    let batches = [
        batch(&|made| made.gap(1, 5, GapCause::Overwritten)),
        // 20 is declared by the schema, and 999 is not.
        batch(&|made| [20, 999].into_iter().for_each(|code| made.event(1, code, 7000, [0; 4], b""))),
        batch(&|made| made.gap(1, 6, GapCause::Overwritten)),
    ];
    let mut state = TailState::default();
    let mut seen = Vec::new();
    for capture in &batches {
        let recording = CaptureRecording::new(capture).unwrap();
        let (types, mut sink) = (FieldTypes::default(), KeptTables::default());
        let mut tables = ParquetTables::new(&recording, &types, Some(state), &mut sink).unwrap();
        let mut replay = RecordingReplay::for_consumer(&tables, ReplayBounds::Refuse);
        replay.drive(&mut recording.entries(), &mut tables).unwrap();
        state = tables.finish_batch().unwrap();
        sink.0.sort_by(|one, other| one.0.cmp(&other.0));
        seen.push(sink.0);
    }
    let columns =
        |batch: usize| seen[batch].iter().map(|(name, schema, _)| (name.as_str(), schema)).collect::<Vec<_>>();
    let names = |batch: usize| columns(batch).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(columns(1), columns(2));
    let mut with_unknown = names(0);
    with_unknown.push("events-event_999");
    with_unknown.sort_unstable();
    assert_eq!(with_unknown, names(1));
    assert!(names(0).contains(&"counters") && names(0).contains(&"events-BLOCK_START"), "{:?}", names(0));
    let times = seen.iter().flat_map(|batch| {
        let (.., losses) = batch.iter().find(|(name, ..)| name == "losses").unwrap();
        losses.iter().flat_map(|rows| column(rows, "seen_ns").as_primitive::<Int64Type>().iter())
    });
    assert_eq!(times.collect::<Vec<_>>(), [None, Some(7000)]);
}

/// Puts `spans` spans into tables, each with one of `names` fields, and has them passed on as row groups.
fn row_groups_of(spans: u64, names: usize) -> Vec<RecordBatch> {
    let names: Vec<String> = (0..names).map(|index| format!("field{index}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut made = CaptureFixture::new();
    made.call_site(1000, 1, CallSiteKind::Span, "query", &names);
    for number in 0..spans {
        made.span_new(2000 + number, 1, (number + 1, 0), 1, &[int((number % names.len() as u64) as u8, 1)]);
    }
    let capture = made.open();
    let recording = CaptureRecording::new(&capture).unwrap();
    let (types, mut sink) = (FieldTypes::read(&recording).unwrap(), KeptTables::default());
    super::write_rows(&recording, &types, &mut sink).unwrap();
    sink.0.into_iter().find(|(name, ..)| name == "spans").unwrap().2
}

#[test]
fn row_groups_that_were_passed_on_count_as_memory() {
    let mut sink = KeptTables::default();
    let columns = RowColumns::new(&LossRow::default(), TableSetup::default());
    let mut table = ParquetTable::create(columns, "losses", "seen_ns", &mut sink).unwrap();
    for number in 1..=3 {
        let gap = Gap { first_seqno: number, count: 1, cause: GapCause::Overwritten };
        table.push(0, &LossRow::new(0, "shop", gap, None), &mut sink).unwrap();
        assert!(table.waiting_bytes() > 0);
        table.flush(&mut sink).unwrap();
        // The footer of the file describes each of the six columns.
        assert!(table.waiting_bytes() == 0 && table.described_bytes() >= number * 6 * 1024);
    }
}

fn bytes_of(rows: &RecordBatch) -> usize {
    rows.columns().iter().map(|column| column.to_data().get_slice_memory_size().unwrap()).sum()
}

#[test]
fn the_estimate_of_a_row_group_is_the_memory_that_its_rows_take() {
    // A row has 250 columns of fields, and a value in one of them.
    let row_groups = row_groups_of(30_000, 250);
    assert!(row_groups.len() > 1);
    let bytes = bytes_of(&row_groups[0]);
    assert!((14 << 20..18 << 20).contains(&bytes), "{} MiB", bytes >> 20);
    // Rows with few columns make smaller row groups.
    let row_groups = row_groups_of(60_000, 2);
    assert!(row_groups.len() > 1);
    let bytes = bytes_of(&row_groups[0]);
    assert!((4 << 20..9 << 20).contains(&bytes), "{} MiB, {} rows", bytes >> 20, row_groups[0].num_rows());
}

/// Files of which no byte can be written.
struct FullDisk;

impl eventring_export::ExportFiles for FullDisk {
    fn create(&mut self, _: &str) -> std::io::Result<Box<dyn std::io::Write + Send>> {
        Ok(Box::new(File::options().write(true).open("/dev/full")?))
    }
}

#[test]
fn a_full_disk_is_the_error_of_the_system() {
    let error = super::write(&capture_of(&[]), &mut FullDisk).unwrap_err();
    let io = error.io_error().unwrap_or_else(|| panic!("{error}"));
    assert_eq!(io.kind(), std::io::ErrorKind::StorageFull, "{error}");
}
