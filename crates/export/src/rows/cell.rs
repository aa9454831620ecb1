//! The kinds of cells, and the trait that receives them.

use eventring::internal::decode_event;
use eventring::reader::PayloadRead;
use eventring::schema::perf::FieldValue;
use eventring::schema::{ExtWords, SchemaModel, Value};
use eventring::tracing::context::{SpanIdText, TraceId};
use eventring::tracing::{CallSite, Fields, RawRecord, SpanId, Thread};
use std::borrow::Cow;
use std::io;
use std::sync::Arc;

/// A row of a table, or a line.
pub trait Row {
    /// Gives the columns to `to`, in their order: the same ones for each row of a kind.
    ///
    /// # Errors
    /// Those of `to`.
    fn put_columns(&self, to: &mut impl Columns) -> io::Result<()>;
}

/// Who takes the columns of rows.
pub trait Columns {
    /// Takes the cell of a column.
    ///
    /// # Errors
    /// It cannot be written.
    fn put(&mut self, column: Column, cell: Cell<'_>) -> io::Result<()>;
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The name. Cells that are several columns in tables have names of their own there.
    pub name: &'static str,
    /// When a line of JSON has it. Tables have every column.
    pub in_json: InJson,
}

/// When a line of JSON has a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InJson {
    /// Always, with null if there is no value.
    Always,
    /// If there is a value, and it is not false.
    IfAny,
    /// Never: another column has it, too.
    Never,
    /// If there is a value. Tables do not have the column.
    Only,
}

/// The value of a column in a row. `None` is null.
#[derive(Clone)]
pub enum Cell<'a> {
    /// A small number.
    U32(Option<u32>),
    /// A number that is an id.
    U64(Option<u64>),
    /// A time, a duration or a count. In tables it is signed, so that differences are what people expect.
    Amount(Option<u64>),
    /// True or false, or not known.
    Bool(Option<bool>),
    /// A text that is the same in many rows.
    Word(Option<&'a str>),
    /// A text.
    Text(Option<Cow<'a, str>>),
    /// The name of a typed event. A table of one type has no such column.
    EventName(Option<Cow<'a, str>>),
    /// The id of a trace, as hex.
    Trace(Option<TraceId>),
    /// The id that other programs know a span by, as hex.
    Context(Option<SpanIdText>),
    /// Spans.
    Spans(&'a [SpanId]),
    /// A call site: `name`, `target`, `level`, `file`, `line`.
    Site(RowSite<'a>),
    /// A thread.
    Thread(Option<&'a Arc<Thread>>),
    /// The fields of a span or a log record.
    Fields(Option<RowFields<'a>>),
    /// A recorded value, as a text in tables.
    Value(Option<Cow<'a, FieldValue>>),
    /// A recorded value, as a floating-point number in tables.
    Number(Option<Cow<'a, FieldValue>>),
    /// The named extension words of a typed event.
    Words(Option<TypedWords<'a>>),
    /// The number of a block. Without the outer value there is no such column.
    Block(Option<Option<u64>>),
    /// The payload of a typed event.
    Payload(Option<TypedPayload<'a>>),
}

/// The call site of a row.
#[derive(Clone, Copy, Default)]
pub enum RowSite<'a> {
    /// It is known, or at least its number is.
    Of(&'a Arc<CallSite>),
    /// The creation of this span is lost.
    Lost(SpanId),
    /// There is none.
    #[default]
    None,
}

/// The fields of a row.
#[derive(Clone, Copy)]
pub enum RowFields<'a> {
    /// Decoded fields.
    Decoded(&'a Fields),
    /// Those of a record, with its call site.
    Raw(&'a RawRecord<'a>, &'a Arc<CallSite>),
}

impl RowFields<'_> {
    /// Returns the fields.
    #[must_use]
    pub fn decoded(&self) -> Cow<'_, Fields> {
        match self {
            Self::Decoded(fields) => Cow::Borrowed(*fields),
            Self::Raw(record, call_site) => Cow::Owned(record.fields(call_site)),
        }
    }
}

/// The extension words of a typed event.
#[derive(Clone, Copy)]
pub struct TypedWords<'a> {
    /// Their names.
    pub names: &'a ExtWords,
    /// The words.
    pub words: [u64; 4],
}

/// The payload of a typed event.
#[derive(Clone, Copy)]
pub struct TypedPayload<'a> {
    /// The schema of the ring, if it is known.
    pub model: Option<&'a SchemaModel>,
    /// The code of the event.
    pub code: u16,
    /// The bytes.
    pub read: PayloadRead<'a>,
}

impl<'a> TypedPayload<'a> {
    /// Returns the value. Returns `None` if the payload is lost.
    #[must_use]
    pub fn decoded(&self) -> Option<Value<'a>> {
        Some(decode_event(self.model, self.code, self.read.valid()?))
    }
}

impl Cell<'_> {
    /// Returns true if there is no value, or if it is false.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        match self {
            Self::U32(value) => value.is_none(),
            Self::U64(value) | Self::Amount(value) => value.is_none(),
            Self::Bool(value) => *value != Some(true),
            Self::Word(value) => value.is_none(),
            Self::Text(value) | Self::EventName(value) => value.is_none(),
            Self::Trace(value) => value.is_none(),
            Self::Context(value) => value.is_none(),
            Self::Spans(value) => value.is_empty(),
            Self::Site(value) => matches!(value, RowSite::None),
            Self::Thread(value) => value.is_none(),
            Self::Fields(value) => value.is_none(),
            Self::Value(value) | Self::Number(value) => value.is_none(),
            Self::Words(value) => value.is_none(),
            Self::Block(value) => value.is_none(),
            Self::Payload(value) => value.is_none(),
        }
    }
}
