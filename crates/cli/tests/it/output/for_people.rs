//! What people read: one number for one thing, names that are seen, and what is open where nothing happens.

use crate::fixtures::*;
use eventring::schema::perf::{CallSiteKind, CallSiteLevel, PerfExt, flags};
use eventring_capture::fixtures::CaptureFixture;

/// Makes a capture file with what `record` records.
fn capture(directory: &Path, record: impl FnOnce(&mut CaptureFixture)) -> PathBuf {
    let path = directory.join("shop.evc");
    let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
    let mut made = CaptureFixture::written(file.try_clone().unwrap(), Box::new(file));
    made.thread(1000, 1, "main");
    record(&mut made);
    drop(made.file());
    path
}

#[test]
fn the_median_of_spans_is_one_number_in_every_verb() {
    let directory = tempfile::tempdir().unwrap();
    let file = capture(directory.path(), |made| {
        made.call_site(1000, 1, CallSiteKind::Span, "request", &[]);
        // More than any verb samples, and no two of the same length.
        for number in 0..5001_u64 {
            let (id, from) = (1 + number, 2000 + number * 100_000);
            made.span_new(from, 1, (id, 0), 1, &[]);
            made.span(PerfEvent::SpanClose, from + 30_000 + number * 7919 % 10_007, 1, id, 1);
        }
    });
    let summary = run!("summary", file, "--json").json();
    let ask = run!("ask", file, "--json").json();
    let why = run!("why", file, "--json").json();
    let (of_summary, of_ask) = (&summary["spans"][0], &ask["names"][0]);
    assert_eq!((&of_summary["p50_ns"], &of_summary["p99_ns"]), (&of_ask["p50_ns"], &of_ask["p99_ns"]));
    assert_eq!(of_summary["p50_ns"], why["median_ns"]);
}

#[test]
fn a_window_in_which_all_hangs_shows_what_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let file = capture(directory.path(), |made| {
        made.call_site(1000, 1, CallSiteKind::Span, "request", &[]);
        made.call_site(1000, 2, CallSiteKind::Span, "query", &[]);
        made.span_new(2000, 1, (1, 0), 1, &[]);
        made.span(PerfEvent::SpanEnter, 2010, 1, 1, 1);
        made.span_new(6000, 1, (2, 1), 2, &[]);
        made.span(PerfEvent::SpanEnter, 6010, 1, 2, 2);
    });
    let file = file.to_str().unwrap();
    let output = place(&directory, "out.json");
    // In the middle, and between the last event and the end of the capture at 9999.
    for (around, is_open) in [("4000+-0.000000500", [true, false]), ("8000+-0.000000500", [true, true])] {
        let export = ["export", file, "--format", "chrome", "-f", "-o", output.to_str().unwrap(), "--around", around];
        for arguments in [&["summary", file, "--around", around][..], &["watch", file, "--around", around], &export] {
            let shown = run(arguments).ends(0).warns("has no event; what was open in it:");
            assert_eq!(["request", "query"].map(|name| shown.err.contains(name)), is_open, "{shown:?}");
        }
    }
    // A window with an event says nothing of this, and one behind the end of the capture is a mistake.
    let with_event = run!("summary", file, "--around", "6000+-0.000000500");
    assert!(with_event.code == Some(0) && !with_event.err.contains("no event"), "{with_event:?}");
    run!("summary", file, "--around", "20000+-0.000000500").fails(2, "the time window has no event");
}

#[test]
fn the_lines_of_a_scope_say_once_that_it_is_one() {
    let directory = tempfile::tempdir().unwrap();
    let file = capture(directory.path(), |made| {
        made.call_site(1000, 1, CallSiteKind::Span, "parse", &["kind"]);
        let ext = PerfExt { span_id: 1, call_site_id: 1, thread_id: 1, ..PerfExt::default() };
        made.perf(PerfEvent::SpanNew, 2000, PerfExt { flags: flags::SCOPE | flags::ENTERED, ..ext }, &[]);
        made.perf(PerfEvent::SpanExit, 2100, PerfExt { flags: flags::CLOSED, ..ext }, &[]);
    });
    let shown = run!("watch", file);
    assert!(!shown.out.contains("kind=") && shown.out.matches(" scope ").count() == 1, "{shown:?}");
    let lines = run!("watch", file, "--json").json_lines();
    assert_eq!(lines.iter().filter(|line| line["payload"]["kind"] == "scope").count(), 2, "{lines:?}");
}

