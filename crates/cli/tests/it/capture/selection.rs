//! The options of `export` and `summary` that select a part of a capture.

use crate::fixtures::*;
use std::thread::sleep;

#[derive(eventring::EventType, Clone, Copy)]
#[event(content_type = 300, name = "INSIDE")]
#[repr(u16)]
enum Inside {
    Step = 2,
}

/// Records three requests on a thread each, `first`, `second` and `third`. Each of them has a `query` with a log record
/// in it; the second query lasts 30 ms. A typed event is in each request.
fn record(perf: &Path, exec: &Path) -> [Recorder; 1] {
    let typed = typed_in::<ExecEvent>(exec).compact(true).shifts(15, 21).keep(true).build().unwrap();
    let recorder = spans_in(perf).shifts(15, 21).tables_shift(16).keep(true).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder));
    for (number, name) in ["first", "second", "third"].into_iter().enumerate() {
        let (dispatch, typed) = (dispatch.clone(), typed.clone());
        let request = move || {
            dispatcher::with_default(&dispatch, || {
                let _request = info_span!("request", number).entered();
                typed.record(ExecEvent::TxnEnd.code(), [0; 4], &[]);
                let _query = info_span!("query", number).entered();
                sleep(Duration::from_millis(if number == 1 { 150 } else { 1 }));
                info!("found");
            });
        };
        thread::Builder::new().name(name.to_owned()).spawn(request).unwrap().join().unwrap();
        sleep(Duration::from_millis(5));
    }
    [typed]
}

/// Makes a capture, and returns the directory in which it lies with its path.
fn capture() -> (TempDir, String) {
    let (directory, [perf, exec]) = places(["shop", "shop-exec"]);
    let recorders = record(&perf, &exec);
    let path = argument(&place(&directory, "shop.evc")).to_owned();
    run!("capture", &perf, &exec, "--now", "-o", &path).ends(0);
    drop(recorders);
    (directory, path)
}

fn lines(capture: &str, options: &[&str]) -> Vec<Value> {
    let made = run!("export", capture, "--format", "jsonl", options).ends(0);
    made.json_lines()
}

fn of_type<'l>(lines: &'l [Value], what: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["type"] == what).collect()
}

fn names(lines: &[Value]) -> Vec<&str> {
    let mut names: Vec<&str> = of_type(lines, "span").iter().map(|span| span["name"].text()).collect();
    names.sort_unstable();
    names
}

fn summary(capture: &str, options: &[&str]) -> Vec<(String, u64)> {
    let json = run!("summary", capture, "--json", options).json();
    let row = |span: &Value| (span["name"].text().to_owned(), span["count"].number());
    let mut rows: Vec<_> = json["spans"].list().iter().map(row).collect();
    rows.sort();
    rows
}

fn counts(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[test]
fn spans_threads_and_rings_are_selected() {
    let (_directory, capture) = capture();
    let whole = lines(&capture, &[]);
    assert_eq!(names(&whole), ["query", "query", "query", "request", "request", "request"]);
    assert_eq!((of_type(&whole, "event").len(), of_type(&whole, "typed_event").len()), (3, 3));
    let queries = lines(&capture, &["--span", "query"]);
    assert_eq!(names(&queries), ["query", "query", "query"]);
    assert_eq!((of_type(&queries, "event").len(), of_type(&queries, "typed_event").len()), (3, 0));
    let slow = lines(&capture, &["--span", "query", "--min-duration", "100ms"]);
    assert_eq!(names(&slow), ["query"]);
    assert_eq!(of_type(&slow, "span")[0]["fields"]["number"], 1);
    assert!(of_type(&slow, "span")[0]["duration_ns"].number() >= 150_000_000);
    assert_eq!(names(&lines(&capture, &["--min-duration", "100ms"])), ["query", "request"]);
    let third = lines(&capture, &["--thread", "third"]);
    assert_eq!((names(&third), of_type(&third, "typed_event").len()), (vec!["query", "request"], 0));
    let typed = lines(&capture, &["--ring", "shop-exec"]);
    assert_eq!((names(&typed).len(), of_type(&typed, "typed_event").len()), (0, 3));
    assert_eq!(summary(&capture, &["--span", "query"]), counts(&[("query", 3)]));
    assert_eq!(summary(&capture, &["--min-duration", "100ms"]), counts(&[("query", 1), ("request", 1)]));
    assert_eq!(summary(&capture, &["--ring", "shop", "--thread", "first"]), counts(&[("query", 1), ("request", 1)]));
}

#[test]
fn a_capture_of_spans_of_a_name_takes_what_an_export_of_them_shows() {
    let (_directory, [perf, exec, all, taken]) = places(["shop", "shop-shop", "all.evc", "taken.evc"]);
    let (all, taken) = (argument(&all), argument(&taken));
    let recorder = spans_in(&perf).keep(true).build().unwrap();
    let typed = typed_in::<Inside>(&exec).keep(true).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder));
    dispatcher::with_default(&dispatch, || {
        let step = || assert_ne!(record!(&typed => Inside::Step), 0);
        step();
        for number in 0..3 {
            info_span!("request", number).in_scope(|| {
                step();
                info_span!(target: "db", "query", number).in_scope(step);
                info_span!(target: "cache", "query", number).in_scope(step);
            });
        }
    });
    let capture = |path: &str, options: &[&str]| {
        run!("capture", &perf, &exec, "--now", "-f", "-o", path, options).ends(0);
        (names(&lines(path, &[])).len(), of_type(&lines(path, &[]), "typed_event").len())
    };
    assert_eq!(capture(all, &[]), (9, 10));
    let request = format!("{}::request", module_path!());
    for (name, spans, typed) in
        [("request", 9, 9), (&request, 9, 9), ("query", 6, 6), ("db::query", 3, 3), ("::query", 0, 0), ("none", 0, 0)]
    {
        assert_eq!(capture(taken, &["--span", name]), (spans, typed), "{name}");
        if spans > 0 {
            let exported = lines(all, &["--span", name]);
            assert_eq!((names(&exported).len(), of_type(&exported, "typed_event").len()), (spans, typed), "{name}");
        }
    }
}

