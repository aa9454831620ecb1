//! `eventring diff` compares captures span by span.

use crate::consumers;
use crate::counted::{called, capture, capture_with_an_open_span, polled};
use crate::fixtures::*;

fn span<'v>(diff: &'v Value, name: &str) -> &'v Value {
    let mut spans = diff["spans"].list().iter();
    spans.find(|span| span["name"] == name).unwrap_or_else(|| panic!("{name}: {diff}"))
}

/// Checks that all figures of a span are those that DuckDB has computed.
fn check_figures(found: &Value, computed: &Value) {
    let keys: Vec<&str> = found.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys.len(), 18, "{keys:?}");
    for key in keys {
        assert_eq!(found[key], computed[key], "{key} of {computed}");
    }
}

#[test]
fn the_figures_are_those_that_duckdb_computes_from_the_exports() {
    let directory = directory();
    let a = capture(&directory, "a", &[called("request", 500, 1000), called("query", 333, 77), called("gone", 3, 5)]);
    let b = capture(&directory, "b", &[called("request", 480, 1003), called("query", 333, 77), called("new", 7, 5)]);
    let diff = run!("diff", &a, &b, "--json").json();
    for (side, file) in [("a", &a), ("b", &b)] {
        let lines = place(&directory, &format!("{side}.jsonl"));
        run!("export", file, "--format", "jsonl", "-o", &lines).ends(0);
        let Some(figures) = consumers::read("span_figures.py", Path::new(&lines)) else { return };
        let figures = figures.list();
        assert_eq!(figures.len(), 4);
        for of_span in figures {
            let found = &span(&diff, of_span["name"].text())[side];
            check_figures(found, of_span);
            assert_eq!(of_span["own_agrees"], true, "{of_span} in {file}");
        }
    }
    for compared in diff["spans"].list() {
        for (key, change) in compared["change"].as_object().unwrap() {
            // What was not measured has no change.
            if change.is_null() {
                let unmeasured = ["cpu_ns", "queue_ns", "sleep_ns", "allocations", "allocated_bytes"];
                assert!(unmeasured.contains(&key.as_str()), "{key} of {compared}");
                continue;
            }
            let value = |side: &str| compared[side].get(key).map_or(0, |value| value.as_i64().unwrap());
            assert_eq!(change.as_i64(), Some(value("b") - value("a")), "{key} of {compared}");
        }
    }
}

#[test]
fn self_times_of_children_that_overlap_are_those_that_duckdb_computes_from_the_exports() {
    let (directory, [ring]) = places(["overlaps"]);
    let recorder = spans_in(&ring).shifts(15, 21).tables_shift(16).keep(true);
    in_recorder(recorder.prefault(false).build().unwrap(), || {
        for _ in 0..20 {
            let parent = info_span!("parent").entered();
            let early = info_span!("child");
            let late = early.in_scope(|| info_span!(parent: &parent, "child"));
            late.in_scope(|| drop(early));
            let alone = info_span!("child");
            drop(late);
            drop(alone);
            // This one outlives its parent.
            let last = info_span!("child");
            let inside = info_span!(parent: &last, "grandchild");
            drop((parent, last));
            drop(inside);
        }
    });
    let file = place(&directory, "overlaps.evc");
    run!("capture", &ring, "--now", "-o", file).ends(0);
    let diff = run!("diff", file, file, "--json").json();
    let lines = place(&directory, "overlaps.jsonl");
    run!("export", file, "--format", "jsonl", "-o", &lines).ends(0);
    let Some(figures) = consumers::read("span_figures.py", &lines) else { return };
    let figures = figures.list();
    assert_eq!(figures.len(), 3);
    for of_span in figures {
        check_figures(&span(&diff, of_span["name"].text())["a"], of_span);
    }
    // Here the self time is less than the time without any child.
    let [parent, child] = ["parent", "child"].map(|name| span(&diff, name)["a"].clone());
    let number = |figures: &Value, key: &str| figures[key].number();
    assert!(number(&parent, "self_ns") < number(&parent, "total_ns"), "{parent}");
    let not_overlapping = number(&parent, "total_ns").checked_sub(number(&child, "total_ns"));
    assert!(not_overlapping.is_none_or(|nanos| number(&parent, "self_ns") > nanos), "{parent} {child}");
}

