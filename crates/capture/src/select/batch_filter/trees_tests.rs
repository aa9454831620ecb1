//! Trees of spans in partly copied rings.

use super::no_open_spans;
use super::sample::TreeSample;
use super::span_test::SpanTest;
use super::trees::SpanTrees;
use crate::select::events::EventSelection;
use eventring::reader::{Cursor, Descriptor, EventBatch, Next, PayloadRead, Reader, Seek};
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::EventType as _;
use eventring::schema::perf::{CallSiteKind, CallSiteLevel, CallSiteView, PerfEvent, PerfExt};

const TREES: u64 = 200;

/// The rings of a recorder with two shards.
struct Shards {
    _dir: tempfile::TempDir,
    recorders: [Recorder; 2],
    readers: [Reader; 2],
}

impl Shards {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let recorders = ["a", "b"].map(|name| {
            let builder =
                Recorder::builder(ContentDescription::from_event_type::<PerfEvent>()).config(dir.path().join(name));
            builder.compact(true).shifts(15, 21).prefault(false).build().unwrap()
        });
        let readers = ["a", "b"].map(|name| Reader::open(dir.path().join(name)).unwrap());
        Self { _dir: dir, recorders, readers }
    }

    fn record(&self, shard: usize, kind: PerfEvent, span: u64, parent: u64) {
        let ext = PerfExt { related: parent, ..PerfExt::of_span(span, 0) };
        self.recorders[shard].record(kind.code(), ext.to_words(), b"");
    }

    /// Returns cursors at these seqnos, or at the oldest event for 0.
    fn cursors(&self, seqnos: [u64; 2]) -> Vec<Option<Cursor>> {
        let cursor = |(reader, seqno): (&Reader, u64)| {
            let mut cursor = reader.cursor();
            cursor.seek(if seqno == 0 { Seek::Oldest } else { Seek::Seqno(seqno) });
            Some(cursor)
        };
        self.readers.iter().zip(seqnos).map(cursor).collect()
    }

    /// Returns the trees of which this many of a million are kept, and what the selection has.
    fn trees_of(&self, per_million: u32, selection: &EventSelection, cursors: &[Option<Cursor>]) -> SpanTrees {
        let test = SpanTest::new(selection, &self.readers[0], no_open_spans());
        Self::begin(SpanTrees::new(self.sample(per_million), None, test), cursors)
    }

    fn sample(&self, per_million: u32) -> TreeSample {
        TreeSample::new(per_million, &self.readers[0])
    }

    fn trees(&self, cursors: &[Option<Cursor>]) -> SpanTrees {
        self.trees_of(500_000, &EventSelection::default(), cursors)
    }

    fn begin(mut trees: SpanTrees, cursors: &[Option<Cursor>]) -> SpanTrees {
        cursors.iter().for_each(|cursor| trees.add_shard(cursor.as_ref()));
        trees.judge_past(&seen(cursors));
        trees.begin_pass();
        trees
    }
}

/// Returns the cursors as the trees see them.
fn seen(cursors: &[Option<Cursor>]) -> Vec<Option<&Cursor>> {
    cursors.iter().map(Option::as_ref).collect()
}

/// Reads all that a shard has from its cursor on.
fn copy(cursor: &mut Option<Cursor>) -> EventBatch {
    let mut events = EventBatch::new(1 << 20, 1 << 16);
    let (cursor, mut buffer) = (cursor.as_mut().unwrap(), Vec::new());
    while let Next::Event(event) = cursor.next() {
        events.push(&event, cursor.payload(&event, &mut buffer));
    }
    events
}

/// Returns the ids of the root, of the span in it, and of the span in that one.
fn spans_of(tree: u64) -> [u64; 3] {
    [1, 2, 3].map(|span| 10 * tree + span)
}

