//! Columns of fields: a map with the texts of all fields, and a typed column for each field.

use super::column_names::ColumnNames;
use super::field_types::{ColumnKind, MESSAGE, TypedField};
use super::numbers::{numbers, texts};
use super::sites::{Words, words};
use arrow_array::ArrayRef;
use arrow_array::builder::{
    ArrayBuilder as _, BooleanBuilder, Float64Builder, Int64Builder, MapBuilder, MapFieldNames, StringBuilder,
    UInt32Builder, UInt64Builder,
};
use arrow_schema::{DataType, Field, Fields as ArrowFields};
use eventring::schema::perf::{Cut, FieldValue};
use eventring::tracing::{Field as RecordedField, Fields, FieldsProblem, IdMap};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

/// The number of fields up to which their names are compared with each other.
const FIELDS_FEW: usize = 16;
/// The largest number of names whose columns are remembered.
const NAMES_MAX: usize = 4096;

/// An estimate of the bytes that the fields of a row take beside their names and values.
const ROW_BYTES: u64 = 24;
/// An estimate of the bytes that a field takes in a map beside its name and value.
const FIELD_BYTES: u64 = 9;

/// The columns `fields`, `fields_cut`, `missing_fields`, `fields_problem`, and `field.NAME` for each typed field.
pub(super) struct FieldColumns {
    all: MapBuilder<StringBuilder, StringBuilder>,
    cut: MapBuilder<StringBuilder, StringBuilder>,
    missing: UInt32Builder,
    problem: Words,
    typed: Vec<TypedColumn>,
    types: Vec<TypedField>,
    /// The typed columns of names, by the addresses of the names.
    by_name: IdMap<usize, (Arc<str>, Option<usize>)>,
    rows: usize,
    /// An estimate of the bytes that each row takes, whichever fields it has.
    row_bytes: u64,
}

enum TypedColumn {
    Int(Int64Builder),
    Uint(UInt64Builder),
    Float(Float64Builder),
    Bool(BooleanBuilder),
    Text(StringBuilder),
}

fn map_builder() -> MapBuilder<StringBuilder, StringBuilder> {
    let names = MapFieldNames { entry: "key_value".into(), key: "key".into(), value: "value".into() };
    MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new())
}

fn map(name: &str) -> Field {
    let entry = ArrowFields::from(vec![Field::new("key", DataType::Utf8, false), texts("value")]);
    Field::new(name, DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(entry), false)), false), true)
}

impl FieldColumns {
    pub(super) fn new(types: &[TypedField]) -> Self {
        Self {
            all: map_builder(),
            cut: map_builder(),
            missing: UInt32Builder::new(),
            problem: Words::default(),
            typed: types.iter().map(|field| TypedColumn::new(field.kind)).collect(),
            types: types.to_vec(),
            by_name: IdMap::default(),
            rows: 0,
            row_bytes: ROW_BYTES + types.iter().map(|field| field.kind.row_bits()).sum::<u64>() / 8,
        }
    }

    pub(super) fn fields(&self) -> Vec<Field> {
        let fixed = [map("fields"), map("fields_cut"), numbers("missing_fields"), words("fields_problem")];
        let mut names = ColumnNames::default();
        let typed = self.types.iter().map(|field| {
            let ty = match field.kind {
                ColumnKind::Int => DataType::Int64,
                ColumnKind::Uint => DataType::UInt64,
                ColumnKind::Float => DataType::Float64,
                ColumnKind::Bool => DataType::Boolean,
                ColumnKind::Text => DataType::Utf8,
            };
            Field::new(names.unique(&format!("field.{}", field.name), "field."), ty, true)
        });
        fixed.into_iter().chain(typed).collect()
    }

    /// Appends the fields of a span or log record. If several fields have the same name, the last one counts. Returns
    /// an estimate of the bytes that they take, with those of the columns of all other fields.
    pub(super) fn push(&mut self, fields: &Fields) -> io::Result<u64> {
        let mut bytes = self.row_bytes;
        let values = &fields.values;
        if values.len() <= FIELDS_FEW {
            for (index, field) in values.iter().enumerate() {
                if !values[index + 1..].iter().any(|later| later.name == field.name) {
                    bytes += self.push_field(field);
                }
            }
        } else {
            let mut seen = HashSet::new();
            let mut last: Vec<&RecordedField> = values.iter().rev().filter(|field| seen.insert(&field.name)).collect();
            last.reverse();
            for field in last {
                bytes += self.push_field(field);
            }
        }
        self.all.append(true).map_err(io::Error::other)?;
        self.cut.append(true).map_err(io::Error::other)?;
        self.missing.append_value(fields.missing.into());
        match fields.problem {
            None => self.problem.push_null(),
            Some(FieldsProblem::Expired) => self.problem.push("overwritten before they were read"),
            Some(_) => self.problem.push("damaged"),
        }
        self.rows += 1;
        Ok(bytes)
    }