#[test]
fn the_files_of_a_rotated_capture_are_one_capture() {
    let directory = directory();
    let whole = capture(&directory, "ring", &[called("request", 3000, 1000)]);
    let (ring, rotated) = (place(&directory, "ring"), place(&directory, "rotated.evc"));
    run!("capture", &ring, "--now", "--rotate-size", "4k", "-o", &rotated).ends(0);
    let file = |number: usize| place(&directory, &format!("rotated.{number:04}.evc")).to_str().unwrap().to_owned();
    let mut files: Vec<String> = (1..).map(file).take_while(|file| Path::new(file).exists()).collect();
    assert!(files.len() > 2, "{files:?}");
    // They may come in any order.
    files.reverse();
    let with = |rest: &[String]| run!("diff", &whole, "--json", "--fail-if", "instructions(*)!=0", "--with", rest);
    let diff = with(&files).ends(0).quiet();
    assert_eq!(span(&diff.json(), "request")["captures"], json!({ "a": 1, "b": 1 }));
    assert_eq!(span(&diff.json(), "request")["b"]["instructions"], 3_000_000);

    // A part of the files is not the capture.
    for part in [&files[1..], &files[..files.len() - 1]] {
        with(part).fails(16, "name all of its files");
    }
    with(&[files[0].clone(), files[2].clone()]).fails(2, "name those in between");
    run!("diff", &whole, &files[0], &files[1]).fails(2, "the files of a rotated capture");
    let budgets = place(&directory, "budgets.toml");
    let update = |files: &[String]| run!("budget", "update", &budgets, files);
    let part = update(&files[1..]);
    assert!(part.code != Some(0) && part.err.contains("name all files of a rotated capture"), "{part:?}");
    assert!(!budgets.exists());
    update(&files).ends(0);
    assert!(fs::read_to_string(&budgets).unwrap().contains("instructions = 3000000"));
}

#[test]
fn one_more_instruction_in_a_loop_is_as_many_instructions_as_it_has_turns() {
    let directory = directory();
    let a = capture(&directory, "a", &[called("turn", 1000, 512), called("other", 10, 99)]);
    let b = capture(&directory, "b", &[called("turn", 1000, 513), called("other", 10, 99)]);
    let diff = run!("diff", &a, &b, "--json").json();
    let turn = span(&diff, "turn");
    assert_eq!((&turn["change"]["instructions"], &turn["per_call"]["instructions"]), (&1000.into(), &1.0.into()));
    assert_eq!((&turn["a"]["instructions"], &turn["b"]["instructions"]), (&512_000.into(), &513_000.into()));
    assert_eq!(turn["relative"]["instructions"], 1.0 / 512.0);
    assert_eq!(span(&diff, "other")["change"]["instructions"], 0);
    let main = span(&diff, "main");
    assert_eq!((&main["change"]["instructions"], &main["change"]["self_instructions"]), (&1000.into(), &0.into()));
    let same = run!("diff", &a, &a, "--json", "--fail-if", "instructions(*)!=0").json();
    assert!(same["spans"].list().iter().all(|span| span["change"]["instructions"] == 0));
}

