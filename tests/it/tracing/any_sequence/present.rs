//! The tables of the present say after each step what the events of all steps say.

use super::{Step, perform, step};
use crate::fixtures::*;
use eventring::now::{NowReader, Presence, SpanCell};
use proptest::prelude::*;
use tracing_subscriber::prelude::*;

/// What is compared of an open span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Open {
    parent: u64,
    begun_epoch_nanos: u64,
    presence: Presence,
    has_error: bool,
}

impl Open {
    /// The tables tell of the thread that entered first, until it leaves.
    fn has_another(&self, thread: u32) -> bool {
        matches!(self.presence, Presence::Inside(inside, _) if inside != thread)
    }
}

/// Follows the events, each as it is documented, without the replay.
fn from_events(records: Vec<PerfRecord>) -> BTreeMap<u64, Open> {
    let mut open: BTreeMap<u64, Open> = BTreeMap::new();
    let mut depths: HashMap<(u64, u32), u32> = HashMap::new();
    for record in records {
        let nanos = record.epoch_nanos;
        let thread = record.thread.id;
        match record.content {
            PerfContent::SpanNew { span, parent, .. } => {
                let parent = parent.map_or(0, |parent| parent.get());
                let begun = Open { parent, begun_epoch_nanos: nanos, presence: Presence::NotYet, has_error: false };
                open.insert(span.get(), begun);
            }
            PerfContent::SpanEnter { span, .. } => {
                let depth = depths.entry((span.get(), thread)).or_default();
                *depth += 1;
                let open = open.get_mut(&span.get()).unwrap();
                if *depth == 1 && !open.has_another(thread) {
                    open.presence = Presence::Inside(thread, nanos);
                }
            }
            PerfContent::SpanExit { span, .. } => {
                let depth = depths.entry((span.get(), thread)).or_default();
                *depth -= 1;
                if *depth == 0
                    && let Some(open) = open.get_mut(&span.get()).filter(|open| !open.has_another(thread))
                {
                    open.presence = Presence::Left(thread, nanos);
                }
            }
            PerfContent::SpanClose { span, .. } => {
                open.remove(&span.get());
            }
            PerfContent::Event { span, ref call_site, .. } if call_site.level.name() == Some("ERROR") => {
                if let Some(open) = span.and_then(|span| open.get_mut(&span.get())) {
                    open.has_error = true;
                }
            }
            _ => {}
        }
    }
    open
}

fn from_tables(now: &NowReader) -> BTreeMap<u64, Open> {
    let mut open = BTreeMap::new();
    now.for_each_span(|span: SpanCell| {
        let SpanCell { id, parent, begun_epoch_nanos, presence, .. } = span;
        assert_eq!(now.span(id), Some(span));
        open.insert(id, Open { parent, begun_epoch_nanos, presence, has_error: span.has_error() });
    });
    open
}

fn check(recorder: &PerfRecorder) {
    let readers = recorder.open_readers().unwrap();
    let path = recorder.path().unwrap();
    let shard0 = eventring::reader::Reader::open(path).unwrap();
    let now = NowReader::open_beside(&shard0).unwrap().unwrap();
    let tables = from_tables(&now);
    let events = from_events(reference::records(&mut PerfReader::from_shards(readers)));
    assert_eq!(tables, events);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_tables_say_after_each_step_what_the_events_say(steps in prop::collection::vec(step(), 0..60)) {
        let run = |steps: &[(usize, Step)], dispatch: &Dispatch, recorder: &PerfRecorder| {
            let mut number = 0;
            // To read the rings takes longer than a step.
            let after_each = || {
                number += 1;
                if number % 7 == 0 {
                    check(recorder);
                }
            };
            tracing::dispatcher::with_default(dispatch, || perform(dispatch, steps, after_each));
            check(recorder);
        };
        let directory = directory();
        let builder = |name: &str| {
            let builder = PerfRecorder::builder().config(directory.path().join(name)).shards(2);
            builder.shifts(15, 21).tables_shift(16).prefault(false).build().unwrap()
        };
        let recorder = builder("subscriber");
        run(&steps, &Dispatch::new(RecorderSubscriber::new(recorder.clone())), &recorder);
        let recorder = builder("layer");
        let stack = tracing_subscriber::registry().with(RecorderLayer::new(recorder.clone()));
        run(&steps, &Dispatch::new(stack), &recorder);
    }
}
