//! Scopes: spans of one thread, which the macro [`scope!`](crate::scope) begins and the drop of a guard ends.
//!
//! The thread that creates a scope enters it at once, and the exit closes the scope. So two events are enough: SPAN_NEW
//! with the flag `ENTERED`, and SPAN_EXIT with the flag `CLOSED`.
//!
//! Otherwise scopes work like spans. A scope can be the parent or the child of a span of a subscriber or layer that
//! records to [`PERF`](crate::tracing::PERF).
//!
//! If the guard of a scope is forgotten, or dropped after the scope's parent has ended, the scope ends with its parent,
//! at the latest with its thread. Its SPAN_EXIT then has the flag `ENDED_WITH_PARENT`. A later drop has no effect.

mod begin;
mod macros;

use crate::tracing::record::fields::values::FieldValues;
use crate::tracing::record::macro_sites::site::MacroSite;
use crate::tracing::record::spans::scope_end;
use crate::tracing::record::threads::thread;
use std::marker::PhantomData;

/// A scope of the calling thread. It ends when this guard is dropped. [`scope!`](crate::scope) begins one.
///
/// A scope belongs to its thread, so the guard cannot be sent to another one. A future that holds the guard over an
/// `.await` may go on on another thread, so it is no `Send` future. Give such a future a span instead:
/// `future.instrument(tracing::info_span!("parse"))`.
///
/// A guard that is forgotten ([`std::mem::forget`]), or that is dropped after the guard of a scope or span around it,
/// ends nothing: the scope ends with that outer one, or with the thread.
#[must_use = "a scope ends when its guard is dropped"]
#[derive(Debug)]
pub struct Scope {
    /// The id of the scope in the ring; 0 if it is not recorded.
    span_id: u64,
    _not_send: PhantomData<*const not_send::ScopesDoNotCrossAwaitGiveTheFutureASpanInstead>,
}

mod not_send {
    /// The compiler names a pointer to this type where a guard would move to another thread.
    #[derive(Debug)]
    pub struct ScopesDoNotCrossAwaitGiveTheFutureASpanInstead;
}

impl Scope {
    /// Returns a scope that is not recorded.
    #[doc(hidden)]
    #[inline(always)]
    pub const fn off() -> Self {
        Self { span_id: 0, _not_send: PhantomData }
    }

    /// Begins a scope without fields. The call site is not off.
    #[doc(hidden)]
    #[inline]
    pub fn begin(site: &'static MacroSite) -> Self {
        let span_id = thread::with(|thread| match begin::try_begin(site, thread) {
            Some(span_id) => span_id,
            None => begin::begin_slow(site, thread, &()),
        });
        Self { span_id, ..Self::off() }
    }

    /// Begins a scope with fields. The call site is not off.
    #[doc(hidden)]
    #[inline]
    pub fn begin_with(site: &'static MacroSite, values: &impl FieldValues) -> Self {
        let span_id = thread::with(|thread| begin::begin_with_fields(site, thread, values));
        Self { span_id, ..Self::off() }
    }

    /// Returns the id of the scope, with which readers name it; `None` if the scope is not recorded.
    #[must_use]
    pub fn id(&self) -> Option<u64> {
        Some(self.span_id).filter(|id| *id != 0)
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        if self.span_id != 0 {
            scope_end::end(self.span_id);
        }
    }
}
