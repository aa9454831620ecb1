//! The test whether a call site of this crate's own macros is enabled now, if this depends on the spans that the thread
//! is in.
//!
//! The filter of the subscriber or layer that records to [`PERF`](crate::tracing::PERF) decides. If this is a layer
//! without a filter of its own, the filters of the thread's stack decide, and only the stack can ask them.
//!
//! The stack asks the layer if these filters let the call site pass. But the stack also enables a call site that only
//! another layer wants. So a call site is enabled only if the stack enables it and has asked the layer.
//!
//! This module clears the answers of filters after each question. Filters store their answers about an event of
//! `tracing` in thread-locals until the event follows. No event follows a question of this module, so the answers would
//! make other layers lose their next event.
//!
//! If a macro is inside a value of an event of `tracing`, the answers for this event are cleared, too.

use crate::tracing::filter::filter_handle::FilterHandle;
use crate::tracing::record::layer::RecorderLayer;
use crate::tracing::record::sinks::deciders::{HAS_REACHED_LAYER, decider};
use crate::tracing::record::spans::open_spans;
use crate::tracing::record::subscriber::RecorderSubscriber;
use crate::tracing::record::threads::stack::SCOPES;
use tracing_core::dispatcher::{Dispatch, get_current, get_default};
use tracing_core::subscriber::{Interest, NoSubscriber, Subscriber as _};
use tracing_core::{LevelFilter, Metadata};
use tracing_subscriber::layer::Layer as _;

/// What a call site gets that `tracing` has asked no subscriber or layer about that records to `PERF`.
pub(in crate::tracing::record) enum Decision {
    /// The answer of the stack that decides.
    Of(Interest),
    /// Each thread must be asked, each time.
    OfEachThread,
    /// The stack of this thread has answered already.
    OfThisThread,
}

/// Asks the stack that decides about a call site.
pub(in crate::tracing::record) fn interest(metadata: &'static Metadata<'static>) -> Decision {
    // While a scoped subscriber is called, it must not be asked: it may hold locks. `tracing` does not ask it either.
    let Some(has_none) = get_current(|stack| stack.is::<NoSubscriber>()) else { return Decision::OfEachThread };
    match decider() {
        Some(Some((_, stack))) => Decision::Of(stack.register_callsite(metadata)),
        _ if has_none => Decision::OfEachThread,
        _ => Decision::OfThisThread,
    }
}

/// Returns true if a call site is wanted in the spans that the thread is in. This process has made the recorder.
pub(in crate::tracing::record) fn wants(metadata: &Metadata<'_>) -> bool {
    get_default(|stack| answer_of(stack, metadata)).unwrap_or_else(|| match decider() {
        Some(Some((Some(filter), _))) => accepts(&filter, metadata),
        Some(Some((None, stack))) => passes(&stack, metadata),
        Some(None) => false,
        None => true,
    })
}

/// Returns the answer of a stack. Returns `None` if no subscriber or layer in it is seen to record to `PERF`.
fn answer_of(stack: &Dispatch, metadata: &Metadata<'_>) -> Option<bool> {
    if let Some(subscriber) = stack.downcast_ref::<RecorderSubscriber>() {
        return subscriber.sink().is_of_perf().then(|| accepts(subscriber.filter(), metadata));
    }
    match stack.downcast_ref::<RecorderLayer>().filter(|layer| layer.sink().is_of_perf()) {
        Some(layer) => Some(layer.filter().map_or_else(|| passes(stack, metadata), |filter| accepts(filter, metadata))),
        // While a scoped subscriber is called, the thread has none.
        None if stack.is::<NoSubscriber>() => None,
        // The layer may be out of sight: below one with another recorder, or in a `reload`.
        None => passes(stack, metadata).then_some(true),
    }
}

fn accepts(filter: &FilterHandle, metadata: &Metadata<'_>) -> bool {
    open_spans::accepts(filter, SCOPES, metadata, || true)
}

/// Returns true if a call site passes all filters between this stack and a layer of it that records to `PERF`.
fn passes(stack: &Dispatch, metadata: &Metadata<'_>) -> bool {
    let before = HAS_REACHED_LAYER.replace(false);
    let is_enabled = stack.enabled(metadata);
    let has_reached = HAS_REACHED_LAYER.replace(before);
    // What the filters remember belongs to the thread and not to a stack: any stack that says no makes them forget.
    LevelFilter::OFF.with_subscriber(NoSubscriber::default()).enabled(metadata);
    is_enabled && has_reached
}
