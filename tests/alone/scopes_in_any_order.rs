//! Scopes and spans whose guards are dropped, or forgotten, in any order: the recording is that of a model.

use crate::fixtures::*;
use eventring::scope;
use eventring::tracing::{Scope, Span};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tracing::span::EnteredSpan;
use tracing_subscriber::layer::SubscriberExt as _;

#[derive(Clone, Copy, Debug)]
enum Step {
    Scope,
    Span,
    /// Drops the guard with this number, counted from the newest one.
    Drop(usize),
    /// Forgets this guard.
    Forget(usize),
}

enum Guard {
    Scope(Scope),
    Span(#[expect(dead_code, reason = "it is dropped")] EnteredSpan),
}

/// A span or scope of the model, by its number.
#[derive(Clone, PartialEq, Debug)]
struct Modelled {
    number: u64,
    parent: Option<u64>,
    is_scope: bool,
    is_open: bool,
    has_ended_with_parent: bool,
}

#[derive(Default)]
struct Model {
    all: Vec<Modelled>,
    /// The indices of the spans and scopes that the thread is in.
    stack: Vec<usize>,
}

impl Model {
    fn begin(&mut self, number: u64, is_scope: bool) {
        let parent = self.stack.last().map(|at| self.all[*at].number);
        self.stack.push(self.all.len());
        self.all.push(Modelled { number, parent, is_scope, is_open: true, has_ended_with_parent: false });
    }

    /// A guard is dropped. Scopes that were begun since end with it. A scope that has ended so does nothing.
    fn end(&mut self, number: u64) {
        let Some(at) = self.stack.iter().position(|at| self.all[*at].number == number) else { return };
        for above in self.stack.split_off(at).into_iter().rev() {
            let modelled = &mut self.all[above];
            let is_the_one = modelled.number == number;
            if is_the_one || modelled.is_scope {
                (modelled.is_open, modelled.has_ended_with_parent) = (false, !is_the_one);
            } else {
                self.stack.insert(at, above);
            }
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Scope),
        2 => Just(Step::Span),
        4 => (0..4_usize).prop_map(Step::Drop),
        1 => (0..4_usize).prop_map(Step::Forget),
    ]
}

/// Does the steps on a thread of its own. All scopes are over when it has ended.
fn perform(steps: &[Step], first: u64) -> Vec<Modelled> {
    let mut model = Model::default();
    let mut guards: Vec<(u64, Guard)> = Vec::new();
    for (step, number) in steps.iter().zip(first..) {
        match *step {
            Step::Scope => {
                guards.push((number, Guard::Scope(scope!("scope", number))));
                model.begin(number, true);
            }
            Step::Span => {
                guards.push((number, Guard::Span(info_span!("span", number).entered())));
                model.begin(number, false);
            }
            Step::Drop(nth) | Step::Forget(nth) => {
                let Some(at) = guards.len().checked_sub(nth + 1) else { continue };
                let (number, guard) = guards.remove(at);
                match (step, guard) {
                    (Step::Forget(_), Guard::Scope(scope)) => std::mem::forget(scope),
                    (_, guard) => {
                        drop(guard);
                        model.end(number);
                    }
                }
            }
        }
    }
    for (number, guard) in guards.into_iter().rev() {
        drop(guard);
        model.end(number);
    }
    for at in model.stack {
        let modelled = &mut model.all[at];
        (modelled.is_open, modelled.has_ended_with_parent) = (false, true);
    }
    model.all
}

fn recorded(from: u64) -> Vec<Modelled> {
    let records = records(PERF.installed().unwrap());
    let tree = SpanTree::from_records(&records);
    let number = |span: &Span| span.fields.get("number").unwrap().to_string().parse().unwrap();
    let modelled = |span: &Span| Modelled {
        number: number(span),
        parent: span.parent.map(|parent| number(tree.get(parent).unwrap())),
        is_scope: span.is_scope(),
        is_open: span.is_open(),
        has_ended_with_parent: span.has_ended_with_parent(),
    };
    let mut all: Vec<Modelled> = tree.iter().map(modelled).filter(|span| span.number >= from).collect();
    all.sort_by_key(|span| span.number);
    all
}

fn check() {
    // Each case has numbers of its own. A case is done again, and shrunk, if it fails.
    let first = Cell::new(1_000);
    let config = Config { failure_persistence: None, ..Config::with_cases(120) };
    let mut runner = TestRunner::new(config);
    let steps = prop::collection::vec(step(), 1..80);
    runner
        .run(&steps, |steps| {
            let from = first.replace(first.get() + 1_000);
            let expected = std::thread::scope(|threads| threads.spawn(|| perform(&steps, from)).join().unwrap());
            prop_assert_eq!(recorded(from), expected);
            Ok(())
        })
        .unwrap();
}

fn recorder() -> PerfRecorder {
    PerfRecorder::builder().anonymous().shards(1).shifts(16, 22).tables_shift(16).prefault(false).build().unwrap()
}

#[test]
fn guards_in_any_order_beside_a_subscriber() {
    alone!();
    PERF.install(recorder()).unwrap();
    tracing::subscriber::set_global_default(RecorderSubscriber::global()).unwrap();
    check();
}

#[test]
fn guards_in_any_order_beside_a_layer() {
    alone!();
    PERF.install(recorder()).unwrap();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(RecorderLayer::global())).unwrap();
    check();
}
