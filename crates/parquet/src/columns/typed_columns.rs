//! Columns for the extension words and payload fields that the schema of a typed event declares.

use super::payload::PayloadColumn;
use crate::columns::Column;
use crate::columns::names::ColumnNames;
use arrow_array::ArrayRef;
use arrow_array::builder::{StringBuilder, UInt64Builder};
use arrow_schema::Field;
use eventring::reader::PayloadRead;
use eventring::schema::{Shape, Value};
use eventring_export::rows::{TypedPayload, TypedWords};
use std::io;

/// The largest number of columns that the payload of an event gets. A payload with more values is one text of JSON.
const PAYLOAD_COLUMNS_MAX: usize = 512;
/// The column that says what is wrong with a payload.
pub(crate) const PROBLEM: &str = "payload_problem";

/// The extension words that have columns: the index, the name, and the values. A word that holds the span has no column
/// of its own.
pub(crate) struct WordColumns {
    columns: Vec<(usize, String, UInt64Builder)>,
    /// True if words are numbers without names.
    are_nameless: bool,
}

/// The columns of a payload.
pub(crate) struct PayloadColumns {
    problem: StringBuilder,
    values: PayloadValues,
}

enum PayloadValues {
    /// A column for each field, with its name.
    Fields(Vec<(String, PayloadColumn)>),
    /// One column of JSON.
    Json(StringBuilder),
}

impl WordColumns {
    pub(crate) fn new(words: Option<TypedWords<'_>>, are_nameless: bool) -> Self {
        let named = words.filter(|_| !are_nameless).map(|words| words.names);
        let own = |index| named?.iter_own().find(|(own, _)| *own == index).map(|(_, word)| word);
        let is_span =
            |index| named.is_some_and(|named| named.has_span() && index == eventring::schema::ExtWords::SPAN_INDEX);
        let column = |index| {
            let name = match own(index).filter(|word| !word.is_reserved()) {
                Some(word) => word.key().into_owned(),
                None => format!("content_ext{index}"),
            };
            (index, name, UInt64Builder::new())
        };
        Self { columns: (0..4).filter(|index| !is_span(*index)).map(column).collect(), are_nameless }
    }

    pub(crate) fn make_unique(&mut self, names: &mut ColumnNames) {
        for (_, name, _) in &mut self.columns {
            *name = names.unique(name, "content_ext.");
        }
    }

    pub(crate) fn push(&mut self, TypedWords { names, words }: TypedWords<'_>) -> u64 {
        for (index, _, column) in &mut self.columns {
            let named = names.iter_own().find(|(named, _)| named == index).filter(|_| !self.are_nameless);
            column.append_option(named.map_or(Some(words[*index]), |(_, named)| named.value(words[*index])));
        }
        8 * self.columns.len() as u64
    }
}

impl Column for WordColumns {
    fn fields(&mut self, _: &str) -> Vec<Field> {
        self.columns.iter_mut().flat_map(|(_, name, column)| column.fields(name)).collect()
    }

    fn take(&mut self) -> io::Result<Vec<ArrayRef>> {
        let arrays: io::Result<Vec<_>> = self.columns.iter_mut().map(|(_, _, column)| column.take()).collect();
        Ok(arrays?.concat())
    }
}

impl PayloadColumns {
    /// Makes the columns for payloads such as `example`.
    pub(crate) fn new(example: Option<TypedPayload<'_>>) -> Self {
        let shape = example.and_then(|payload| payload.model?.payload_shape(payload.code));
        let values = match shape {
            Some(Shape::Struct(shapes))
                if shapes.iter().map(|(_, shape)| leaves(shape)).sum::<usize>() <= PAYLOAD_COLUMNS_MAX =>
            {
                let column = |(name, shape): &(&str, Shape<'_>)| ((*name).to_owned(), PayloadColumn::new(shape));
                PayloadValues::Fields(shapes.iter().map(column).collect())
            }
            _ => PayloadValues::Json(StringBuilder::new()),
        };
        Self { problem: StringBuilder::new(), values }
    }

    pub(crate) fn make_unique(&mut self, names: &mut ColumnNames) {
        if let PayloadValues::Fields(columns) = &mut self.values {
            for (name, _) in columns {
                *name = names.unique(name, "payload.");
            }
        }
    }

    /// Appends a payload. Returns an estimate of the bytes that it takes.
    pub(crate) fn push(&mut self, payload: TypedPayload<'_>) -> io::Result<u64> {
        let value = payload.decoded();
        let mut bytes = 8;
        let has_problem = match &mut self.values {
            PayloadValues::Json(column) => {
                let text = value.as_ref().map(serde_json::to_string).transpose()?;
                bytes += text.as_ref().map_or(0, String::len) as u64;
                column.append_option(text);
                false
            }
            PayloadValues::Fields(columns) => {
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
        match (&value, payload.read) {
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

    fn columns(&mut self) -> Vec<(&str, &mut dyn Column)> {
        let mut columns: Vec<(&str, &mut dyn Column)> = vec![(PROBLEM, &mut self.problem)];
        match &mut self.values {
            PayloadValues::Fields(fields) => {
                columns.extend(fields.iter_mut().map(|(name, column)| (name.as_str(), column as &mut dyn Column)));
            }
            PayloadValues::Json(column) => columns.push(("payload", column)),
        }
        columns
    }
}

impl Column for PayloadColumns {
    fn fields(&mut self, _: &str) -> Vec<Field> {
        self.columns().into_iter().flat_map(|(name, column)| column.fields(name)).collect()
    }

    fn take(&mut self) -> io::Result<Vec<ArrayRef>> {
        let arrays: io::Result<Vec<_>> = self.columns().into_iter().map(|(_, column)| column.take()).collect();
        Ok(arrays?.concat())
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
