//! Pages about small captures.

use super::figures::CaptureFigures;
use super::frame;
use super::profile::EmbeddedProfile;
use super::text::escape;
use eventring::reader::GapCause;
use eventring::schema::perf::{CallSiteKind, PerfEvent};
use eventring_capture::CaptureFile;
use eventring_capture::fixtures::CaptureFixture;
use eventring_export::View;
use eventring_export::any_capture::everything;
use flate2::read::GzDecoder;
use serde_json::Value;
use std::sync::{Arc, Mutex};

fn exported(capture: &CaptureFile) -> String {
    let mut out = Vec::new();
    super::write(capture, View::Thread.into(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Returns the page without the document of speedscope in it.
fn page(capture: &CaptureFile) -> String {
    let page = exported(capture);
    let (before, rest) = page.split_once("srcdoc=\"").unwrap();
    let (_, after) = rest.split_once('"').unwrap();
    format!("{before}srcdoc=\"{after}")
}

#[test]
fn page_of_everything() {
    let page = page(&everything());
    let (_, body) = page.split_once("<body>").unwrap();
    insta::assert_snapshot!(body.replace("><", ">\n<"));
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
fn the_page_of_a_capture_without_events_says_so_and_has_neither_date_nor_chart_nor_profile() {
    let mut made = CaptureFixture::new();
    made.gap(0, 40, GapCause::Overwritten);
    let page = exported(&made.open());
    let (_, body) = page.split_once("<body>").unwrap();
    assert!(body.contains("<p class=\"note\">no events · process 4711 · "), "{body}");
    assert!(body.contains("This capture has no events") && body.contains("Lost events: 40 overwritten."), "{body}");
    for left_out in ["1970", "<svg", "<iframe", "Events a second", "speedscope"] {
        let (body, _) = body.split_once("<script>").unwrap();
        assert!(!body.contains(left_out), "{left_out}: {body}");
    }
}

#[test]
fn a_page_without_spans_has_no_profile_and_one_with_spans_says_without_scripts_that_it_needs_them() {
    let mut made = CaptureFixture::new();
    made.thread(1000, 1, "main");
    let page_without_spans = exported(&made.open());
    assert!(page_without_spans.contains("<h2>Profile</h2><p class=\"note\">No thread was in a span.</p></section>"));
    assert!(!page_without_spans.contains("<iframe") && !page_without_spans.contains("<noscript>"));
    let page = page(&everything());
    assert!(page.contains("</style><p class=\"cut\">The profile needs scripts"), "{page}");
}

/// Text that would run if it were not escaped.
const HOSTILE: &str = "</script><script>document.title='ran'</script>{{license}}\"'><img src=x onerror=alert(1)>";

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
    assert!(!page.contains("<img") && page.contains(frame::ZOOM), "{page}");
    // The name stands in the table, in the key to the curves, at the curve and its mark, over its histogram, and in the
    // flame graph as text and as title.
    assert_eq!(page.matches(&escape(HOSTILE)).count(), 7, "{page}");
    // The document inside the page has its own two scripts and the profile, and the profile is base64.
    let whole = exported(&capture);
    assert_eq!(whole.matches("&lt;script").count(), 3 + page.matches("&lt;script").count());
}

#[test]
fn every_text_of_a_page_is_there_without_a_network() {
    let whole = exported(&everything());
    let page = page(&everything());
    for outside in [" src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(whole.contains("default-src 'none'") && !whole.contains("woff2"));
    assert!(whole.contains("Permission is hereby granted, free of charge"));
    assert!(whole.len() < 1 << 20, "{} bytes", whole.len());
}

#[test]
fn a_profile_that_is_too_large_has_the_hottest_stacks_and_says_what_is_missing() {
    let capture = everything();
    let figures = CaptureFigures::of(&capture, View::Thread.into()).unwrap();
    let cut = |slices_max, stacks_max| {
        let options = View::Thread.into();
        let profile = EmbeddedProfile::with_limits(&figures, options, slices_max, stacks_max).unwrap();
        let file: Value = serde_json::from_reader(GzDecoder::new(&profile.gzip[..])).unwrap();
        (profile.is_cut, profile.note, file)
    };
    let (is_cut, _, file) = cut(4, 1);
    assert!(!is_cut && file["profiles"][0]["type"] == "evented", "{file}");
    let (is_cut, note, file) = cut(3, 2);
    assert!(is_cut && note.contains("has 4 slices, too many") && !note.contains("hottest"), "{note}");
    // The queries took 700 ns, and the request 400 ns.
    assert_eq!(file["profiles"][0]["weights"], serde_json::json!([400, 700]));
    assert_eq!(file["profiles"][0]["samples"], serde_json::json!([[0, 1], [0, 1, 2]]));
    assert_eq!(file["shared"]["frames"][2]["name"], "query");
    let (_, note, file) = cut(3, 1);
    assert!(note.ends_with("Of 2 stacks, the page has the 1 hottest."), "{note}");
    assert_eq!(file["profiles"][0]["weights"], serde_json::json!([700]));
}

#[test]
fn a_page_reads_a_capture_once_and_once_more_for_a_profile_of_all_slices() {
    let passes = |slices_max| {
        let progress = Arc::new(Mutex::new(Vec::new()));
        let seen = progress.clone();
        let capture = everything().with_progress(move |read_bytes, _| seen.lock().unwrap().push(read_bytes));
        let figures = CaptureFigures::of(&capture, View::Thread.into()).unwrap();
        EmbeddedProfile::with_limits(&figures, View::Thread.into(), slices_max, 2).unwrap();
        let progress = progress.lock().unwrap();
        assert!(!progress.is_empty());
        1 + progress.windows(2).filter(|two| two[1] <= two[0]).count()
    };
    assert_eq!((passes(3), passes(4)), (1, 2));
}
