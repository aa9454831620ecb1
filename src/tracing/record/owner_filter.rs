//! Whether a call site of this crate's own macros is wanted now, where that depends on the spans that the thread is in.
//!
//! The subscriber or layer of the thread's stack that records to [`PERF`](crate::tracing::PERF) decides, by the filter of its
//! own. A layer without one may have filters of others around it and beside it, and only the stack of layers can ask
//! them: the call site is wanted if the stack says yes and the question has reached the layer. The stack alone says yes if
//! any layer wants the call site.
//!
//! The filters of a stack remember their answers on the thread, for the event that should follow. None follows here, so
//! other layers would lose their next one. That is why the answers are forgotten after each question. (As after an event
//! of `tracing`, also those about an event that is being recorded around it: where the macro is in a value of the event.)

use super::layer::RecorderLayer;
use super::open_spans;
use super::sink::Sink;
use super::span_stack::SCOPES;
use super::subscriber::RecorderSubscriber;
use crate::tracing::filter::filter_handle::{FilterHandle, SharedFilter};
use std::cell::Cell;
use std::sync::{PoisonError, RwLock, Weak};
use tracing_core::dispatcher::{Dispatch, WeakDispatch, get_default};
use tracing_core::subscriber::{NoSubscriber, Subscriber as _};
use tracing_core::{LevelFilter, Metadata};
use tracing_subscriber::layer::Layer as _;

/// Who decides on threads with another stack, or without one: the filter of the subscriber or layer that came into use
/// last, and if it has none, its stack of layers. Such a thread is in no span of the stack.
#[derive(Clone)]
enum Decider {
    Filter(Weak<SharedFilter>),
    Stack(WeakDispatch),
}

static DECIDER: RwLock<Option<Decider>> = RwLock::new(None);

thread_local! {
    /// True once the question that the thread asks now has reached a layer that records to `PERF`.
    static HAS_REACHED_LAYER: Cell<bool> = const { Cell::new(false) };
}

/// Notes who decides from now on, for a subscriber or layer that comes into use.
pub(super) fn set(filter: Option<&FilterHandle>, stack: &Dispatch) {
    let of_filter = filter.map(|filter| Decider::Filter(filter.downgrade()));
    let decider = of_filter.unwrap_or_else(|| Decider::Stack(stack.downgrade()));
    *DECIDER.write().unwrap_or_else(PoisonError::into_inner) = Some(decider);
}

/// Returns true if a call site is wanted in the spans that the thread is in. This process has made the recorder.
pub(super) fn wants(metadata: &Metadata<'_>) -> bool {
    get_default(|stack| answer_of(stack, metadata)).unwrap_or_else(|| {
        // A wait for the lock could last for ever: this may be a signal handler that has interrupted `set`.
        let Ok(decider) = DECIDER.try_read().map(|decider| decider.clone()) else { return true };
        decider.is_some_and(|decider| match decider {
            Decider::Filter(filter) => {
                FilterHandle::from_weak(&filter).is_some_and(|filter| accepts(&filter, metadata))
            }
            Decider::Stack(stack) => stack.upgrade().is_some_and(|stack| passes(&stack, metadata)),
        })
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

/// Notes that a question has reached a layer.
pub(super) fn note_reached(sink: &Sink) {
    if sink.is_of_perf() {
        HAS_REACHED_LAYER.set(true);
    }
}
