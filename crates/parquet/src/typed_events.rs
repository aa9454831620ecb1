//! The tables of typed events: one for each event type, with a column for each field of its payload.

use super::column_names::ColumnNames;
use super::columns::{Column, amount};
use super::payload::PayloadColumn;
use super::sites::Words;
use super::table::RowColumns;
use super::tables::TIME;
use arrow_array::builder::{Int64Builder, StringBuilder, UInt32Builder, UInt64Builder};
use eventring::internal::decode_event;
use eventring::reader::{Descriptor, PayloadRead};
use eventring::schema::{Shape, Value};
use eventring::tracing::SpanId;
use eventring_capture::recording::CaptureRecording;
use eventring_capture::recording::RecordingEntry;
use std::io;

/// An estimate of the bytes that an event takes without its payload.
const EVENT_BYTES: u64 = 96;
/// The largest number of columns that the payload of an event gets. A payload with more values is one text of JSON.
const PAYLOAD_COLUMNS_MAX: usize = 512;

pub(super) struct TypedColumns<'r> {
    recording: &'r CaptureRecording<'r>,
    process: UInt32Builder,
    ring_name: Words,
    seqno: UInt64Builder,
    time: Int64Builder,
    /// The names of events, if events of several types and schemas are in the table. Then extension words have no
    /// names.
    name: Option<StringBuilder>,
    code: UInt32Builder,
    span: UInt64Builder,
    /// The extension words that have columns: the index, and the name of the column.
    words: Vec<(usize, String, UInt64Builder)>,
    /// Only execution events have blocks.
    block_number: Option<UInt64Builder>,
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
            process: UInt32Builder::new(),
            ring_name: Words::default(),
            seqno: UInt64Builder::new(),
            time: Int64Builder::new(),
            name: code.is_none().then(StringBuilder::new),
            code: UInt32Builder::new(),
            span: UInt64Builder::new(),
            words: Vec::new(),
            block_number: recording.ring(ring).is_exec().then(UInt64Builder::new),
            problem: StringBuilder::new(),
            payload: PayloadColumns::Fields(Vec::new()),
        };
        let mut names = ColumnNames::of(&columns.fields());
        let words = word_names(recording, ring, code.is_none()).into_iter().enumerate();
        let word = |(index, name): (usize, Option<String>)| {
            Some((index, names.unique(&name?, "content_ext."), UInt64Builder::new()))
        };
        columns.words = words.filter_map(word).collect();
        let shape = code.and_then(|code| recording.rings().model(ring)?.payload_shape(code));
        columns.payload = match shape {
            Some(Shape::Struct(shapes))
                if shapes.iter().map(|(_, shape)| leaves(shape)).sum::<usize>() <= PAYLOAD_COLUMNS_MAX =>
            {
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
        self.process.append_value(entry.process);
        let of_name = self.ring_name.push(Some(&self.recording.ring(ring).name));
        self.seqno.append_value(descriptor.seqno);
        self.time.append_value(amount(descriptor.record_epoch_nanos));
        if let Some(names) = &mut self.name {
            names.append_value(rings.event_name(ring, code));
        }
        self.code.append_value(code.into());
        self.span.append_option(rings.span(ring, descriptor).map(SpanId::get));
        let words = rings.words(ring);
        for (index, _, column) in &mut self.words {
            let word = descriptor.content_ext[*index];
            let named = words.iter_own().find(|(named, _)| named == index).filter(|_| self.name.is_none());
            column.append_option(named.map_or(Some(word), |(_, named)| named.value(word)));
        }
        if let Some(column) = &mut self.block_number {
            column.append_option(block_number);
        }
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
}

/// Returns the names of the columns of the extension words. A word that holds the span has no column of its own. If the
/// table has any events, the words have no names.
fn word_names(recording: &CaptureRecording<'_>, ring: u32, has_any_events: bool) -> [Option<String>; 4] {
    let named = recording.rings().words(ring);
    let span = named.iter().map(|(index, _)| index).find(|index| !named.iter_own().any(|(own, _)| own == *index));
    std::array::from_fn(|index| match named.iter_own().find(|(own, _)| *own == index) {
        _ if has_any_events => Some(format!("content_ext{index}")),
        _ if span == Some(index) => None,
        Some((_, word)) if !word.is_reserved() => Some(word.key().into_owned()),
        _ => Some(format!("content_ext{index}")),
    })
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
    fn columns(&mut self) -> Vec<(&str, &mut dyn Column)> {
        let mut columns: Vec<(&str, &mut dyn Column)> = vec![
            ("process", &mut self.process),
            ("ring", &mut self.ring_name),
            ("seqno", &mut self.seqno),
            (TIME, &mut self.time),
        ];
        columns.extend(self.name.as_mut().map(|column| ("name", column as &mut dyn Column)));
        columns.push(("code", &mut self.code));
        columns.push(("span", &mut self.span));
        columns.extend(self.words.iter_mut().map(|(_, name, column)| (name.as_str(), column as &mut dyn Column)));
        columns.extend(self.block_number.as_mut().map(|column| ("block_number", column as &mut dyn Column)));
        columns.push(("payload_problem", &mut self.problem));
        match &mut self.payload {
            PayloadColumns::Fields(fields) => {
                columns.extend(fields.iter_mut().map(|(name, column)| (name.as_str(), column as &mut dyn Column)));
            }
            PayloadColumns::Json(column) => columns.push(("payload", column)),
        }
        columns
    }
}
