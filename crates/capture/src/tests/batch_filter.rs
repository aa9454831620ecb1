//! Tests of samples of the spans of several threads, and of typed events that were recorded in spans. A sample keeps or
//! leaves out each tree of spans as a whole.

use crate::engine::summary::NextRing;
use crate::error::{CaptureError, CaptureErrorKind};
use crate::select::batch_filter::BatchFilter;
use crate::select::batch_filter::trees_tests::call_site;
use crate::sinks::batches::{Batch, BatchOptions, BatchStart, BatchesInMemory, capture_batches, read_batch};
use crate::{CapturedContent, EventSelection};
use eventring::EventType;
use eventring::reader::Reader;
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::ExtWords;
use eventring::schema::perf::{PerfEvent, PerfExt};
use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use tracing::{Dispatch, Span, dispatcher, info_span};

/// The number of trees that are open for a moment only.
const SHORT_TREES: u64 = 4_000;
/// The number of trees that are open until the end.
const LONG_TREES: u64 = 40;
const TREES: u64 = SHORT_TREES + LONG_TREES;

/// Records trees of four spans, each span on another thread, in a shard of its own. The last one is in few trees, so
/// its shard is copied seldom. Other trees get more and more spans until the end.
fn record_trees(recorder: &PerfRecorder) {
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    std::thread::scope(|scope| {
        let (roots, mut from) = channel::<(u64, Span)>();
        for depth in 1..=3 {
            let (to, below) = channel();
            let above = std::mem::replace(&mut from, below);
            let dispatch = dispatch.clone();
            scope.spawn(move || {
                dispatcher::with_default(&dispatch, || {
                    for (tree, parent) in above {
                        let span = info_span!(parent: &parent, "inner", depth);
                        if depth < 2 || (depth == 2 && tree % 100 == 0) {
                            let _ = to.send((tree, span));
                        }
                    }
                });
            });
        }
        dispatcher::with_default(&dispatch, || {
            let inside_long_tree = |tree| {
                let root = info_span!("long root", tree);
                info_span!(parent: &root, "long inner", tree)
            };
            let long_trees: Vec<Span> = (0..LONG_TREES).map(inside_long_tree).collect();
            for tree in 0..SHORT_TREES {
                let root = info_span!("root", tree);
                let _ = roots.send((tree, root));
                let _ = info_span!(parent: &long_trees[(tree % LONG_TREES) as usize], "step", tree);
                if tree % 16 == 0 {
                    std::thread::sleep(Duration::from_micros(300));
                }
            }
        });
        // The first thread ends with this channel, and so all others.
        drop(roots);
    });
}

/// Captures a recorder into batches until it ends, and returns the parent of each span. A capture is killed after this
/// number of batches, and another one goes on.
fn parents(path: &Path, filter: &BatchFilter, batches_max: usize) -> BTreeMap<u64, u64> {
    let mut parents = BTreeMap::new();
    let mut start = BatchStart::of_host("h");
    loop {
        let mut reader = Some(Reader::open(path).unwrap());
        let mut next_ring = || reader.take().map_or(NextRing::NoMore, NextRing::Ring);
        let (mut batches, mut after) = (0, start.clone());
        let mut send = |bytes: &[u8], batch: &Batch<'_>| {
            if batches == batches_max {
                return Err(CaptureError::new(CaptureErrorKind::Io, "killed"));
            }
            assert_eq!(batch.lost(), 0);
            batches += 1;
            let batch = read_batch(bytes).unwrap();
            after.after(&batch);
            for record in batch.events() {
                let CapturedContent::Event { descriptor, .. } = record.content else { continue };
                if descriptor.event_type == PerfEvent::SpanNew.code() {
                    let ext = PerfExt::from_words(descriptor.content_ext);
                    parents.insert(ext.span_id, ext.related);
                }
            }
            Ok(())
        };
        let every = Duration::from_millis(20);
        let options = BatchOptions {
            bytes_max: 1 << 20,
            payload_bytes_max: 1 << 19,
            every,
            level: 1,
            start,
            filter: filter.clone(),
            only_new: false,
        };
        let mut sink = BatchesInMemory::new(&mut send);
        let result = capture_batches(&mut next_ring, &mut sink, &options, &mut |_| ControlFlow::Continue(()));
        if let Err(error) = &result {
            assert!(error.to_string().contains("killed"), "{error}");
        }
        start = after;
        if result.is_ok() {
            return parents;
        }
    }
}

/// Returns the spans of each tree, by its root.
fn trees(parents: &BTreeMap<u64, u64>, of: impl Iterator<Item = u64>) -> BTreeMap<u64, BTreeSet<u64>> {
    let mut trees: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for span in of {
        let mut root = span;
        while let Some(parent) = parents.get(&root).filter(|parent| **parent != 0) {
            root = *parent;
        }
        trees.entry(root).or_default().insert(span);
    }
    trees
}