/// Copies the first shard, which has the innermost spans, and checks that these are judged by their roots.
fn check_innermost(shards: &Shards, trees: &mut SpanTrees, cursors: &mut [Option<Cursor>]) {
    let events = copy(&mut cursors[0]);
    assert_eq!(events.descriptors().len() as u64, TREES);
    let cursors = seen(cursors);
    trees.judge_new(&events, &cursors);
    let sample = shards.sample(500_000);
    for (event, tree) in events.descriptors().iter().zip(0..) {
        assert_eq!(trees.keeps(event, PayloadRead::Valid(&[]), &cursors), sample.has(spans_of(tree)[0]), "tree {tree}");
    }
}

#[test]
fn a_parent_behind_an_event_that_is_just_being_recorded_is_found() {
    let shards = Shards::new();
    let reservation = shards.recorders[1].reserve(PerfEvent::Event.code(), [0; 4], 8).unwrap();
    for tree in 0..TREES {
        let [root, inner, innermost] = spans_of(tree);
        shards.record(1, PerfEvent::SpanNew, root, 0);
        shards.record(1, PerfEvent::SpanNew, inner, root);
        shards.record(0, PerfEvent::SpanNew, innermost, inner);
    }
    let mut cursors = shards.cursors([0, 0]);
    let mut trees = shards.trees(&cursors);
    check_innermost(&shards, &mut trees, &mut cursors);
    drop(reservation);
}

#[test]
fn spans_that_were_open_before_are_judged_by_their_trees_and_forgotten_when_they_have_ended() {
    let shards = Shards::new();
    for tree in 0..TREES {
        let [root, inner, _] = spans_of(tree);
        shards.record(1, PerfEvent::SpanNew, root, 0);
        shards.record(1, PerfEvent::SpanNew, inner, root);
        // Another span that has ended.
        shards.record(1, PerfEvent::SpanNew, 10 * tree + 9, root);
        shards.record(1, PerfEvent::SpanClose, 10 * tree + 9, 0);
    }
    let next_seqno = shards.readers[1].info().last_seqno + 1;
    for tree in 0..TREES {
        let [_, inner, innermost] = spans_of(tree);
        shards.record(0, PerfEvent::SpanNew, innermost, inner);
    }
    let mut cursors = shards.cursors([0, next_seqno]);
    let mut trees = shards.trees(&cursors);
    assert_eq!(trees.known(), 3 * TREES as usize);
    check_innermost(&shards, &mut trees, &mut cursors);
    for _ in 0..3 {
        [0, 1].into_iter().for_each(|shard| trees.see_copied(shard));
        trees.begin_pass();
    }
    assert_eq!(trees.known(), 3 * TREES as usize, "the innermost came, and those that have ended went");
}

#[test]
fn what_is_in_a_span_that_fulfils_a_condition_is_kept_on_whatever_shards_they_are() {
    let shards = Shards::new();
    for (id, name) in [(1, "even"), (2, "odd")] {
        let ext = PerfExt { call_site_id: id, ..PerfExt::default() };
        let [shard1, shard0] = &shards.recorders;
        for shard in [shard0, shard1] {
            shard.record(PerfEvent::CallSite.code(), ext.to_words(), &call_site(name));
        }
    }
    for tree in 0..TREES {
        let [root, inner, _] = spans_of(tree);
        let ext = PerfExt::of_span(root, 1 + (tree % 2) as u32);
        shards.recorders[1].record(PerfEvent::SpanNew.code(), ext.to_words(), b"");
        shards.record(0, PerfEvent::SpanNew, inner, root);
    }
    let mut cursors = shards.cursors([0, 0]);
    let even = EventSelection { spans: vec!["even".to_owned()], ..EventSelection::default() };
    let mut trees = shards.trees_of(1_000_000, &even, &cursors);
    // The shard with the inner spans is copied first.
    for shard in [0, 1] {
        let events = copy(&mut cursors[shard]);
        let cursors = seen(&cursors);
        trees.judge_new(&events, &cursors);
        let spans = events.descriptors().iter().filter(|event| event.event_type == PerfEvent::SpanNew.code());
        for (event, tree) in spans.zip(0..) {
            assert_eq!(trees.keeps(event, PayloadRead::Valid(&[]), &cursors), tree % 2 == 0, "{shard} {tree}");
        }
    }
}

