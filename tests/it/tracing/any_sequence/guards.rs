//! Programs whose guards move between threads, or are forgotten: a thread may then be in a span that is closed. The
//! recorder follows the rules of tracing-subscriber's `Registry`.

use super::{Parent, SLOTS, THREADS, Worker, new_event, new_span, parent, recorder};
use crate::fixtures::*;
use eventring::global::current_span_id;
use eventring::schema::perf::FieldValue;
use eventring::tracing::Fields;
use proptest::prelude::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Span, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;

#[derive(Clone, Debug)]
enum Step {
    New {
        slot: usize,
        parent: Parent,
    },
    /// Makes a guard.
    Enter(usize),
    /// Drops a guard: exits its span and drops its handle. The step's thread may be another than the one that entered.
    DropGuard(usize),
    /// Drops the handle of a guard without an exit.
    Forget(usize),
    Clone {
        from: usize,
        to: usize,
    },
    Drop(usize),
    Event,
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let (slot, guard) = (0..SLOTS, any::<usize>());
    let what = prop_oneof![
        4 => (slot.clone(), parent()).prop_map(|(slot, parent)| Step::New { slot, parent }),
        6 => slot.clone().prop_map(Step::Enter),
        5 => guard.prop_map(Step::DropGuard),
        1 => guard.prop_map(Step::Forget),
        1 => (slot.clone(), slot.clone()).prop_map(|(from, to)| Step::Clone { from, to }),
        3 => slot.prop_map(Step::Drop),
        3 => Just(Step::Event),
    ];
    (0..THREADS, what)
}

/// For each span and event, by `uid`: the `uid` of its parent.
type Parents = BTreeMap<u64, Option<u64>>;

/// Facts that a program has seen.
#[derive(Default, PartialEq, Eq, Debug)]
struct Seen {
    parents: Parents,
    /// After each step: whether the step's thread has a current span.
    has_current: Vec<bool>,
}

/// Performs the steps. Returns after each step whether its thread has a current span.
fn perform(dispatch: &Dispatch, steps: &[(usize, Step)]) -> Vec<bool> {
    let workers: Vec<Worker> = (0..THREADS).map(|_| Worker::new(dispatch.clone())).collect();
    let (is_subscriber, is_layer) = (dispatch.is::<RecorderSubscriber>(), dispatch.is::<RecorderLayer>());
    let mut slots: Vec<Option<Span>> = vec![None; SLOTS];
    let mut guards: Vec<Span> = Vec::new();
    let mut has_current = Vec::new();
    for (uid, (thread, step)) in (1u64..).zip(steps) {
        let worker = &workers[*thread];
        match step {
            Step::New { slot, parent } => {
                let parent = match parent {
                    Parent::Context => None,
                    Parent::Root => Some(None),
                    Parent::Of(slot) => slots[*slot].clone().map(Some),
                };
                slots[*slot] = Some(worker.run(move || new_span(uid, parent, "")));
            }
            Step::Enter(slot) => {
                let Some(span) = slots[*slot].clone() else { continue };
                guards.push(span.clone());
                worker.run(move || {
                    span.with_subscriber(|(id, dispatch)| dispatch.enter(id));
                });
            }
            Step::DropGuard(_) | Step::Forget(_) if guards.is_empty() => continue,
            Step::DropGuard(at) => {
                let span = guards.remove(at % guards.len());
                worker.run(move || {
                    span.with_subscriber(|(id, dispatch)| dispatch.exit(id));
                });
            }
            Step::Forget(at) => {
                let span = guards.remove(at % guards.len());
                worker.run(move || drop(span));
            }
            Step::Clone { from, to } => slots[*to] = slots[*from].clone(),
            Step::Drop(slot) => slots[*slot] = None,
            Step::Event => worker.run(move || new_event(uid, None)),
        }
        has_current.push(worker.run(move || {
            let (current, typed) = (Span::current(), current_span_id());
            // A typed event would name the same span.
            if is_subscriber {
                assert_eq!(current.id().map_or(0, |id| id.into_u64()), typed);
            } else if is_layer {
                assert_eq!(current.is_none(), typed == 0);
            }
            !current.is_none()
        }));
    }
    drop((guards, slots));
    for worker in workers {
        drop(worker.jobs);
        worker.thread.join().unwrap();
    }
    has_current
}

