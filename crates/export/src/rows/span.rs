//! A span.

use super::{RowFields, RowSite, row};
use eventring::tracing::context::{ProcessIds, SpanIdText, TraceId};
use eventring::tracing::{Span, SpanId, Thread};
use std::sync::Arc;

row! {
    /// A span: it is a row when it is over, or at the end of the recording.
    pub struct SpanRow<'a> {
        /// The number of its process in the recording.
        process: u32 => U32,
        /// Its id in its process.
        id: u64 => U64,
        /// The span that it is part of.
        parent: Option<u64> => U64,
        /// The id of its trace.
        trace_id: Option<TraceId> => Trace,
        /// The id by which other programs know it.
        span_id: Option<SpanIdText> => Context,
        /// That of its parent, which may be in another program.
        parent_span_id: Option<SpanIdText> => Context,
        /// Its call site, if its creation is there.
        site: RowSite<'a> => Site,
        /// The thread that made it.
        thread: Option<&'a Arc<Thread>> => Thread,
        /// When it was made, in nanoseconds since the epoch, like all times.
        start_ns: Option<u64> => Amount,
        /// When it was closed.
        end_ns: Option<u64> => Amount,
        /// From start to end, in nanoseconds.
        duration_ns: Option<u64> => Amount,
        /// The time in which threads were in it; the times of several threads are added.
        busy_ns: Option<u64> => Amount,
        /// The instructions that threads executed in it, if they were counted.
        instructions: Option<u64> => Amount [IfAny],
        /// Those of them in no span inside.
        self_instructions: Option<u64> => Amount [IfAny],
        /// The part of the busy time in which threads ran on a processor, if their times were measured.
        cpu_ns: Option<u64> => Amount [IfAny],
        /// That in which they could have run, but had no processor.
        queue_ns: Option<u64> => Amount [IfAny],
        /// That in which they waited for something.
        sleep_ns: Option<u64> => Amount [IfAny],
        /// That of which nothing is known.
        unmeasured_ns: Option<u64> => Amount [IfAny],
        /// The allocations of threads while it was their innermost span, if they were counted. A reallocation counts as
        /// one, and as a free.
        allocations: Option<u64> => Amount [IfAny],
        /// Their bytes.
        allocated_bytes: Option<u64> => Amount [IfAny],
        /// The frees of threads while it was their innermost span.
        frees: Option<u64> => Amount [IfAny],
        /// The bytes of what they freed.
        freed_bytes: Option<u64> => Amount [IfAny],
        /// True if it is a scope.
        scope: bool => Bool [IfAny],
        /// True if it is a scope whose parent ended it.
        ended_with_parent: bool => Bool [IfAny],
        /// True if it was open at the end of the recording.
        open: bool => Bool,
        /// True if its end was not seen, and may be among lost events.
        end_lost: bool => Bool,
        /// Then: the time of its last event.
        last_seen_ns: Option<u64> => Amount,
        /// True if events of it may be lost.
        may_have_losses: bool => Bool,
        /// The spans that it follows from.
        follows_from: &'a [SpanId] => Spans,
        /// The fields.
        fields: Option<RowFields<'a>> => Fields,
    }
}

impl<'a> SpanRow<'a> {
    /// Makes the row of a span of this process.
    #[must_use]
    pub fn new(process: u32, span: &'a Span, ids: &ProcessIds) -> Self {
        let busy_ns = span.known_busy_nanos();
        // Otherwise they are parts of a time that is not known.
        let times = span.known_busy_nanos().and(span.times());
        let ids = ids.of(span);
        Self {
            process,
            id: span.id.get(),
            parent: span.parent.map(SpanId::get),
            trace_id: Some(ids.trace_id),
            span_id: Some(SpanIdText(ids.span_id)),
            parent_span_id: ids.parent_span_id.map(SpanIdText),
            site: span.call_site.as_ref().map_or(RowSite::Lost(span.id), RowSite::Of),
            thread: span.created.as_ref().map(|created| &created.thread),
            start_ns: span.created.as_ref().map(|created| created.epoch_nanos),
            end_ns: span.closed.as_ref().map(|closed| closed.epoch_nanos),
            duration_ns: span.wall_nanos(),
            busy_ns,
            instructions: span.instructions.map(|counts| counts.all),
            self_instructions: span.instructions.map(|counts| counts.own),
            cpu_ns: times.map(|times| times.cpu_nanos),
            queue_ns: times.map(|times| times.queue_nanos),
            sleep_ns: times.map(|times| times.sleep_nanos),
            unmeasured_ns: times.map(|times| times.unmeasured_nanos),
            allocations: span.allocated.map(|allocated| allocated.allocations),
            allocated_bytes: span.allocated.map(|allocated| allocated.bytes),
            frees: span.allocated.map(|allocated| allocated.frees),
            freed_bytes: span.allocated.map(|allocated| allocated.freed_bytes),
            scope: span.is_scope(),
            ended_with_parent: span.has_ended_with_parent(),
            open: span.is_open() && !span.is_end_lost,
            end_lost: span.is_end_lost,
            last_seen_ns: span.is_end_lost.then_some(span.last_seen_epoch_nanos),
            may_have_losses: span.may_have_losses || busy_ns.is_none(),
            follows_from: &span.follows_from,
            fields: Some(RowFields::Decoded(&span.fields)),
        }
    }
}
