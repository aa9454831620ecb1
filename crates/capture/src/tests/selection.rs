//! Tests of selections, and of several captures that are read as one.

use super::*;
use crate::fixtures::{CaptureFixture, SHARD_1, int};
use crate::format::header::BlockKind;
use crate::recording::{CaptureRecording, OverSpan, ReplayConsumer, ReplayNeeds, ReplayState, replay_capture};
use crate::select::matches::Matches;
use crate::tests::{bytes_of, file_of};
use eventring::reader::GapCause;
use eventring::schema::perf::{CallSiteKind, PerfEvent, PerfExt, ThreadView};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const QUERY: u32 = 7;
const FETCH: u32 = 8;

/// Adds a span with its slice: created and entered at `from`, exited and closed at `to`.
fn begin(made: &mut CaptureFixture, nanos: u64, thread: u32, span: (u64, u64), call_site: u32) {
    made.span_new(nanos, thread, span, call_site, &[]);
    made.span(PerfEvent::SpanEnter, nanos, thread, span.0, call_site);
}

fn end(made: &mut CaptureFixture, nanos: u64, thread: u32, span: u64, call_site: u32) {
    made.span(PerfEvent::SpanExit, nanos, thread, span, call_site);
    made.span(PerfEvent::SpanClose, nanos, thread, span, call_site);
}

fn log(made: &mut CaptureFixture, nanos: u64, thread_id: u32, span_id: u64) {
    let ext = PerfExt { span_id, call_site_id: 20, thread_id, ..PerfExt::default() };
    made.perf(PerfEvent::Event, nanos, ext, &[]);
}

/// Adds the tables: the spans `query` and `fetch`, and the threads `main` (tid 4712) and `worker` (tid 4713).
fn tables(made: &mut CaptureFixture) {
    use crate::format::wire::put_u32;
    let mut out = Vec::new();
    let mut put = |what: u32, id: u32, body: &[u8]| {
        for word in [0, what, id, body.len() as u32] {
            put_u32(&mut out, word);
        }
        out.extend(body);
    };
    for (id, name) in [(QUERY, "query"), (FETCH, "fetch")] {
        let site = eventring::schema::perf::CallSiteView {
            kind: CallSiteKind::Span,
            level: eventring::schema::perf::CallSiteLevel::Info,
            name: name.into(),
            target: "shop".into(),
            module: "".into(),
            file: "".into(),
            line: 1,
            field_names: Vec::new(),
        };
        put(1, id, &site.encode());
    }
    put(2, 1, &ThreadView::encode(1, 4712, "main"));
    put(2, 2, &ThreadView::encode(1, 4713, "worker"));
    made.tables(&out, 4);
}

/// Makes a capture of four blocks of perf events: 1000 to 1900 and so on, up to 4000 to 4900. In each block, thread 1
/// has a `query` with a `fetch` inside; the queries have durations of 100, 200, 300, 400. Thread 2 has a `fetch` of its
/// own that begins 50 after the query.
fn queries(mut made: CaptureFixture) -> CaptureFixture {
    tables(&mut made);
    for block in 1..=4 {
        let (at, id) = (1000 * block, 10 * block);
        begin(&mut made, at, 1, (id + 1, 0), QUERY);
        begin(&mut made, at + 10, 1, (id + 2, id + 1), FETCH);
        log(&mut made, at + 20, 1, id + 2);
        begin(&mut made, at + 50, 2, (id + 3, 0), FETCH);
        made.event(1, 20, at + 60, [0; 4], b"");
        end(&mut made, at + 70, 1, id + 2, FETCH);
        end(&mut made, at + 80, 2, id + 3, FETCH);
        end(&mut made, at + 100 * block, 1, id + 1, QUERY);
        made.end_block();
    }
    made
}