/// A plain model of the rules.
struct Model {
    /// True as in a `Registry`, where each child holds a handle of its parent. False as in a `RecorderSubscriber`.
    children_keep_parents: bool,
    /// Each span's handles and parent.
    spans: HashMap<u64, (usize, Option<u64>)>,
    /// For each thread its entries, and whether they are duplicates.
    stacks: [Vec<(u64, bool)>; THREADS],
}

impl Model {
    fn current(&self, thread: usize) -> Option<u64> {
        let innermost = self.stacks[thread].iter().rev().find(|(_, is_duplicate)| !is_duplicate);
        innermost.map(|(span, _)| *span).filter(|span| self.spans[span].0 > 0)
    }

    fn drop_handle(&mut self, span: Option<u64>) {
        let Some((handles, parent)) = span.and_then(|span| self.spans.get_mut(&span)) else { return };
        *handles -= 1;
        let (is_closed, parent) = (*handles == 0, *parent);
        if is_closed && self.children_keep_parents {
            self.drop_handle(parent);
        }
    }

    fn add_handle(&mut self, span: Option<u64>) -> Option<u64> {
        self.spans.get_mut(&span?).unwrap().0 += 1;
        span
    }

    fn perform(children_keep_parents: bool, steps: &[(usize, Step)]) -> Seen {
        let mut model = Self { children_keep_parents, spans: HashMap::new(), stacks: Default::default() };
        let mut slots = [None; SLOTS];
        let (mut guards, mut seen) = (Vec::new(), Seen::default());
        for (uid, (thread, step)) in (1u64..).zip(steps) {
            match step {
                Step::New { slot, parent } => {
                    let parent = match parent {
                        Parent::Root => None,
                        Parent::Of(slot) if slots[*slot].is_some() => slots[*slot],
                        Parent::Context | Parent::Of(_) => model.current(*thread),
                    };
                    if children_keep_parents {
                        model.add_handle(parent);
                    }
                    model.spans.insert(uid, (1, parent));
                    seen.parents.insert(uid, parent);
                    model.drop_handle(slots[*slot].replace(uid));
                }
                Step::Enter(slot) => {
                    let Some(span) = model.add_handle(slots[*slot]) else { continue };
                    let is_duplicate = model.stacks[*thread].iter().any(|(other, _)| *other == span);
                    model.stacks[*thread].push((span, is_duplicate));
                    guards.push(span);
                }
                Step::DropGuard(_) | Step::Forget(_) if guards.is_empty() => continue,
                Step::DropGuard(at) => {
                    let span = guards.remove(at % guards.len());
                    let stack = &mut model.stacks[*thread];
                    stack.iter().rposition(|(other, _)| *other == span).map(|at| stack.remove(at));
                    model.drop_handle(Some(span));
                }
                Step::Forget(at) => {
                    let span = guards.remove(at % guards.len());
                    model.drop_handle(Some(span));
                }
                Step::Clone { from, to } => {
                    let span = model.add_handle(slots[*from]);
                    model.drop_handle(std::mem::replace(&mut slots[*to], span));
                }
                Step::Drop(slot) => model.drop_handle(slots[*slot].take()),
                Step::Event => {
                    seen.parents.insert(uid, model.current(*thread));
                }
            }
            seen.has_current.push(model.current(*thread).is_some());
        }
        seen
    }
}

/// A layer that notes the parents that the `Registry` gives.
#[derive(Default, Clone)]
struct Noted(Arc<Mutex<Parents>>);

struct Uid(u64);

