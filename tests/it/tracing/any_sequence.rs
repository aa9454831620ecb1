//! Several threads use spans in a random sequence of steps. The recorder records what a reference has seen, and the
//! subscriber and the layer record the same. The programs of `guards` also move guards to other threads, and forget
//! them.

mod guards;
mod present;

use crate::fixtures::*;
use eventring_stress::reference::{Collected, Facts, ReferenceLayer, ReferenceTee, assert_same, read_back};
use proptest::prelude::*;
use std::sync::mpsc;
use tracing::Span;
use tracing_subscriber::prelude::*;

const SLOTS: usize = 6;
const THREADS: usize = 3;

/// The parent of a span or event.
#[derive(Clone, Copy, Debug)]
enum Parent {
    Context,
    Root,
    Of(usize),
}

#[derive(Clone, Debug)]
enum Step {
    New { slot: usize, parent: Parent, text: String },
    Enter(usize),
    Exit(usize),
    Clone { from: usize, to: usize },
    Drop(usize),
    Record { slot: usize, value: i64 },
    Follows { slot: usize, earlier: usize },
    Event { parent: Parent },
    Current { to: usize },
}

fn parent() -> impl Strategy<Value = Parent> {
    prop_oneof![4 => Just(Parent::Context), 1 => Just(Parent::Root), 2 => (0..SLOTS).prop_map(Parent::Of)]
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let slot = 0..SLOTS;
    let what = prop_oneof![
        4 => (slot.clone(), parent(), "[a-z é]{0,12}").prop_map(|(slot, parent, text)| Step::New { slot, parent, text }),
        6 => slot.clone().prop_map(Step::Enter),
        5 => slot.clone().prop_map(Step::Exit),
        2 => (slot.clone(), slot.clone()).prop_map(|(from, to)| Step::Clone { from, to }),
        3 => slot.clone().prop_map(Step::Drop),
        2 => (slot.clone(), any::<i64>()).prop_map(|(slot, value)| Step::Record { slot, value }),
        1 => (slot.clone(), slot.clone()).prop_map(|(slot, earlier)| Step::Follows { slot, earlier }),
        3 => parent().prop_map(|parent| Step::Event { parent }),
        1 => slot.prop_map(|to| Step::Current { to }),
    ];
    (0..THREADS, what)
}

/// A thread that performs one step after another. The test sends it each step.
struct Worker {
    jobs: mpsc::Sender<Box<dyn FnOnce() + Send>>,
    done: mpsc::Receiver<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Worker {
    fn new(dispatch: Dispatch) -> Self {
        let (jobs, inbox) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
        let (sender, done) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            tracing::dispatcher::with_default(&dispatch, || {
                for job in inbox {
                    job();
                    sender.send(()).unwrap();
                }
            });
        });
        Self { jobs, done, thread }
    }

    fn run<R: Send + 'static>(&self, job: impl FnOnce() -> R + Send + 'static) -> R {
        let (result, answer) = mpsc::channel();
        self.jobs.send(Box::new(move || result.send(job()).unwrap())).unwrap();
        self.done.recv().unwrap();
        answer.recv().unwrap()
    }
}

fn new_span(uid: u64, parent: Option<Option<Span>>, text: &str) -> Span {
    match parent {
        None => tracing::info_span!("contextual", uid, text, late = tracing::field::Empty),
        Some(None) => tracing::debug_span!(parent: None, "root", uid, text, late = tracing::field::Empty),
        Some(Some(parent)) => {
            tracing::trace_span!(target: "elsewhere", parent: &parent, "child", uid, text, late = tracing::field::Empty)
        }
    }
}

fn new_event(uid: u64, parent: Option<Option<Span>>) {
    match parent {
        None => tracing::info!(uid, "in context"),
        Some(None) => tracing::warn!(parent: None, uid, "outside"),
        Some(Some(parent)) => tracing::error!(parent: &parent, uid, "of {uid}"),
    }
}

