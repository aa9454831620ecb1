//! Whether a call site of this crate's own macros is wanted now, where that depends on the spans that the thread is in.
//!
//! The subscriber or layer that records to [`PERF`](crate::tracing::PERF) decides, by the filter of its own. A layer without
//! one may have a filter of others around it, and only the stack of layers can ask that filter. The answer of the stack
//! is of no use: it is yes if any layer wants the call site. And the filters of a stack remember their answers on the
//! thread, for the event that should follow, so a question without an event would make other layers lose their next
//! one. So the layer itself notes that the question has reached it, and then says no: whoever is told no makes the
//! filters forget.

use super::open_spans;
use crate::tracing::filter::filter_handle::{FilterHandle, SharedFilter};
use crate::tracing::record::layer::RecorderLayer;
use crate::tracing::record::site::MacroSite;
use std::cell::Cell;
use std::sync::{PoisonError, RwLock, Weak};
use tracing_core::dispatcher::{Dispatch, get_default};
use tracing_core::{Level, Metadata};

/// The subscriber or layer that records to `PERF`.
#[derive(Clone)]
struct Owner {
    number: u32,
    /// Its own filter.
    filter: Option<Weak<SharedFilter>>,
}

static OWNER: RwLock<Option<Owner>> = RwLock::new(None);

/// How far a question to a stack has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Question {
    Asked,
    HasReachedLayer,
}

thread_local! {
    /// The question that the thread asks now.
    static QUESTION: Cell<Option<Question>> = const { Cell::new(None) };
}

/// Notes who decides from now on.
pub(super) fn set(number: u32, filter: Option<&FilterHandle>) {
    let owner = Owner { number, filter: filter.map(FilterHandle::downgrade) };
    *OWNER.write().unwrap_or_else(PoisonError::into_inner) = Some(owner);
}

/// Returns true if a call site is wanted in the spans that the thread is in. This process has made the recorder.
pub(super) fn wants(metadata: &Metadata<'_>) -> bool {
    // A wait for the lock could last for ever: this may be a signal handler that has interrupted `set`.
    let Ok(owner) = OWNER.try_read().map(|owner| owner.clone()) else { return true };
    let Some(Owner { number, filter }) = owner else { return true };
    let Some(filter) = filter else { return get_default(|stack| passes(stack, number, metadata)) };
    FilterHandle::from_weak(&filter).is_some_and(|filter| open_spans::accepts(&filter, number, metadata, || true))
}

/// Returns true if a call site passes the filters around the layer with this number. On a thread with another stack
/// nobody can say it, so it passes.
fn passes(stack: &Dispatch, number: u32, metadata: &Metadata<'_>) -> bool {
    // Nearly every filter lets an error pass.
    let error = crate::__macro_site!(EVENT, name: "error", target: "eventring", level: Level::ERROR, fields: &[]);
    if !stack.downcast_ref::<RecorderLayer>().is_some_and(|layer| layer.is(number)) {
        return true;
    }
    let passes = reaches_layer(stack, metadata);
    // The filters that have stopped the first question remember it, until a question reaches the layer.
    if !passes {
        reaches_layer(stack, MacroSite::metadata(error));
    }
    passes
}

fn reaches_layer(stack: &Dispatch, metadata: &Metadata<'_>) -> bool {
    let before = QUESTION.replace(Some(Question::Asked));
    stack.enabled(metadata);
    QUESTION.replace(before) == Some(Question::HasReachedLayer)
}

/// Notes that a question has reached the layer. Returns true if it is one of this module, to which the layer says no.
pub(super) fn has_reached_layer() -> bool {
    QUESTION.get().is_some_and(|_| {
        QUESTION.set(Some(Question::HasReachedLayer));
        true
    })
}
