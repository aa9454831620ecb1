//! The fields of a span that hold the context of its caller in the ring.
//!
//! A SPAN_RECORD has the values of `traceparent` and `tracestate` as texts, in fields with the indices 254 and 255. No
//! call site with fewer than 255 fields uses these indices. Readers that do not know these indices show nameless
//! fields.

use super::field_names::{PARENT_INDEX, STATE_INDEX};
use super::remote::RemoteContext;
use crate::schema::perf::{RawFields, ValueType};

/// Returns the payload of a record of a context, and the number of its fields.
#[cfg(feature = "context")]
pub(in crate::tracing) fn encode(context: &RemoteContext) -> (Vec<u8>, u16) {
    let parent = context.to_string();
    let fields = [(PARENT_INDEX, Some(parent.as_str())), (STATE_INDEX, context.tracestate())];
    let (mut payload, mut count) = (Vec::new(), 0);
    for (index, text) in fields.into_iter().filter_map(|(index, text)| Some((index, text?))) {
        payload.extend([index, ValueType::Str as u8]);
        payload.extend((text.len() as u16).to_le_bytes());
        payload.extend(text.as_bytes());
        count += 1;
    }
    (payload, count)
}

/// Reads the context in the payload of a SPAN_RECORD. `names` returns the number of names that the call site has.
pub(in crate::tracing) fn of_payload(payload: &[u8], names: impl FnOnce() -> usize) -> Option<RemoteContext> {
    // Almost every record has fields of its call site only.
    if payload.first() != Some(&PARENT_INDEX) || names() > usize::from(PARENT_INDEX) {
        return None;
    }
    let mut fields = RawFields::new(payload).map_while(Result::ok);
    let first = fields.next().filter(|field| field.type_code == ValueType::Str as u8 && field.cut.is_none())?;
    let state = fields.next().filter(|field| field.index == STATE_INDEX && field.cut.is_none());
    let state = state.and_then(|field| std::str::from_utf8(field.value).ok());
    RemoteContext::parse(std::str::from_utf8(first.value).ok()?, state)
}