    fn push_field(&mut self, field: &RecordedField) -> u64 {
        let (keys, texts) = self.all.entries();
        keys.append_value(&field.name);
        let before = texts.values_slice().len();
        append_text(texts, &field.value);
        let of_value = (texts.values_slice().len() - before) as u64;
        let in_map = FIELD_BYTES + field.name.len() as u64;
        let mut bytes = in_map + of_value;
        if let Some(cut) = field.cut {
            bytes += in_map;
            let (keys, whys) = self.cut.entries();
            keys.append_value(&field.name);
            match cut {
                Cut::Limit { original_bytes: Some(bytes) } => whys.append_value(bytes.to_string()),
                Cut::Limit { original_bytes: None } => whys.append_null(),
                Cut::Failed => whys.append_value("failed"),
                Cut::Panicked => whys.append_value("panicked"),
                _ => whys.append_value("cut"),
            }
        }
        if let Some(index) = self.column_of(&field.name) {
            self.typed[index].push(self.rows, &field.value);
            // The row has the bytes of a number in any case.
            bytes += if self.types[index].kind == ColumnKind::Text { of_value } else { 0 };
        }
        bytes
    }

    fn column_of(&mut self, name: &Arc<str>) -> Option<usize> {
        let address = Arc::as_ptr(name).addr();
        if let Some((_, index)) = self.by_name.get(&address) {
            return *index;
        }
        if self.by_name.len() >= NAMES_MAX {
            self.by_name.clear();
        }
        let index = self.types.iter().position(|field| *field.name == **name);
        self.by_name.insert(address, (name.clone(), index));
        index
    }

    pub(super) fn finish(&mut self) -> io::Result<Vec<ArrayRef>> {
        let rows = std::mem::take(&mut self.rows);
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.all.finish()),
            Arc::new(self.cut.finish()),
            Arc::new(self.missing.finish()),
            self.problem.finish()?,
        ];
        columns.extend(self.typed.iter_mut().map(|column| column.finish(rows)));
        Ok(columns)
    }
}

/// Returns the text of a log record among its fields.
pub(super) fn message_of(fields: &Fields) -> Option<&RecordedField> {
    fields.values.iter().rev().find(|field| &*field.name == MESSAGE)
}

/// Appends the text that a value has for people.
pub(super) fn append_text(texts: &mut StringBuilder, value: &FieldValue) {
    if let FieldValue::Str(text) | FieldValue::Error(text) | FieldValue::Debug(text) = value {
        return texts.append_value(text);
    }
    // Writing to memory does not fail.
    let _ = write!(texts, "{value}");
    texts.append_value("");
}

impl TypedColumn {
    fn new(kind: ColumnKind) -> Self {
        match kind {
            ColumnKind::Int => Self::Int(Int64Builder::new()),
            ColumnKind::Uint => Self::Uint(UInt64Builder::new()),
            ColumnKind::Float => Self::Float(Float64Builder::new()),
            ColumnKind::Bool => Self::Bool(BooleanBuilder::new()),
            ColumnKind::Text => Self::Text(StringBuilder::new()),
        }
    }

    /// Appends the value of a row. Rows between the last value and this row have none.
    fn push(&mut self, row: usize, value: &FieldValue) {
        self.pad(row);
        match self {
            Self::Int(column) => column.append_option(match value {
                FieldValue::I64(value) => Some(*value),
                FieldValue::U64(value) => i64::try_from(*value).ok(),
                _ => None,
            }),
            Self::Uint(column) => column.append_option(match value {
                FieldValue::U64(value) => Some(*value),
                _ => None,
            }),
            Self::Float(column) => column.append_option(value.as_f64()),
            Self::Bool(column) => column.append_option(match value {
                FieldValue::Bool(value) => Some(*value),
                _ => None,
            }),
            Self::Text(column) => append_text(column, value),
        }
    }

    /// Appends nulls until there are this many rows.
    fn pad(&mut self, rows: usize) {
        match self {
            Self::Int(column) => column.append_nulls(rows - column.len()),
            Self::Uint(column) => column.append_nulls(rows - column.len()),
            Self::Float(column) => column.append_nulls(rows - column.len()),
            Self::Bool(column) => column.append_nulls(rows - column.len()),
            Self::Text(column) => column.append_nulls(rows - column.len()),
        }
    }

    fn finish(&mut self, rows: usize) -> ArrayRef {
        self.pad(rows);
        match self {
            Self::Int(column) => Arc::new(column.finish()),
            Self::Uint(column) => Arc::new(column.finish()),
            Self::Float(column) => Arc::new(column.finish()),
            Self::Bool(column) => Arc::new(column.finish()),
            Self::Text(column) => Arc::new(column.finish()),
        }
    }
}