#[test]
fn an_empty_name_is_shown_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let file = capture(directory.path(), |made| {
        made.call_site_in(1000, 1, (CallSiteKind::Span, CallSiteLevel::Info), ("", ""), &[]);
        made.thread(1000, 2, "");
        for id in [1, 2] {
            made.span_new(2000, 2, (id, 0), 1, &[]);
            made.span(PerfEvent::SpanEnter, 2010, 2, id, 1);
        }
        made.span(PerfEvent::SpanExit, 2020, 2, 1, 1);
        made.span(PerfEvent::SpanClose, 2020, 2, 1, 1);
    });
    let file = file.to_str().unwrap();
    for verb in [&["summary", file][..], &["open", file], &["top", file, "--once"], &["watch", file], &["why", file]] {
        run(verb).ends(0).shows("\"\"");
    }
    run!("open", file).shows("tid 4713");
    assert_eq!(run!("summary", file, "--json").json()["spans"][0]["name"], "");
}

#[test]
fn of_two_threads_in_a_span_busy_adds_the_times_and_idle_is_the_time_without_one() {
    let directory = tempfile::tempdir().unwrap();
    const MS: u64 = 1_000_000;
    let file = capture(directory.path(), |made| {
        made.thread(1000, 2, "other");
        made.call_site(1000, 1, CallSiteKind::Span, "shared", &[]);
        made.span_new(10 * MS, 1, (1, 0), 1, &[]);
        let steps = [(10, 1, true), (20, 2, true), (40, 1, false), (50, 2, false), (60, 1, true), (65, 1, false)];
        for (at, thread, enters) in steps {
            let event = if enters { PerfEvent::SpanEnter } else { PerfEvent::SpanExit };
            made.span(event, at * MS, thread, 1, 1);
        }
        made.span(PerfEvent::SpanClose, 71 * MS, 1, 1, 1);
    });
    let shown = run!("summary", file.to_str().unwrap());
    let row = shown.out.lines().find(|line| line.contains("shared")).unwrap();
    // The total, itself, 30 + 30 + 5 ms of threads, and 10 + 6 ms without one.
    assert!(row.contains("61.0 ms  61.0 ms  65.0 ms  16.0 ms"), "{row}");
}

#[test]
fn the_parents_of_an_open_span_end_with_the_first_one_that_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let file = capture(directory.path(), |made| {
        made.call_site(1000, 1, CallSiteKind::Span, "step", &[]);
        for (id, parent) in [(1, 0), (2, 1), (3, 2), (4, 3)] {
            made.span_new(2000 + id, 1, (id, parent), 1, &[]);
        }
        // It was closed a moment ago, so records of it may still come.
        made.span(PerfEvent::SpanClose, 2100, 1, 2, 1);
    });
    let opened = run!("open", file.to_str().unwrap(), "--json").json();
    let parents = opened["spans"].list().iter().map(|span| (span["id"].clone(), span["parents"].clone()));
    let parents: Vec<String> = parents.map(|(id, parents)| format!("{id} in {parents}")).collect();
    assert_eq!(parents, ["1 in []", "3 in [2]", "4 in [3,2]"]);
}

#[test]
fn a_span_that_several_threads_are_in_is_not_without_one_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let file = capture(directory.path(), |made| {
        made.thread(1000, 2, "other");
        made.call_site(1000, 1, CallSiteKind::Span, "shared", &[]);
        made.span_new(2000, 1, (1, 0), 1, &[]);
        [1, 2].into_iter().for_each(|thread| made.span(PerfEvent::SpanEnter, 2010, thread, 1, 1));
    });
    let code = |condition: &str| run!("summary", file.to_str().unwrap(), "--where", condition).code;
    assert_eq!(["thread=main", "thread=other", "thread!=third"].map(code), [Some(0); 3]);
    assert_eq!(["thread!=main", "thread!=other", "thread=third"].map(code), [Some(2); 3]);
}
