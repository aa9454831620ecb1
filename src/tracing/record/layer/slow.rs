//! The slow paths of `RecorderLayer`.

use super::{NewSpan, RecorderLayer};
use crate::schema::perf::{PerfEvent, PerfExt};
use crate::span_slab::{Dropped, SPAN_SLAB};
use crate::tracing::record::spans::map::MappedSpan;
use crate::tracing::record::spans::scope_end;
use crate::tracing::record::threads::end_of_thread;
use crate::tracing::record::threads::thread::ThreadState;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tracing_core::dispatcher::{WeakDispatch, get_default};
use tracing_core::span::{Attributes, Id};
use tracing_core::subscriber::{NoSubscriber, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// The slow paths. Each slow path handles every case of its call, as if no fast path had been tried.
impl RecorderLayer {
    #[cold]
    #[inline(never)]
    pub(super) fn new_span_slow<S>(&self, thread: &ThreadState, new: &NewSpan<'_, S>)
    where
        S: Subscriber + for<'l> LookupSpan<'l>,
    {
        let Some(core) = self.sink.recording() else { return };
        let _paused = thread.pause_count();
        let NewSpan { attributes, id, context } = new;
        let call_site_id = core.call_site_id(attributes.metadata());
        let ask = || context.span(id)?.parent();
        let explicit = (!attributes.is_contextual()).then(|| attributes.parent());
        let parent = self.parent_of(core, thread, context, explicit, ask);
        let Some(span) = self.add(core, thread, id, call_site_id) else { return };
        let Some(ring) = thread.ring_of(core) else { return };
        SPAN_SLAB.set_parent(span.span_id, parent.span_id);
        let ext =
            PerfExt { related: parent.span_id, flags: parent.flags, ..PerfExt::of_span(span.span_id, call_site_id) };
        self.record_new(core, ring, thread, new, ext);
    }

    #[cold]
    #[inline(never)]
    pub(super) fn enter_slow<S>(&self, thread: &ThreadState, id: &Id, context: &Context<'_, S>)
    where
        S: Subscriber + for<'l> LookupSpan<'l>,
    {
        let _paused = thread.pause_count();
        let core = self.sink.recording();
        let known = self.spans.get(id.into_u64());
        let adopt = || self.adopt(core?, thread, context.span(id)?);
        let Some(span) = known.or_else(adopt) else { return };
        thread.enter(span.span_id, id.into_u64(), span.call_site_id, self.owner.get(), core.is_some());
        if let Some(core) = core {
            let ext = PerfExt { related: thread.instructions(), ..PerfExt::of_span(span.span_id, span.call_site_id) };
            core.record(thread, PerfEvent::SpanEnter, ext, &[]);
        }
    }

    /// Looks for the stack of this layer if nobody has told it: nobody tells a layer in an `Option` or a `Vec`.
    pub(super) fn find_stack(&self) {
        if self.stack.get().is_none() {
            get_default(|stack| {
                if stack.downcast_ref::<Self>().is_some_and(|layer| layer.is(self.owner.get())) {
                    self.use_stack(stack);
                }
            });
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn exit_slow(&self, thread: &ThreadState, local_id: u64) {
        let _paused = thread.pause_count();
        scope_end::end_above(thread, local_id, self.owner.get());
        let entry = thread.exit(local_id, self.owner.get());
        let known = entry.map(|entry| MappedSpan { span_id: entry.span_id, call_site_id: entry.call_site_id() });
        let Some(span) = known.or_else(|| self.spans.get(local_id)) else { return };
        self.sink.record_exit(thread, entry, PerfExt::of_span(span.span_id, span.call_site_id));
    }

    #[cold]
    #[inline(never)]
    pub(super) fn close_slow(&self, thread: &ThreadState, span_id: u64) {
        let _paused = thread.pause_count();
        end_of_thread::register();
        let ended = || self.sink.show_end(span_id);
        if let Dropped::Last(call_site_id) = SPAN_SLAB.drop_handle_and(&thread.free_list, span_id, ended) {
            self.sink.record_end(thread, PerfEvent::SpanClose, PerfExt::of_span(span_id, call_site_id));
        }
    }

    /// Closes a new span after the `Debug` code of one of its fields has panicked. Because of the panic, the program
    /// never gets the span's id and cannot close the span itself. This function closes the span in this layer and in
    /// the `Registry`. A span that stayed open in the `Registry` would keep its parent open.
    #[cold]
    #[inline(never)]
    pub(super) fn close_unborn<S>(
        &self,
        thread: &ThreadState,
        attributes: &Attributes<'_>,
        id: &Id,
        context: &Context<'_, S>,
    ) where
        S: Subscriber + for<'l> LookupSpan<'l>,
    {
        // `stack` is empty if `reload` has put this layer into a stack that was already in use. Without `stack` the
        // `Registry` cannot be reached, so the span is closed in this layer alone.
        let Some(stack) = self.stack.get().and_then(WeakDispatch::upgrade) else {
            if let Some(span) = self.spans.remove(id.into_u64()) {
                self.close_slow(thread, span.span_id);
            }
            return;
        };
        let parent = match attributes.parent() {
            None if attributes.is_contextual() => context.current_span().id().cloned(),
            explicit => explicit.cloned(),
        };
        // A span of the `Registry` holds a handle of its parent. When the `Registry` closes the span, it drops this
        // handle through the thread's current subscriber. But while a scoped subscriber is being called, the thread has
        // no current subscriber, and the handle is not dropped. Then the loop below drops it.
        let is_parent_kept = get_default(|current| current.is::<NoSubscriber>());
        for id in [Some(id.clone()), parent.filter(|_| is_parent_kept)].into_iter().flatten() {
            // This code may run while a panic unwinds, and `try_close` calls other layers. A second panic would abort
            // the program, so it is caught.
            let _ = catch_unwind(AssertUnwindSafe(|| stack.try_close(id)));
        }
    }
}
