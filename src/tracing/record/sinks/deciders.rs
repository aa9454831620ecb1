//! Who decides whether a call site of this crate's own macros is wanted: the subscribers and layers that record to
//! [`PERF`](crate::tracing::PERF).

use super::sink::Sink;
use crate::tracing::filter::filter_handle::{FilterHandle, SharedFilter};
use std::cell::Cell;
use std::sync::{PoisonError, RwLock, Weak};
use tracing_core::dispatcher::{Dispatch, WeakDispatch};

/// Who decides on threads with another stack, or without one: the filter of a subscriber or layer, and if it has none,
/// its stack of layers. Such a thread is in no span of the stack.
struct Decider {
    filter: Option<Weak<SharedFilter>>,
    stack: WeakDispatch,
}

/// Those that have come into use, the last one last. The last one that is left decides.
static DECIDERS: RwLock<Vec<Decider>> = RwLock::new(Vec::new());

thread_local! {
    /// True once the question that the thread asks now has reached a layer that records to `PERF`.
    pub(in crate::tracing::record) static HAS_REACHED_LAYER: Cell<bool> = const { Cell::new(false) };
}

/// Notes who decides from now on, for a subscriber or layer that comes into use.
pub(in crate::tracing::record) fn set(filter: Option<&FilterHandle>, stack: &Dispatch) {
    let decider = Decider { filter: filter.map(FilterHandle::downgrade), stack: stack.downgrade() };
    let mut deciders = DECIDERS.write().unwrap_or_else(PoisonError::into_inner);
    // The program may drop a stack meanwhile. It does so when the lock is free again.
    let alive: Vec<Option<Dispatch>> = deciders.iter().map(|decider| decider.stack.upgrade()).collect();
    let mut is_alive = alive.iter().map(Option::is_some);
    deciders.retain(|_| is_alive.next() == Some(true));
    deciders.push(decider);
    drop(deciders);
}

/// Returns the filter and the stack that decide now, if there are any. Returns `None` if nobody can tell: a wait for
/// the lock could last for ever, because this may be a signal handler that has interrupted `set`.
pub(in crate::tracing::record) fn decider() -> Option<Option<(Option<FilterHandle>, Dispatch)>> {
    let deciders = DECIDERS.try_read().ok()?;
    Some(deciders.iter().rev().find_map(|decider| {
        let stack = decider.stack.upgrade()?;
        Some((decider.filter.as_ref().and_then(FilterHandle::from_weak), stack))
    }))
}

/// Notes that a question has reached a layer.
pub(in crate::tracing::record) fn note_reached(sink: &Sink) {
    if sink.is_of_perf() {
        HAS_REACHED_LAYER.set(true);
    }
}
