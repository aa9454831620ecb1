//! The pages of `report` open in a browser from their files, without a network: the spans are in their tables and in
//! their flame graphs, and the browser finds nothing wrong.

use crate::consumers;
use crate::fixtures::*;

/// The name of a span that runs a script if a page does not escape it.
const HOSTILE: &str = "</script><script>document.title='ran'</script>";

/// Records requests with queries in them, and saves what the ring holds as a capture.
fn capture(directory: &Path, name: &str, queries: u64) -> String {
    let path = |extension: &str| directory.join(format!("{name}{extension}")).to_str().unwrap().to_owned();
    let ring = path("");
    let recorder = spans_in(&ring).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder));
    dispatcher::with_default(&dispatch, || {
        for number in 0..50_u64 {
            let request = info_span!("the hottest request", number).entered();
            for _ in 0..queries {
                info_span!("query").in_scope(|| {
                    error!("it failed");
                    thread::sleep(Duration::from_micros(200));
                });
            }
            // The unfinished span is open until the capture looks. Beside it, a short span would be too narrow to show.
            info_span!("</script><script>document.title='ran'</script>")
                .in_scope(|| thread::sleep(Duration::from_millis(1)));
            drop(request);
        }
        std::mem::forget(info_span!("unfinished").entered());
    });
    run!("capture", &ring, "--now", "-o", &path(".evc")).ends(0);
    path(".evc")
}

/// Checks what every page must be.
fn check_page(seen: &Value) {
    assert_eq!(seen["problems"], json!([]));
    assert_eq!(seen["requests"], json!([]), "the page asks for nothing but itself");
    assert!(!seen["title"].text().contains("ran"), "{}", seen["title"]);
}

/// Checks that a click on the last frame of the graph has made it and the frames around it as wide as the graph.
fn check_zoom(seen: &Value, around: &str) {
    let (flame, zoomed) = (texts(&seen["flames"][0]), texts(&seen["zoomed"][0]));
    assert!(flame.len() > zoomed.len() && zoomed.len() >= 2, "{zoomed:?} of {flame:?}");
    assert_eq!(zoomed.last(), flame.last());
    assert!(zoomed[zoomed.len() - 2].starts_with(around), "{zoomed:?}");
}

/// Returns the texts of a list.
fn texts(list: &Value) -> Vec<&str> {
    list.list().iter().map(|text| text.text()).collect()
}

#[test]
fn a_browser_opens_the_page_from_its_file_and_finds_the_hottest_span_in_the_flame_graph() {
    let dir = tempfile::tempdir().unwrap();
    let (capture, page) = (capture(dir.path(), "shop", 1), dir.path().join("shop.html"));
    let written = run!("report", &capture, "-o", page.to_str().unwrap(), "--json").json();
    assert!(written["bytes"].number() < 1 << 20, "{written}");
    let Some(seen) = consumers::read("html_page.py", &page) else { return };
    check_page(&seen);
    let rows = seen["rows"].list();
    let row = |name: &str| {
        let of_name = |row: &&Value| row[0].as_str().is_some_and(|cell| cell.ends_with(name));
        rows.iter().find(of_name).unwrap_or_else(|| panic!("{name} is not in {rows:?}"))
    };
    assert_eq!(rows[0], *row("the hottest request"));
    let last = |name: &str, back: usize| row(name)[row(name).list().len() - back].clone();
    assert_eq!((&row("query")[1], last("query", 1)), (&json!("50"), json!("50")));
    assert_eq!((&row("unfinished")[1], last("unfinished", 2)), (&json!("0"), json!("1")));
    assert_eq!(row(HOSTILE)[1], "50");
    let flame = texts(&seen["flames"][0]);
    for name in ["the hottest request", "query", HOSTILE] {
        assert!(flame.contains(&name), "{name} is not in {flame:?}");
    }
    check_zoom(&seen, "the hottest request");
    assert!(texts(&seen["without_scripts"]).contains(&"the hottest request"), "{seen}");
}

#[test]
fn a_browser_finds_the_hottest_span_and_its_change_in_the_difference_flame_graph() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (capture(dir.path(), "a", 1), capture(dir.path(), "b", 40));
    let page = dir.path().join("ab.html");
    let per = "the hottest request";
    let written = run!("report", &a, &b, "--per", per, "-o", page.to_str().unwrap(), "--json").json();
    assert!(written["bytes"].number() < 1 << 20, "{written}");
    let Some(seen) = consumers::read("html_page.py", &page) else { return };
    check_page(&seen);
    let flame = texts(&seen["flames"][0]);
    let frame = |name: &str| {
        let frame = flame.iter().find_map(|text| text.strip_prefix(name));
        frame.unwrap_or_else(|| panic!("{name} is not in {flame:?}"))
    };
    // Forty times as many queries take more time, however fast the machine is.
    assert!(frame("query +").ends_with('%') && frame("the hottest request +").ends_with('%'), "{flame:?}");
    frame(HOSTILE);
    check_zoom(&seen, "the hottest request");
    assert!(texts(&seen["without_scripts"]).iter().any(|text| text.starts_with("query +")), "{seen}");
    let rows = seen["rows"].list();
    let query = rows.iter().find(|row| row[0].text().ends_with("::query")).unwrap();
    assert_eq!((&query[1], &query[2], &query[3]), (&json!("50"), &json!("2,000"), &json!("+3900%")));
}
