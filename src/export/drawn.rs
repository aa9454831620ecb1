//! What is drawn and has not ended, and what its slices say of it.

use super::args::{ArgValue, Args};
use super::sink::{SliceId, TrackId};
use super::stays::Stay;
use super::timeline::SpanKey;
use crate::tracing::{CallSite, Fields, FieldsProblem, SpanId};
use std::sync::Arc;

/// A span that has begun.
#[derive(Default)]
pub(super) struct OpenSpan {
    pub(super) call_site: Option<Arc<CallSite>>,
    pub(super) parent: Option<SpanId>,
    pub(super) fields: Fields,
    /// Its slice in span view.
    pub(super) slice: Option<SliceId>,
    pub(super) shown: Shown,
}

/// A stay of a thread in a span.
pub(super) struct OpenSlice {
    pub(super) span: SpanKey,
    pub(super) slice: SliceId,
    pub(super) track: TrackId,
    /// When it is drawn to begin.
    pub(super) start_nanos: u64,
    pub(super) shown: Shown,
}

/// Something in a slice that is not drawn yet.
pub(super) struct Waiting {
    pub(super) stay: Stay,
    pub(super) nanos: u64,
    pub(super) name: String,
    pub(super) category: String,
    pub(super) source: Option<(String, u32)>,
    pub(super) args: Args,
}

/// What a slice has of its span's fields.
#[derive(Clone, Copy, Default)]
pub(super) struct Shown {
    pub(super) values: usize,
    pub(super) missing: u16,
    pub(super) problem: Option<FieldsProblem>,
}

impl Shown {
    /// All of them.
    pub(super) fn of(fields: &Fields) -> Self {
        Self { values: fields.values.len(), missing: fields.missing, problem: fields.problem }
    }

    /// Adds what has come since, for the slice's end.
    pub(super) fn push_rest(self, fields: &Fields, args: &mut Args) {
        fields.values.iter().skip(self.values).for_each(|field| args.push_field(field));
        if (self.missing, self.problem) != (fields.missing, fields.problem) {
            args.push_problems(fields);
        }
    }
}

pub(super) fn span_args(id: SpanId, open: &OpenSpan) -> Args {
    let mut args = Args::default();
    args.push_fields(&open.fields);
    args.push("span_id", ArgValue::Uint(id.get()));
    if let Some(parent) = open.parent {
        args.push("parent_span_id", ArgValue::Uint(parent.get()));
    }
    args
}

/// Says that what is drawn up to here may have gone on.
pub(super) fn lost_end() -> Args {
    let mut args = Args::default();
    args.push("end", ArgValue::Text("lost".into()));
    args
}

/// Appends: what a slice shows already is not shown again.
pub(super) fn add_fields(fields: &mut Fields, more: &Fields) {
    fields.values.extend(more.values.iter().cloned());
    fields.missing = fields.missing.saturating_add(more.missing);
    fields.problem = fields.problem.or(more.problem);
}
