//! Exports of captures with a perf ring of another version.

use super::*;
use eventring_capture::Selection;
use std::time::Duration;

/// Its other ring has typed events, and no spans.
#[test]
fn a_capture_whose_only_spans_have_the_schema_of_another_version_has_its_message() {
    let capture = CaptureFixture::with_schema([9; 32]).open();
    let error = export(&capture, Format::Folded, View::Thread, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), CaptureErrorKind::WrongSchema);
    assert!(error.to_string().contains("has the schema 0909090909090909…, expected "), "{error}");
    assert!(export(&capture, Format::Jsonl, View::Thread, &mut Vec::new()).is_ok());
}

#[test]
fn a_ring_with_the_schema_of_another_version_is_left_out_by_name_and_changes_nothing_in_the_others() {
    let spans = |made: &mut CaptureFixture| {
        made.call_site(900, 1, CallSiteKind::Span, "job", &[]);
        made.span_new(1000, 1, (1, 0), 1, &[]);
        made.span(PerfEvent::SpanClose, 1100, 1, 1, 0);
    };
    let (mut alone, mut both) = (CaptureFixture::new(), CaptureFixture::with_other_schema());
    [&mut alone, &mut both].into_iter().for_each(spans);
    both.in_shard(2);
    both.span(PerfEvent::SpanClose, 1050, 1, 1, 0);
    // A table of another version may hold what is no call site of this version.
    both.call_site(1060, 1, CallSiteKind::Span, "strange", &[]);
    let (mut alone, mut both) = (alone.open(), both.open());
    let lines = |capture: &CaptureFile| {
        let lines = exported(capture, Format::Jsonl, View::Thread);
        lines.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(&both), lines(&alone));
    let summary = |capture: &CaptureFile| serde_json::to_value(summarize(capture).unwrap()).unwrap();
    assert_eq!(summary(&both), summary(&alone));
    let left_out = both.left_out();
    assert!(left_out.len() == 1 && left_out[0].starts_with("left out: the perf ring other has the schema 0909"));
    // A selection without that ring says nothing of it, and a selection of nothing else is the error.
    [&mut alone, &mut both].into_iter().for_each(|capture| capture.select(&Selection::new().ring("shop")).unwrap());
    assert!(both.left_out().is_empty());
    assert_eq!(lines(&both), lines(&alone));
    both.select(&Selection::new().min_duration(Duration::from_nanos(50))).unwrap();
    assert_eq!(lines(&both).iter().filter(|line| line.contains("\"span\"")).count(), 1);
    both.select(&Selection::new().ring("other")).unwrap();
    let error = export(&both, Format::Jsonl, View::Thread, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), CaptureErrorKind::WrongSchema);
}
