//! The tables of typed events: one for each event type, with a column for each field of its payload.

use super::column_names::ColumnNames;
use super::numbers::{Amounts, Ids, Numbers, amounts, ids, numbers, texts};
use super::payload::PayloadColumn;
use super::sites::{RingNames, words};
use super::table::RowColumns;
use arrow_array::ArrayRef;
use arrow_array::builder::StringBuilder;
use arrow_schema::Field;
use eventring::reader::{Descriptor, PayloadRead};
use eventring::schema::{Shape, Value, decode_event};
use eventring::tracing::SpanId;
use eventring_capture::recording::CaptureRecording;
use eventring_capture::recording::RecordingEntry;
use std::io;
use std::sync::Arc;

/// An estimate of the bytes that an event takes without its payload.
const EVENT_BYTES: u64 = 96;
/// The largest number of columns that the payload of an event gets. A payload with more values is one text of JSON.
const PAYLOAD_COLUMNS_MAX: usize = 512;

pub(super) struct TypedColumns<'r> {
    recording: &'r CaptureRecording<'r>,
    /// A ring with events of this schema.
    ring: u32,
    process: Numbers,
    ring_name: RingNames,
    seqno: Ids,
    time: Amounts,
    /// The names of events, if events of several types are in the table.
    name: Option<StringBuilder>,
    code: Numbers,
    span: Ids,
    words: [Ids; 4],
    block_number: Ids,
    problem: StringBuilder,
    payload: PayloadColumns,
}

/// The columns of the payload.
enum PayloadColumns {
    /// A column for each field, with its name.
    Fields(Vec<(String, PayloadColumn)>),
    /// One column of JSON.
    Json(StringBuilder),
}

