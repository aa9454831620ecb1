//! Names that spans of several modules share, and names that are long.

use crate::program::{argument, directory, place, run};
use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use tracing::{Dispatch, info_span};

#[test]
fn a_name_that_spans_of_several_targets_share_is_shown_with_its_target_and_others_are_not() {
    let dir = directory();
    let (ring, page) = (place(&dir, "shop"), place(&dir, "page.html"));
    let recorder = PerfRecorder::builder().config(argument(&ring)).build().unwrap();
    let mut open = Vec::new();
    tracing::dispatcher::with_default(&Dispatch::new(RecorderSubscriber::new(recorder.clone())), || {
        for _ in 0..3 {
            info_span!(target: "shop::cart", "apply").in_scope(|| info_span!(target: "shop", "pay").in_scope(|| ()));
            info_span!(target: "shop::tax", "apply").in_scope(|| ());
        }
        open.push(info_span!(target: "shop::cart", "apply"));
        open.push(info_span!(target: "shop::tax", "apply"));
        open.push(info_span!(target: "shop", "pay"));
    });
    let ring = argument(&ring);
    let folded = run(&["export", ring, "--format", "folded", "-o", "-"]).out;
    let stacks: Vec<&str> =
        folded.lines().map(|line| line.rsplit_once(' ').unwrap().0.split_once(';').unwrap().1).collect();
    assert_eq!(stacks, ["shop::cart::apply", "shop::cart::apply;pay", "shop::tax::apply"]);
    let shown = run(&["open", ring]).out;
    let names: Vec<&str> = shown.lines().skip(2).map(|line| line.split_whitespace().last().unwrap()).collect();
    assert_eq!(names, ["shop::cart::apply", "shop::tax::apply", "pay"], "{shown}");
    let frame = run(&["top", ring, "--once"]).out;
    assert!(frame.contains("shop::cart::apply") && frame.contains("shop::tax::apply"), "{frame}");
    assert_eq!(run(&["report", ring, "-o", argument(&page)]).code, Some(0));
    let page = std::fs::read_to_string(page).unwrap();
    for name in ["shop::cart::apply", "shop::tax::apply"] {
        assert!(page.contains(&format!("<b>{name}</b> p50")), "{name}: {page}");
    }
    assert!(page.contains("<b>pay</b> p50"), "{page}");
    drop(open);
}

#[test]
fn one_long_name_makes_its_own_line_long_and_no_other() {
    let dir = directory();
    let ring = place(&dir, "shop");
    let recorder = PerfRecorder::builder().config(argument(&ring)).build().unwrap();
    tracing::dispatcher::with_default(&Dispatch::new(RecorderSubscriber::new(recorder.clone())), || {
        info_span!("short").in_scope(|| ());
        info_span!(
            "a name of two hundred letters, as macros make them from paths and types and what else they \
             find, which nobody reads to its end, although it is in a table, where each line is as wide as its widest"
        )
        .in_scope(|| ());
    });
    let summary = run(&["summary", argument(&ring)]).out;
    let widest = summary.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest < 180, "{widest}: {summary}");
    assert!(summary.contains("its widest  "), "the end of the name is shown: {summary}");
}