/// Returns the times of the selected events; those of typed events are negative.
fn times(capture: &mut CaptureFile, selection: &Selection) -> Vec<i64> {
    capture.select(selection).unwrap();
    let time = |record: CapturedRecord| match record.content {
        CapturedContent::Event { descriptor, .. } if record.ring == 1 => -(descriptor.record_epoch_nanos as i64),
        CapturedContent::Event { descriptor, .. } => descriptor.record_epoch_nanos as i64,
        CapturedContent::Gap { .. } => 0,
    };
    let mut times: Vec<i64> = capture.events().map(time).collect();
    times.dedup();
    times
}

/// Damages the blocks of events that hold none of these times.
fn damage_except(file: &File, kept: &[u64]) -> CaptureFile {
    let mut bytes = bytes_of(file);
    let whole = CaptureFile::from_file(file_of(&bytes)).unwrap();
    for block in whole.blocks.iter().filter(|block| block.header.kind == BlockKind::Events) {
        let times = block.header.first_nanos..=block.header.last_nanos;
        if !kept.iter().any(|kept| times.contains(kept)) {
            bytes[block.end() as usize - 1] ^= 1;
        }
    }
    CaptureFile::from_file(file_of(&bytes)).unwrap()
}

fn problems(capture: &CaptureFile) -> Vec<String> {
    let mut events = capture.events();
    events.by_ref().for_each(drop);
    events.problems().to_vec()
}

#[test]
fn a_time_window_cuts_events_and_reads_no_other_block() {
    let file = queries(CaptureFixture::new()).file();
    let mut capture = damage_except(&file, &[2050, 3050]);
    assert_eq!(problems(&capture).len(), 6, "control: without a selection, the damaged blocks are found");
    let selection = Selection::new().from_epoch_nanos(2080).to_epoch_nanos(3020);
    assert_eq!(times(&mut capture, &selection), [2080, 2200, 3000, 3010, 3020]);
    assert_eq!(problems(&capture), [""; 0]);
    // The last event of a block and the first one of the next have the very times of the window.
    let selection = Selection::new().from_epoch_nanos(2200).to_epoch_nanos(3000);
    assert_eq!(times(&mut capture, &selection), [2200, 3000]);
    capture.select(&Selection::new()).unwrap();
    assert_eq!(problems(&capture).len(), 6, "the empty selection is the whole capture");
}

#[test]
fn the_times_of_events_are_those_by_which_they_are_ordered_whatever_blocks_are_skipped() {
    let mut made = CaptureFixture::new();
    made.event(1, 20, 1000, [0; 4], b"");
    made.event(1, 20, 5000, [0; 4], b"");
    made.end_block();
    made.event(1, 20, 2000, [0; 4], b"");
    made.end_block();
    let mut capture = made.open();
    // The clock fell back. The last event is ordered as if it were of the time 5000.
    assert_eq!(times(&mut capture, &Selection::new().from_epoch_nanos(1500).to_epoch_nanos(3000)), [0; 0]);
    assert_eq!(times(&mut capture, &Selection::new().from_epoch_nanos(5000)), [-5000, -2000]);

    let mut made = CaptureFixture::new();
    tables(&mut made);
    log(&mut made, 5000, 1, 0);
    made.end_block();
    log(&mut made, 2000, 2, 0);
    let mut capture = made.open();
    assert_eq!(times(&mut capture, &Selection::new().thread("worker").from_epoch_nanos(5000)), [2000]);
}

#[test]
fn spans_of_a_name_come_with_all_that_is_inside_and_other_blocks_are_not_read() {
    let mut capture = queries(CaptureFixture::new()).open();
    let of_first = [1000, 1010, 1020, 1070, 1100];
    let selected = times(&mut capture, &Selection::new().span("query"));
    assert_eq!(selected[..5], of_first);
    assert_eq!(selected.len(), 20);
    assert_eq!(times(&mut capture, &Selection::new().span("shop::query")), selected);
    let slow = Selection::new().span("query").min_duration(Duration::from_nanos(300));
    let of_slow = [3000, 3010, 3020, 3070, 3300, 4000, 4010, 4020, 4070, 4400];
    assert_eq!(times(&mut capture, &slow), of_slow);
    assert_eq!(times(&mut capture, &Selection::new().min_duration(Duration::from_nanos(300))), of_slow);
}

