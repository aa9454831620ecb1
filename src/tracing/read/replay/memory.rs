//! Sizes, from which the memory that a replay takes is estimated.

use crate::schema::perf::FieldValue;
use crate::tracing::read::record::Fields;
use crate::tracing::read::slice::OpenSlice;
use crate::tracing::read::span::{Span, SpanSlice};
use crate::tracing::span_id::SpanId;

/// The size of a span and of its place in the map, which may be half empty, and in the list that
/// [`SpanReplay::finish`](super::SpanReplay::finish) makes.
pub(super) const SPAN_BYTES: u64 = 2 * (size_of::<Span>() + size_of::<(SpanId, Box<Span>)>()) as u64;
pub(super) const SLICE_BYTES: u64 = size_of::<SpanSlice>() as u64 * 2;
/// The largest number of spans that one span follows from. An open span can have links without end.
pub(super) const FOLLOWS_FROM_MAX: usize = 128;
pub(super) const OPEN_SLICE_BYTES: u64 = size_of::<OpenSlice>() as u64 * 2;
pub(super) const THREAD_BYTES: u64 = 512;
pub(super) const CLOSING_BYTES: u64 = 32;
const FIELD_BYTES: u64 = 128;
/// The size of a small thing that a span keeps, such as the link to a span that it follows.
pub(super) const LINK_BYTES: u64 = 16;

impl Fields {
    /// Returns an estimate of the bytes that the fields take in memory.
    pub fn kept_bytes(&self) -> u64 {
        let of_value = |value: &FieldValue| match value {
            FieldValue::Str(text) | FieldValue::Error(text) | FieldValue::Debug(text) => text.len(),
            FieldValue::Bytes(bytes) | FieldValue::Unknown { bytes, .. } => bytes.len(),
            FieldValue::I64(_)
            | FieldValue::U64(_)
            | FieldValue::I128(_)
            | FieldValue::U128(_)
            | FieldValue::F64(_)
            | FieldValue::Bool(_)
            | FieldValue::NotFormatted(_) => 0,
        };
        let of_values = self.values.iter().map(|field| FIELD_BYTES + of_value(&field.value) as u64);
        of_values.fold(0, u64::saturating_add)
    }
}
