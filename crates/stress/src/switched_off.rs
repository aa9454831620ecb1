//! Spans that are made, entered or ended while recording is switched off.

use eventring::tracing::{PerfRecorder, PerfRecorderBuilder, RecorderLayer, RecorderSubscriber};
use tracing::{Dispatch, Span, info_span};
use tracing_subscriber::prelude::*;

pub fn builder() -> PerfRecorderBuilder {
    PerfRecorder::builder().shifts(20, 24).tables_shift(16).prefault(false)
}

/// Makes two recorders. A `RecorderSubscriber` records to the first one, a `RecorderLayer` on a `Registry` to the
/// second one.
pub fn both_kinds(make: impl Fn(&str) -> PerfRecorder) -> [(PerfRecorder, Dispatch); 2] {
    let (first, second) = (make("subscriber"), make("layer"));
    let layered = tracing_subscriber::registry().with(RecorderLayer::new(second.clone()));
    [(first.clone(), Dispatch::new(RecorderSubscriber::new(first))), (second, Dispatch::new(layered))]
}

/// Makes spans, switches recording off and on, and ends all spans. Some spans are made, entered or ended while
/// recording is off. Returns how many spans are recorded.
pub fn run(recorder: &PerfRecorder, is_layer: bool) -> usize {
    let deep: Vec<Span> = (0..50).map(|depth| info_span!("deep", depth)).collect();
    let entered: Vec<_> = deep.into_iter().map(Span::entered).collect();
    let across = info_span!("across").entered();
    let twice = info_span!("twice");
    let guard = twice.enter();
    let elsewhere = info_span!("elsewhere");
    let often = info_span!("often");
    let still = info_span!("still");
    recorder.set_enabled(false);
    // Recording is off now. Another thread enters and exits the span `elsewhere`, and this thread closes it.
    std::thread::scope(|scope| drop(scope.spawn(|| elsewhere.in_scope(|| ())).join()));
    drop(elsewhere);
    (0..1000).for_each(|_| often.in_scope(|| drop(info_span!("never"))));
    twice.in_scope(|| ());
    drop(guard);
    drop(across);
    entered.into_iter().rev().for_each(drop);
    let late = info_span!("late");
    let still = still.entered();
    recorder.set_enabled(true);
    // The parent of this child is the span `still`, which was entered while recording was off.
    drop(info_span!("child"));
    drop(still);
    drop((often, twice));
    late.in_scope(|| ());
    drop(late);
    // The span `late` was made while recording was off and entered after that. Only the layer records such a span.
    50 + 6 + usize::from(is_layer)
}
