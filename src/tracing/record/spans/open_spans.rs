//! The spans of subscribers and layers, as their filters see them.

use crate::tracing::filter::filter_handle::FilterHandle;
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::sites::call_sites::CALL_SITES;
use crate::tracing::record::threads::thread;
use std::sync::Weak;
use tracing_core::Metadata;
use tracing_core::dispatcher::WeakDispatch;

/// The spans of one subscriber or layer, and the recorder that records them.
pub(in crate::tracing::record) struct SpanSource {
    /// The recorder. `None` means the recorder in [`PERF`](crate::tracing::PERF).
    pub(in crate::tracing::record) recorder: Option<Weak<PerfCore>>,
    pub(in crate::tracing::record) spans: SpanOwner,
}

/// The kinds of owners of spans.
pub(in crate::tracing::record) enum SpanOwner {
    /// A `RecorderSubscriber`: its spans are in the span slab.
    Subscriber,
    /// A `RecorderLayer` with this number in this stack of layers.
    Layer(WeakDispatch, u32),
}

/// Judges a span by values of its fields that have just been recorded. `payload` has the values.
#[cold]
#[inline(never)]
pub(in crate::tracing::record) fn judge(filter: &FilterHandle, span_id: u64, call_site_id: u32, payload: &[u8]) {
    if let Some(span) = CALL_SITES.metadata(call_site_id).filter(|_| !payload.is_empty()) {
        filter.judge(span_id, span, payload);
    }
}

/// Returns true if the filter of the subscriber or layer with this number accepts a span or event that happens now. In
/// a forked child, `is_in_this_process` returns false.
#[inline]
pub(in crate::tracing::record) fn accepts(
    filter: &FilterHandle,
    owner: u32,
    metadata: &Metadata<'_>,
    is_in_this_process: impl Fn() -> bool,
) -> bool {
    let any_span = |is_it: &dyn Fn(u64, &Metadata<'_>) -> bool| is_in_any(owner, is_it);
    filter.accepts(metadata) || filter.accepts_in_spans(metadata, is_in_this_process, any_span)
}

/// Returns true if the thread is in a span of `owner` for which `is_it` returns true.
fn is_in_any(owner: u32, is_it: &dyn Fn(u64, &Metadata<'_>) -> bool) -> bool {
    thread::with(|thread| {
        thread.span_stack.any_of(owner, |entry| {
            CALL_SITES.metadata(entry.call_site_id()).is_some_and(|span| is_it(entry.span_id, span))
        })
    })
}
