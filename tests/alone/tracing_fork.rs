//! The parent of a forked child has a subscriber. Whatever the child does, it records nothing into its parent's
//! rings. When it has made rings of its own, parent and child record side by side.

use crate::fixtures::*;
use eventring::scope;
use eventring::tracing::{Counter, Marker, PerfRecorderBuilder, trigger, trigger_on_panic, try_init_with};
use tracing::field::Empty;

static OPEN: Counter = Counter::new("open");
static FORKED: Marker = Marker::new("forked");

fn builder(path: &Path) -> PerfRecorderBuilder {
    PerfRecorder::builder().config(path).shifts(15, 21).tables_shift(16).shards(2).prefault(false)
}

/// Records events of all kinds, on this thread and on a second one.
fn work(who: &'static str) {
    let span = tracing::info_span!("work", who, late = Empty);
    span.in_scope(|| tracing::warn!(value = ?who, "working"));
    span.record("late", 1u64);
    OPEN.sample(1u64);
    FORKED.mark_with(who);
    trigger(who);
    let _ = std::panic::catch_unwind(|| panic!("{who}"));
    let other = std::thread::spawn(move || {
        let _span = tracing::info_span!("other thread", who).entered();
        // These open spans take more cells of the span slab than the thread keeps free for itself.
        let open: Vec<_> = (0..2000u64).map(|n| tracing::debug_span!("open", n)).collect();
        drop(open);
    });
    other.join().unwrap();
}

fn shard(path: &Path, index: u32) -> PathBuf {
    if index == 0 { path.to_owned() } else { PathBuf::from(format!("{}.{index}", path.display())) }
}

/// Returns a line for each span, with its name and its parent's name. The lines are sorted. The many spans `open` are
/// left out.
fn spans(path: &Path) -> Vec<String> {
    let records = reference::records(&mut PerfReader::open(path).unwrap());
    assert!(records.iter().all(|record| !matches!(record.content, PerfContent::Unknown { .. })));
    let tree = SpanTree::from_records(&records);
    let name = |span: &eventring::tracing::Span| match span.fields.get("who") {
        Some(who) => format!("{} of {who}", span.name()),
        None => span.name(),
    };
    let spans = tree.iter().filter(|span| span.name() != "open").map(|span| {
        let parent = span.parent.map_or("nothing".into(), |id| tree.get(id).map_or("a stranger".into(), name));
        format!("{} in {parent}", name(span))
    });
    let mut spans: Vec<String> = spans.collect();
    spans.sort();
    spans
}

#[test]
fn a_forked_child_leaves_its_parents_rings_alone_and_records_into_its_own() {
    alone!();
    let (_directory, [path, child_path]) = places(["parent", "child"]);
    trigger_on_panic();
    let recording = try_init_with(builder(&path), TargetFilter::all()).unwrap();
    let outer = tracing::info_span!("outer").entered();
    work("parent");
    let images = || [0, 1].map(|index| std::fs::read(shard(&path, index)).unwrap());
    let before = images();

    let code = forked::in_child(|| {
        work("child without rings");
        outer.record("late", 1u64);
        recording.set_enabled(true);
        work("child that insists");
        if recording.recorder().is_none_or(|recorder| recorder.is_enabled() || recorder.belongs_to_this_process()) {
            return 1;
        }
        if try_init_with(builder(&path), TargetFilter::all()).is_ok() {
            return 2;
        }
        let Ok(recorder) = builder(&child_path).keep(true).build() else { return 3 };
        if PERF.install(recorder).is_err() {
            return 4;
        }
        work("child");
        let has_two_shards = PERF.installed().is_some_and(|recorder| recorder.shard_count() == 2);
        if has_two_shards { 0 } else { 5 }
    });
    assert_eq!(code, 0);
    assert!(before == images(), "a byte of the parent's rings has changed");

    work("parent again");
    drop(outer);
    assert_eq!(
        spans(&path),
        [
            "other thread of parent again in nothing",
            "other thread of parent in nothing",
            "outer in nothing",
            "work of parent again in outer",
            "work of parent in outer",
        ]
    );
    // When the parent forked, it was in the span `outer`. This span is not in the child's rings, but events in the
    // child's rings name it, by the id that it has in the parent's rings.
    let trees = [&path, &child_path]
        .map(|path| SpanTree::from_records(&reference::records(&mut PerfReader::open(path).unwrap())));
    let [in_parent, in_child] = &trees;
    let outer = in_parent.iter().find(|span| span.name() == "outer").unwrap();
    let work = in_child.iter().find(|span| span.name() == "work").unwrap();
    assert_eq!((work.parent, in_child.get(outer.id)), (Some(outer.id), None));
    assert_eq!(spans(&child_path), ["other thread of child in nothing", "work of child in a stranger"]);
}

#[test]
fn a_forked_child_does_not_end_the_scopes_of_its_parent_in_its_own_rings() {
    alone!();
    let (_directory, [path, child_path]) = places(["parent", "child"]);
    PERF.install(builder(&path).build().unwrap()).unwrap();
    let mut outer = Some(scope!("outer"));
    let mut inner = Some(scope!("inner"));
    std::mem::forget(scope!("forgotten"));
    let code = forked::in_child(|| {
        PERF.install(builder(&child_path).keep(true).build().unwrap()).unwrap();
        drop(scope!("of the child"));
        inner.take();
        drop(scope!("of the child"));
        outer.take();
        drop(scope!("of the child"));
        0
    });
    assert_eq!(code, 0);
    drop((inner, outer));
    assert_eq!(spans(&path), ["forgotten in inner", "inner in outer", "outer in nothing"]);
    let child = ["of the child in a stranger", "of the child in a stranger", "of the child in nothing"];
    assert_eq!(spans(&child_path), child);
}
