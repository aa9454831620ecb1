//! A capture that a filter has left events out of says so, in every verb that reads it.

use crate::every_kind;
use crate::fixtures::*;

/// Captures `shop` with these options, and returns the file.
fn captured(dir: &Path, name: &str, options: &[&str]) -> String {
    let [shop, file] = ["shop", name].map(|name| dir.join(name).to_str().unwrap().to_owned());
    run!("capture", &shop, "-o", &file, options).ends(0);
    file
}

#[test]
fn every_verb_says_that_a_filter_has_left_events_out() {
    let dir = tempfile::tempdir().unwrap();
    every_kind::capture_everything(dir.path());
    let whole = captured(dir.path(), "whole.evc", &[]);
    let file = captured(dir.path(), "after.evc", &["--where", "span=after"]);
    let lines = run!("watch", &file, "--json").json_lines();
    let gaps = lines.iter().filter(|line| line["gap"]["cause"] == "filtered");
    let count: u64 = gaps.map(|line| line["gap"]["count"].number()).sum();
    let note = format!("the capture was filtered (where=span=after): {count} events were left out");
    for words in [&["watch"][..], &["summary"], &["ask"], &["open"], &["export", "-f"], &["diff", &whole]] {
        let (verb, options) = words.split_first().unwrap();
        let seen = run!(*verb, options, &file);
        assert!(seen.code == Some(0) && seen.err.matches(&note).count() == 1, "{verb}: {seen:?}");
        assert!(!run(&[&[*verb], options, &[&whole]].concat()).err.contains("filter"), "{verb}");
    }
    // Events that the filter has left out are not shown as numbers without an event.
    let watched = run!("watch", &file);
    assert!(!watched.out.contains("stand") && !watched.err.contains("without an event"), "{watched:?}");
    let different = "A and B were captured with different filters";
    run!("diff", &whole, &file).warns(different);
    assert!(!run(&["diff", &file, &file]).err.contains(different));
    let filtered = |file: &str| {
        let ask = run!("ask", file, "--json").json()["recorded"]["filtered"].clone();
        [run!("summary", file, "--json").json()["filtered"].clone(), ask]
    };
    assert_eq!((filtered(&file), filtered(&whole)), ([count.into(), count.into()], [0.into(), 0.into()]));
    let sampled = captured(dir.path(), "sampled.evc", &["--sample", "1/1000000"]);
    run!("summary", &sampled).warns("filtered (sample=0.000001): ");
}
