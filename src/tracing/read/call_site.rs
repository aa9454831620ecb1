//! A call site and a thread, as the tables of a ring describe them.

use super::text::text;
use crate::schema::perf::Cut;
use crate::schema::perf::{CallSiteKind, CallSiteLevel, CallSiteView, FieldValue, RawField, ThreadView, ValueType};
use crate::tracing::trace_context::field_names;
use std::sync::Arc;

/// A place in the program's source that makes spans, log records, counter samples or marks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct CallSite {
    /// The id in the ring.
    pub id: u32,
    /// True if the description of this call site has been read. If it has not, the name is `call site N`, and the
    /// other fields are empty.
    pub is_known: bool,
    /// The kind of records that the call site makes; `None` if the call site is not known.
    pub kind: Option<CallSiteKind>,
    /// The level of the call site's records.
    pub level: CallSiteLevel,
    /// The name.
    pub name: String,
    /// The format string for the texts of its log records. `None` if each record holds its text.
    pub format: Option<Arc<str>>,
    /// The `tracing` target: the module path, or another name that the program has chosen.
    pub target: String,
    /// The module path, if it is known.
    pub module: Option<String>,
    /// The source file, if it is known.
    pub file: Option<String>,
    /// The line in the source file, from 1, if it is known.
    pub line: Option<u32>,
    /// The names of its fields, in the order of their indices. No two are equal: if the program gives two fields one
    /// name, as `info!(message = raw, "text")` does, the second is called `message#2`.
    pub field_names: Vec<Arc<str>>,
}

/// A thread of the recording program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Thread {
    /// The id in the ring. A process never uses an id twice.
    pub id: u32,
    /// The id in the operating system, if it is known.
    pub os_thread_id: Option<u32>,
    /// The name that the thread had when it first recorded, if it had one and it is known. Later names are not
    /// recorded.
    pub name: Option<String>,
    /// The time of the thread's first record in nanoseconds since the epoch; `None` if the thread is not known.
    pub started_epoch_nanos: Option<u64>,
    /// True if the thread records all its times from its first event on.
    pub measures_times: bool,
}

impl CallSite {
    /// Decodes the value of a field of a record of this call site. For the text of a log record whose call site has a
    /// format string, returns the text that this string and the arguments in the field stand for. For every other
    /// field, this is [`RawField::to_value`].
    #[must_use]
    pub fn value_of(&self, field: &RawField<'_>) -> FieldValue {
        self.value_and_cut(field).0
    }

    /// Decodes the value of a field as [`Self::value_of`] does. Returns with it the reason why it is not whole: the
    /// recorder has cut it, or the text is so long that only its beginning was made.
    #[must_use]
    pub fn value_and_cut(&self, field: &RawField<'_>) -> (FieldValue, Option<Cut>) {
        match &self.format {
            Some(format) if field.type_code == ValueType::Text as u8 => {
                let (text, is_cut) = text(format, field.value, field.cut.is_some());
                let too_long = is_cut.then_some(Cut::Limit { original_bytes: None });
                (FieldValue::Debug(text), field.cut.or(too_long))
            }
            _ => (field.to_value(), field.cut),
        }
    }

    /// Returns the name of the field with this index, if it has one.
    #[must_use]
    #[inline]
    pub fn field_name(&self, index: u8) -> Option<&Arc<str>> {
        self.field_names.get(usize::from(index)).or_else(|| field_names::field_name(index))
    }

    /// Returns the call site as the body of an entry of the table.
    pub fn encode(&self) -> Vec<u8> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default().into();
        let view = CallSiteView {
            kind: self.kind.unwrap_or(CallSiteKind::Span),
            level: self.level,
            name: self.name.as_str().into(),
            target: self.target.as_str().into(),
            module: text(&self.module),
            file: text(&self.file),
            line: self.line.unwrap_or(0),
            field_names: self.field_names.iter().map(|name| (&**name).into()).collect(),
        };
        match &self.format {
            Some(format) => view.with_format(format).encode(),
            None => view.encode(),
        }
    }

    pub(super) fn unknown(id: u32) -> Self {
        Self {
            id,
            is_known: false,
            kind: None,
            level: CallSiteLevel::None,
            name: format!("call site {id}"),
            format: None,
            target: String::new(),
            module: None,
            file: None,
            line: None,
            field_names: Vec::new(),
        }
    }
}

impl Thread {
    /// Returns a thread of which only the id and the name are known, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn named(id: u32, name: &str) -> Self {
        Self { name: Some(name.into()), ..Self::unknown(id) }
    }
}

impl Thread {
    /// Returns the thread as the body of an entry of the table.
    pub fn encode(&self) -> Vec<u8> {
        ThreadView::encode_measured(
            self.started_epoch_nanos.unwrap_or(0),
            self.os_thread_id.unwrap_or(0),
            self.name.as_deref().unwrap_or(""),
            self.measures_times,
        )
    }

    pub(super) fn unknown(id: u32) -> Self {
        Self { id, os_thread_id: None, name: None, started_epoch_nanos: None, measures_times: false }
    }
}
