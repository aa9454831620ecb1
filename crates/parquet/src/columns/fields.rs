//! Columns of fields: a map with the texts of all fields, and a typed column for each field.

use super::sites::Words;
use crate::columns::names::ColumnNames;
use crate::columns::{Column, ValueColumn};
use crate::field_types::TypedField;
use arrow_array::ArrayRef;
use arrow_array::builder::{MapBuilder, MapFieldNames, StringBuilder, UInt32Builder};
use arrow_schema::{DataType, Field};
use eventring::schema::perf::{Cut, FieldValue};
use eventring::tracing::{Field as RecordedField, Fields, IdMap};
use eventring_export::args::problem_text;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

/// The largest number of names whose columns are remembered.
const NAMES_MAX: usize = 4096;

/// An estimate of the bytes that the fields of a row take beside their names and values.
const ROW_BYTES: u64 = 24;
/// An estimate of the bytes that a field takes in a map beside its name and value.
const FIELD_BYTES: u64 = 9;

/// The columns `fields`, `fields_cut`, `missing_fields`, `fields_problem`, and `field.NAME` for each typed field.
pub(crate) struct FieldColumns {
    all: MapBuilder<StringBuilder, StringBuilder>,
    cut: MapBuilder<StringBuilder, StringBuilder>,
    missing: UInt32Builder,
    problem: Words,
    typed: Vec<ValueColumn>,
    types: Vec<TypedField>,
    /// The typed columns of names, by the addresses of the names.
    by_name: IdMap<usize, (Arc<str>, Option<usize>)>,
    rows: usize,
    /// An estimate of the bytes that each row takes, whichever fields it has.
    row_bytes: u64,
}

fn map_builder() -> MapBuilder<StringBuilder, StringBuilder> {
    let names = MapFieldNames { entry: "key_value".into(), key: "key".into(), value: "value".into() };
    MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new())
}

impl Default for FieldColumns {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl FieldColumns {
    pub(crate) fn new(types: &[TypedField]) -> Self {
        Self {
            all: map_builder(),
            cut: map_builder(),
            missing: UInt32Builder::new(),
            problem: Words::default(),
            typed: types.iter().map(|field| ValueColumn::new(&field.ty)).collect(),
            types: types.to_vec(),
            by_name: IdMap::default(),
            rows: 0,
            row_bytes: ROW_BYTES + types.iter().map(|field| field.row_bits()).sum::<u64>() / 8,
        }
    }

    fn fixed(&mut self) -> [(&str, &mut dyn Column); 4] {
        [
            ("fields", &mut self.all),
            ("fields_cut", &mut self.cut),
            ("missing_fields", &mut self.missing),
            ("fields_problem", &mut self.problem),
        ]
    }

    /// Appends the fields of a span or log record. Returns an estimate of the bytes that they take, with those of the
    /// columns of all other fields.
    pub(crate) fn push(&mut self, fields: &Fields) -> io::Result<u64> {
        let mut bytes = self.row_bytes;
        bytes += fields.values.iter().map(|field| self.push_field(field)).sum::<u64>();
        self.all.append(true).map_err(io::Error::other)?;
        self.cut.append(true).map_err(io::Error::other)?;
        self.missing.append_value(fields.missing.into());
        self.problem.push(fields.problem.map(problem_text));
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
            push_value(&mut self.typed[index], self.rows, &field.value);
            // The row has the bytes of a number in any case.
            bytes += if self.types[index].ty == DataType::Utf8 { of_value } else { 0 };
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
}

impl Column for FieldColumns {
    fn fields(&mut self, _: &str) -> Vec<Field> {
        let mut fields: Vec<Field> = self.fixed().into_iter().flat_map(|(name, column)| column.fields(name)).collect();
        let mut names = ColumnNames::default();
        fields.extend(self.types.iter().map(|field| {
            let name = names.unique(&format!("field.{}", field.name), "field.");
            Field::new(name, field.ty.clone(), true)
        }));
        fields
    }

    fn take(&mut self) -> io::Result<Vec<ArrayRef>> {
        let rows = std::mem::take(&mut self.rows);
        let fixed: io::Result<Vec<_>> = self.fixed().into_iter().map(|(_, column)| column.take()).collect();
        let mut arrays = fixed?.concat();
        arrays.extend(self.typed.iter_mut().map(|column| {
            column.pad(rows);
            column.builder().finish()
        }));
        Ok(arrays)
    }
}

/// Appends the text that a value has for people.
pub(crate) fn append_text(texts: &mut StringBuilder, value: &FieldValue) {
    if let FieldValue::Str(text) | FieldValue::Error(text) | FieldValue::Debug(text) = value {
        return texts.append_value(text);
    }
    // Writing to memory does not fail.
    let _ = write!(texts, "{value}");
    texts.append_value("");
}

/// Appends the value of a row. Rows between the last value and this row have none.
fn push_value(column: &mut ValueColumn, row: usize, value: &FieldValue) {
    // In a damaged capture, two fields may have one name.
    if column.builder().len() > row {
        return;
    }
    column.pad(row);
    match (column, value) {
        (ValueColumn::Text(column), value) => append_text(column, value),
        (ValueColumn::Int(column), FieldValue::I64(value)) => column.append_value(*value),
        (ValueColumn::Int(column), FieldValue::U64(value)) => column.append_option(i64::try_from(*value).ok()),
        (ValueColumn::Uint(column), FieldValue::U64(value)) => column.append_value(*value),
        (ValueColumn::F64(column), value) => column.append_option(value.as_f64()),
        (ValueColumn::Bool(column), FieldValue::Bool(value)) => column.append_value(*value),
        (column, _) => column.pad(row + 1),
    }
}