#[test]
fn blocks_without_a_chosen_span_are_not_read() {
    let mut made = CaptureFixture::new();
    tables(&mut made);
    begin(&mut made, 1000, 1, (1, 0), FETCH);
    end(&mut made, 1100, 1, 1, FETCH);
    made.end_block();
    begin(&mut made, 2000, 1, (2, 0), QUERY);
    log(&mut made, 2010, 1, 2);
    made.end_block();
    log(&mut made, 2020, 1, 2);
    made.end_block();
    end(&mut made, 2100, 1, 2, QUERY);
    made.end_block();
    begin(&mut made, 3000, 1, (3, 0), FETCH);
    made.end_block();
    let mut capture = damage_except(&made.file(), &[2000, 2020, 2100]);
    assert_eq!(problems(&capture).len(), 2);
    assert_eq!(times(&mut capture, &Selection::new().span("query")), [2000, 2010, 2020, 2100]);
    assert_eq!(problems(&capture), [""; 0]);
}

#[test]
fn what_happens_in_a_span_inside_is_kept_also_after_the_end_of_the_chosen_span() {
    let mut made = CaptureFixture::new();
    tables(&mut made);
    begin(&mut made, 1000, 1, (1, 0), QUERY);
    begin(&mut made, 1050, 2, (2, 1), FETCH);
    end(&mut made, 1100, 1, 1, QUERY);
    made.end_block();
    log(&mut made, 2000, 2, 2);
    begin(&mut made, 2010, 2, (3, 0), FETCH);
    made.end_block();
    begin(&mut made, 3000, 2, (4, 2), FETCH);
    made.event(1, 20, 3010, [0, 0, 0, 2], b"");
    end(&mut made, 3020, 2, 2, FETCH);
    made.end_block();
    end(&mut made, 4000, 2, 4, FETCH);
    made.end_block();
    log(&mut made, 5000, 1, 3);
    made.end_block();
    let file = made.file();
    let mut capture = damage_except(&file, &[1000, 2000, 3000, 3010, 4000]);
    let expected = [1000, 1050, 1100, 2000, 3000, -3010, 3020, 4000];
    assert_eq!(times(&mut capture, &Selection::new().span("query")), expected);
    assert_eq!(problems(&capture), [""; 0]);
    // A condition that is no option selects the same.
    let mut capture = CaptureFile::from_file(file).unwrap();
    assert_eq!(times(&mut capture, &Selection::new().condition("span=query".parse().unwrap())), expected);
}

#[test]
fn what_is_in_a_span_is_selected_also_before_the_first_event_of_a_span_whose_creation_was_overwritten() {
    for is_closed in [false, true] {
        let mut made = CaptureFixture::new();
        tables(&mut made);
        for at in [1000, 2000, 3000] {
            begin(&mut made, at, 2, (at, 1), FETCH);
            log(&mut made, at + 10, 2, at);
            end(&mut made, at + 20, 2, at, FETCH);
            log(&mut made, at + 30, 2, 7);
            made.end_block();
        }
        made.span(PerfEvent::SpanExit, 4000, 1, 1, QUERY);
        made.end_block();
        begin(&mut made, 5000, 2, (9, 1), FETCH);
        let mut expected = vec![1000, 1010, 1020, 2000, 2010, 2020, 3000, 3010, 3020, 4000, 5000];
        if is_closed {
            made.span(PerfEvent::SpanClose, 6000, 1, 1, QUERY);
            expected.push(6000);
        }
        let mut capture = made.open();
        assert_eq!(times(&mut capture, &Selection::new().span("query")), expected);
        let later = Selection::new().span("query").from_epoch_nanos(2000);
        assert_eq!(times(&mut capture, &later), expected[3..]);
    }
}

