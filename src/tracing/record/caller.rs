//! The context of an open span of this program: stored with the span, and written into headers.

use crate::global::current_span_id;
use crate::schema::perf::{PerfEvent, PerfExt};
use crate::span_slab::RemoteTrace;
use crate::span_slab::SPAN_SLAB;
use crate::tracing::record::layer::RecorderLayer;
use crate::tracing::record::perf_recorder::global::PERF;
use crate::tracing::record::perf_recorder::handle::PerfRecorder;
use crate::tracing::record::sinks::sink::Sink;
use crate::tracing::record::subscriber::RecorderSubscriber;
use crate::tracing::record::threads::thread;
use crate::tracing::span_id::SpanId;
use crate::tracing::trace_context::remote::{RemoteContext, SAMPLED, TRACEPARENT, TRACESTATE};
use crate::tracing::trace_context::{recent_states, recorded};
use tracing_core::Dispatch;
use tracing_core::dispatcher::get_default;
use tracing_core::span::Id;

impl RemoteContext {
    /// Stores this context with a span: the remote span becomes the parent of `span`, which is then the root of this
    /// program's part of the trace. Call this before the span has children: those that it has already stay in the
    /// trace in which they were made.
    ///
    /// Returns false and does nothing if the span is not recorded by a [`RecorderSubscriber`] or [`RecorderLayer`], or
    /// if it has a remote parent already.
    pub fn attach(&self, span: &tracing::Span) -> bool {
        span.with_subscriber(|(id, dispatch)| self.attach_to(id, dispatch)) == Some(true)
    }

    fn attach_to(&self, id: &Id, dispatch: &Dispatch) -> bool {
        let Some((sink, span_id)) = recorded_span(dispatch, id) else { return false };
        let Some(core) = sink.recording() else { return false };
        if !SPAN_SLAB.begin_remote_trace(span_id, self.trace) {
            return false;
        }
        if let Some(state) = self.tracestate() {
            recent_states::keep(self.trace_id(), state);
        }
        let (payload, field_count) = recorded::encode(self);
        let ext = PerfExt { field_count, ..PerfExt::of_span(span_id, SPAN_SLAB.call_site_id(span_id)) };
        thread::with(|thread| {
            let _paused = thread.pause_count();
            core.record(thread, PerfEvent::SpanRecord, ext, &payload);
        });
        true
    }
}

/// Writes the context of a span into the headers of a request: `traceparent`, and `tracestate` if there is one. `set`
/// gets the name and the value of each header. The flag "sampled" is that of the caller; in a trace that begins in this
/// program, it is set.
///
/// Returns false and calls nothing if the span is not recorded.
pub fn inject(span: &tracing::Span, set: impl FnMut(&str, &str)) -> bool {
    let context = span.with_subscriber(|(id, dispatch)| {
        let (sink, span_id) = recorded_span(dispatch, id)?;
        context_of(sink.recorder()?, span_id)
    });
    write(context.flatten(), set)
}

/// Writes the context of the span that the thread is in, as [`inject`](fn@inject) does.
pub fn inject_current(set: impl FnMut(&str, &str)) -> bool {
    let span_id = current_span_id();
    let context = get_default(|dispatch| {
        let recorder = sink_of(dispatch).and_then(Sink::recorder).or_else(|| PERF.installed())?;
        context_of(recorder, span_id)
    });
    write(context, set)
}

fn write(context: Option<RemoteContext>, mut set: impl FnMut(&str, &str)) -> bool {
    let Some(context) = context else { return false };
    set(TRACEPARENT, &context.to_string());
    if let Some(state) = context.tracestate() {
        set(TRACESTATE, state);
    }
    true
}

/// Returns the sink of the subscriber or layer of this crate, if there is one.
fn sink_of(dispatch: &Dispatch) -> Option<&Sink> {
    let of_layer = || dispatch.downcast_ref().map(RecorderLayer::sink);
    dispatch.downcast_ref().map(RecorderSubscriber::sink).or_else(of_layer)
}

/// Returns the sink to which a span is recorded, and the number of the span.
fn recorded_span<'d>(dispatch: &'d Dispatch, id: &Id) -> Option<(&'d Sink, u64)> {
    if let Some(subscriber) = dispatch.downcast_ref::<RecorderSubscriber>() {
        return Some((subscriber.sink(), id.into_u64()));
    }
    let layer = dispatch.downcast_ref::<RecorderLayer>()?;
    Some((layer.sink(), layer.spans().get(id.into_u64())?.span_id))
}

/// Returns the context of an open span, as a callee is to see it.
fn context_of(recorder: &PerfRecorder, span_id: u64) -> Option<RemoteContext> {
    let (root, remote) = SPAN_SLAB.trace_of(span_id)?;
    let ids = recorder.core.process_ids()?;
    let span = SpanId::new(span_id)?;
    let trace_id = ids.trace_of(SpanId::new(root)?, remote);
    let flags = remote.map_or(SAMPLED, |RemoteTrace { flags, .. }| flags);
    let context = RemoteContext::new(trace_id, ids.span_id(span, remote.is_some()), flags)?;
    Some(RemoteContext { state: remote.and_then(|remote| recent_states::of(remote.trace_id)), ..context })
}
