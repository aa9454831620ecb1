//! A log record.

use super::{RowFields, RowSite, row};
use eventring::schema::perf::FieldValue;
use eventring::tracing::{CallSite, Fields, RawRecord, SpanId, Thread};
use std::borrow::Cow;
use std::sync::Arc;

/// The field that holds the text of a log record.
const MESSAGE: &str = "message";

row! {
    /// A log record.
    pub struct LogRow<'a> {
        /// The number of its process in the recording.
        process: u32 => U32,
        /// When it was recorded, in nanoseconds since the epoch.
        time_ns: u64 => Amount,
        /// The thread that recorded it.
        thread: Option<&'a Arc<Thread>> => Thread,
        /// The span that the thread was in.
        span: Option<u64> => U64,
        /// Its call site.
        site: RowSite<'a> => Site,
        /// Its text. In a line of JSON, this is a field.
        message: Option<Cow<'a, FieldValue>> => Value [Never],
        /// The instructions that the thread had executed, if they were counted.
        instructions: Option<u64> => Amount [IfAny],
        /// The fields.
        fields: Option<RowFields<'a>> => Fields,
    }
}

impl<'a> LogRow<'a> {
    /// Makes the row of a log record.
    #[must_use]
    pub fn new(
        process: u32,
        record: &RawRecord<'_>,
        thread: &'a Arc<Thread>,
        site: &'a Arc<CallSite>,
        fields: RowFields<'a>,
    ) -> Self {
        let message = match fields {
            RowFields::Decoded(fields) => message_of(fields),
            RowFields::Raw(..) => None,
        };
        Self {
            process,
            time_ns: record.epoch_nanos(),
            thread: Some(thread),
            span: record.span().map(SpanId::get),
            site: RowSite::Of(site),
            message,
            instructions: record.instructions(),
            fields: Some(fields),
        }
    }
}

fn message_of(fields: &Fields) -> Option<Cow<'_, FieldValue>> {
    fields.values.iter().rev().find(|field| &*field.name == MESSAGE).map(|field| Cow::Borrowed(&field.value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use eventring::tracing::Field;

    #[test]
    fn a_message_that_was_recorded_twice_is_the_last_one() {
        let field = |name: &str, text: &str| Field {
            name: name.into(),
            index: 0,
            value: FieldValue::Str(text.into()),
            cut: None,
        };
        let values = vec![field("message", "first"), field("message", "last"), field("other", "x")];
        let fields = Fields { values, missing: 0, problem: None };
        assert_eq!(message_of(&fields).as_deref(), Some(&FieldValue::Str("last".into())));
    }
}
