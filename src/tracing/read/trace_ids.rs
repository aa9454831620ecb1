//! The ids of the spans that are read, as other programs know them.

use super::span::Span;
use crate::tracing::trace_context::ids::{ProcessIds, TraceIds};

impl ProcessIds {
    /// Returns the ids of a span of this process.
    #[must_use]
    pub fn of(&self, span: &Span) -> TraceIds {
        let is_remote = span.remote_trace.is_some();
        TraceIds {
            trace_id: self.trace_of(span.root, span.remote_trace),
            span_id: self.span_id(span.id, is_remote),
            parent_span_id: span.remote_parent.or_else(|| Some(self.span_id(span.parent?, is_remote))),
        }
    }
}
