//! Names that spans of several modules share, and names that are long.

use crate::counted::{self, called};
use crate::fixtures::*;

#[test]
fn a_name_that_spans_of_several_targets_share_is_shown_with_its_target_and_others_are_not() {
    let (_dir, [ring, page]) = places(["shop", "page.html"]);
    let recorder = spans_in(&ring).build().unwrap();
    let mut open = Vec::new();
    in_recorder(recorder.clone(), || {
        for _ in 0..3 {
            info_span!(target: "shop::cart", "apply").in_scope(|| info_span!(target: "shop", "pay").in_scope(|| ()));
            info_span!(target: "shop::tax", "apply").in_scope(|| ());
        }
        open.push(info_span!(target: "shop::cart", "apply"));
        open.push(info_span!(target: "shop::tax", "apply"));
        open.push(info_span!(target: "shop", "pay"));
    });
    let folded = run!("export", ring, "--format", "folded", "-o", "-").out;
    let stacks: Vec<&str> =
        folded.lines().map(|line| line.rsplit_once(' ').unwrap().0.split_once(';').unwrap().1).collect();
    assert_eq!(stacks, ["shop::cart::apply", "shop::cart::apply;pay", "shop::tax::apply"]);
    let shown = run!("open", ring).out;
    let names: Vec<&str> = shown.lines().skip(2).map(|line| line.split_whitespace().last().unwrap()).collect();
    assert_eq!(names, ["shop::cart::apply", "shop::tax::apply", "pay"], "{shown}");
    let frame = run!("top", ring, "--once").out;
    assert!(frame.contains("shop::cart::apply") && frame.contains("shop::tax::apply"), "{frame}");
    run!("report", ring, "-o", &page).ends(0);
    let page = fs::read_to_string(page).unwrap();
    for name in ["shop::cart::apply", "shop::tax::apply"] {
        assert!(page.contains(&format!("<b>{name}</b> p50")), "{name}: {page}");
    }
    assert!(page.contains("<b>pay</b> p50"), "{page}");
    drop(open);
}

/// A name that is far longer than any line should be.
const LONG: &str = match std::str::from_utf8(&[b'x'; 10_000]) {
    Ok(text) => text,
    Err(_) => panic!(),
};

/// The name of a typed event may have 256 bytes.
#[derive(EventType, Clone, Copy)]
#[event(content_type = 977, name = "LONG_NAMES")]
#[repr(u16)]
enum OfLongName {
    Short = 2,
    Xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx =
        3,
}

#[test]
fn one_long_name_makes_its_own_line_long_and_no_other() {
    let dir = directory();
    // A file's name has at most 255 bytes, and other files are called like it with more behind it.
    let (ring, long_ring, typed) = (place(&dir, "shop"), place(&dir, &"x".repeat(200)), place(&dir, "typed"));
    let (capture, saved) = (place(&dir, "shop.evc"), place(&dir, "saved.snapshot"));
    let record = |ring: &Path| {
        let recorder = spans_in(ring).keep(true).build().unwrap();
        let span = in_recorder(recorder.clone(), || {
            let in_long = || info_span!("short").in_scope(|| info!("short"));
            thread::scope(|scope| {
                let dispatch = dispatcher::get_default(Clone::clone);
                let named = thread::Builder::new().name(LONG.to_owned());
                let work = move || dispatcher::with_default(&dispatch, in_long);
                named.spawn_scoped(scope, work).unwrap();
            });
            info_span!(LONG, { LONG } = 7).in_scope(in_long);
            info_span!(target: LONG, "short", text = LONG).in_scope(in_long);
            info!(target: LONG, text = LONG, "{}", LONG);
            (info_span!(LONG), info_span!(target: LONG, "short"), info_span!("short"))
        });
        (recorder, span)
    };
    let (in_short, in_long) = (record(&ring), record(&long_ring));
    let recorder = typed_in::<OfLongName>(&typed).compact(true).shifts(15, 21).keep(true).build().unwrap();
    for event in [OfLongName::Short, OfLongName::Xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, OfLongName::Short] {
        recorder.record(event.code(), [0; 4], &[]);
    }
    run!("capture", &ring, &typed, "--now", "-o", &capture).ends(0);
    run!("snapshot", &typed, "-o", &saved).ends(0);
    // Rings that have ended are watched to their end. Spans are open in the capture only.
    drop((recorder, in_short, in_long));
    let budgets = place(&dir, "budgets.toml");
    let counted = counted::capture(&dir, "counted", &[called("short", 1, 10), called(LONG, 1, 10)]);
    let [ring, typed, capture, saved, budgets] = [&ring, &typed, &capture, &saved, &budgets].map(|it| argument(it));
    let of_ring = |name| ["summary", "open", "watch"].map(|verb| vec![verb, name]);
    let mut all: Vec<Vec<&str>> =
        [ring, typed, capture, saved, argument(&long_ring)].into_iter().flat_map(of_ring).collect();
    all.extend([
        vec!["watch", ring, argument(&long_ring), typed],
        vec!["watch", ring, "--full"],
        vec!["info", typed],
        vec!["info", saved],
        vec!["top", ring, "--once"],
        vec!["top", typed, "--once"],
        vec!["list", argument(dir.path())],
        vec!["clean", argument(dir.path()), "--dry-run"],
        vec!["diff", capture, capture],
        vec!["diff", &counted, &counted],
        vec!["export", capture, "--format", "folded", "-o", "-"],
        vec!["budget", "update", budgets, &counted],
        vec!["budget", "check", budgets, &counted],
    ]);
    for verb in all {
        let done = run(&verb);
        assert!(matches!(done.code, Some(0)), "{verb:?}: {done:?}");
        for line in done.out.lines() {
            // A short name would have more blanks beside it, as many as the long one has letters more.
            assert!(!line.contains(&" ".repeat(120)), "{verb:?}: {line}");
        }
    }
}
