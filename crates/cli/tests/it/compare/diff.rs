//! `eventring diff` compares captures span by span.

use crate::consumers;
use crate::counted::{called, capture, capture_with_an_open_span, polled};
use crate::program::{argument, directory, place, run};
use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use serde_json::Value;
use std::path::Path;

fn span<'v>(diff: &'v Value, name: &str) -> &'v Value {
    diff["spans"]
        .as_array()
        .unwrap()
        .iter()
        .find(|span| span["name"] == name)
        .unwrap_or_else(|| panic!("{name}: {diff}"))
}

/// Checks that all figures of a span are those that DuckDB has computed.
fn check_figures(found: &Value, computed: &Value) {
    let keys: Vec<&str> = found.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys.len(), 13, "{keys:?}");
    for key in keys {
        assert_eq!(found[key], computed[key], "{key} of {computed}");
    }
}

#[test]
fn the_figures_are_those_that_duckdb_computes_from_the_exports() {
    let directory = directory();
    let a = capture(&directory, "a", &[called("request", 500, 1000), called("query", 333, 77), called("gone", 3, 5)]);
    let b = capture(&directory, "b", &[called("request", 480, 1003), called("query", 333, 77), called("new", 7, 5)]);
    let diff = run(&["diff", &a, &b, "--json"]).json();
    for (side, file) in [("a", &a), ("b", &b)] {
        let lines = place(&directory, &format!("{side}.jsonl"));
        let exported = run(&["export", file, "--format", "jsonl", "-o", lines.to_str().unwrap()]);
        assert_eq!(exported.code, Some(0), "{exported:?}");
        let Some(figures) = consumers::read("span_figures.py", Path::new(&lines)) else { return };
        let figures = figures.as_array().unwrap();
        assert_eq!(figures.len(), 4);
        for of_span in figures {
            let found = &span(&diff, of_span["name"].as_str().unwrap())[side];
            check_figures(found, of_span);
            assert_eq!(of_span["own_agrees"], true, "{of_span} in {file}");
        }
    }
    for compared in diff["spans"].as_array().unwrap() {
        for (key, change) in compared["change"].as_object().unwrap() {
            let value = |side: &str| compared[side].get(key).map_or(0, |value| value.as_i64().unwrap());
            assert_eq!(change.as_i64(), Some(value("b") - value("a")), "{key} of {compared}");
        }
    }
}

#[test]
fn self_times_of_children_that_overlap_are_those_that_duckdb_computes_from_the_exports() {
    let directory = directory();
    let ring = place(&directory, "overlaps");
    let recorder = PerfRecorder::builder().config(&ring).shifts(15, 21).tables_shift(16).keep(true);
    tracing::subscriber::with_default(RecorderSubscriber::new(recorder.prefault(false).build().unwrap()), || {
        for _ in 0..20 {
            let parent = tracing::info_span!("parent").entered();
            let early = tracing::info_span!("child");
            let late = early.in_scope(|| tracing::info_span!(parent: &parent, "child"));
            late.in_scope(|| drop(early));
            let alone = tracing::info_span!("child");
            drop(late);
            drop(alone);
            // This one outlives its parent.
            let last = tracing::info_span!("child");
            let inside = tracing::info_span!(parent: &last, "grandchild");
            drop((parent, last));
            drop(inside);
        }
    });
    let file = place(&directory, "overlaps.evc");
    let file = file.to_str().unwrap();
    assert_eq!(run(&["capture", ring.to_str().unwrap(), "--now", "-o", file]).code, Some(0));
    let diff = run(&["diff", file, file, "--json"]).json();
    let lines = place(&directory, "overlaps.jsonl");
    assert_eq!(run(&["export", file, "--format", "jsonl", "-o", lines.to_str().unwrap()]).code, Some(0));
    let Some(figures) = consumers::read("span_figures.py", &lines) else { return };
    let figures = figures.as_array().unwrap();
    assert_eq!(figures.len(), 3);
    for of_span in figures {
        check_figures(&span(&diff, of_span["name"].as_str().unwrap())["a"], of_span);
    }
    // Here the self time is less than the time without any child.
    let [parent, child] = ["parent", "child"].map(|name| span(&diff, name)["a"].clone());
    let number = |figures: &Value, key: &str| figures[key].as_u64().unwrap();
    assert!(number(&parent, "self_ns") < number(&parent, "total_ns"), "{parent}");
    let not_overlapping = number(&parent, "total_ns").checked_sub(number(&child, "total_ns"));
    assert!(not_overlapping.is_none_or(|nanos| number(&parent, "self_ns") > nanos), "{parent} {child}");
}