#[test]
fn what_is_in_a_chosen_span_and_in_a_found_one_is_selected_whatever_lies_between_the_two() {
    let mut made = CaptureFixture::new();
    tables(&mut made);
    begin(&mut made, 1000, 1, (1, 0), FETCH);
    begin(&mut made, 1010, 1, (2, 1), FETCH);
    made.end_block();
    begin(&mut made, 2000, 1, (3, 2), QUERY);
    log(&mut made, 2010, 1, 3);
    end(&mut made, 2020, 1, 3, QUERY);
    made.end_block();
    begin(&mut made, 3000, 1, (4, 0), QUERY);
    made.end_block();
    let mut capture = made.open();
    let both = Selection::new().span("query").condition("span=fetch".parse().unwrap());
    capture.select(&both).unwrap();
    assert_eq!(capture.events().count(), 5, "the second query with its log record");
    capture.leave_out_before(2010).unwrap();
    assert_eq!(capture.events().count(), 3);
}

#[test]
fn damage_where_a_chosen_span_may_begin_is_found() {
    let mut capture = damage_except(&queries(CaptureFixture::new()).file(), &[1000, 2000, 4000, 4060]);
    let slow = Selection::new().span("query").min_duration(Duration::from_nanos(300));
    assert_eq!(times(&mut capture, &slow), [4000, 4010, 4020, 4070, 4400]);
    let found = problems(&capture);
    assert!(matches!(&found[..], [one] if one.contains("is damaged")), "{found:?}");
}

#[test]
fn typed_events_in_a_chosen_span_are_kept_and_spans_inside_may_be_of_other_threads_and_shards() {
    let mut made = CaptureFixture::sharded();
    tables(&mut made);
    begin(&mut made, 1000, 1, (1, 0), QUERY);
    made.in_shard(SHARD_1);
    begin(&mut made, 1010, 2, (2, 1), FETCH);
    made.event(1, 20, 1020, [0, 0, 0, 2], b"");
    made.event(1, 20, 1030, [0, 0, 0, 9], b"");
    made.event(1, 20, 1040, [0; 4], b"");
    end(&mut made, 1050, 2, 2, FETCH);
    begin(&mut made, 1060, 2, (3, 0), FETCH);
    made.end_block();
    let mut capture = made.open();
    assert_eq!(times(&mut capture, &Selection::new().span("query")), [1000, 1010, -1020, 1050]);
    let on_main = Selection::new().span("query").thread("main");
    assert_eq!(times(&mut capture, &on_main), [1000]);
    let on_worker = Selection::new().span("query").thread("worker");
    assert_eq!(times(&mut capture, &on_worker), [1010, 1050]);
    let in_shard = Selection::new().span("query").ring("shop.1");
    assert_eq!(times(&mut capture, &in_shard), [1010, 1050]);
    // The name of shard 0 stands for all shards.
    let in_shards = Selection::new().span("query").ring("shop");
    assert_eq!(times(&mut capture, &in_shards), [1000, 1010, 1050]);
}

#[test]
fn a_span_that_is_open_or_began_before_the_window_lasts_as_long_as_the_window_shows() {
    let mut made = CaptureFixture::new();
    tables(&mut made);
    begin(&mut made, 1000, 1, (1, 0), QUERY);
    begin(&mut made, 1500, 2, (2, 0), FETCH);
    made.span(PerfEvent::SpanEnter, 1700, 1, 1, QUERY);
    end(&mut made, 2000, 1, 1, QUERY);
    log(&mut made, 2500, 2, 2);
    let mut capture = made.open();
    let lasting = |nanos| Selection::new().min_duration(Duration::from_nanos(nanos));
    assert_eq!(times(&mut capture, &lasting(1000)), [1000, 1500, 1700, 2000, 2500]);
    assert_eq!(times(&mut capture, &lasting(1001)), [0; 0]);
    let from = |nanos| lasting(600).from_epoch_nanos(nanos);
    assert_eq!(times(&mut capture, &from(1400)), [1500, 1700, 2000, 2500]);
    assert_eq!(times(&mut capture, &from(1401)), [1500, 2500]);
}

