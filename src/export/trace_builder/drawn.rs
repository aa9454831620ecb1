//! The spans and slices that have begun in the output and have not ended there, with the fields that each of them
//! shows already.

use super::{ArgValue, Args};
use crate::export::span_slices::Slice;
use crate::export::trace_writer::{SliceId, TrackId};
use crate::tracing::{Fields, FieldsProblem, SpanId};

/// A span that has begun.
#[derive(Default)]
pub(super) struct DrawnSpan {
    /// All fields that were recorded so far, in their order. A field that was recorded twice appears twice.
    pub(super) fields: Fields,
    /// The slice of the span in span view.
    pub(super) slice: Option<SliceId>,
    pub(super) shown: Shown,
}

/// A slice that has begun.
pub(super) struct DrawnSlice {
    pub(super) id: SliceId,
    pub(super) track: TrackId,
    /// The time at which the beginning of the slice is drawn.
    pub(super) start_nanos: u64,
    pub(super) shown: Shown,
}

/// An instant whose slice has not begun in the output.
pub(super) struct Waiting {
    pub(super) slice: Slice,
    pub(super) nanos: u64,
    pub(super) name: String,
    pub(super) category: String,
    pub(super) source: Option<(String, u32)>,
    pub(super) args: Args,
}

/// The number of fields of its span that a slice shows already.
#[derive(Clone, Copy, Default)]
pub(super) struct Shown {
    values: usize,
    missing: u16,
    problem: Option<FieldsProblem>,
}

impl DrawnSpan {
    /// Appends fields. Earlier fields keep their places, so a slice needs only the number of fields that it shows
    /// already.
    pub(super) fn add_fields(&mut self, more: &Fields) {
        self.fields.values.extend(more.values.iter().cloned());
        self.fields.missing = self.fields.missing.saturating_add(more.missing);
        self.fields.problem = self.fields.problem.or(more.problem);
    }

    /// Returns the arguments for the beginning of a slice.
    pub(super) fn args(&self, id: SpanId, parent: Option<SpanId>) -> Args {
        let mut args = Args::default();
        args.push_fields(&self.fields);
        args.push("span_id", ArgValue::Uint(id.get()));
        if let Some(parent) = parent {
            args.push("parent_span_id", ArgValue::Uint(parent.get()));
        }
        args
    }
}

impl Shown {
    pub(super) fn of(fields: &Fields) -> Self {
        Self { values: fields.values.len(), missing: fields.missing, problem: fields.problem }
    }

    /// Adds the fields that the slice does not show yet. They become arguments of the slice's end.
    pub(super) fn push_rest(self, fields: &Fields, args: &mut Args) {
        fields.values.iter().skip(self.values).for_each(|field| args.push_field(field));
        if (self.missing, self.problem) != (fields.missing, fields.problem) {
            args.push_problems(fields);
        }
    }
}

/// Returns the arguments that mark a slice whose end was lost: the slice may have gone on after the end that is drawn.
pub(super) fn lost_end() -> Args {
    let mut args = Args::default();
    args.push("end", ArgValue::Text("lost".into()));
    args
}