#[test]
fn the_files_of_a_rotated_capture_are_one_capture() {
    let directory = directory();
    let whole = capture(&directory, "ring", &[called("request", 3000, 1000)]);
    let (ring, rotated) = (place(&directory, "ring"), place(&directory, "rotated.evc"));
    let made =
        run(&["capture", ring.to_str().unwrap(), "--now", "--rotate-size", "4k", "-o", rotated.to_str().unwrap()]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let file = |number: usize| place(&directory, &format!("rotated.{number:04}.evc")).to_str().unwrap().to_owned();
    let mut files: Vec<String> = (1..).map(file).take_while(|file| Path::new(file).exists()).collect();
    assert!(files.len() > 2, "{files:?}");
    // They may come in any order.
    files.reverse();
    let with = |rest: &[String]| {
        let rest = rest.iter().map(String::as_str);
        run(&["diff", &whole, "--json", "--fail-if", "instructions(*)!=0", "--with"]
            .into_iter()
            .chain(rest)
            .collect::<Vec<_>>())
    };
    let diff = with(&files);
    assert!(diff.code == Some(0) && diff.err.is_empty(), "{diff:?}");
    assert_eq!(span(&diff.json(), "request")["captures"], serde_json::json!({ "a": 1, "b": 1 }));
    assert_eq!(span(&diff.json(), "request")["b"]["instructions"], 3_000_000);

    // A part of the files is not the capture.
    let part = with(&files[1..]);
    assert!(part.code == Some(16) && part.err.contains("name all of its files"), "{part:?}");
    let gap = with(&[files[0].clone(), files[2].clone()]);
    assert!(gap.code == Some(2) && gap.err.contains("name those in between"), "{gap:?}");
    let several = run(&["diff", &whole, &files[0], &files[1]]);
    assert!(several.code == Some(2) && several.err.contains("the files of a rotated capture"), "{several:?}");
    let budgets = place(&directory, "budgets.toml");
    let update = |files: &[String]| {
        let files = files.iter().map(String::as_str);
        run(&["budget", "update", budgets.to_str().unwrap()].into_iter().chain(files).collect::<Vec<_>>())
    };
    let part = update(&files[1..]);
    assert!(part.code != Some(0) && part.err.contains("name all files of a rotated capture"), "{part:?}");
    assert!(!budgets.exists());
    assert_eq!(update(&files).code, Some(0));
    assert!(std::fs::read_to_string(&budgets).unwrap().contains("instructions = 3000000"));
}

#[test]
fn one_more_instruction_in_a_loop_is_as_many_instructions_as_it_has_turns() {
    let directory = directory();
    let a = capture(&directory, "a", &[called("turn", 1000, 512), called("other", 10, 99)]);
    let b = capture(&directory, "b", &[called("turn", 1000, 513), called("other", 10, 99)]);
    let diff = run(&["diff", &a, &b, "--json"]).json();
    let turn = span(&diff, "turn");
    assert_eq!((&turn["change"]["instructions"], &turn["per_call"]["instructions"]), (&1000.into(), &1.0.into()));
    assert_eq!((&turn["a"]["instructions"], &turn["b"]["instructions"]), (&512_000.into(), &513_000.into()));
    assert_eq!(turn["relative"]["instructions"], 1.0 / 512.0);
    assert_eq!(span(&diff, "other")["change"]["instructions"], 0);
    let main = span(&diff, "main");
    assert_eq!((&main["change"]["instructions"], &main["change"]["self_instructions"]), (&1000.into(), &0.into()));
    let same = run(&["diff", &a, &a, "--json", "--fail-if", "instructions(*)!=0"]).json();
    assert!(same["spans"].as_array().unwrap().iter().all(|span| span["change"]["instructions"] == 0));
}

#[test]
fn a_limit_that_is_exceeded_has_its_own_exit_code_and_is_listed() {
    let directory = directory();
    let a = capture(&directory, "a", &[called("request", 100, 1000), called("query", 10, 50)]);
    let b = capture(&directory, "b", &[called("request", 100, 1004), called("query", 11, 50)]);
    let with = |limits: &[&str]| {
        let limits = limits.iter().flat_map(|limit| ["--fail-if", limit]);
        run(&["diff", &a, &b, "--json"].into_iter().chain(limits).collect::<Vec<_>>())
    };
    let kept = with(&["instructions(request)>+0.5%", "count(request)!=0", "self_instructions(shop::request)>+400"]);
    assert_eq!((kept.code, kept.json()["failed"].as_array().unwrap().len()), (Some(0), 0));
    let failed = with(&["instructions(request)>+0.3%", "count(*)>+5%", "instructions(main)>+1000%"]);
    assert_eq!(failed.code, Some(18), "{failed:?}");
    let listed: Value = serde_json::from_str(&failed.out).unwrap();
    let listed: Vec<String> = listed["failed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{} {} {} {}", it["limit"], it["name"], it["change"], it["relative"]))
        .collect();
    assert_eq!(listed, [r#""instructions(request)>+0.3%" "request" 400 0.004"#, r#""count(*)>+5%" "query" 1 0.1"#]);
    let shown = run(&["diff", &a, &b, "--fail-if", "instructions(request)>+0.3%"]);
    let line = "failed: instructions(request)>+0.3%: instructions of shop::request went from 100,000 to 100,400: +400, +0.40%\n";
    assert!(shown.code == Some(18) && shown.out.ends_with(line), "{shown:?}");
}

#[test]
fn a_limit_that_cannot_be_checked_is_an_error() {
    let directory = directory();
    let counted = capture(&directory, "a", &[called("request", 10, 50)]);
    let timed = capture(&directory, "b", &[called("request", 10, 0)]);
    let with = |limit: &str| run(&["diff", &counted, &timed, "--fail-if", limit]);
    let unknown = with("busy(requests)>+5%");
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.err.contains("no capture has a closed span requests") && unknown.err.contains("shop::request"));
    let uncounted = with("instructions(request)>+5%");
    assert!(uncounted.code == Some(2) && uncounted.err.contains("were not counted on both sides"), "{uncounted:?}");
    for measure in ["busy", "busy_ns", "p99", "p99_ns", "total_ns", "self_ns", "max_ns", "p50_ns", "p90_ns"] {
        assert_eq!(with(&format!("{measure}(request)>+1000000%")).code, Some(0), "{measure}");
    }
    let wrong = with("busy(request)>5%");
    assert!(wrong.code == Some(2) && wrong.err.contains("column 15: found `5%`"), "{wrong:?}");
    let diff = run(&["diff", &counted, &timed, "--json"]).json();
    assert_eq!(
        (&span(&diff, "request")["b"]["instructions"], &span(&diff, "request")["change"]["instructions"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(span(&diff, "request")["change"]["count"], 0);
}

#[test]
fn a_limit_on_spans_that_are_open_on_a_side_passes_on_neither() {
    let directory = directory();
    let closed = capture(&directory, "closed", &[called("plain", 21, 1000), called("leaked", 1, 10)]);
    let leaked = capture_with_an_open_span(&directory, "leaked", &[called("plain", 21, 1000), called("leaked", 0, 10)]);
    let some = capture_with_an_open_span(&directory, "some", &[called("leaked", 1, 10), called("plain", 20, 1000)]);
    let check = |sides: [&str; 2], limit: &str| {
        let shown = run(&["diff", sides[0], sides[1], "--times", "--fail-if", limit]);
        assert_eq!(shown.code, Some(16), "{limit}: {shown:?}");
        assert!(shown.out.contains(&format!("incomplete: {limit}: ")) && !shown.out.contains("went from"), "{shown:?}");
        assert!(shown.out.contains("not whole, so in no number: "), "{shown:?}");
    };
    for sides in [[&*closed, &*leaked], [&*leaked, &*closed]] {
        for limit in ["max(leaked)>+0%", "max(leaked)<-1us", "instructions(leaked)>+0%", "count(*)>+0%"] {
            check(sides, limit);
        }
    }
    check([&closed, &some], "instructions(plain)>+0.5%");
    check([&closed, &some], "total(*)>+1000%");
    let diff = run(&["diff", &closed, &leaked, "--json", "--fail-if", "max(leaked)<-1us"]);
    let diff: Value = serde_json::from_str(&diff.out).unwrap();
    assert_eq!((&diff["failed"], &diff["incomplete"][0]["name"]), (&serde_json::json!([]), &"leaked".into()));
    let of_leaked = span(&diff, "leaked");
    assert_eq!((&of_leaked["b"], &of_leaked["change"]["max_ns"]), (&Value::Null, &Value::Null));
    assert_eq!(of_leaked["relative"]["max_ns"], Value::Null);
    crate::ask::schemas::check(&[("diff", diff)]);
}

#[test]
fn a_limit_between_sides_of_different_filters_passes_on_neither() {
    let directory = directory();
    let whole = capture(&directory, "ring", &[called("plain", 20, 1000), called("other", 20, 10)]);
    let filtered = place(&directory, "filtered.evc");
    let (ring, filtered) = (place(&directory, "ring"), argument(&filtered));
    assert_eq!(run(&["capture", argument(&ring), "--now", "--sample", "0.999", "-o", filtered]).code, Some(0));
    for sides in [[&*whole, filtered], [filtered, &*whole]] {
        let shown = run(&["diff", sides[0], sides[1], "--fail-if", "total(*)>+1%"]);
        let why = "incomplete: total(*)>+1%: A and B were captured with different filters";
        assert!(shown.code == Some(16) && shown.out.matches(why).count() == 1, "{shown:?}");
    }
    assert_eq!(run(&["diff", filtered, filtered, "--fail-if", "total(*)>+1%"]).code, Some(0));
}

#[test]
fn new_and_gone_spans_have_only_one_side() {
    let directory = directory();
    let a = capture(&directory, "a", &[called("gone", 3, 0)]);
    let b = capture(&directory, "b", &[called("new", 4, 0)]);
    let diff = run(&["diff", &a, &b, "--json"]).json();
    let (gone, new) = (span(&diff, "gone"), span(&diff, "new"));
    assert_eq!((&gone["b"], &new["a"]), (&Value::Null, &Value::Null));
    assert_eq!((&gone["change"]["count"], &new["change"]["count"]), (&(-3).into(), &4.into()));
    assert_eq!((&new["significant"], &new["relative"]["count"]), (&Value::Null, &Value::Null));
    let shown = run(&["diff", &a, &b]).out;
    assert!(shown.contains(" gone") && shown.contains(" new"), "{shown}");
}

#[test]
fn several_captures_of_a_side_count_by_their_medians() {
    let directory = directory();
    let capture = |name: &str, instructions| capture(&directory, name, &[called("request", 10, instructions)]);
    let a = [capture("a1", 100), capture("a2", 101), capture("a3", 900)];
    let b = [capture("b1", 103), capture("b2", 103)];
    let diff = run(&["diff", &a[0], &a[1], &a[2], "--with", &b[0], &b[1], "--json"]).json();
    let request = span(&diff, "request");
    assert_eq!(request["captures"], serde_json::json!({ "a": 3, "b": 2 }));
    assert_eq!((&request["a"]["instructions"], &request["change"]["instructions"]), (&1010.into(), &20.into()));
    for wrong in [&a[..1], &a[..]] {
        let arguments: Vec<&str> = std::iter::once("diff").chain(wrong.iter().map(String::as_str)).collect();
        let refused = run(&arguments);
        assert!(refused.code == Some(2) && refused.err.contains("after --with"), "{refused:?}");
    }
}

#[test]
fn a_damaged_capture_is_compared_as_far_as_it_goes_and_never_passes() {
    let directory = directory();
    let whole = capture(&directory, "a", &[called("request", 10, 100)]);
    let bytes = std::fs::read(&whole).unwrap();
    let cut = place(&directory, "cut.evc");
    std::fs::write(&cut, &bytes[..bytes.len() - 1]).unwrap();
    let cut = cut.to_str().unwrap();
    for arguments in [["diff", cut, &whole], ["diff", &whole, cut]] {
        let shown = run(&[&arguments[..], &["--fail-if", "instructions(request)!=0"]].concat());
        assert_eq!(shown.code, Some(6), "{shown:?}");
        assert!(shown.out.contains("shop::request") && shown.err.contains("truncated"), "{shown:?}");
    }
    assert_eq!(run(&["diff", &whole, "/no/such.evc"]).code, Some(3));
    let no_capture = place(&directory, "text.evc");
    std::fs::write(&no_capture, "no capture").unwrap();
    assert_eq!(run(&["diff", &whole, no_capture.to_str().unwrap()]).code, Some(4));
}

#[test]
fn the_rate_of_false_alarms_is_declared() {
    let directory = directory();
    let a = capture(&directory, "a", &[called("request", 10, 100)]);
    assert_eq!(run(&["diff", &a, &a, "--json"]).json()["alpha"], 0.01);
    let diff = run(&["diff", &a, &a, "--json", "--alpha", "0.05"]).json();
    assert_eq!((&diff["alpha"], &span(&diff, "request")["significant"]), (&0.05.into(), &false.into()));
    assert_eq!(run(&["diff", &a, &a, "--alpha", "1.5"]).code, Some(2));
}

#[test]
fn instructions_of_spans_that_are_entered_several_times_are_not_exact_and_no_limit_and_no_budget_fails_on_them() {
    let directory = directory();
    let a = capture(&directory, "a", &[called("order", 10, 1000), polled("request", 10, 1000)]);
    // As a second run of the same program: another number of polls, other instructions.
    let b = capture(&directory, "b", &[called("order", 10, 1000), polled("request", 10, 1060)]);
    let diff = run(&["diff", &a, &b]);
    // The changes of both are equal, so their times decide which comes first.
    let names = ["shop::main, shop::request", "shop::request, shop::main"];
    let says = |names: &str| diff.out.contains(&format!("not exact: {names}; they were entered several times"));
    assert!(names.into_iter().any(says), "{diff:?}");
    let compared = run(&["diff", &a, &b, "--json"]).json();
    let exact = |name: &str| {
        let spans = compared["spans"].as_array().unwrap();
        spans.iter().find(|span| span["name"] == name).unwrap()["exact"].clone()
    };
    assert_eq!((exact("order"), exact("request")), (true.into(), false.into()));
    // A limit that names such a span is refused; one for all leaves it out, and still sees the others.
    let refused = run(&["diff", &a, &b, "--fail-if", "instructions(request)>+0.5%"]);
    assert!(refused.code == Some(2) && refused.err.contains("are not exact"), "{refused:?}");
    // Such a span makes those around it differ, too.
    let around = run(&["diff", &a, &b, "--fail-if", "instructions(main)>+0.5%"]);
    assert!(around.code == Some(2) && around.err.contains("has no such span inside"), "{around:?}");
    assert_eq!(run(&["diff", &a, &b, "--fail-if", "instructions(*)>+0.5%"]).code, Some(0));
    let slower = capture(&directory, "slower", &[called("order", 10, 1060), polled("request", 10, 1000)]);
    assert_eq!(run(&["diff", &a, &slower, "--fail-if", "instructions(*)>+0.5%"]).code, Some(18));
    // A budget allows such a span 10 %.
    let file = place(&directory, "budgets.toml");
    let file = argument(&file);
    assert_eq!(run(&["budget", "update", file, &a]).code, Some(0));
    let kept = run(&["budget", "check", file, &b]);
    let note = "not exact: the spans were entered several times, as those of futures are; up to 10 % is no change";
    assert!(kept.code == Some(0) && kept.out.contains(note), "{kept:?}");
    let more = capture(&directory, "more", &[called("order", 10, 1000), polled("request", 10, 1200)]);
    assert_eq!(run(&["budget", "check", file, &more]).code, Some(18));
    assert_eq!(run(&["budget", "check", file, &slower]).code, Some(18));
}