#[test]
fn a_limit_that_is_exceeded_has_its_own_exit_code_and_is_listed() {
    let directory = directory();
    let a = capture(&directory, "a", &[called("request", 100, 1000), called("query", 10, 50)]);
    let b = capture(&directory, "b", &[called("request", 100, 1004), called("query", 11, 50)]);
    let with = |limits: &[&str]| {
        let limits: Vec<_> = limits.iter().map(|limit| ["--fail-if", limit]).collect();
        run!("diff", &a, &b, "--json", limits)
    };
    let kept = with(&["instructions(request)>+0.5%", "count(request)!=0", "self_instructions(shop::request)>+400"]);
    assert_eq!((kept.code, kept.json()["failed"].list().len()), (Some(0), 0));
    let failed = with(&["instructions(request)>+0.3%", "count(*)>+5%", "instructions(main)>+1000%"]).ends(18);
    let listed = failed.said();
    let line = |it: &Value| format!("{} {} {} {}", it["limit"], it["name"], it["change"], it["relative"]);
    let listed: Vec<String> = listed["failed"].list().iter().map(line).collect();
    assert_eq!(listed, [r#""instructions(request)>+0.3%" "request" 400 0.004"#, r#""count(*)>+5%" "query" 1 0.1"#]);
    let shown = run!("diff", &a, &b, "--fail-if", "instructions(request)>+0.3%");
    let line = "failed: instructions(request)>+0.3%: instructions of shop::request went from 100,000 to 100,400: +400, +0.40%\n";
    assert!(shown.code == Some(18) && shown.out.ends_with(line), "{shown:?}");
}

#[test]
fn a_limit_that_cannot_be_checked_is_an_error() {
    let directory = directory();
    let counted = capture(&directory, "a", &[called("request", 10, 50)]);
    let timed = capture(&directory, "b", &[called("request", 10, 0)]);
    let with = |limit: &str| run!("diff", &counted, &timed, "--fail-if", limit);
    with("busy(requests)>+5%").fails(2, "no capture has a closed span requests").warns("shop::request");
    with("instructions(request)>+5%").fails(2, "were not counted on both sides");
    for measure in ["busy", "busy_ns", "p99", "p99_ns", "total_ns", "self_ns", "max_ns", "p50_ns", "p90_ns"] {
        assert_eq!(with(&format!("{measure}(request)>+1000000%")).code, Some(0), "{measure}");
    }
    with("busy(request)>5%").fails(2, "column 15: found `5%`");
    let diff = run!("diff", &counted, &timed, "--json").json();
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
        let shown = run!("diff", sides[0], sides[1], "--times", "--fail-if", limit).ends(16);
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
    let diff = run!("diff", &closed, &leaked, "--json", "--fail-if", "max(leaked)<-1us").said();
    assert_eq!((&diff["failed"], &diff["incomplete"][0]["name"]), (&json!([]), &"leaked".into()));
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
    run!("capture", &ring, "--now", "--sample", "0.999", "-o", filtered).ends(0);
    for sides in [[&*whole, filtered], [filtered, &*whole]] {
        let shown = run!("diff", sides[0], sides[1], "--fail-if", "total(*)>+1%");
        let why = "incomplete: total(*)>+1%: A and B were captured with different filters";
        assert!(shown.code == Some(16) && shown.out.matches(why).count() == 1, "{shown:?}");
    }
    run!("diff", filtered, filtered, "--fail-if", "total(*)>+1%").ends(0);
}

#[test]
fn new_and_gone_spans_have_only_one_side() {
    let directory = directory();
    let a = capture(&directory, "a", &[called("gone", 3, 0)]);
    let b = capture(&directory, "b", &[called("new", 4, 0)]);
    let diff = run!("diff", &a, &b, "--json").json();
    let (gone, new) = (span(&diff, "gone"), span(&diff, "new"));
    assert_eq!((&gone["b"], &new["a"]), (&Value::Null, &Value::Null));
    assert_eq!((&gone["change"]["count"], &new["change"]["count"]), (&(-3).into(), &4.into()));
    assert_eq!((&new["significant"], &new["relative"]["count"]), (&Value::Null, &Value::Null));
    let shown = run!("diff", &a, &b).out;
    assert!(shown.contains(" gone") && shown.contains(" new"), "{shown}");
}

#[test]
fn several_captures_of_a_side_count_by_their_medians() {
    let directory = directory();
    let capture = |name: &str, instructions| capture(&directory, name, &[called("request", 10, instructions)]);
    let a = [capture("a1", 100), capture("a2", 101), capture("a3", 900)];
    let b = [capture("b1", 103), capture("b2", 103)];
    let diff = run!("diff", &a[0], &a[1], &a[2], "--with", &b[0], &b[1], "--json").json();
    let request = span(&diff, "request");
    assert_eq!(request["captures"], json!({ "a": 3, "b": 2 }));
    assert_eq!((&request["a"]["instructions"], &request["change"]["instructions"]), (&1010.into(), &20.into()));
    for wrong in [&a[..1], &a[..]] {
        run!("diff", wrong).fails(2, "after --with");
    }
}

#[test]
fn a_damaged_capture_is_compared_as_far_as_it_goes_and_never_passes() {
    let directory = directory();
    let whole = capture(&directory, "a", &[called("request", 10, 100)]);
    let bytes = fs::read(&whole).unwrap();
    let cut = place(&directory, "cut.evc");
    fs::write(&cut, &bytes[..bytes.len() - 1]).unwrap();
    let cut = cut.to_str().unwrap();
    for arguments in [["diff", cut, &whole], ["diff", &whole, cut]] {
        let run = run!(arguments, "--fail-if", "instructions(request)!=0");
        run.ends(6).shows("shop::request").warns("truncated");
    }
    run!("diff", &whole, "/no/such.evc").ends(3);
    let no_capture = place(&directory, "text.evc");
    fs::write(&no_capture, "no capture").unwrap();
    run!("diff", &whole, no_capture.to_str().unwrap()).ends(4);
}

#[test]
fn the_rate_of_false_alarms_is_declared() {
    let directory = directory();
    let a = capture(&directory, "a", &[called("request", 10, 100)]);
    assert_eq!(run!("diff", &a, &a, "--json").json()["alpha"], 0.01);
    let diff = run!("diff", &a, &a, "--json", "--alpha", "0.05").json();
    assert_eq!((&diff["alpha"], &span(&diff, "request")["significant"]), (&0.05.into(), &false.into()));
    run!("diff", &a, &a, "--alpha", "1.5").ends(2);
}

#[test]
fn instructions_of_spans_that_are_entered_several_times_are_not_exact_and_no_limit_and_no_budget_fails_on_them() {
    let directory = directory();
    let a = capture(&directory, "a", &[called("order", 10, 1000), polled("request", 10, 1000)]);
    // As a second run of the same program: another number of polls, other instructions.
    let b = capture(&directory, "b", &[called("order", 10, 1000), polled("request", 10, 1060)]);
    let diff = run!("diff", &a, &b);
    // The changes of both are equal, so their times decide which comes first.
    let names = ["shop::main, shop::request", "shop::request, shop::main"];
    let says = |names: &str| diff.out.contains(&format!("not exact: {names}; they were entered several times"));
    assert!(names.into_iter().any(says), "{diff:?}");
    let compared = run!("diff", &a, &b, "--json").json();
    let exact = |name: &str| {
        let spans = compared["spans"].list();
        spans.iter().find(|span| span["name"] == name).unwrap()["exact"].clone()
    };
    assert_eq!((exact("order"), exact("request")), (true.into(), false.into()));
    // A limit that names such a span is refused; one for all leaves it out, and still sees the others.
    run!("diff", &a, &b, "--fail-if", "instructions(request)>+0.5%").fails(2, "are not exact");
    // Such a span makes those around it differ, too.
    run!("diff", &a, &b, "--fail-if", "instructions(main)>+0.5%").fails(2, "has no such span inside");
    run!("diff", &a, &b, "--fail-if", "instructions(*)>+0.5%").ends(0);
    let slower = capture(&directory, "slower", &[called("order", 10, 1060), polled("request", 10, 1000)]);
    run!("diff", &a, &slower, "--fail-if", "instructions(*)>+0.5%").ends(18);
    // A budget allows such a span 10 %.
    let file = place(&directory, "budgets.toml");
    run!("budget", "update", file, &a).ends(0);
    let kept = run!("budget", "check", file, &b);
    let note = "not exact: the spans were entered several times, as those of futures are; up to 10 % is no change";
    assert!(kept.code == Some(0) && kept.out.contains(note), "{kept:?}");
    let more = capture(&directory, "more", &[called("order", 10, 1000), polled("request", 10, 1200)]);
    run!("budget", "check", file, &more).ends(18);
    run!("budget", "check", file, &slower).ends(18);
}
