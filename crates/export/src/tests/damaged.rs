//! An export of a capture with a damaged block.

use super::*;

/// Makes a capture of two shards with two blocks each. Span 1 of shard 0 ends in the shard's second block, where span 2
/// is whole. Span 5 of shard 1 ends in the second block of that shard.
fn of_two_blocks() -> CaptureFixture {
    let mut made = CaptureFixture::sharded();
    made.thread(900, 1, "main");
    made.call_site(901, 1, CallSiteKind::Span, "job", &[]);
    made.span_new(1000, 1, (1, 0), 1, &[]);
    made.span(PerfEvent::SpanEnter, 1010, 1, 1, 1);
    made.in_shard(SHARD_1);
    made.thread(902, 2, "worker");
    made.span_new(1020, 2, (5, 0), 1, &[]);
    made.span(PerfEvent::SpanEnter, 1030, 2, 5, 1);
    made.end_block();
    made.in_shard(0);
    made.span(PerfEvent::SpanExit, 1100, 1, 1, 1);
    made.span(PerfEvent::SpanClose, 1110, 1, 1, 1);
    made.span_new(1200, 1, (2, 0), 1, &[]);
    made.span(PerfEvent::SpanClose, 1210, 1, 2, 1);
    made.in_shard(SHARD_1);
    made.span(PerfEvent::SpanExit, 8900, 2, 5, 1);
    made.span(PerfEvent::SpanClose, 9000, 2, 5, 1);
    made
}

#[test]
fn a_damaged_block_is_a_loss_and_its_spans_last_as_long_as_they_are_known() {
    let seen = |id: u64, micros: f64| (id, "X".to_owned(), Some(micros), "seen".to_owned());
    let lost = |id: u64, micros: f64| (id, "X".to_owned(), Some(micros), "lost".to_owned());
    let losses =
        |capture: &CaptureFile| lines(capture).into_iter().filter(|line| line["type"] == "loss").collect::<Vec<_>>();
    let whole = of_two_blocks().open();
    assert_eq!(losses(&whole), [serde_json::Value::Null; 0]);
    assert_eq!(drawn(&whole, View::Span), [seen(1, 0.11), seen(2, 0.01), seen(5, 7.98)]);
    assert_eq!((summarize(&whole).unwrap().lost, lines(&whole).pop().unwrap()["lost_ends"].clone()), (0, 0.into()));

    // The blocks are those of shard 0 and of shard 1, twice.
    let damaged = of_two_blocks().open_damaged(2);
    let loss = serde_json::json!({
        "type": "loss", "process": 0, "ring": "shop", "first_seqno": 5, "count": 4, "cause": "damaged",
        "seen_ns": 1030,
    });
    assert_eq!(losses(&damaged), [loss]);
    assert_eq!(drawn(&damaged, View::Span), [lost(1, 0.01), seen(5, 7.98)]);
    assert_eq!(drawn(&damaged, View::Thread), [lost(1, 0.001), seen(5, 7.87)]);
    let line = span_line(&damaged, 1);
    assert_eq!((&line["end_lost"], &line["last_seen_ns"]), (&true.into(), &1010.into()));
    let end = lines(&damaged).pop().unwrap();
    assert_eq!((&end["open_spans"], &end["lost_ends"], &end["lost"]), (&0.into(), &1.into(), &4.into()));
    let summary = summarize(&damaged).unwrap();
    assert_eq!((summary.lost, summary.spans[0].end_lost, summary.problems.len()), (4, 1, 1));
    let folded = exported(&damaged, Format::Folded, View::Thread);
    assert_eq!(folded.lines().count(), 1, "{folded}");
    assert!(folded.ends_with(" 7870\n"), "{folded}");
    assert!(exported(&damaged, Format::Chrome, View::Thread).contains("\"4 events lost\""));
}