/// Records, with a capture of a sample of the trees beside it, and checks that this sample has whole trees, and so has
/// one of all that was recorded.
fn check_samples(batches_max: usize) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("spans");
    let builder = PerfRecorder::builder().config(&path).shards(4).shifts(16, 22).prefault(false).keep(true);
    let recorder = builder.build().unwrap();
    let sample = BatchFilter::new().sampled_per_million(250_000);
    let live = std::thread::scope(|scope| {
        let live = scope.spawn(|| parents(&path, &sample, batches_max));
        record_trees(&recorder);
        drop(recorder);
        live.join().unwrap()
    });
    let all = parents(&path, &BatchFilter::new(), usize::MAX);
    let all_trees = trees(&all, all.keys().copied());
    assert_eq!(all_trees.len() as u64, TREES);
    for kept in [live, parents(&path, &sample, usize::MAX)] {
        let kept_trees = trees(&all, kept.keys().copied());
        let share = kept_trees.len() as f64 / TREES as f64;
        assert!((0.2..0.3).contains(&share), "{share}");
        let broken: Vec<_> = kept_trees.iter().filter(|(root, spans)| all_trees[root] != **spans).collect();
        assert!(broken.is_empty(), "{} of {} trees are broken", broken.len(), kept_trees.len());
    }
}

#[test]
fn trees_on_several_threads_are_sampled_as_wholes_while_they_are_recorded_and_later() {
    check_samples(usize::MAX);
}

#[test]
fn trees_that_are_open_when_a_capture_is_killed_stay_whole_in_the_next_one() {
    check_samples(2);
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, name = "SHOP")]
#[repr(u16)]
enum Shop {
    OrderPlaced = 2,
}

/// The recorders of a program that records an event in each of its spans.
struct Program {
    dir: tempfile::TempDir,
    spans: Recorder,
    typed: Recorder,
}

impl Program {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let build = |description, name, shift| {
            let builder = Recorder::builder(description).config(dir.path().join(name));
            builder.compact(true).shifts(shift, 21).prefault(false).build().unwrap()
        };
        let spans = build(ContentDescription::from_event_type::<PerfEvent>(), "spans", 15);
        let typed = build(ContentDescription::from_event_type::<Shop>(), "typed", 17);
        let ext = PerfExt { call_site_id: 1, ..PerfExt::default() };
        spans.record(PerfEvent::CallSite.code(), ext.to_words(), &call_site("work"));
        Self { dir, spans, typed }
    }

    fn ring(&self, name: &str) -> Reader {
        Reader::open(self.dir.path().join(name)).unwrap()
    }

    fn record(&self, span: u64) {
        self.spans.record(PerfEvent::SpanNew.code(), PerfExt::of_span(span, 1).to_words(), b"");
        let mut words = [0; 4];
        words[ExtWords::SPAN_INDEX] = span;
        self.typed.record(Shop::OrderPlaced.code(), words, b"");
        self.spans.record(PerfEvent::SpanClose.code(), PerfExt::of_span(span, 1).to_words(), b"");
    }
}

/// Captures the rings that `next_ring` returns until they have ended. Returns the number of typed events.
fn typed_events(next_ring: &mut dyn FnMut() -> NextRing) -> u64 {
    let mut typed = 0;
    let mut count = |bytes: &[u8], batch: &Batch<'_>| {
        assert_eq!(batch.lost(), 0);
        let batch = read_batch(bytes).unwrap();
        let is_typed = |ring: u32| !batch.rings()[ring as usize].is_perf();
        let events = batch.events().filter(|record| matches!(record.content, CapturedContent::Event { .. }));
        typed += events.filter(|record| is_typed(record.ring)).count() as u64;
        Ok(())
    };
    // Every span fulfils it, and nothing outside of spans.
    let events = EventSelection { spans: vec!["*".to_owned()], ..EventSelection::default() };
    let options = BatchOptions {
        bytes_max: 1 << 20,
        payload_bytes_max: 1 << 19,
        every: Duration::from_secs(1),
        level: 1,
        start: BatchStart::of_host("h"),
        filter: BatchFilter::new().events(events),
        only_new: false,
    };
    let mut sink = BatchesInMemory::new(&mut count);
    capture_batches(next_ring, &mut sink, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    typed
}

#[test]
fn a_typed_event_is_taken_with_its_span_also_if_its_ring_is_copied_long_after_the_end_of_the_span() {
    const SPANS: u64 = 20_000;
    let program = Program::new();
    let mut rings = vec![program.ring("typed"), program.ring("spans")];
    let taken = std::thread::scope(|scope| {
        let taking = scope.spawn(move || typed_events(&mut || rings.pop().map_or(NextRing::NoMore, NextRing::Ring)));
        // The ring of the spans is copied several times before that of the typed events has enough to be copied.
        for span in 1..=SPANS {
            program.record(span);
            if span % 100 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        drop(program);
        taking.join().unwrap()
    });
    assert_eq!(taken, SPANS);
}

#[test]
fn typed_events_are_taken_with_their_spans_in_whatever_order_their_rings_are_found() {
    const SPANS: u64 = 1000;
    let taken = [["typed", "spans"], ["spans", "typed"]].map(|names| {
        let program = Program::new();
        (1..=SPANS).for_each(|span| program.record(span));
        let mut rings = names.map(|name| program.ring(name)).into_iter();
        drop(program);
        let (mut first, mut found) = (rings.next(), None);
        // The other ring is found when the first could have been copied many times.
        let mut next_ring = || match first.take() {
            Some(ring) => NextRing::Ring(ring),
            None if found.get_or_insert_with(Instant::now).elapsed() < Duration::from_millis(200) => NextRing::NotYet,
            None => rings.next().map_or(NextRing::NoMore, NextRing::Ring),
        };
        typed_events(&mut next_ring)
    });
    assert_eq!(taken, [SPANS; 2]);
}