#[test]
fn a_span_whose_beginning_or_end_may_be_lost_lasts_as_long_as_it_was_seen() {
    let mut made = CaptureFixture::sharded();
    tables(&mut made);
    begin(&mut made, 1000, 1, (1, 0), QUERY);
    made.span(PerfEvent::SpanExit, 1200, 1, 1, QUERY);
    begin(&mut made, 1300, 1, (2, 0), FETCH);
    made.in_shard(SHARD_1);
    begin(&mut made, 1400, 2, (3, 0), FETCH);
    made.in_shard(0);
    made.gap(0, 7, GapCause::Overwritten);
    begin(&mut made, 2000, 1, (4, 0), FETCH);
    made.end_block();
    end(&mut made, 2500, 1, 5, QUERY);
    log(&mut made, 3000, 1, 0);
    let mut capture = made.open();
    let lasting = |nanos| Selection::new().min_duration(Duration::from_nanos(nanos));
    // The ends of spans 1 and 2 may be among the lost events: span 1 was seen for 200, and span 2 for 0. Thread 2 is
    // still in span 3, and its ring has lost nothing, so span 3 is open until the end. Span 4 begins after the loss.
    let [all, open, long] = [1, 201, 1001].map(|nanos| {
        let mut times = times(&mut capture, &lasting(nanos));
        times.retain(|nanos| *nanos != 0);
        times
    });
    assert_eq!(all, [1000, 1200, 1400, 2000]);
    assert_eq!(open, [1400, 2000]);
    assert_eq!(long, [1400]);
    // The beginning of span 5 may be among the lost events, which are in the window. Without a loss in the window, a
    // span whose beginning is not seen began before the window.
    assert_eq!(times(&mut capture, &lasting(100).span("query").from_epoch_nanos(1250)), [0]);
    assert_eq!(times(&mut capture, &lasting(100).span("query").from_epoch_nanos(2100)), [2500]);
}

#[test]
fn threads_and_rings_are_chosen_by_name_and_number() {
    let file = queries(CaptureFixture::new()).file();
    let mut capture = CaptureFile::from_file(file).unwrap();
    let of_worker = [1050, 1080, 2050, 2080, 3050, 3080, 4050, 4080];
    assert_eq!(times(&mut capture, &Selection::new().thread("worker")), of_worker);
    assert_eq!(times(&mut capture, &Selection::new().thread("4713")), of_worker);
    assert_eq!(times(&mut capture, &Selection::new().ring("shop-exec")), [-1060, -2060, -3060, -4060]);
    assert_eq!(times(&mut capture, &Selection::new().thread("worker").thread("main")).len(), 4 * 7);
    let mut refused = |selection: Selection| capture.select(&selection).unwrap_err().to_string();
    assert_eq!(refused(Selection::new().thread("nobody")), "the capture has no thread nobody: there are main, worker");
    assert_eq!(refused(Selection::new().ring("sho")), "the capture has no ring sho: there are shop, shop-exec");
    assert_eq!(refused(Selection::new().span("nothing")), "the capture has no span nothing: there are fetch, query");
    let swapped = refused(Selection::new().from_epoch_nanos(1_900).to_epoch_nanos(1_100));
    assert_eq!(swapped, "the time window ends at +0.0000002s, before it begins at +0.000001s; swap the two");
}

