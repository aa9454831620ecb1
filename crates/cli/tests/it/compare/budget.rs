//! `eventring budget` keeps the numbers of spans in a file, and checks captures against it.

use crate::counted::{CalledSpan, called, capture, capture_with_an_open_span, capture_with_losses};
use crate::program::{argument, directory, place, run};

#[test]
fn a_budget_is_written_kept_and_exceeded() {
    let directory = directory();
    let file = place(&directory, "budgets.toml");
    let file = file.to_str().unwrap();
    let a = capture(&directory, "a", &[called("request", 100, 1000), called("query", 10, 50)]);
    let written = run(&["budget", "update", file, &a]);
    assert_eq!(written.code, Some(0), "{written:?}");
    insta::assert_snapshot!(std::fs::read_to_string(file).unwrap());
    assert_eq!(run(&["budget", "check", file, &a, "--exact"]).code, Some(0));

    let more = capture(&directory, "b", &[called("request", 100, 1001), called("query", 10, 50)]);
    let exceeded = run(&["budget", "check", file, &more]);
    assert_eq!(exceeded.code, Some(18), "{exceeded:?}");
    insta::assert_snapshot!(exceeded.out);
    let json = run(&["budget", "check", file, &more, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let failed = json["budgets"].as_array().unwrap().iter().filter(|row| row["failed"] == true);
    let failed: Vec<String> = failed.map(|row| format!("{} {}", row["span"], row["change"])).collect();
    let expected = [r#""shop::main" 100"#, r#""shop::request" 100"#, r#""shop::request" 100"#];
    assert_eq!((failed, &json["failed"]), (expected.map(str::to_owned).into(), &true.into()));

    let less = capture(&directory, "c", &[called("request", 100, 999), called("query", 10, 50), called("new", 1, 1)]);
    let improved = run(&["budget", "check", file, &less]);
    assert_eq!(improved.code, Some(0), "{improved:?}");
    assert!(improved.out.contains("`eventring budget update` keeps the gain"), "{improved:?}");
    assert!(improved.out.contains("1 span has no budget yet"), "{improved:?}");
    assert_eq!(run(&["budget", "check", file, &less, "--exact"]).code, Some(18));

    let gone = capture(&directory, "d", &[called("request", 100, 1000)]);
    let missing = run(&["budget", "check", file, &gone]);
    assert!(missing.code == Some(18) && missing.out.contains("missing"), "{missing:?}");
    let timed = capture(&directory, "e", &[called("request", 100, 0), called("query", 10, 0)]);
    let not_counted = run(&["budget", "check", file, &timed]);
    assert!(not_counted.code == Some(18) && not_counted.out.contains("not counted"), "{not_counted:?}");
}

#[test]
fn an_update_keeps_comments_tolerances_and_the_measures_of_each_span() {
    let directory = directory();
    let path = place(&directory, "budgets.toml");
    let file = path.to_str().unwrap();
    let text = r#"# Our budgets.
tolerance = "1%"

[spans]
# The heart of it.
[spans."shop::request"]
instructions = 1 # measured on a quiet day
count = 5
tolerance = "0.5%"

# Removed by the update.
[spans."shop::gone"]
instructions = 3

[spans."shop::query"]
instructions = { budget = 70, tolerance = "10%" }
"#;
    std::fs::write(&path, text).unwrap();
    let spans = [called("request", 100, 1000), called("query", 10, 50), called("added", 2, 30)];
    let updated = run(&["budget", "update", file, &capture(&directory, "a", &spans)]);
    assert!(updated.code == Some(0) && updated.err.contains("removed: shop::gone"), "{updated:?}");
    insta::assert_snapshot!(std::fs::read_to_string(&path).unwrap());

    let at_most = [called("request", 100, 1005), called("query", 10, 55), called("added", 2, 30)];
    let at_most = run(&["budget", "check", file, &capture(&directory, "b", &at_most)]);
    assert_eq!(at_most.code, Some(0), "{at_most:?}");
    let over = [called("request", 100, 1006), called("query", 10, 56), called("added", 2, 30)];
    let over = run(&["budget", "check", file, &capture(&directory, "c", &over)]);
    assert!(over.code == Some(18) && over.out.matches("exceeded").count() == 2, "{over:?}");
}

#[test]
fn a_file_that_is_wrong_is_refused_and_stays_as_it_is() {
    let directory = directory();
    let path = place(&directory, "budgets.toml");
    let file = path.to_str().unwrap();
    let a = capture(&directory, "a", &[called("request", 10, 100)]);
    let absent = run(&["budget", "check", file, &a]);
    assert!(absent.code == Some(3) && absent.err.contains("budget update"), "{absent:?}");
    let wrong = [
        ("[spans", "expected TOML"),
        ("[span.\"x\"]\ncount = 1", "found `span`, expected `spans`"),
        ("[spans.\"x\"]\nspeed = 1", "x: found `speed`, expected"),
        (
            "[spans.\"x\"]\ninstructions = { budget = 1, tolerence = \"5%\" }",
            "x: found `tolerence` in instructions, expected `budget` or `tolerance`",
        ),
        ("[spans.\"x\"]\ncount = -1", "x: found count = -1, expected a whole number"),
        ("[spans.\"x\"]\ncount = 1\ntolerance = \"2ms\"", "found the tolerance \"2ms\" of count"),
        ("spans = 5", "`spans` is no table"),
        ("[spans.\"x\"]\ncount = 1\ncount = 2", "duplicate key, in line 3"),
    ];
    for (text, message) in wrong {
        std::fs::write(&path, text).unwrap();
        for action in ["check", "update"] {
            let refused = run(&["budget", action, file, &a]);
            assert!(refused.code == Some(1) && refused.err.contains(message), "{text}: {refused:?}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
    // A file without numbers would never fail.
    std::fs::write(&path, "tolerance = 0\n").unwrap();
    let empty = run(&["budget", "check", file, &a]);
    assert!(empty.code == Some(1) && empty.err.contains("it has no number, expected that of one span"), "{empty:?}");
    // A pipe would block, and a device may have no end.
    let pipe = place(&directory, "pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    for path in [pipe.to_str().unwrap(), "/dev/zero"] {
        for action in ["check", "update"] {
            let refused = run(&["budget", action, path, &a]);
            assert!(refused.code == Some(1) && refused.err.contains("it is no regular file"), "{refused:?}");
        }
    }
    // A capture in the place of the file is not replaced.
    let before = std::fs::read(&a).unwrap();
    assert_eq!(run(&["budget", "update", &a, &a]).code, Some(1));
    assert_eq!(std::fs::read(&a).unwrap(), before);
}

#[test]
fn no_budget_is_made_of_a_capture_that_is_damaged_or_has_no_counts() {
    let directory = directory();
    let path = place(&directory, "budgets.toml");
    let file = path.to_str().unwrap();
    let timed = capture(&directory, "timed", &[called("request", 10, 0)]);
    let refused = run(&["budget", "update", file, &timed]);
    assert!(refused.code == Some(1) && refused.err.contains("--measure busy"), "{refused:?}");
    assert!(!path.exists());
    let counts = run(&["budget", "update", file, &timed, "--measure", "count"]);
    assert!(counts.code == Some(0) && std::fs::read_to_string(&path).unwrap().contains("count = 10"), "{counts:?}");
    assert_eq!(run(&["budget", "update", file, &timed, "--measure", "speed"]).code, Some(2));
    for measure in ["busy", "busy_ns", "p99", "p99_ns"] {
        let written = place(&directory, &format!("{measure}.toml"));
        assert_eq!(run(&["budget", "update", argument(&written), &timed, "--measure", measure]).code, Some(0));
        let text = std::fs::read_to_string(&written).unwrap();
        assert!(text.contains(&format!("{}_ns = ", measure.trim_end_matches("_ns"))), "{text}");
    }
    let bytes = std::fs::read(&timed).unwrap();
    std::fs::write(&timed, &bytes[..bytes.len() - 1]).unwrap();
    for action in ["update", "check"] {
        assert_eq!(run(&["budget", action, file, &timed]).code, Some(6));
    }
}

#[test]
fn a_capture_that_does_not_hold_all_spans_never_keeps_a_budget_of_instructions() {
    let directory = directory();
    let file = place(&directory, "budgets.toml");
    let file = file.to_str().unwrap();
    let spans = [called("query", 10_000, 10), called("request", 100, 1000)];
    let whole = capture(&directory, "whole", &spans);
    assert_eq!(run(&["budget", "update", file, &whole]).code, Some(0));
    let before = std::fs::read_to_string(file).unwrap();

    let lossy = capture_with_losses(&directory, "lossy", &spans);
    for options in [&[][..], &["--strict"], &["--exact"]] {
        let checked = run(&[&["budget", "check", file, &lossy], options].concat());
        assert!(checked.code == Some(16) && checked.err.contains("overwritten before"), "{options:?}: {checked:?}");
        assert!(checked.out.contains("incomplete") && !checked.out.contains("improved"), "{checked:?}");
        assert!(!checked.out.contains("keeps the gain") && checked.out.contains(":256MiB"), "{checked:?}");
    }
    let updated = run(&["budget", "update", file, &lossy]);
    assert!(updated.code == Some(16) && updated.err.contains("larger rings"), "{updated:?}");

    let open = capture_with_an_open_span(&directory, "open", &spans);
    let checked = run(&["budget", "check", file, &open]);
    assert!(checked.code == Some(16) && checked.err.contains("shop::request: 1 span not counted"), "{checked:?}");
    // A span that was counted whole keeps its budget.
    let result = |name: &str| checked.out.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(result("shop::request").ends_with("incomplete") && result("shop::query").ends_with("ok"), "{checked:?}");
    let updated = run(&["budget", "update", file, &open]);
    assert!(updated.code == Some(16) && updated.err.contains("shop::request: 1 span is not counted"), "{updated:?}");
    assert_eq!(std::fs::read_to_string(file).unwrap(), before);

    // Budgets of times are for programs that run on: what was lost is a warning, and no gain.
    std::fs::write(file, "[spans.\"shop::request\"]\ncount = 1000\n").unwrap();
    let checked = run(&["budget", "check", file, &lossy]);
    assert!(checked.code == Some(0) && checked.out.contains("incomplete"), "{checked:?}");
    assert_eq!(run(&["budget", "check", file, &lossy, "--strict"]).code, Some(16));
}

#[test]
fn the_numbers_for_bencher_name_span_and_measure() {
    let directory = directory();
    let file = place(&directory, "budgets.toml");
    let file = file.to_str().unwrap();
    let a = capture(&directory, "a", &[called("request", 100, 1000)]);
    let bmf = run(&["budget", "update", file, &a, "--bmf", "-"]).json();
    assert_eq!(bmf["shop::request"]["instructions"], serde_json::json!({ "value": 100_000 }));
    assert_eq!(bmf["shop::main"]["self_instructions"]["value"], 10);
    let out = place(&directory, "bmf.json");
    let checked = run(&["budget", "check", file, &a, "--bmf", out.to_str().unwrap()]);
    assert!(checked.code == Some(0) && checked.out.contains("shop::request"), "{checked:?}");
    let written: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&out).unwrap()).unwrap();
    assert_eq!(written, bmf);
    let both = run(&["budget", "check", file, &a, "--bmf", "-", "--json"]);
    assert!(both.code == Some(2) && both.out.is_empty(), "{both:?}");
    let before = std::fs::read(file).unwrap();
    for action in ["check", "update"] {
        let replaced = run(&["budget", action, file, &a, "--bmf", file]);
        assert!(replaced.code == Some(14) && replaced.err.contains("it is the budget file"), "{replaced:?}");
        assert_eq!(std::fs::read(file).unwrap(), before);
    }
    let replaced = run(&["budget", "check", file, &a, "--bmf", &a]);
    assert_eq!(replaced.code, Some(14), "{replaced:?}");
}

#[test]
fn a_capture_with_a_part_of_the_events_keeps_no_budget_and_makes_none() {
    let directory = directory();
    let file = place(&directory, "budgets.toml");
    let file = argument(&file);
    let whole = capture(&directory, "ring", &[called("plain", 20, 1000), called("other", 20, 10)]);
    assert_eq!(run(&["budget", "update", file, &whole, "--measure", "count"]).code, Some(0));
    let before = std::fs::read_to_string(file).unwrap();
    for (name, options) in [("sampled.evc", ["--sample", "1/4"]), ("all.evc", ["--sample", "0.999"])] {
        let (ring, part) = (place(&directory, "ring"), place(&directory, name));
        let made = run(&[&["capture", argument(&ring), "--now", "-o", argument(&part)], &options[..]].concat());
        assert_eq!(made.code, Some(0), "{made:?}");
        let checked = run(&["budget", "check", file, argument(&part)]);
        assert!(
            checked.code == Some(16) && checked.out.contains("incomplete: the capture was filtered"),
            "{checked:?}"
        );
        assert!(!checked.out.contains("improved") && !checked.out.contains("`eventring budget update`"), "{checked:?}");
        let updated = run(&["budget", "update", file, argument(&part)]);
        assert!(updated.code == Some(16) && updated.err.contains("filtered or sampled"), "{updated:?}");
        assert_eq!(std::fs::read_to_string(file).unwrap(), before);
    }
}

#[test]
fn fewer_calls_are_no_gain_if_some_are_open_and_no_budget_is_offered_to_spans_without_counts() {
    let directory = directory();
    let file = place(&directory, "budgets.toml");
    let file = argument(&file);
    let whole = capture(&directory, "whole", &[called("plain", 21, 1000)]);
    assert_eq!(run(&["budget", "update", file, &whole, "--measure", "count"]).code, Some(0));
    let open = capture_with_an_open_span(&directory, "open", &[called("plain", 20, 1000)]);
    let checked = run(&["budget", "check", file, &open]);
    assert!(checked.code == Some(0) && checked.out.contains("incomplete"), "{checked:?}");
    assert!(!checked.out.contains("improved") && !checked.out.contains("keeps the gain"), "{checked:?}");

    let never_entered = CalledSpan { polls: 0, ..called("idle", 3, 0) };
    let checked =
        run(&["budget", "check", file, &capture(&directory, "idle", &[called("plain", 21, 1000), never_entered])]);
    assert!(checked.code == Some(0) && checked.out.contains("shop::idle"), "{checked:?}");
    assert!(!checked.out.contains("no budget yet"), "{checked:?}");
}