/// Performs the steps. Leaves out the steps that would misuse raw ids: a thread never exits a span that it has not
/// entered, and nobody drops the last handle of an entered span.
///
/// The caller must make `dispatch` the default of its thread. The reason is a `Registry`: when the last child of a span
/// closes, it closes the span through the default subscriber of the calling thread.
fn perform(dispatch: &Dispatch, steps: &[(usize, Step)], mut after_each: impl FnMut()) {
    let workers: Vec<Worker> = (0..THREADS).map(|_| Worker::new(dispatch.clone())).collect();
    let mut slots: Vec<Option<Span>> = vec![None; SLOTS];
    // These handles keep entered spans open.
    let mut entered: Vec<(usize, Span)> = Vec::new();
    for (uid, (thread, step)) in (1u64..).zip(steps) {
        let worker = &workers[*thread];
        let handle = |slot: usize| slots[slot].clone();
        let parent_of = |parent: &Parent| match parent {
            Parent::Context => Some(None),
            Parent::Root => Some(Some(None)),
            Parent::Of(slot) => handle(*slot).map(|span| Some(Some(span))),
        };
        match step {
            Step::New { slot, parent, text } => {
                let Some(parent) = parent_of(parent) else { continue };
                let text = text.clone();
                slots[*slot] = Some(worker.run(move || new_span(uid, parent, &text)));
            }
            Step::Enter(slot) => {
                let Some(span) = handle(*slot) else { continue };
                entered.push((*thread, span.clone()));
                worker.run(move || {
                    span.with_subscriber(|(id, dispatch)| dispatch.enter(id));
                });
            }
            Step::Exit(slot) => {
                let Some(span) = handle(*slot) else { continue };
                let Some(at) = entered.iter().position(|entry| entry.0 == *thread && entry.1 == span) else { continue };
                let (_, span) = entered.remove(at);
                worker.run(move || {
                    span.with_subscriber(|(id, dispatch)| dispatch.exit(id));
                });
            }
            Step::Clone { from, to } => slots[*to] = handle(*from),
            Step::Drop(slot) => {
                let span = slots[*slot].take();
                worker.run(move || drop(span));
            }
            Step::Record { slot, value } => {
                let Some(span) = handle(*slot) else { continue };
                let value = *value;
                worker.run(move || {
                    span.record("late", value);
                });
            }
            Step::Follows { slot, earlier } => {
                let (Some(span), Some(earlier)) = (handle(*slot), handle(*earlier)) else { continue };
                worker.run(move || {
                    span.follows_from(&earlier);
                });
            }
            Step::Event { parent } => {
                let Some(parent) = parent_of(parent) else { continue };
                worker.run(move || new_event(uid, parent));
            }
            Step::Current { to } => {
                let current = worker.run(Span::current);
                slots[*to] = (!current.is_none()).then_some(current);
            }
        }
        after_each();
    }
    for (thread, span) in entered {
        workers[thread].run(move || {
            span.with_subscriber(|(id, dispatch)| dispatch.exit(id));
        });
    }
    drop(slots);
    for worker in workers {
        drop(worker.jobs);
        worker.thread.join().unwrap();
    }
}

fn run(dispatch: &Dispatch, steps: &[(usize, Step)]) {
    tracing::dispatcher::with_default(dispatch, || perform(dispatch, steps, || ()));
}

fn recorder() -> PerfRecorder {
    small().shards(2).build().unwrap()
}

fn read(recorder: &PerfRecorder) -> Facts {
    read_back(&mut PerfReader::from_shards(recorder.open_readers().unwrap()))
}

/// Replaces the thread ids in the facts, because they are different in each run.
fn without_thread_ids(mut facts: Facts) -> Facts {
    for span in facts.spans.values_mut() {
        let mut stays: Vec<String> = std::mem::take(&mut span.stays).into_values().collect();
        stays.sort();
        span.stays = (0..).zip(stays).collect();
    }
    facts.events.values_mut().for_each(|event| event.thread = 0);
    facts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_sequence_is_recorded_as_it_happened(steps in prop::collection::vec(step(), 0..120)) {
        let with_subscriber = {
            let (recorder, expected) = (recorder(), Collected::default());
            let subscriber = ReferenceTee::new(RecorderSubscriber::new(recorder.clone()), expected.clone());
            run(&Dispatch::new(subscriber), &steps);
            let recorded = read(&recorder);
            assert_same(&recorded.to_text(), &expected.lock().unwrap().to_text());
            recorded
        };
        let with_layer = {
            let (recorder, expected) = (recorder(), Collected::default());
            let layers = RecorderLayer::new(recorder.clone()).and_then(ReferenceLayer(expected.clone()));
            run(&Dispatch::new(tracing_subscriber::registry().with(layers)), &steps);
            let recorded = read(&recorder);
            assert_same(&recorded.to_text(), &expected.lock().unwrap().to_text());
            recorded
        };
        assert_same(&without_thread_ids(with_subscriber).to_text(), &without_thread_ids(with_layer).to_text());
    }
}
