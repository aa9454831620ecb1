//! `eventring budget` keeps the numbers of spans in a file, and checks captures against it.

use crate::counted::{CalledSpan, called, capture, capture_with_an_open_span, capture_with_losses};
use crate::fixtures::*;

#[test]
fn a_budget_is_written_kept_and_exceeded() {
    let (directory, [file]) = places(["budgets.toml"]);
    let a = capture(&directory, "a", &[called("request", 100, 1000), called("query", 10, 50)]);
    run!("budget", "update", file, &a).ends(0);
    insta::assert_snapshot!(fs::read_to_string(&file).unwrap());
    run!("budget", "check", file, &a, "--exact").ends(0);

    let more = capture(&directory, "b", &[called("request", 100, 1001), called("query", 10, 50)]);
    let exceeded = run!("budget", "check", file, &more).ends(18);
    insta::assert_snapshot!(exceeded.out);
    let json = run!("budget", "check", file, &more, "--json").said();
    let failed = json["budgets"].list().iter().filter(|row| row["failed"] == true);
    let failed: Vec<String> = failed.map(|row| format!("{} {}", row["span"], row["change"])).collect();
    let expected = [r#""shop::main" 100"#, r#""shop::request" 100"#, r#""shop::request" 100"#];
    assert_eq!((failed, &json["failed"]), (expected.map(str::to_owned).into(), &true.into()));

    let less = capture(&directory, "c", &[called("request", 100, 999), called("query", 10, 50), called("new", 1, 1)]);
    run!("budget", "check", file, &less)
        .ends(0)
        .shows("`eventring budget update` keeps the gain")
        .shows("1 span has no budget yet");
    run!("budget", "check", file, &less, "--exact").ends(18);

    let gone = capture(&directory, "d", &[called("request", 100, 1000)]);
    let missing = run!("budget", "check", file, &gone);
    assert!(missing.code == Some(18) && missing.out.contains("missing"), "{missing:?}");
    let timed = capture(&directory, "e", &[called("request", 100, 0), called("query", 10, 0)]);
    run!("budget", "check", file, &timed).ends(18).shows("not counted");
}

#[test]
fn an_update_keeps_comments_tolerances_and_the_measures_of_each_span() {
    let (directory, [path]) = places(["budgets.toml"]);
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
    fs::write(&path, text).unwrap();
    let spans = [called("request", 100, 1000), called("query", 10, 50), called("added", 2, 30)];
    run!("budget", "update", path, &capture(&directory, "a", &spans)).ends(0).warns("removed: shop::gone");
    insta::assert_snapshot!(fs::read_to_string(&path).unwrap());

    let at_most = [called("request", 100, 1005), called("query", 10, 55), called("added", 2, 30)];
    run!("budget", "check", path, &capture(&directory, "b", &at_most)).ends(0);
    let over = [called("request", 100, 1006), called("query", 10, 56), called("added", 2, 30)];
    let over = run!("budget", "check", path, &capture(&directory, "c", &over));
    assert!(over.code == Some(18) && over.out.matches("exceeded").count() == 2, "{over:?}");
}

#[test]
fn a_file_that_is_wrong_is_refused_and_stays_as_it_is() {
    let (directory, [path]) = places(["budgets.toml"]);
    let file = path.to_str().unwrap();
    let a = capture(&directory, "a", &[called("request", 10, 100)]);
    run!("budget", "check", file, &a).fails(3, "budget update");
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
        fs::write(&path, text).unwrap();
        for action in ["check", "update"] {
            run!("budget", action, file, &a).fails(1, message);
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }
    // A file without numbers would never fail.
    fs::write(&path, "tolerance = 0\n").unwrap();
    run!("budget", "check", file, &a).fails(1, "it has no number, expected that of one span");
    // A pipe would block, and a device may have no end.
    let pipe = place(&directory, "pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    for path in [pipe.to_str().unwrap(), "/dev/zero"] {
        for action in ["check", "update"] {
            run!("budget", action, path, &a).fails(1, "it is no regular file");
        }
    }
    // A capture in the place of the file is not replaced.
    let before = fs::read(&a).unwrap();
    run!("budget", "update", &a, &a).ends(1);
    assert_eq!(fs::read(&a).unwrap(), before);
}

#[test]
fn no_budget_is_made_of_a_capture_that_is_damaged_or_has_no_counts() {
    let (directory, [path]) = places(["budgets.toml"]);
    let timed = capture(&directory, "timed", &[called("request", 10, 0)]);
    run!("budget", "update", path, &timed).fails(1, "--measure busy");
    assert!(!path.exists());
    let counts = run!("budget", "update", path, &timed, "--measure", "count");
    assert!(counts.code == Some(0) && fs::read_to_string(&path).unwrap().contains("count = 10"), "{counts:?}");
    run!("budget", "update", path, &timed, "--measure", "speed").ends(2);
    for measure in ["busy", "busy_ns", "p99", "p99_ns"] {
        let written = place(&directory, &format!("{measure}.toml"));
        run!("budget", "update", &written, &timed, "--measure", measure).ends(0);
        let text = fs::read_to_string(&written).unwrap();
        assert!(text.contains(&format!("{}_ns = ", measure.trim_end_matches("_ns"))), "{text}");
    }
    let bytes = fs::read(&timed).unwrap();
    fs::write(&timed, &bytes[..bytes.len() - 1]).unwrap();
    for action in ["update", "check"] {
        run!("budget", action, path, &timed).ends(6);
    }
}

#[test]
fn a_capture_that_does_not_hold_all_spans_never_keeps_a_budget_of_instructions() {
    let (directory, [file]) = places(["budgets.toml"]);
    let file = file.to_str().unwrap();
    let spans = [called("query", 10_000, 10), called("request", 100, 1000)];
    let whole = capture(&directory, "whole", &spans);
    run!("budget", "update", file, &whole).ends(0);
    let before = fs::read_to_string(file).unwrap();

    let lossy = capture_with_losses(&directory, "lossy", &spans);
    for options in [&[][..], &["--strict"], &["--exact"]] {
        let checked = run!("budget", "check", &file, &lossy, options).fails(16, "overwritten before");
        assert!(checked.out.contains("incomplete") && !checked.out.contains("improved"), "{checked:?}");
        assert!(!checked.out.contains("keeps the gain") && checked.out.contains(":256MiB"), "{checked:?}");
    }
    run!("budget", "update", file, &lossy).fails(16, "larger rings");

    let open = capture_with_an_open_span(&directory, "open", &spans);
    let checked = run!("budget", "check", file, &open).fails(16, "shop::request: 1 span not counted");
    // A span that was counted whole keeps its budget.
    let result = |name: &str| checked.out.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(result("shop::request").ends_with("incomplete") && result("shop::query").ends_with("ok"), "{checked:?}");
    run!("budget", "update", file, &open).fails(16, "shop::request: 1 span is not counted");
    assert_eq!(fs::read_to_string(file).unwrap(), before);

    // Budgets of times are for programs that run on: what was lost is a warning, and no gain.
    fs::write(file, "[spans.\"shop::request\"]\ncount = 1000\n").unwrap();
    run!("budget", "check", file, &lossy).ends(0).shows("incomplete");
    run!("budget", "check", file, &lossy, "--strict").ends(16);
}

#[test]
fn the_numbers_for_bencher_name_span_and_measure() {
    let (directory, [file]) = places(["budgets.toml"]);
    let file = file.to_str().unwrap();
    let a = capture(&directory, "a", &[called("request", 100, 1000)]);
    let bmf = run!("budget", "update", file, &a, "--bmf", "-").json();
    assert_eq!(bmf["shop::request"]["instructions"], json!({ "value": 100_000 }));
    assert_eq!(bmf["shop::main"]["self_instructions"]["value"], 10);
    let out = place(&directory, "bmf.json");
    run!("budget", "check", file, &a, "--bmf", out.to_str().unwrap()).ends(0).shows("shop::request");
    let written: Value = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
    assert_eq!(written, bmf);
    run!("budget", "check", file, &a, "--bmf", "-", "--json").ends(2).shows_nothing();
    let before = fs::read(file).unwrap();
    for action in ["check", "update"] {
        run!("budget", action, file, &a, "--bmf", file).fails(14, "it is the budget file");
        assert_eq!(fs::read(file).unwrap(), before);
    }
    run!("budget", "check", file, &a, "--bmf", &a).ends(14);
}

#[test]
fn a_capture_with_a_part_of_the_events_keeps_no_budget_and_makes_none() {
    let (directory, [file]) = places(["budgets.toml"]);
    let whole = capture(&directory, "ring", &[called("plain", 20, 1000), called("other", 20, 10)]);
    run!("budget", "update", file, &whole, "--measure", "count").ends(0);
    let before = fs::read_to_string(&file).unwrap();
    for (name, options) in [("sampled.evc", ["--sample", "1/4"]), ("all.evc", ["--sample", "0.999"])] {
        let (ring, part) = (place(&directory, "ring"), place(&directory, name));
        run(&[&["capture", argument(&ring), "--now", "-o", argument(&part)], &options[..]].concat()).ends(0);
        let checked = run!("budget", "check", file, &part).ends(16).shows("incomplete: the capture was filtered");
        assert!(!checked.out.contains("improved") && !checked.out.contains("`eventring budget update`"), "{checked:?}");
        run!("budget", "update", file, &part).fails(16, "filtered or sampled");
        assert_eq!(fs::read_to_string(&file).unwrap(), before);
    }
}

#[test]
fn fewer_calls_are_no_gain_if_some_are_open_and_no_budget_is_offered_to_spans_without_counts() {
    let (directory, [file]) = places(["budgets.toml"]);
    let whole = capture(&directory, "whole", &[called("plain", 21, 1000)]);
    run!("budget", "update", file, &whole, "--measure", "count").ends(0);
    let open = capture_with_an_open_span(&directory, "open", &[called("plain", 20, 1000)]);
    let checked = run!("budget", "check", file, &open).ends(0).shows("incomplete");
    assert!(!checked.out.contains("improved") && !checked.out.contains("keeps the gain"), "{checked:?}");

    let never_entered = CalledSpan { polls: 0, ..called("idle", 3, 0) };
    let checked =
        run!("budget", "check", file, &capture(&directory, "idle", &[called("plain", 21, 1000), never_entered]));
    assert!(checked.code == Some(0) && checked.out.contains("shop::idle"), "{checked:?}");
    assert!(!checked.out.contains("no budget yet"), "{checked:?}");
}