#[test]
fn a_log_record_that_has_lost_what_a_filter_asks_for_is_kept() {
    let shards = Shards::new();
    let names = ["message", "log.target", "log.module_path", "log.file", "log.line"];
    let site = CallSiteView {
        kind: CallSiteKind::Event,
        level: CallSiteLevel::Info,
        name: "log event".into(),
        target: "log".into(),
        module: "".into(),
        file: "".into(),
        line: 1,
        field_names: names.map(Into::into).to_vec(),
    };
    let ext = PerfExt { call_site_id: 1, ..PerfExt::default() };
    shards.recorders[0].record(PerfEvent::CallSite.code(), ext.to_words(), &site.encode());
    shards.recorders[0].record(PerfEvent::Event.code(), PerfExt { field_count: 5, ..ext }.to_words(), b"");
    let targets = EventSelection { targets: vec!["shop".to_owned()], ..EventSelection::default() };
    let condition = EventSelection { condition: Some("field.message=x".parse().unwrap()), ..EventSelection::default() };
    for selection in [targets, condition] {
        let mut cursors = shards.cursors([0, 0]);
        let mut trees = shards.trees_of(1_000_000, &selection, &cursors);
        let events = copy(&mut cursors[0]);
        let cursors = seen(&cursors);
        trees.judge_new(&events, &cursors);
        let record = &events.descriptors()[1];
        assert!(trees.keeps(record, PayloadRead::Expired, &cursors), "{selection}");
        assert!(!trees.keeps(record, PayloadRead::Valid(&[]), &cursors), "{selection}");
    }
}

#[test]
fn a_span_does_not_have_the_level_of_which_a_condition_asks() {
    let shards = Shards::new();
    let ext = PerfExt { call_site_id: 1, ..PerfExt::default() };
    shards.recorders[0].record(PerfEvent::CallSite.code(), ext.to_words(), &call_site("query"));
    shards.recorders[0].record(PerfEvent::SpanNew.code(), PerfExt::of_span(1, 1).to_words(), b"");
    for (text, is_kept) in [("level>=INFO", false), ("span=query", true)] {
        let selection = EventSelection { condition: Some(text.parse().unwrap()), ..EventSelection::default() };
        let mut cursors = shards.cursors([0, 0]);
        let mut trees = shards.trees_of(1_000_000, &selection, &cursors);
        let events = copy(&mut cursors[0]);
        trees.judge_new(&events, &seen(&cursors));
        let kept = trees.keeps(&events.descriptors()[1], PayloadRead::Valid(&[]), &seen(&cursors));
        assert_eq!(kept, is_kept, "{text}");
    }
}

/// Returns the description of a span's call site.
pub(crate) fn call_site(name: &str) -> Vec<u8> {
    let (kind, level) = (CallSiteKind::Span, CallSiteLevel::Info);
    let [name, target] = [name.into(), "shop".into()];
    let (module, file) = ("".into(), "".into());
    CallSiteView { kind, level, name, target, module, file, line: 1, field_names: Vec::new() }.encode()
}

#[test]
fn the_children_of_a_parent_that_nobody_knows_stay_together_and_what_is_no_span_or_log_record_is_kept() {
    let shards = Shards::new();
    for parent in 1..=TREES {
        (1..=3).for_each(|child| shards.record(0, PerfEvent::SpanNew, 10_000 + 10 * parent + child, parent));
        shards.record(0, PerfEvent::Event, 10_000 + 10 * parent + 1, 0);
        shards.record(0, PerfEvent::Marker, 10_000 + 10 * parent + 1, 0);
        shards.record(0, PerfEvent::Counter, 10_000 + 10 * parent + 1, 0);
    }
    let mut cursors = shards.cursors([0, 0]);
    let mut trees = shards.trees(&cursors);
    let (events, sample) = (copy(&mut cursors[0]), shards.sample(500_000));
    let cursors = seen(&cursors);
    trees.judge_new(&events, &cursors);
    for (of_parent, parent) in events.descriptors().chunks(6).zip(1..) {
        let kept: Vec<bool> =
            of_parent.iter().map(|event| trees.keeps(event, PayloadRead::Valid(&[]), &cursors)).collect();
        let has = sample.has(parent);
        assert_eq!(kept, [has, has, has, has, true, true], "{parent}");
    }
}