#[test]
fn a_time_window_beside_the_capture_is_refused_and_the_times_of_the_capture_are_named() {
    let mut made = CaptureFixture::new();
    // The block of the first ring begins with a loss, whose time is not known.
    made.gap(0, 3, GapCause::OverwrittenBefore);
    begin(&mut made, 1000, 1, (1, 0), FETCH);
    log(&mut made, 5900, 1, 1);
    let mut capture = made.open();
    let mut select = |from, to| capture.select(&Selection::new().from_epoch_nanos(from).to_epoch_nanos(to));
    for (from, to) in [(0, 999), (10_000, u64::MAX)] {
        let refused = select(from, to).unwrap_err();
        assert_eq!(refused.kind(), CaptureErrorKind::BadOptions);
        let held = "the time window has no event: the capture holds +0.0000001s to +0.000009099s; ";
        assert!(refused.to_string().starts_with(held), "{refused}");
    }
    for (from, to) in [(0, 1000), (5900, u64::MAX), (2000, 3000), (5901, u64::MAX)] {
        select(from, to).unwrap();
    }
    // A program that hangs records nothing until the end of the capture.
    for ((from, to), has_event) in [((2000, 5900), true), ((2000, 3000), false), ((5901, 9999), false)] {
        capture.select(&Selection::new().from_epoch_nanos(from).to_epoch_nanos(to)).unwrap();
        assert_eq!(capture.has_event(), has_event);
    }
    let mut empty = CaptureFixture::new().open();
    empty.select(&Selection::new().from_epoch_nanos(2000)).unwrap();
}

#[test]
fn blocks_without_the_chosen_thread_are_not_read_and_losses_are_shown_all_the_same() {
    let mut made = CaptureFixture::new();
    tables(&mut made);
    begin(&mut made, 1000, 1, (1, 0), FETCH);
    made.end_block();
    begin(&mut made, 2000, 2, (2, 0), FETCH);
    made.end_block();
    begin(&mut made, 3000, 1, (3, 0), FETCH);
    made.gap(0, 1, GapCause::Overwritten);
    made.end_block();
    let mut capture = damage_except(&made.file(), &[2000, 3000]);
    assert_eq!(problems(&capture).len(), 1);
    assert_eq!(times(&mut capture, &Selection::new().thread("worker")), [2000, 0]);
    assert_eq!(problems(&capture), [""; 0]);
    assert_eq!(times(&mut capture, &Selection::new().span("query")), [0]);
    // The damaged block is a loss at the begin of this window; the loss that was recorded is later.
    assert_eq!(times(&mut capture, &Selection::new().to_epoch_nanos(2500)), [0, 2000]);
}

#[test]
fn events_that_have_lost_what_a_condition_asks_for_are_counted_wherever_they_are() {
    let mut made = CaptureFixture::new();
    made.call_site(900, 5, CallSiteKind::Event, "said", &["x"]);
    made.end_block();
    let ext = PerfExt { call_site_id: 5, thread_id: 1, field_count: 1, ..PerfExt::default() };
    made.perf(PerfEvent::Event, 1000, ext, &int(0, 1));
    made.end_block();
    made.perf_expired(PerfEvent::Event, 2000, ext);
    made.end_block();
    made.perf(PerfEvent::Event, 3000, ext, &int(0, 2));
    let mut capture = made.open();
    capture.select(&Selection::new().condition("field.x=1".parse().unwrap())).unwrap();
    let mut events = capture.events();
    assert_eq!((events.by_ref().count(), events.untested()[0].expired), (1, 1));
}

#[test]
fn a_loss_is_in_each_window_in_which_it_may_have_happened() {
    let mut made = CaptureFixture::new();
    tables(&mut made);
    log(&mut made, 900, 1, 0);
    log(&mut made, 1000, 1, 0);
    made.gap(0, 5, GapCause::Overwritten);
    log(&mut made, 2000, 1, 0);
    log(&mut made, 3000, 1, 0);
    let mut capture = made.open();
    for ((from, to), expected) in [
        ((0, 999), &[900][..]),
        ((0, 1000), &[900, 1000, 0]),
        ((1500, 1600), &[0]),
        ((2000, 9999), &[0, 2000, 3000]),
        ((2001, 9999), &[3000]),
    ] {
        let window = Selection::new().from_epoch_nanos(from).to_epoch_nanos(to);
        assert_eq!(times(&mut capture, &window), expected, "{from} to {to}");
    }
}