#[test]
fn a_capture_beside_a_program_takes_each_typed_event_in_the_spans_that_it_takes() {
    const REQUESTS: u64 = 20_000;
    let (_directory, [perf, exec, taken]) = places(["shop", "shop-typed", "t.evc"]);
    let recorder = spans_in(&perf).shards(1).shifts(16, 22).build().unwrap();
    let typed = typed_in::<Inside>(&exec).compact(true).shifts(17, 22).build().unwrap();
    let capture = live!("capture", &exec, &perf, "--where", "span=request", "--strict", "--json", "-o", &taken);
    wait_while(|| !taken.exists());
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    dispatcher::with_default(&dispatch, || {
        let step = || assert_ne!(record!(&typed => Inside::Step), 0);
        for number in 0..REQUESTS {
            info_span!("request").in_scope(step);
            step();
            if number % 25 == 0 {
                sleep(Duration::from_millis(1));
            }
        }
    });
    drop((dispatch, recorder, typed));
    let summary = capture.end().json();
    let events = |ring: &str| {
        let rings = summary["rings"].list();
        rings.iter().find(|it| it["name"] == ring).unwrap()["events"].number()
    };
    assert_eq!((events("shop-typed"), events("shop") >= 4 * REQUESTS), (REQUESTS, true), "{summary:#}");
}

#[test]
fn times_are_selected_in_each_of_their_forms() {
    let (_directory, capture) = capture();
    let whole = lines(&capture, &[]);
    let second =
        of_type(&whole, "span").into_iter().find(|span| span["fields"]["number"] == 1 && span["name"] == "request");
    let second = second.unwrap();
    let (start, end) = (second["start_ns"].as_i64().unwrap(), second["end_ns"].as_i64().unwrap());
    let rfc3339 = |nanos: i64| jiff::Timestamp::from_nanosecond(nanos.into()).unwrap().to_string();
    let since = start - whole[0]["started_ns"].as_i64().unwrap();
    assert!(since < 0, "the capture began when all was recorded");
    let middle = start + (end - start) / 2;
    for options in [
        ["--from".to_owned(), start.to_string(), "--to".to_owned(), end.to_string()].to_vec(),
        ["--from".to_owned(), rfc3339(start), "--to".to_owned(), rfc3339(end)].to_vec(),
        ["--from".to_owned(), format!("-{}ns", -since), "--to".to_owned(), end.to_string()].to_vec(),
        ["--around".to_owned(), format!("{middle}±{}ns", end - middle)].to_vec(),
        ["--around".to_owned(), format!("{middle}+-{}ns", end - middle)].to_vec(),
    ] {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let part = lines(&capture, &options);
        assert_eq!(names(&part), ["query", "request"], "{options:?}");
        // Of two spans that end at one time, either may be told first.
        let found = of_type(&part, "span").into_iter().find(|span| span["name"] == "request").unwrap();
        assert_eq!(found["duration_ns"], second["duration_ns"], "{options:?}");
        assert_eq!(of_type(&part, "typed_event").len(), 1);
    }
    // The spans overlap with a window in which they neither begin nor end only if something happened in it.
    let until = lines(&capture, &["--to", &middle.to_string(), "--from", &start.to_string()]);
    assert!(of_type(&until, "span").iter().all(|span| span["open"] == true));
    let later = lines(&capture, &["--from", &middle.to_string(), "--to", &end.to_string()]);
    assert_eq!(names(&later), ["query", "request"]);
    assert!(of_type(&later, "span").iter().all(|span| span["start_ns"].is_null() && span["duration_ns"].is_null()));
    run!("summary", &capture, "--from", &middle.to_string(), "--to", &end.to_string())
        .shows("+ 1 whose beginning is not selected");
}

