//! A command that selects or finds nothing says what could hide it: damage, losses, filters.

use crate::every_kind;
use crate::fixtures::*;

/// Options that select nothing, whatever the capture.
const NOTHING: [[&str; 2]; 5] =
    [["--where", "span=nope"], ["--span", "nope"], ["--thread", "nope"], ["--ring", "nope"], ["--from", "+100h"]];

/// Runs each verb that selects, with each of the options that select nothing.
fn each_selection(dir: &Path, file: &str, strict: &[&str], check: impl Fn(&[&str], &Run)) {
    let page = dir.join("page.html");
    for verb in [&["summary"][..], &["export", "-o", "-"], &["report", "-f", "-o", argument(&page)], &["watch"]] {
        for options in NOTHING {
            let words = [verb, &[file], &options[..], strict].concat();
            check(&words, &run(&words));
        }
    }
    let words = [&["watch", file, "--type", "NOPE"], strict].concat();
    check(&words, &run(&words));
}

#[test]
fn damage_losses_and_filters_are_said_where_nothing_is_selected() {
    let dir = tempfile::tempdir().unwrap();
    let whole = every_kind::capture_everything(dir.path());
    let bytes = fs::read(&whole).unwrap();
    each_selection(dir.path(), &whole, &["--strict"], |words, seen| {
        assert!(seen.code == Some(2) && !seen.err.contains("damaged"), "{words:?}: {seen:?}");
    });
    // The events of a block, and the end of the file. Damage that is found as the file is opened was said before, too.
    let is_found_later = |bytes: &Vec<u8>| {
        let file = dir.path().join("some.evc");
        fs::write(&file, bytes).unwrap();
        CaptureFile::open(&file).is_ok_and(|capture| capture.problems().is_empty())
            && run!("summary", &file).code == Some(7)
    };
    let damaged_at = |tenth: usize| {
        let mut damaged = bytes.clone();
        damaged[bytes.len() * tenth / 10] ^= 1;
        damaged
    };
    let damaged = (1..10).map(damaged_at).find(is_found_later).unwrap();
    for (name, bytes, code) in [("bad.evc", &damaged[..], 7), ("cut.evc", &bytes[..bytes.len() - 1], 6)] {
        let file = dir.path().join(name);
        fs::write(&file, bytes).unwrap();
        let alone = run!("summary", &file).ends(code);
        let problem = alone.err.lines().find(|line| line.starts_with("error: ")).unwrap();
        each_selection(dir.path(), argument(&file), &["--strict"], |words, seen| {
            assert!(seen.code == Some(code) && seen.err.contains(problem), "{words:?}: {seen:?}");
        });
    }
    let after = dir.path().join("after.evc");
    let shop = dir.path().join("shop");
    run!("capture", &shop, "--where", "span=after", "-o", &after).ends(0);
    each_selection(dir.path(), argument(&after), &["--strict"], |words, seen| {
        let is_said = seen.err.contains("the capture was filtered (where=span=after): ");
        assert!(seen.code == Some(2) && is_said, "{words:?}: {seen:?}");
    });
}

#[test]
fn losses_are_said_where_nothing_is_selected_and_are_an_error_if_that_is_strict() {
    let dir = tempfile::tempdir().unwrap();
    let (ring, file) = (every_kind::ring_with_losses(dir.path()), dir.path().join("lossy.evc"));
    run!("capture", &ring, "--now", "-o", &file).ends(0);
    for (verb, strict, code) in
        [("summary", &["--strict"][..], 16), ("summary", &[], 2), ("watch", &["--strict"], 16), ("watch", &[], 2)]
    {
        let seen = run!(verb, &file, "--where", "event=PART", strict).fails(code, "nothing of the capture is so");
        let is_said = seen.err.contains(" had been overwritten before") && seen.err.contains(" lost their payload");
        assert!(is_said, "{seen:?}");
    }
}

#[test]
fn what_a_filter_or_sample_left_out_could_hide_a_hit_and_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    every_kind::capture_everything(dir.path());
    let shop = dir.path().join("shop");
    for (name, options) in [("after.evc", ["--where", "span=after"]), ("some.evc", ["--sample", "1/1000000"])] {
        let file = dir.path().join(name);
        let made = [&["capture", argument(&shop), "--now", "--json", "-o", argument(&file)], &options[..]].concat();
        let made = run(&made).json();
        assert_eq!((&made["reason"], made["filtered"].as_u64() > Some(0)), (&"now".into(), true), "{made}");
        for ring in made["rings"].list() {
            let sum = |keys: &[&str]| keys.iter().map(|key| ring[*key].number()).sum::<u64>();
            let all = sum(&["last_seqno"]) + 1 - sum(&["first_seqno"]);
            assert_eq!(sum(&["events", "removed", "lost", "given_up", "filtered"]), all, "{ring}");
        }
        let find = |options: &[&str]| run!("find", "span=nope", &file, options);
        let found = find(&["--json"]);
        let gaps = found.json_lines().pop().unwrap()["gaps"].clone();
        let events: u64 = gaps.list().iter().map(|gap| gap["events"].number()).sum();
        assert_eq!((found.code, Value::from(events)), (Some(19), made["filtered"].clone()), "{gaps}");
        assert!(gaps.list().iter().all(|gap| gap["cause"] == "filtered"), "{gaps}");
        let shown = find(&[]).err;
        assert!(shown.contains("(filtered), from the beginning") && !shown.contains("no gap"), "{shown}");
        // After its end the file leaves out nothing.
        assert!(find(&["--from", "+100h"]).err.contains("no gap could hide a hit"));
        // In half of the file nobody has counted.
        let bytes = fs::read(&file).unwrap();
        fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        let gaps = find(&["--json"]).json_lines().pop().unwrap()["gaps"].clone();
        let is_uncounted = |gap: &Value| gap["cause"] == "filtered" && gap["events"].is_null();
        assert!(gaps.list().iter().any(is_uncounted), "{gaps}");
    }
}
