//! A span as the exports see it: its beginning, its end, and the time that threads were in it.

use super::Names;
use super::span_slices::{Slice, Slices};
use crate::tracing::{CallSite, Span, SpanId, SpanSlice};
use std::sync::Arc;

/// A span, without its fields.
#[derive(Debug)]
pub(super) struct SpanTimes {
    pub(super) process: u32,
    pub(super) id: SpanId,
    pub(super) parent: Option<SpanId>,
    pub(super) call_site: Option<Arc<CallSite>>,
    /// The spans from which this span follows.
    pub(super) follows_from: Box<[SpanId]>,
    /// The time of the creation. If the creation was lost, the first time at which the span was seen.
    pub(super) start_nanos: u64,
    pub(super) is_start_known: bool,
    pub(super) end_nanos: Option<u64>,
    /// True if the end was not seen and may have been lost. If this is false and `end_nanos` is `None`, the span was
    /// open when the recording ended.
    pub(super) is_end_lost: bool,
    /// The last time at which the span is known to have existed: a record named it, an event happened in it, or it
    /// became the parent of a new span.
    pub(super) seen_nanos: u64,
    /// The sum of the times that threads were in the span. A thread that has entered the span twice at the same time
    /// counts once. If the span is open, slices without an exit count until the end of the recording.
    pub(super) busy_nanos: u64,
    /// False if the busy time is not known: the span has no end, and some of its records may have been lost.
    pub(super) is_busy_known: bool,
    /// The time in which the span existed and none of its children did. An open span counts until the end of the
    /// recording. `None` if the beginning or the end of the span was lost.
    pub(super) self_nanos: Option<u64>,
    pub(super) slices: Slices,
    /// The track row among the spans of the process.
    pub(super) row: u32,
}

impl SpanTimes {
    /// Creates the times of a span from the replayed span. `end_of` takes the id of a slice. It returns the end of the
    /// slice if the record of the slice's exit was lost.
    pub(super) fn new(process: u32, span: Span, last_nanos: u64, end_of: impl Fn(u64) -> Option<u64>) -> Self {
        let end_nanos = span.closed.as_ref().map(|closed| closed.epoch_nanos);
        let busy_nanos = if span.is_open() { span.busy_nanos_until(last_nanos) } else { span.busy_nanos() };
        let slice = |slice: &SpanSlice| {
            let (id, start_nanos) = (slice.id?, slice.entered_epoch_nanos?);
            let exited_nanos = slice.exited_epoch_nanos.filter(|_| !slice.is_cut);
            // If the slice has neither an exit nor an end from `end_of`, the close of the span has ended it.
            let end_nanos = exited_nanos.or_else(|| end_of(id)).or(end_nanos).unwrap_or(start_nanos);
            Some(Slice { thread: slice.thread_key(), id, start_nanos, end_nanos })
        };
        Self {
            process,
            id: span.id,
            parent: span.parent,
            start_nanos: span.created.as_ref().map_or(span.first_seen_epoch_nanos, |created| created.epoch_nanos),
            is_start_known: span.created.is_some(),
            end_nanos,
            is_end_lost: span.is_end_lost,
            seen_nanos: span.last_seen_epoch_nanos,
            busy_nanos,
            is_busy_known: span.is_busy_known,
            self_nanos: None,
            slices: Slices::new(span.slices.iter().filter_map(slice).collect()),
            row: 0,
            follows_from: span.follows_from.into(),
            call_site: span.call_site,
        }
    }

    /// Returns the time from creation to close. Returns `None` if one of the two is not known.
    pub(super) fn wall_nanos(&self) -> Option<u64> {
        self.end_nanos.filter(|_| self.is_start_known).map(|end| end.saturating_sub(self.start_nanos))
    }

    /// Returns true if the span existed when the recording ended.
    pub(super) fn is_open(&self) -> bool {
        self.end_nanos.is_none() && !self.is_end_lost
    }

    /// Returns the time up to which to draw the span. This is the end of the span. If the end was lost, it is the last
    /// time at which the span was seen. Returns `None` for a span that was open at the end of the recording.
    pub(super) fn drawn_end_nanos(&self) -> Option<u64> {
        let end = self.end_nanos.or(self.is_end_lost.then_some(self.seen_nanos))?;
        Some(end.max(self.start_nanos))
    }

    /// Returns the time at which to draw an event of the span. It is before the span's end, because viewers do not
    /// count the end of a slice as a part of it.
    pub(super) fn drawn(&self, nanos: u64) -> u64 {
        self.drawn_end_nanos().map_or(nanos, |end| nanos.min(end.saturating_sub(1))).max(self.start_nanos)
    }

    /// Returns the name of the span; `span N` if the name was lost.
    pub(super) fn name(&self) -> String {
        self.shown_name(Names::Name)
    }

    /// Returns the name under which the span is shown.
    pub(super) fn shown_name(&self, names: Names) -> String {
        names.of_span(self.id, self.call_site.as_deref())
    }

    pub(super) fn target(&self) -> &str {
        self.call_site.as_ref().map_or("", |call_site| &call_site.target)
    }
}