impl<'r> TypedColumns<'r> {
    /// Makes the columns of the event with this code in the schema of `ring`. Without a code, the table takes any
    /// events.
    pub(super) fn new(recording: &'r CaptureRecording<'r>, ring: u32, code: Option<u16>) -> Self {
        let mut columns = Self {
            recording,
            ring,
            process: Numbers::default(),
            ring_name: RingNames::default(),
            seqno: Ids::default(),
            time: Amounts::default(),
            name: code.is_none().then(StringBuilder::new),
            code: Numbers::default(),
            span: Ids::default(),
            words: Default::default(),
            block_number: Ids::default(),
            problem: StringBuilder::new(),
            payload: PayloadColumns::Fields(Vec::new()),
        };
        let shape = code.and_then(|code| recording.rings().model(ring)?.payload_shape(code));
        columns.payload = match shape {
            Some(Shape::Struct(shapes))
                if shapes.iter().map(|(_, shape)| leaves(shape)).sum::<usize>() <= PAYLOAD_COLUMNS_MAX =>
            {
                let mut names = ColumnNames::of(&columns.fixed());
                let column =
                    |(name, shape): &(&str, Shape<'_>)| (names.unique(name, "payload."), PayloadColumn::new(shape));
                PayloadColumns::Fields(shapes.iter().map(column).collect())
            }
            _ => PayloadColumns::Json(StringBuilder::new()),
        };
        columns
    }

    /// Appends an event. Returns an estimate of the bytes that it takes.
    pub(super) fn push(
        &mut self,
        entry: &RecordingEntry<'_>,
        descriptor: &Descriptor,
        payload: PayloadRead<'_>,
        block_number: Option<u64>,
    ) -> io::Result<u64> {
        let (rings, ring, code) = (self.recording.rings(), entry.ring, descriptor.event_type);
        self.process.push(Some(entry.process));
        let of_name = self.ring_name.push((ring, &self.recording.ring(ring).name));
        self.seqno.push(Some(descriptor.seqno));
        self.time.push(Some(descriptor.record_epoch_nanos));
        if let Some(names) = &mut self.name {
            names.append_value(rings.event_name(ring, code));
        }
        self.code.push(Some(code.into()));
        self.span.push(rings.span(ring, descriptor).map(SpanId::get));
        let words = rings.words(ring);
        for (index, column) in self.words.iter_mut().enumerate() {
            let word = descriptor.content_ext[index];
            let named = words.iter_own().find(|(named, _)| *named == index).filter(|_| self.name.is_none());
            column.push(named.map_or(Some(word), |(_, named)| named.value(word)));
        }
        self.block_number.push(block_number);
        let bytes = self.push_payload(ring, code, payload)?;
        Ok(EVENT_BYTES + of_name + bytes)
    }

    fn push_payload(&mut self, ring: u32, code: u16, payload: PayloadRead<'_>) -> io::Result<u64> {
        let value = payload.valid().map(|bytes| decode_event(self.recording.rings().model(ring), code, bytes));
        let mut bytes = 0;
        let has_problem = match &mut self.payload {
            PayloadColumns::Json(column) => {
                let text = value.as_ref().map(serde_json::to_string).transpose()?;
                bytes += text.as_ref().map_or(0, String::len) as u64;
                column.append_option(text);
                false
            }
            PayloadColumns::Fields(columns) => {
                let values = match &value {
                    Some(Value::Struct(values)) if values.len() == columns.len() => Some(values),
                    _ => None,
                };
                for (index, (_, column)) in columns.iter_mut().enumerate() {
                    bytes += column.push(values.map(|values| &values[index].1));
                }
                values.is_none() || value.as_ref().is_some_and(Value::has_malformed)
            }
        };
        match (&value, payload) {
            (Some(value), _) if has_problem => {
                let text = serde_json::to_string(value)?;
                bytes += text.len() as u64;
                self.problem.append_value(text);
            }
            (None, PayloadRead::Expired) => self.problem.append_value("expired"),
            (None, _) => self.problem.append_value("malformed"),
            _ => self.problem.append_null(),
        }
        Ok(bytes)
    }

    /// Returns the columns before those of the payload.
    fn fixed(&self) -> Vec<Field> {
        let mut before = vec![numbers("process"), words("ring"), ids("seqno"), amounts("time_ns")];
        before.extend(self.name.as_ref().map(|_| texts("name")));
        before.extend([numbers("code"), ids("span")]);
        let after: Vec<Field> =
            self.has_blocks().then(|| ids("block_number")).into_iter().chain([texts("payload_problem")]).collect();
        let mut names = ColumnNames::of(before.iter().chain(&after));
        let words = self.word_names().into_iter().flatten().map(|name| ids(&names.unique(&name, "content_ext.")));
        before.extend(words);
        before.extend(after);
        before
    }

    /// Returns true if events of any type and schema are in the table. Then their extension words have no names.
    fn has_any_events(&self) -> bool {
        self.name.is_some()
    }

    fn has_blocks(&self) -> bool {
        self.recording.ring(self.ring).is_exec()
    }

    /// Returns the names of the columns of the extension words. A word that holds the span has no column of its own.
    fn word_names(&self) -> [Option<String>; 4] {
        let named = self.recording.rings().words(self.ring);
        let span = named.iter().map(|(index, _)| index).find(|index| !named.iter_own().any(|(own, _)| own == *index));
        std::array::from_fn(|index| match named.iter_own().find(|(own, _)| *own == index) {
            _ if self.has_any_events() => Some(format!("content_ext{index}")),
            _ if span == Some(index) => None,
            Some((_, word)) if !word.is_reserved() => Some(word.key().into_owned()),
            _ => Some(format!("content_ext{index}")),
        })
    }
}

/// Returns the number of columns that a file has for a structure.
fn leaves(shape: &Shape<'_>) -> usize {
    match shape {
        Shape::Array(_, element) | Shape::List(element) => leaves(element),
        Shape::Struct(fields) => fields.iter().map(|(_, shape)| leaves(shape)).sum::<usize>().max(1),
        _ => 1,
    }
}

impl RowColumns for TypedColumns<'_> {
    fn fields(&self) -> Vec<Field> {
        let mut fields = self.fixed();
        match &self.payload {
            PayloadColumns::Fields(columns) => {
                fields.extend(columns.iter().map(|(name, column)| Field::new(name, column.data_type(), true)));
            }
            PayloadColumns::Json(_) => fields.push(texts("payload")),
        }
        fields
    }

    fn finish(&mut self) -> io::Result<Vec<ArrayRef>> {
        let mut columns =
            vec![self.process.finish(), self.ring_name.finish()?, self.seqno.finish(), self.time.finish()];
        columns.extend(self.name.as_mut().map(|name| Arc::new(name.finish()) as ArrayRef));
        columns.extend([self.code.finish(), self.span.finish()]);
        let has_blocks = self.has_blocks();
        let has_column = self.word_names().map(|name| name.is_some());
        for (column, has_column) in self.words.iter_mut().zip(has_column) {
            // The values of a word without a column are taken out, too.
            columns.extend(Some(column.finish()).filter(|_| has_column));
        }
        columns.extend(Some(self.block_number.finish()).filter(|_| has_blocks));
        columns.push(Arc::new(self.problem.finish()));
        match &mut self.payload {
            PayloadColumns::Fields(fields) => {
                for (_, column) in fields {
                    columns.push(column.finish()?);
                }
            }
            PayloadColumns::Json(column) => columns.push(Arc::new(column.finish())),
        }
        Ok(columns)
    }
}
