//! The end of a scope.

use crate::schema::perf::{PerfEvent, PerfExt, flags};
use crate::span_slab::{Dropped, SPAN_SLAB};
use crate::tracing::record::perf_recorder::global::PERF;
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::threads::end_of_thread;
use crate::tracing::record::threads::stack::{SCOPES, SpanEntry, scope_local_id};
use crate::tracing::record::threads::thread::{self, ThreadState};

/// Ends a scope of the calling thread.
#[inline(always)]
pub(in crate::tracing::record) fn end(span_id: u64) {
    thread::with(|thread| {
        if try_end(thread, span_id).is_none() {
            end_slow(thread, span_id);
        }
    });
}

/// Ends the scope if it is the innermost entry of the span stack. Otherwise returns `None` and changes nothing.
#[inline(always)]
fn try_end(thread: &ThreadState, span_id: u64) -> Option<()> {
    let core = &PERF.installed()?.core;
    let ring = thread.try_ring(core)?;
    if !ring.core.is_surely_original_process() {
        return None;
    }
    let entry = thread.try_exit(scope_local_id(span_id), SCOPES)?;
    let call_site_id = entry.call_site_id();
    let ended = || core.show_end(span_id);
    if SPAN_SLAB.try_drop_only_handle(&thread.free_list, span_id, ended).is_none() {
        drop_handle_slow(core, thread, span_id);
    }
    let ext = PerfExt { flags: flags::CLOSED, ..PerfExt::of_span(span_id, call_site_id) };
    core.record_empty(ring, thread, PerfEvent::SpanExit, ext);
    Some(())
}

#[cold]
#[inline(never)]
fn drop_handle_slow(core: &PerfCore, thread: &ThreadState, span_id: u64) {
    SPAN_SLAB.drop_handle_and(&thread.free_list, span_id, || core.show_end(span_id));
}

/// Ends a scope, wherever its entry is, after the scopes that were begun inside of it and never ended.
#[cold]
#[inline(never)]
fn end_slow(thread: &ThreadState, span_id: u64) {
    let _paused = thread.pause_count();
    end_above(thread, scope_local_id(span_id), SCOPES);
    let entry = thread.exit(scope_local_id(span_id), SCOPES);
    close(thread, span_id, entry, flags::CLOSED);
}

/// Ends the scopes that the thread has begun since it entered the span with this `local_id` and this `owner`. Call this
/// before the thread exits the span. If the thread is not in the span, nothing happens.
pub(in crate::tracing::record) fn end_above(thread: &ThreadState, local_id: u64, owner: u32) {
    // The second question may search the whole stack, so it comes once, and only where scopes have ended so.
    if thread.span_stack.has_scope_above(local_id, owner) && thread.span_stack.has(local_id, owner) {
        end_scopes(thread, |thread| thread.span_stack.has_scope_above(local_id, owner));
    }
}

/// Ends all scopes of a thread that ends.
pub(in crate::tracing::record) fn end_all(thread: &ThreadState) {
    end_scopes(thread, |_| true);
}

#[cold]
#[inline(never)]
fn end_scopes(thread: &ThreadState, is_wanted: impl Fn(&ThreadState) -> bool) {
    while is_wanted(thread)
        && let Some(scope) = thread.span_stack.innermost_scope()
    {
        thread.exit_entry(&scope);
        close(thread, scope.span_id, Some(scope), flags::CLOSED | flags::ENDED_WITH_PARENT);
    }
}

/// Closes a scope that the thread has exited, unless it is closed already. `entry` is what the exit has removed. If the
/// begin was recorded, this is recorded even while recording is switched off: without the event, a reader would show
/// the scope as open for ever.
fn close(thread: &ThreadState, span_id: u64, entry: Option<SpanEntry>, flags: u16) {
    end_of_thread::register();
    let recorder = PERF.installed();
    let ended = || recorder.into_iter().for_each(|of| of.core.show_end_slow(span_id));
    let dropped = SPAN_SLAB.drop_handle_and(&thread.free_list, span_id, ended);
    let Dropped::Last(call_site_id) = dropped else { return };
    let is_recorded = entry.is_none_or(|entry| entry.is_recorded());
    let Some(recorder) = recorder.filter(|_| is_recorded) else { return };
    let ext = PerfExt { related: thread.instructions(), flags, ..PerfExt::of_span(span_id, call_site_id) };
    recorder.core.record(thread, PerfEvent::SpanExit, ext, &[]);
}