#[test]
fn every_format_takes_a_selection_and_shows_the_same_spans() {
    let (directory, capture) = capture();
    let all = |options: &[&str], format: &str| {
        let path = place(&directory, format);
        let run = run!("export", &capture, "-t", format, "--force", "--json", "-o", &path, options);
        run.json()["spans"].number()
    };
    for format in program::formats() {
        assert_eq!((all(&[], &format), all(&["--span", "query"], &format)), (6, 3), "{format}");
    }
}

#[test]
fn what_is_not_there_is_refused_and_what_is_there_is_named() {
    // The rings describe the call sites of other tests in this process, too.
    alone!();
    let (_directory, capture) = capture();
    let refused = |options: &[&str]| -> Run { run!("summary", &capture, options).ends(2).shows_nothing() };
    assert!(refused(&["--span", "none"]).err.contains("has no span none: there are query, request\n"));
    assert!(refused(&["--thread", "none"]).err.contains("has no thread none: there are first, second, third\n"));
    assert!(refused(&["--ring", "none"]).err.contains("has no ring none: there are shop, shop-exec\n"));
    let swapped = refused(&["--from", "+2s", "--to", "+1.5s"]).err;
    assert!(swapped.contains("ends at +1.5s, before it begins at +2s; swap the two"), "{swapped}");
    for options in [["--from", "+100s"], ["--to", "-100s"], ["--around", "+100s±10ms"]] {
        assert!(refused(&options).err.contains("the time window has no event: the capture holds -0."));
    }
    assert!(refused(&["--from", "soon"]).err.contains("expected a time like"));
    assert!(refused(&["--around", "10"]).err.contains("like +1.5s±200ms"));
    assert!(refused(&["--around", "10±1s", "--to", "9"]).err.contains("cannot be used with"));
}

#[test]
fn a_condition_is_about_the_whole_capture_and_what_it_finds_must_fulfil_the_other_options_too() {
    let (_directory, path) = capture();
    let spans = |options: &[&str]| names(&lines(&path, options)).join(" ");
    let logs = |options: &[&str]| of_type(&lines(&path, options), "event").len();
    assert_eq!(spans(&["--span", "query", "--where", "span=request"]), "query query query");
    let of_second = ["--span", "query", "--where", "span=request field.number=1"];
    assert_eq!((spans(&of_second), logs(&of_second)), ("query".to_owned(), 1));
    let on_its_thread = [&of_second[..], &["--thread", "second"]].concat();
    assert_eq!((spans(&on_its_thread), logs(&on_its_thread)), ("query".to_owned(), 1));
    assert_eq!(spans(&[&of_second[..], &["--thread", "first"]].concat()), "");
    let in_its_ring = [&of_second[..], &["--ring", "shop"]].concat();
    assert_eq!(spans(&in_its_ring), "query");
    assert_eq!(spans(&["--min-duration", "100ms", "--span", "query", "--where", "span=request"]), "query");
    let summary = run!("summary", &path, "--json", &of_second).json();
    assert_eq!((summary["spans"].list().len(), &summary["log_records"]), (1, &1.into()), "{summary:#}");
    let watched = run!("watch", &path, "--json", "-q", &of_second);
    let names: Vec<Value> = watched.json_lines().iter().map(|line| line["name"].clone()).collect();
    assert_eq!(names, ["SPAN_NEW", "SPAN_ENTER", "EVENT", "SPAN_EXIT", "SPAN_CLOSE"], "{watched:?}");
}

#[test]
fn a_span_has_all_that_is_in_it_if_its_creation_was_overwritten_before_the_capture() {
    let directory = directory();
    let (ring, path) = (place(&directory, "shop"), argument(&place(&directory, "shop.evc")).to_owned());
    let recorder = spans_in(&ring).shifts(15, 21).keep(true).build().unwrap();
    in_recorder(recorder, || {
        let _parent = info_span!("parent").entered();
        (0..10_000).for_each(|_| info_span!("child").in_scope(|| ()));
    });
    run!("capture", &ring, "--now", "-o", &path).ends(0);
    let children = |options: &[&str]| {
        let summary = run!("summary", &path, "--json", options).json();
        let spans = summary["spans"].list();
        spans.iter().find(|span| span["name"] == "child").unwrap()["count"].number()
    };
    let all = children(&[]);
    assert!(all > 8_000, "{all}");
    assert_eq!((children(&["--span", "parent"]), children(&["--where", "span=parent"])), (all, all));
    let [chosen, found] = [["--span", "parent"], ["--where", "span=parent"]].map(|options| {
        let summary = run!("summary", &path, &options).out;
        summary.lines().find(|line| line.contains("parent")).unwrap().to_owned()
    });
    assert!(chosen.contains("+ 1 whose beginning was lost"), "{chosen}");
    assert!(!chosen.contains("selected") && found.contains("was lost or is not selected"), "{chosen} {found}");
}
