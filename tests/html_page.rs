//! The page of `export --format html` opens in a browser from its file, without a network: the spans are in its table
//! and in speedscope, and the browser finds nothing wrong.
#![cfg(feature = "cli")]

mod consumers;
mod program;

use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use program::run;
use serde_json::json;
use std::path::Path;
use tracing::{Dispatch, error, info_span};

/// The name of a span that runs a script if a page does not escape it.
const HOSTILE: &str = "</script><script>document.title='ran'</script>";

#[test]
fn a_browser_opens_the_page_from_its_file_and_finds_the_hottest_span_in_speedscope() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (ring, page) = (path("shop"), path("shop.html"));
    let recorder = PerfRecorder::builder().config(&ring).prefault(false).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder));
    tracing::dispatcher::with_default(&dispatch, || {
        for number in 0..50_u64 {
            let request = info_span!("the hottest request", number).entered();
            info_span!("query").in_scope(|| error!("it failed"));
            info_span!("</script><script>document.title='ran'</script>").in_scope(|| ());
            drop(request);
        }
        std::mem::forget(info_span!("unfinished").entered());
    });
    let exported = run(&["export", &ring, "--format", "html", "-o", &page, "--json"]).json();
    assert_eq!((&exported["spans"], &exported["events"]), (&json!(151), &json!(50)));
    let Some(seen) = consumers::read("html_page.py", Path::new(&page)) else { return };
    assert_eq!(seen["problems"], json!([]));
    assert_eq!(seen["requests"], json!([]), "the page asks for nothing but itself");
    let rows = seen["rows"].as_array().unwrap();
    let row = |name: &str| {
        let of_name = |row: &&serde_json::Value| row[0].as_str().is_some_and(|cell| cell.ends_with(name));
        rows.iter().find(of_name).unwrap_or_else(|| panic!("{name} is not in {rows:?}"))
    };
    assert_eq!(rows[0], *row("the hottest request"));
    assert_eq!((&row("query")[1], &row("query")[10]), (&json!("50"), &json!("50")));
    assert_eq!((&row("unfinished")[1], &row("unfinished")[9]), (&json!("0"), &json!("1")));
    assert_eq!(row(HOSTILE)[1], "50");
    assert!(!seen["title"].as_str().unwrap().contains("ran"), "{}", seen["title"]);
    let frames = seen["frames"].as_array().unwrap();
    for name in ["the hottest request", "query", HOSTILE, "unfinished (open)"] {
        assert!(frames.contains(&json!(name)), "{name} is not in {frames:?}");
    }
}
