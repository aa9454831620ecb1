//! The slow paths of `RecorderLayer`.

use super::RecorderLayer;
use crate::schema::perf::{PerfEvent, PerfExt};
use crate::tracing::span_map::MappedSpan;
use crate::tracing::thread::ThreadState;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tracing_core::dispatcher::{WeakDispatch, get_default};
use tracing_core::span::{Attributes, Id};
use tracing_core::subscriber::{NoSubscriber, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// The slow paths. Each of them handles every case, from the beginning.
impl RecorderLayer {
    #[cold]
    #[inline(never)]
    pub(super) fn enter_slow<S>(&self, thread: &ThreadState, id: &Id, context: &Context<'_, S>)
    where
        S: Subscriber + for<'l> LookupSpan<'l>,
    {
        let core = self.sink.recording();
        let known = self.spans.get(id.into_u64());
        let adopt = || self.adopt(core?, thread, context.span(id)?);
        let Some(span) = known.or_else(adopt) else { return };
        thread.enter(span.span_id, id.into_u64(), span.call_site_id, self.owner, core.is_some());
        if let Some(core) = core {
            core.record(thread, PerfEvent::SpanEnter, PerfExt::of_span(span.span_id, span.call_site_id), &[]);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn exit_slow(&self, thread: &ThreadState, local_id: u64) {
        let entry = thread.exit(local_id, self.owner);
        let known = entry.map(|entry| MappedSpan { span_id: entry.span_id, call_site_id: entry.call_site_id() });
        let Some(span) = known.or_else(|| self.spans.get(local_id)) else { return };
        self.sink.record_exit(thread, entry, PerfExt::of_span(span.span_id, span.call_site_id));
    }

    #[cold]
    #[inline(never)]
    pub(super) fn close_slow(&self, thread: &ThreadState, local_id: u64) {
        // The span is removed also while recording is switched off, because the registry will use its id again.
        let Some(span) = self.spans.remove(local_id) else { return };
        self.sink.record_end(thread, PerfEvent::SpanClose, PerfExt::of_span(span.span_id, span.call_site_id));
    }

    /// Closes a new span whose field has just panicked while it was formatted. The program gets no id of the span, so
    /// it cannot close it. The span is closed in the `Registry`, too, because it keeps its parent open.
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
        // `None` means that the layer was put into its stack later, by `reload`.
        let Some(stack) = self.stack.get().and_then(WeakDispatch::upgrade) else {
            return self.close_slow(thread, id.into_u64());
        };
        let parent = match attributes.parent() {
            None if attributes.is_contextual() => context.current_span().id().cloned(),
            explicit => explicit.cloned(),
        };
        // The `Registry` closes the parent through the thread's current subscriber. There is none while a scoped
        // subscriber is being called.
        let is_parent_kept = get_default(|current| current.is::<NoSubscriber>());
        for id in [Some(id.clone()), parent.filter(|_| is_parent_kept)].into_iter().flatten() {
            // This calls other layers in the middle of a panic: another panic would end the program.
            let _ = catch_unwind(AssertUnwindSafe(|| stack.try_close(id)));
        }
    }
}
