//! Tails of batches with chosen times.

use super::*;
use crate::tables_of_capture;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array as _, RecordBatch};
use arrow_schema::SchemaRef;
use eventring::reader::GapCause;
use eventring::schema::perf::PerfEvent::{SpanClose, SpanEnter, SpanExit};
use eventring_capture::fixtures::{CaptureFixture, SHARD_1, text};
use std::io;

const MILLI: u64 = 1_000_000;

/// The rows of the table of spans: the id, whether the span is open, and its busy time.
#[derive(Default)]
struct Spans {
    tables: Vec<String>,
    rows: Vec<(u64, bool, Option<i64>)>,
}

impl ArrowSink for Spans {
    fn table(&mut self, name: &str, _: SchemaRef) {
        self.tables.push(name.to_owned());
    }

    fn rows(&mut self, table: usize, rows: RecordBatch) -> io::Result<()> {
        if self.tables[table] == "spans" {
            let column = |name: &str| rows.column_by_name(name).unwrap();
            let ids = column("id").as_primitive::<UInt64Type>();
            let (open, busy) = (column("open").as_boolean(), column("busy_ns").as_primitive::<Int64Type>());
            let of_row = |row| (ids.value(row), open.value(row), busy.is_valid(row).then(|| busy.value(row)));
            self.rows.extend((0..rows.num_rows()).map(of_row));
        }
        Ok(())
    }
}

fn pushed(tail: &mut ArrowTail, batch: &CaptureFile) -> Vec<(u64, bool, Option<i64>)> {
    let mut spans = Spans::default();
    tail.push(batch, &mut spans).unwrap();
    spans.rows
}

fn rest(tail: ArrowTail, last: &CaptureFile) -> Vec<(u64, bool, Option<i64>)> {
    let mut spans = Spans::default();
    tail.finish(last, &mut spans).unwrap();
    spans.rows
}

/// Makes a batch in which a span is closed at 90 ms, and nothing follows.
fn closing(made: &mut CaptureFixture) {
    made.span_new(10 * MILLI, 1, (7, 0), 1, &[]);
    made.span(SpanEnter, 20 * MILLI, 1, 7, 1);
    made.span(SpanExit, 50 * MILLI, 1, 7, 1);
    made.span(SpanClose, 90 * MILLI, 1, 7, 1);
}

#[test]
fn a_closed_span_is_in_its_batch_if_nothing_more_comes() {
    let mut made = CaptureFixture::sharded();
    closing(&mut made);
    let mut tail = ArrowTail::default();
    assert_eq!(pushed(&mut tail, &made.batch(95 * MILLI, &[])), [(7, false, Some(30 * MILLI as i64))]);
}

#[test]
fn a_span_that_was_closed_just_before_the_end_comes_with_the_next_batch_even_if_that_is_empty() {
    let mut made = CaptureFixture::sharded();
    closing(&mut made);
    let mut tail = ArrowTail::default();
    assert_eq!(pushed(&mut tail, &made.batch(94 * MILLI, &[])), []);
    assert_eq!(pushed(&mut tail, &CaptureFixture::sharded().batch(104 * MILLI, &[])).len(), 1);
}

#[test]
fn a_span_waits_for_the_ring_that_is_behind_and_is_one_row() {
    let mut made = CaptureFixture::sharded();
    closing(&mut made);
    made.in_shard(SHARD_1);
    made.span(SpanEnter, 30 * MILLI, 2, 7, 1);
    let mut tail = ArrowTail::default();
    assert_eq!(pushed(&mut tail, &made.batch(200 * MILLI, &[SHARD_1])), []);
    let mut later = CaptureFixture::sharded();
    later.in_shard(SHARD_1);
    later.span(SpanExit, 85 * MILLI, 2, 7, 1);
    let rows = pushed(&mut tail, &later.batch(300 * MILLI, &[]));
    assert_eq!(rows, [(7, false, Some(85 * MILLI as i64))]);
    assert_eq!(rest(tail, &CaptureFixture::sharded().batch(400 * MILLI, &[])), []);
}

#[test]
fn a_ring_that_stands_still_holds_spans_back_for_five_seconds_at_most() {
    let mut made = CaptureFixture::sharded();
    closing(&mut made);
    let mut tail = ArrowTail::default();
    assert_eq!(pushed(&mut tail, &made.batch(100 * MILLI, &[SHARD_1])), []);
    let empty = |nanos| CaptureFixture::sharded().batch(nanos, &[SHARD_1]);
    assert_eq!(pushed(&mut tail, &empty(5_094 * MILLI)), []);
    assert_eq!(pushed(&mut tail, &empty(5_100 * MILLI)).len(), 1);
}