#[test]
fn a_part_says_whether_it_may_cut_spans_and_keeps_its_rings_and_window_without_the_rest() {
    let rings = Selection::new().ring("shop");
    assert!(rings.cuts_spans() && Selection::new().to_epoch_nanos(1000).cuts_spans());
    let of_type = EventSelection { types: vec!["SPAN_NEW".to_owned()], ..EventSelection::default() };
    assert!(Selection::new().events(of_type).cuts_spans());
    assert!(Selection::new().thread("main").cuts_spans() && !Selection::new().span("query").cuts_spans());
    let window = rings.clone().from_epoch_nanos(1000).to_epoch_nanos(2000);
    assert_eq!(window.clone().span("query").thread("main").rings_and_window(), window);
    assert_eq!(window.window(), Selection::new().from_epoch_nanos(1000).to_epoch_nanos(2000));
}

#[test]
fn progress_counts_the_bytes_of_the_blocks_that_are_read() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let calls = Arc::new(AtomicU64::new(0));
    let (into, count) = (seen.clone(), calls.clone());
    let mut capture = queries(CaptureFixture::new()).open().with_progress(move |read, all| {
        into.lock().unwrap().push((read, all));
        count.fetch_add(1, Ordering::Relaxed);
    });
    capture.events().for_each(drop);
    let (last, all) = *seen.lock().unwrap().last().unwrap();
    assert_eq!((last, calls.load(Ordering::Relaxed)), (all, 8));
    times(&mut capture, &Selection::new().from_epoch_nanos(4000));
    let (last, part) = *seen.lock().unwrap().last().unwrap();
    assert!(last == part && part < all);
}

/// Writes the capture into a file of this name.
fn saved(directory: &Path, name: &str, made: CaptureFixture) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, bytes_of(&made.file())).unwrap();
    path
}

#[test]
fn captures_of_different_processes_are_read_as_one() {
    let directory = tempfile::tempdir().unwrap();
    let a = saved(directory.path(), "a.evc", queries(CaptureFixture::of_process(1)));
    let mut second = CaptureFixture::of_process(2);
    tables(&mut second);
    begin(&mut second, 1005, 1, (11, 0), FETCH);
    second.gap(1, 3, GapCause::Overwritten);
    let b = saved(directory.path(), "b.evc", second);
    let mut both = CaptureFile::open_all(&[&a, &b]).unwrap();
    let rings: Vec<_> = both.rings().iter().map(|ring| (ring.pid, ring.process, ring.role)).collect();
    let shard0 = |recorder| RingRole::Shard { recorder, shard: 0 };
    let single = RingRole::Single;
    assert_eq!(rings, [(1, 0, shard0(0)), (1, 0, single), (2, 1, shard0(2)), (2, 1, single)]);
    assert_eq!((both.catalog(2).threads().count(), both.catalog(0).call_sites().count()), (2, 2));
    let order: Vec<u32> = both.events().map(|record| record.ring).collect();
    assert_eq!(order[..6], [3, 0, 0, 2, 2, 0], "by time; a loss before the first event has no time");
    let end = both.end().unwrap();
    assert_eq!((end.stats.events(), end.stats.lost(), end.stats.rings.len()), (58, 3, 4));
    // The spans of the two processes have the same ids and are different spans.
    let selected = times(&mut both, &Selection::new().span("query").to_epoch_nanos(1999));
    assert_eq!(selected, [0, 1000, 1010, 1020, 1070, 1100]);
}