#[test]
fn a_span_that_has_ended_is_known_until_the_rings_were_copied_that_ask_for_it() {
    const ASKING: usize = 2;
    let shards = Shards::new();
    let mut cursors = shards.cursors([0, 0]);
    let mut trees = shards.trees(&cursors);
    let ring = |cursors: &[Option<Cursor>], trees: &mut SpanTrees| {
        trees.add_asking_ring(&seen(cursors));
        trees.judge_past(&seen(cursors));
    };
    ring(&cursors, &mut trees);
    shards.record(0, PerfEvent::SpanNew, 1, 0);
    shards.record(0, PerfEvent::SpanClose, 1, 0);
    let events = copy(&mut cursors[0]);
    trees.judge_new(&events, &seen(&cursors));
    for event in events.descriptors() {
        trees.keeps(event, PayloadRead::Valid(&[]), &seen(&cursors));
    }
    let pass = |trees: &mut SpanTrees, copied: &[usize]| {
        copied.iter().for_each(|ring| trees.see_copied(*ring));
        trees.begin_pass();
        trees.known()
    };
    for _ in 0..3 {
        assert_eq!(pass(&mut trees, &[0, 1]), 1);
    }
    assert_eq!(pass(&mut trees, &[0, 1, ASKING]), 0);
    // A ring that is found later has events that are as old as the ring.
    ring(&cursors, &mut trees);
    assert!(trees.verdict_if_known(1, &seen(&cursors)).is_some());
    assert_eq!(pass(&mut trees, &[0, 1, ASKING]), 1);
    pass(&mut trees, &[0, 1, ASKING, ASKING + 1]);
    assert_eq!(pass(&mut trees, &[0, 1, ASKING, ASKING + 1]), 0);
}

#[test]
fn an_open_span_is_known_however_many_have_ended_that_a_ring_may_still_ask_for() {
    const SPANS: u64 = 1 << 16;
    let shards = Shards::new();
    let cursors = shards.cursors([0, 0]);
    let mut trees = shards.trees(&cursors);
    let cursors = seen(&cursors);
    trees.add_asking_ring(&cursors);
    let mut crowded = Vec::new();
    for first in (1..).step_by(SPANS as usize).take(20) {
        let event = |kind: PerfEvent, span| Descriptor {
            event_type: kind.code(),
            content_ext: PerfExt::of_span(span, 0).to_words(),
            ..Descriptor::default()
        };
        let mut events = EventBatch::new(1 << 20, 1 << 16);
        let spans = first..first + SPANS;
        spans.clone().for_each(|span| events.push(&event(PerfEvent::SpanNew, span), PayloadRead::Valid(&[])));
        trees.judge_new(&events, &cursors);
        // The first span of all stays open.
        for span in spans.filter(|span| *span != 1) {
            trees.keeps(&event(PerfEvent::SpanClose, span), PayloadRead::Valid(&[]), &cursors);
        }
        crowded.push(trees.is_crowded());
        assert!(trees.known() <= 1 << 20);
    }
    assert_eq!(crowded[..6], [false, false, false, false, true, true]);
    assert!(trees.verdict_if_known(1, &cursors).is_some());
    assert!(trees.verdict_if_known(20 * SPANS, &cursors).is_some());
    assert!(trees.verdict_if_known(2, &cursors).is_none());
}
