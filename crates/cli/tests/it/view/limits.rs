//! `eventring view` of a capture that is too large for a browser: it shows the last part, and says how much that is.

use crate::fixtures::*;

/// Captures this many spans. Returns the path of the capture.
fn capture(directory: &TempDir, spans: u32) -> String {
    let (ring, file) = (place(directory, "shop"), place(directory, "shop.evc"));
    let recorder = spans_in(&ring).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder));
    let record = || (0..spans).for_each(|number| info_span!("request", number).in_scope(|| ()));
    dispatcher::with_default(&dispatch, record);
    run!("capture", &ring, "-o", &file, "--now", "--json").json();
    argument(&file).to_owned()
}

/// Returns the size of the trace that `view` shows with these options, and what it says about it.
fn shown(file: &str, options: &[&str]) -> (u64, String) {
    let mut view = Live::start(&[&["view", file, "--no-browser", "--json"], options].concat());
    let bytes = view.json_line()["trace_bytes"].number();
    view.interrupt();
    let ended = view.end().ends(0);
    (bytes, ended.err)
}

/// Checks that two traces may be of the same events. The texts that repeat are found by a hash with a random seed, so
/// the sizes differ a little.
fn assert_alike((bytes, said): (u64, String), (other, other_said): (u64, String)) {
    assert!(bytes.abs_diff(other) < other / 4, "{bytes} {other}");
    assert_eq!((said, other_said), (String::new(), String::new()));
}

#[test]
fn a_capture_that_is_too_large_is_cut_to_its_last_part() {
    let directory = directory();
    let file = capture(&directory, 200);
    let all = shown(&file, &[]);
    let (bytes, said) = shown(&file, &["--max-events", "60"]);
    assert!(bytes < all.0 / 2, "{bytes} {}", all.0);
    assert_alike(shown(&file, &["--max-events", "0"]), all);
    assert!(said.contains("the last 60 are shown") && said.contains("--from"), "{said}");
}

#[test]
fn a_trace_that_is_too_large_is_cut_to_the_last_part_that_fits_and_a_warning_says_how_much() {
    const BYTES_MAX: u64 = 16 << 10;
    let directory = directory();
    let file = capture(&directory, 12_000);
    let all = shown(&file, &[]);
    assert!(all.0 > 4 * BYTES_MAX, "{}", all.0);
    assert_alike(shown(&file, &["--max-events", "0"]), all);
    let (bytes, said) = shown(&file, &["--max-size", "16KiB"]);
    assert!((BYTES_MAX / 4..=BYTES_MAX).contains(&bytes), "{bytes}");
    assert_eq!(said.matches("warning").count(), 1, "{said}");
    assert!(said.contains("KiB, more than 16 KiB"), "{said}");
    // A span is four events, and few events are no spans.
    let words = |after: &str| said.split(after).nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let events: u64 = words("the last ").replace(',', "").parse().unwrap();
    let selected = run!("summary", &file, "--from", &words("shown, from "), "--json").json();
    let spans = selected["spans"][0]["count"].number();
    assert!(events < 48_000 && (events / 5..=events / 4).contains(&spans), "{spans} spans: {said}");
}

#[test]
fn a_size_into_which_no_part_of_the_capture_fits_is_an_error() {
    let directory = directory();
    run!("view", &capture(&directory, 200), "--no-browser", "--json", "--max-size", "100")
        .ends(1)
        .shows_nothing()
        .warns("too large for a browser")
        .warns("--max-size");
}