impl Visit for Uid {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "uid" {
            self.0 = value;
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl<S: Subscriber + for<'l> LookupSpan<'l>> tracing_subscriber::Layer<S> for Noted {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut uid = Uid(0);
        attributes.record(&mut uid);
        let span = context.span(id).unwrap();
        let parent = span.parent().map(|parent| parent.extensions().get::<Uid>().unwrap().0);
        self.0.lock().unwrap().insert(uid.0, parent);
        span.extensions_mut().insert(uid);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut uid = Uid(0);
        event.record(&mut uid);
        let parent = context.event_span(event).map(|parent| parent.extensions().get::<Uid>().unwrap().0);
        self.0.lock().unwrap().insert(uid.0, parent);
    }
}

fn uid(fields: &Fields) -> u64 {
    match fields.get("uid") {
        Some(FieldValue::U64(uid)) => *uid,
        other => panic!("uid is {other:?}"),
    }
}

/// Returns the parents that the rings name.
fn recorded_parents(recorder: &PerfRecorder) -> Parents {
    let mut reader = PerfReader::from_shards(recorder.open_readers().unwrap());
    let (mut uids, mut parents) = (HashMap::new(), Vec::new());
    while let Some(item) = reader.next_timeout(Duration::from_millis(20)) {
        let eventring::tracing::PerfItem::Record(record) = item else { panic!("{item:?}") };
        match record.content {
            PerfContent::SpanNew { span, parent, fields, .. } => {
                uids.insert(span, uid(&fields));
                parents.push((uid(&fields), parent));
            }
            PerfContent::Event { span, fields, .. } => parents.push((uid(&fields), span)),
            _ => {}
        }
    }
    parents.into_iter().map(|(uid, parent)| (uid, parent.map(|parent| uids[&parent]))).collect()
}

fn run(dispatch: &Dispatch, steps: &[(usize, Step)]) -> Vec<bool> {
    tracing::dispatcher::with_default(dispatch, || perform(dispatch, steps))
}

/// Returns what the steps have seen with a `Registry`, with a `RecorderLayer`, and with a `RecorderSubscriber`.
fn seen(steps: &[(usize, Step)]) -> [Seen; 3] {
    let noted = Noted::default();
    let has_current = run(&Dispatch::new(tracing_subscriber::registry().with(noted.clone())), steps);
    let by_registry = Seen { parents: std::mem::take(&mut noted.0.lock().unwrap()), has_current };
    let layers = recorder();
    let stack = tracing_subscriber::registry().with(RecorderLayer::new(layers.clone()));
    let has_current = run(&Dispatch::new(stack), steps);
    let by_layer = Seen { parents: recorded_parents(&layers), has_current };
    let own = recorder();
    let has_current = run(&Dispatch::new(RecorderSubscriber::new(own.clone())), steps);
    [by_registry, by_layer, Seen { parents: recorded_parents(&own), has_current }]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_closed_span_is_nobodys_current_span(steps in prop::collection::vec(step(), 0..300)) {
        let [by_registry, by_layer, by_subscriber] = seen(&steps);
        prop_assert_eq!(&by_registry, &Model::perform(true, &steps));
        prop_assert_eq!(by_layer, by_registry);
        prop_assert_eq!(by_subscriber, Model::perform(false, &steps));
    }
}

/// Plays an async program that holds a guard over an `.await`: a thread enters a request, and another drops the
/// guard and the last handle.
#[test]
fn requests_that_leave_their_thread_entered_are_roots() {
    const REQUESTS: usize = 1001;
    let steps =
        |at| [(0, Step::New { slot: 0, parent: Parent::Context }), (0, Step::Enter(0)), (1, at), (1, Step::Drop(0))];
    for end in [Step::DropGuard(0), Step::Forget(0)] {
        let steps: Vec<_> = (0..REQUESTS).flat_map(|_| steps(end.clone())).collect();
        for seen in seen(&steps) {
            assert_eq!(seen.parents.len(), REQUESTS);
            assert!(seen.parents.values().all(Option::is_none));
        }
    }
}