#[test]
fn spans_that_were_recorded_long_ago_wait_for_rings_that_are_copied_later() {
    let mut made = CaptureFixture::sharded();
    closing(&mut made);
    made.in_shard(SHARD_1);
    made.span(SpanEnter, 30 * MILLI, 2, 7, 1);
    let long = 3600 * 1000 * MILLI;
    let mut tail = ArrowTail::default();
    assert_eq!(pushed(&mut tail, &made.batch(long, &[0, SHARD_1])), []);
    // The first ring has more events to copy, so the other one cannot have had its turn.
    let mut more = CaptureFixture::sharded();
    more.span(SpanEnter, 95 * MILLI, 1, 8, 1);
    more.span(SpanExit, 96 * MILLI, 1, 8, 1);
    assert_eq!(pushed(&mut tail, &more.batch(long + 9_000 * MILLI, &[0, SHARD_1])), []);
    let mut later = CaptureFixture::sharded();
    later.in_shard(SHARD_1);
    later.span(SpanExit, 85 * MILLI, 2, 7, 1);
    later.span(SpanExit, 86 * MILLI, 2, 7, 1);
    let rows = pushed(&mut tail, &later.batch(long + 9_001 * MILLI, &[]));
    assert_eq!(rows.iter().map(|row| (row.0, row.1)).collect::<Vec<_>>(), [(7, false)]);
}

#[test]
fn a_span_waits_for_records_of_its_batch_even_if_later_ones_have_come_before() {
    let mut made = CaptureFixture::sharded();
    made.span_new(500 * MILLI, 1, (8, 0), 1, &[]);
    let mut tail = ArrowTail::default();
    assert_eq!(pushed(&mut tail, &made.batch(600 * MILLI, &[SHARD_1])), []);
    let mut later = CaptureFixture::sharded();
    later.in_shard(SHARD_1);
    later.span(SpanEnter, 89 * MILLI, 2, 7, 1);
    closing(&mut later);
    later.span(SpanExit, 91 * MILLI, 2, 7, 1);
    let rows = pushed(&mut tail, &later.batch(600 * MILLI, &[]));
    // The other thread has left the span after its close, so it was in the span until then.
    assert_eq!(rows, [(7, false, Some(MILLI as i64 + 30 * MILLI as i64))]);
    assert_eq!(rest(tail, &CaptureFixture::sharded().batch(600 * MILLI, &[])).len(), 1);
}

#[test]
fn open_and_just_closed_spans_are_the_rest() {
    let mut made = CaptureFixture::sharded();
    closing(&mut made);
    made.span_new(91 * MILLI, 1, (8, 0), 1, &[]);
    let batch = made.batch(93 * MILLI, &[]);
    let mut tail = ArrowTail::default();
    assert_eq!(pushed(&mut tail, &batch), []);
    assert_eq!(rest(tail, &batch), [(7, false, Some(30 * MILLI as i64)), (8, true, Some(0))]);
}

#[test]
fn more_open_spans_than_there_is_room_for_become_rows_and_the_tail_goes_on() {
    let mut tail = ArrowTail { kept_bytes_max: 4 << 20, ..ArrowTail::default() };
    let mut rows = 0;
    for batch in 0..20 {
        let mut made = CaptureFixture::sharded();
        for span in 1..1000 {
            let (nanos, id) = ((1 + batch) * 100 * MILLI + span, batch * 1000 + span);
            made.span_new(nanos, 1, (id, 0), 1, &[text(0, "some text")]);
            made.span(SpanEnter, nanos, 1, id, 1);
        }
        rows += pushed(&mut tail, &made.batch((2 + batch) * 100 * MILLI, &[])).len();
        let kept = tail.replay.kept_bytes();
        assert!(kept <= 4 << 20, "{kept}");
    }
    assert!(rows > 15_000, "{rows}");
    rows += rest(tail, &CaptureFixture::sharded().batch(3000 * MILLI, &[])).len();
    assert_eq!(rows, 20 * 999);
}

#[test]
fn each_seqno_is_in_one_count_also_those_that_were_filtered_or_damaged() {
    let mut made = CaptureFixture::new();
    closing(&mut made);
    for (count, cause) in [(3, GapCause::Filtered), (4, GapCause::Overwritten), (5, GapCause::Skipped)] {
        made.gap(0, count, cause);
    }
    made.end_block();
    made.span(SpanClose, 95 * MILLI, 1, 9, 1);
    made.end_block();
    made.span(SpanClose, 96 * MILLI, 1, 10, 1);
    let summary = tables_of_capture(&made.open_damaged(1), &mut Spans::default()).unwrap();
    let ring = &summary.rings[0];
    let missing = GapCause::ALL.map(|cause| ring.missing_by(cause));
    assert_eq!((ring.read, missing, ring.lost()), (5, [0, 4, 0, 5, 0, 3, 1], 5));
    assert_eq!((ring.first_seqno, ring.last_seqno), (1, 18));
    assert_eq!(ring.read + missing.iter().sum::<u64>(), 18);
}

#[test]
fn counts_that_no_ring_can_have_do_not_overflow() {
    let mut made = CaptureFixture::new();
    made.gap(0, u64::MAX, GapCause::Overwritten);
    let summary = tables_of_capture(&made.open(), &mut Spans::default()).unwrap();
    let mut ring = summary.rings[0].clone();
    ring.add(&summary.rings[0]);
    assert_eq!(ring.lost(), u64::MAX);
}
