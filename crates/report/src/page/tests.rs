//! Pages about small captures.

use super::document::ZOOM;
use crate::page::html::escape;
use eventring::reader::{GapCause, Reader};
use eventring::schema::EventPayload as _;
use eventring::schema::perf::{CallSiteKind, PerfEvent, PerfExt, ThreadTime};
use eventring_capture::fixtures::CaptureFixture;
use eventring_capture::{CaptureFile, capture_now};
use eventring_export::View;
use eventring_export::any_capture::everything;
use std::sync::{Arc, Mutex};

fn page(capture: &CaptureFile) -> String {
    let mut out = Vec::new();
    super::write(capture, View::Thread.into(), None, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn page_of_everything() {
    let page = page(&everything());
    let (_, body) = page.split_once("<body>").unwrap();
    insta::assert_snapshot!(body.replace("><", ">\n<"));
}

/// Two invented blocks that are kept with the project; the second one is rejected.
fn kept_blocks() -> CaptureFile {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/all-exec-events.snapshot.zst");
    capture_now(vec![Reader::open(kept).unwrap()], || true).unwrap().0
}

#[test]
fn page_of_blocks() {
    let page = page(&kept_blocks());
    let (_, body) = page.split_once("<body>").unwrap();
    let (body, _) = body.split_once("<footer>").unwrap();
    insta::assert_snapshot!(body.replace("><", ">\n<"));
}

#[test]
fn a_page_of_blocks_reads_a_capture_once_and_one_without_blocks_has_no_such_section() {
    let progress = Arc::new(Mutex::new(Vec::new()));
    let seen = progress.clone();
    page(&kept_blocks().with_progress(move |read_bytes, _| seen.lock().unwrap().push(read_bytes)));
    let progress = progress.lock().unwrap();
    assert!(!progress.is_empty() && progress.windows(2).all(|two| two[1] > two[0]), "{progress:?}");
    assert!(!page(&everything()).contains("<h2>Blocks</h2>"));
}

#[test]
fn every_span_of_the_tile_is_in_the_table_or_its_column_says_what_was_not_seen_of_it() {
    let mut made = CaptureFixture::new();
    made.thread(1000, 1, "main");
    made.call_site(1001, 1, CallSiteKind::Span, "request", &[]);
    made.call_site(1002, 2, CallSiteKind::Span, "customer", &[]);
    made.span(PerfEvent::SpanExit, 1100, 1, 7, 2);
    made.span(PerfEvent::SpanClose, 1200, 1, 7, 2);
    for span in [1, 2] {
        made.span_new(1000 * span + 1000, 1, (span, 0), 1, &[]);
        made.span(PerfEvent::SpanEnter, 1000 * span + 1100, 1, span, 1);
        made.span(PerfEvent::SpanExit, 1000 * span + 1200, 1, span, 1);
        made.span(PerfEvent::SpanClose, 1000 * span + 1300, 1, span, 1);
    }
    made.span_new(4000, 1, (3, 0), 1, &[]);
    made.gap(0, 40, GapCause::Overwritten);
    made.span_new(5000, 1, (4, 0), 1, &[]);
    let page = page(&made.open());
    assert!(page.contains("<b>5</b><span>spans</span>"), "{page}");
    let account =
        "5 spans: 2 seen whole, 1 still open, 1 whose end was not seen, 1 whose beginning was not seen. Counts";
    assert!(page.contains(account), "{page}");
    assert!(page.contains("<th>open</th><th>end not seen</th><th>beginning not seen</th><th>errors</th>"), "{page}");
    // The customer has no time, and the column says why.
    let (_, customer) = page.split_once("</span>customer<svg").unwrap();
    let (customer, _) = customer.split_once("</tr>").unwrap();
    assert!(customer.ends_with("<td>–</td><td></td><td></td><td class=\"open\">1</td><td></td>"), "{customer}");
}

#[test]
fn the_table_of_spans_has_the_times_of_threads_if_they_were_measured() {
    let mut made = CaptureFixture::new();
    made.thread(1000, 1, "main");
    for (site, name) in [(1, "request"), (2, "before")] {
        made.call_site(1001, site, CallSiteKind::Span, name, &[]);
    }
    let mut span = |id: u64, from: u64, to: u64, cpu_nanos: u64| {
        let site = if id == 1 { 2 } else { 1 };
        made.span_new(from, 1, (id, 0), site, &[]);
        made.span(PerfEvent::SpanEnter, from, 1, id, site);
        if cpu_nanos > 0 {
            let times = ThreadTime {
                since_epoch_nanos: from,
                cpu_nanos,
                queue_nanos: 100,
                voluntary_switches: 1,
                ..ThreadTime::default()
            };
            let ext = PerfExt { thread_id: 1, ..PerfExt::default() };
            times.with_bytes(|bytes| made.perf(PerfEvent::ThreadTime, to, ext, bytes));
        }
        made.span(PerfEvent::SpanExit, to, 1, id, site);
        made.span(PerfEvent::SpanClose, to, 1, id, site);
    };
    // Before the first period, nothing is known.
    span(1, 1100, 1200, 0);
    span(2, 2000, 3000, 400);
    let page = page(&made.open());
    assert!(page.contains("<th>max</th><th>cpu</th><th>queue</th><th>sleep</th><th>open</th>"), "{page}");
    let cells = "<td>400 ns 40.0 %</td><td>100 ns 10.0 %</td><td>500 ns 50.0 %</td>";
    assert!(page.contains(cells), "{page}");
    assert!(page.contains("<td>100 ns</td><td></td><td></td><td></td>"), "{page}");
}

#[test]
fn the_page_of_a_capture_without_events_says_so_and_has_neither_date_nor_chart() {
    let mut made = CaptureFixture::new();
    made.gap(0, 40, GapCause::Overwritten);
    let page = page(&made.open());
    let (_, body) = page.split_once("<body>").unwrap();
    assert!(body.contains("<p class=\"note\">no events · process 4711 · "), "{body}");
    assert!(body.contains("This capture has no events") && body.contains("Lost events: 40 overwritten."), "{body}");
    for left_out in ["1970", "<svg", "Events a second"] {
        let (body, _) = body.split_once("<script>").unwrap();
        assert!(!body.contains(left_out), "{left_out}: {body}");
    }
}

#[test]
fn a_page_without_spans_says_so() {
    let mut made = CaptureFixture::new();
    made.thread(1000, 1, "main");
    assert!(page(&made.open()).contains("<p class=\"note\">No thread was in a span.</p>"));
}

/// Text that would run if it were not escaped.
const HOSTILE: &str = "</script><script>document.title='ran'</script>{{main}}\"'><img src=x onerror=alert(1)>";

#[test]
fn text_of_the_recording_is_never_a_part_of_the_page() {
    let mut made = CaptureFixture::new();
    made.thread(1000, 1, HOSTILE);
    made.call_site(1001, 1, CallSiteKind::Span, HOSTILE, &[]);
    made.span_new(2000, 1, (1, 0), 1, &[]);
    made.span(PerfEvent::SpanEnter, 2100, 1, 1, 1);
    made.span(PerfEvent::SpanExit, 2200, 1, 1, 1);
    made.span(PerfEvent::SpanClose, 2300, 1, 1, 1);
    let capture = made.open();
    let page = page(&capture);
    // The page has one script, its own.
    assert_eq!(page.matches("<script").count(), 1, "{page}");
    assert!(!page.contains("<img") && page.contains(ZOOM), "{page}");
    // The name stands in the table, in the key to the curves, at the curve and its mark, over its histogram, and in the
    // flame graph as text and as title.
    assert_eq!(page.matches(&escape(HOSTILE)).count(), 7, "{page}");
}

#[test]
fn every_text_of_a_page_is_there_without_a_network() {
    let page = page(&everything());
    for outside in [" src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
    assert!(page.len() < 128 << 10, "{} bytes", page.len());
}

#[test]
fn a_page_reads_a_capture_once() {
    let progress = Arc::new(Mutex::new(Vec::new()));
    let seen = progress.clone();
    page(&everything().with_progress(move |read_bytes, _| seen.lock().unwrap().push(read_bytes)));
    let progress = progress.lock().unwrap();
    assert!(!progress.is_empty() && progress.windows(2).all(|two| two[1] > two[0]), "{progress:?}");
}
