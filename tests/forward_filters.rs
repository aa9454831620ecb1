//! Filters count what they leave out, and do not change what they keep.
#![cfg(feature = "cli")]

mod broker;
mod every_kind;
mod program;

use broker::place::{Place, lines};
use program::run;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the spans of a capture with their ids, and the root of each.
fn spans_and_roots(capture: &str) -> (Vec<Value>, BTreeMap<u64, u64>) {
    let exported = run(&["export", capture, "--format", "jsonl"]).json_lines();
    let spans: Vec<Value> = exported.into_iter().filter(|line| line["type"] == "span").collect();
    let parents: BTreeMap<u64, Option<u64>> =
        spans.iter().map(|span| (span["id"].as_u64().unwrap(), span["parent"].as_u64())).collect();
    let root_of = |span: &u64| {
        let mut root = *span;
        while let Some(Some(parent)) = parents.get(&root) {
            root = *parent;
        }
        (*span, root)
    };
    let roots = parents.keys().map(root_of).collect();
    (spans, roots)
}

#[test]
fn a_sample_has_whole_trees_and_says_how_many_events_it_leaves_out() {
    let Some(place) = Place::new() else { return };
    let ring = place.service_ring(1500);
    let (beside, file) = (place.path("beside.evc"), place.path("all.evc"));
    let whole = run(&["capture", &ring, "-o", &beside, "--json"]).json();
    let to = ["--to", &place.broker.address(), "--stream", "S", "--host", "h", "--json"].map(str::to_owned);
    let to: Vec<&str> = to.iter().map(String::as_str).collect();
    let sent = run(&[&["forward", &ring, "--sample", "1/4"], &to[..]].concat()).json();
    let received = place.receive(&file, &[]).json();
    assert_eq!(
        (&received["events"], &received["filtered"], &received["lost"]),
        (&sent["events"], &sent["filtered"], &sent["lost"])
    );
    let all: u64 = whole["rings"].as_array().unwrap().iter().map(|ring| ring["events"].as_u64().unwrap()).sum();
    assert_eq!(received["events"].as_u64().unwrap() + received["filtered"].as_u64().unwrap(), all);

    let (spans, roots) = spans_and_roots(&beside);
    let (kept, kept_roots) = spans_and_roots(&file);
    let trees: BTreeSet<u64> = kept_roots.values().copied().collect();
    let all_trees: BTreeSet<u64> = roots.values().copied().collect();
    let share = trees.len() as f64 / all_trees.len() as f64;
    assert!((0.2..0.3).contains(&share), "{} of {}", trees.len(), all_trees.len());
    // What is kept is exactly what the whole capture has of these trees.
    let mut expected: Vec<&Value> =
        spans.iter().filter(|span| trees.contains(&roots[&span["id"].as_u64().unwrap()])).collect();
    let mut kept: Vec<&Value> = kept.iter().collect();
    // Spans that begin or end in the same nanosecond have no order.
    kept.sort_by_key(|span| span["id"].as_u64());
    expected.sort_by_key(|span| span["id"].as_u64());
    let missing: Vec<&&Value> = expected.iter().filter(|span| !kept.contains(span)).collect();
    let added: Vec<&&Value> = kept.iter().filter(|span| !expected.contains(span)).collect();
    assert!(missing.is_empty() && added.is_empty(), "missing: {missing:#?}\nadded: {added:#?}");
    assert_eq!(kept.len(), expected.len());
    let about = run(&["export", &file, "--format", "jsonl"]).json_lines().swap_remove(0);
    assert_eq!((&about["rings"][0]["sampled_per_million"], &about["rings"][0]["host"]), (&250_000.into(), &"h".into()));
}

#[test]
fn levels_and_names_of_spans_are_chosen_before_anything_is_sent() {
    let Some(place) = Place::new() else { return };
    let capture = every_kind::capture_everything(place.dir.path());
    let address = place.broker.address();
    let kept = |ring: &str, host: &str, filter: &[&str]| {
        let ring = place.path(ring);
        let to = ["--to", &address, "--stream", "S", "--host", host];
        assert_eq!(run(&[&["forward", &ring], &to[..], filter].concat()).code, Some(0));
        let file = place.path(&format!("{host}.evc"));
        let received = place.receive(&file, &["--host", host]).json();
        assert_eq!(received["lost"], 0);
        let kept = lines(&file);
        // What is kept is as it was.
        let all = lines(&capture);
        let changed: Vec<&String> =
            kept.iter().filter(|line| !line.contains(r#""type":"end""#) && !all.contains(line)).collect();
        assert!(changed.is_empty(), "{changed:#?}");
        kept
    };
    let count = |lines: &[String], what: &str| lines.iter().filter(|line| line.contains(what)).count();
    let after = kept("shop", "a", &["--span", "after"]);
    assert_eq!((count(&after, r#""type":"span""#), count(&after, r#""name":"after""#)), (2, 2), "{after:#?}");
    let warnings = kept("shop", "b", &["--max-level", "warn"]);
    assert_eq!((count(&warnings, r#""type":"span""#), count(&warnings, r#""level":"WARN""#)), (0, 2), "{warnings:#?}");
    let parts = kept("sink", "c", &["--type", "PART"]);
    assert_eq!((count(&parts, r#""type":"typed_event""#), count(&parts, "PART")), (24, 24), "{parts:#?}");
    let refused = run(&["forward", "x", "--to", &address, "--stream", "S", "--sample", "2"]);
    assert!(refused.code == Some(2) && refused.err.contains("like 0.01 or 1/100"), "{refused:?}");
}