#[test]
fn a_ring_that_is_in_two_captures_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let a = saved(directory.path(), "a.evc", CaptureFixture::of_process(1));
    let b = saved(directory.path(), "b.evc", CaptureFixture::of_process(2));
    let again = saved(directory.path(), "again.evc", CaptureFixture::of_process(2));
    let error = CaptureFile::open_all(&[&a, &b, &again]).unwrap_err();
    assert_eq!(error.kind(), CaptureErrorKind::BadOptions);
    let shown = error.to_string().replace(directory.path().to_str().unwrap(), "DIR");
    assert_eq!(
        shown,
        "DIR/again.evc: it has the ring shop of process 2, and so has DIR/b.evc: the same events would be there twice; name one of the two"
    );
}

#[test]
fn problems_of_captures_that_are_read_together_name_their_file() {
    let directory = tempfile::tempdir().unwrap();
    let a = saved(directory.path(), "a.evc", queries(CaptureFixture::of_process(1)));
    let b = directory.path().join("b.evc");
    let damaged = damage_except(&queries(CaptureFixture::of_process(2)).file(), &[1000, 2000, 3000, 4060]);
    let bytes = bytes_of(damaged.files().next().unwrap());
    std::fs::write(&b, &bytes[..bytes.len() - 1]).unwrap();
    let both = CaptureFile::open_all(&[&a, &b]).unwrap();
    assert!(both.is_truncated());
    let found: Vec<String> = both.problems().iter().cloned().chain(problems(&both)).collect();
    let start = format!("{}: ", b.display());
    assert!(found.len() > 1 && found.iter().all(|problem| problem.starts_with(&start)), "{found:?}");
}

#[test]
fn a_file_with_more_spans_than_it_can_have_is_damaged() {
    let mut found = Matches::default();
    (0..10).for_each(|_| found.add_span(0, 1, 1000, 2000));
    assert!(found.clone().finish(10).is_ok());
    assert_eq!(found.clone().finish(9).unwrap_err().kind(), CaptureErrorKind::Damaged);
    // The memory also holds the events and spans that could not be tested.
    found.add_untested_event(0, 1, 1000);
    found.add_untested_span(0, 1, 1000, 2000);
    assert_eq!((found.untested(), found.len()), (2, 12));
    assert!(found.clone().finish(12).is_ok() && found.finish(11).is_err());
}

/// Notes what became of spans.
#[derive(Default)]
struct Became(Vec<(u64, bool)>);

impl ReplayConsumer for Became {
    fn needs(&self) -> ReplayNeeds {
        ReplayNeeds { remaining: true, ..ReplayNeeds::default() }
    }

    fn span(&mut self, _: usize, over: &OverSpan<'_>, _: ReplayState<'_>) -> std::io::Result<()> {
        self.0.push((over.span.id.get(), over.span.is_end_lost));
        Ok(())
    }
}

#[test]
fn a_loss_ends_with_the_next_event_of_its_ring_whether_it_is_selected_or_not() {
    let mut made = CaptureFixture::sharded();
    tables(&mut made);
    // No thread is in these spans, so any ring may have lost their ends.
    made.span_new(1000, 1, (1, 0), QUERY, &[]);
    made.gap(SHARD_1, 7, GapCause::Overwritten);
    made.in_shard(SHARD_1);
    begin(&mut made, 1100, 2, (2, 0), FETCH);
    made.in_shard(0);
    made.span_new(1200, 1, (3, 0), QUERY, &[]);
    made.in_shard(SHARD_1);
    begin(&mut made, 5000, 2, (4, 0), QUERY);
    let mut capture = made.open();
    let mut became = |selection: &Selection| {
        capture.select(selection).unwrap();
        let mut became = Became::default();
        replay_capture(&CaptureRecording::new(&capture).unwrap(), &mut became).unwrap();
        became.0.retain(|(span, _)| *span != 2);
        became.0
    };
    let of_all = became(&Selection::new());
    assert_eq!(of_all, [(1, true), (3, false), (4, false)]);
    assert_eq!(became(&Selection::new().span("query")), of_all);
}
