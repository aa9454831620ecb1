//! The columns for one kind of rows, with the rows that are not written yet.

use super::fields::{FieldColumns, append_text};
use super::sites::{SiteColumns, ThreadColumns, Words};
use super::typed_columns::{PROBLEM, PayloadColumns, WordColumns};
use crate::columns::names::ColumnNames;
use crate::columns::{Column, amount};
use crate::field_types::TypedField;
use arrow_array::ArrayRef;
use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder, UInt32Builder, UInt64Builder,
};
use arrow_schema::{DataType, Field};
use eventring::schema::perf::FieldValue;
use eventring_export::rows::{Cell, Column as RowColumn, Columns, InJson, Row, RowSite};
use std::fmt::{self, Write as _};
use std::io;

/// The part of a table that its rows do not tell.
#[derive(Clone, Copy, Default)]
pub(crate) struct TableSetup<'t> {
    /// The fields that have columns of their own.
    pub(crate) fields: &'t [TypedField],
    /// True if typed events of several types and schemas are in the table. Then it has their names, extension words
    /// have none, and payloads are texts.
    pub(crate) has_several_types: bool,
}

/// The columns.
pub(crate) struct RowColumns {
    columns: Vec<CellColumn>,
    names: Vec<&'static str>,
}

/// The column of a cell, or several columns.
enum CellColumn {
    /// Only lines have it.
    None,
    U32(UInt32Builder),
    U64(UInt64Builder),
    Amount(Int64Builder),
    Float(Float64Builder),
    Bool(BooleanBuilder),
    Text(StringBuilder),
    Word(Words),
    Spans(ListBuilder<UInt64Builder>),
    Site(SiteColumns),
    Thread(ThreadColumns),
    Fields(Box<FieldColumns>),
    Words(WordColumns),
    Payload(PayloadColumns),
}

impl RowColumns {
    /// Makes the columns of rows such as `example`.
    pub(crate) fn new(example: &impl Row, setup: TableSetup<'_>) -> Self {
        let mut columns = Self { columns: Vec::new(), names: Vec::new() };
        // It only appends to lists.
        let _ = example.put_columns(&mut Making { columns: &mut columns, setup });
        let mut names = ColumnNames::from_fields(&columns.fixed_fields());
        for column in &mut columns.columns {
            match column {
                CellColumn::Words(words) => words.make_unique(&mut names),
                CellColumn::Payload(payload) => payload.make_unique(&mut names),
                _ => {}
            }
        }
        columns
    }

    /// Appends a row. Returns an estimate of the bytes that it takes.
    pub(crate) fn push(&mut self, row: &impl Row) -> io::Result<u64> {
        let mut pushing = Pushing { columns: self.columns.iter_mut(), bytes: 0 };
        row.put_columns(&mut pushing)?;
        Ok(pushing.bytes)
    }

    /// Returns the columns whose names are those of the row's, and that of the problem of a payload.
    fn fixed_fields(&mut self) -> Vec<Field> {
        let of_schema = |column: &CellColumn| matches!(column, CellColumn::Words(_) | CellColumn::Payload(_));
        let columns = self.columns.iter_mut().zip(&self.names).filter(|(column, _)| !of_schema(column));
        let fixed = columns.flat_map(|(column, name)| column.fields(name));
        fixed.chain([Field::new(PROBLEM, DataType::Utf8, true)]).collect()
    }

    pub(crate) fn fields(&mut self) -> Vec<Field> {
        let columns = self.columns.iter_mut().zip(&self.names);
        columns.flat_map(|(column, name)| column.fields(name)).collect()
    }

    /// Takes the rows out as arrays.
    pub(crate) fn take(&mut self) -> io::Result<Vec<ArrayRef>> {
        let columns = self.columns.iter_mut().filter_map(CellColumn::as_column);
        let arrays: io::Result<Vec<_>> = columns.map(Column::take).collect();
        Ok(arrays?.concat())
    }
}

/// Makes the columns for the cells of a row.
struct Making<'t> {
    columns: &'t mut RowColumns,
    setup: TableSetup<'t>,
}

impl Columns for Making<'_> {
    fn put(&mut self, column: RowColumn, cell: Cell<'_>) -> io::Result<()> {
        let Self { columns, setup } = self;
        columns.names.push(column.name);
        columns.columns.push(match cell {
            _ if column.in_json == InJson::Only => CellColumn::None,
            Cell::EventName(_) if !setup.has_several_types => CellColumn::None,
            Cell::Block(None) => CellColumn::None,
            Cell::U32(_) => CellColumn::U32(UInt32Builder::new()),
            Cell::U64(_) | Cell::Block(_) => CellColumn::U64(UInt64Builder::new()),
            Cell::Amount(_) => CellColumn::Amount(Int64Builder::new()),
            Cell::Number(_) => CellColumn::Float(Float64Builder::new()),
            Cell::Bool(_) => CellColumn::Bool(BooleanBuilder::new()),
            Cell::Text(_) | Cell::EventName(_) | Cell::Value(_) | Cell::Trace(_) | Cell::Context(_) => {
                CellColumn::Text(StringBuilder::new())
            }
            Cell::Word(_) => CellColumn::Word(Words::default()),
            Cell::Spans(_) => CellColumn::Spans(ListBuilder::default()),
            Cell::Site(_) => CellColumn::Site(SiteColumns::default()),
            Cell::Thread(_) => CellColumn::Thread(ThreadColumns::default()),
            Cell::Fields(_) => CellColumn::Fields(Box::new(FieldColumns::new(setup.fields))),
            Cell::Words(words) => CellColumn::Words(WordColumns::new(words, setup.has_several_types)),
            Cell::Payload(payload) => {
                CellColumn::Payload(PayloadColumns::new(payload.filter(|_| !setup.has_several_types)))
            }
        });
        Ok(())
    }
}

/// Appends the cells of a row.
struct Pushing<'t> {
    /// The columns of the cells that come.
    columns: std::slice::IterMut<'t, CellColumn>,
    /// An estimate of the bytes of the row.
    bytes: u64,
}

impl Columns for Pushing<'_> {
    // Each row gives cells of known kinds: what is left of the match is one arm.
    #[inline(always)]
    fn put(&mut self, column: RowColumn, cell: Cell<'_>) -> io::Result<()> {
        let Some(place) = self.columns.next() else { return Err(another_row(column)) };
        self.bytes += match (place, cell) {
            (CellColumn::None, _) => 0,
            (CellColumn::U32(column), Cell::U32(number)) => {
                column.append_option(number);
                4
            }
            (CellColumn::U64(column), Cell::U64(number) | Cell::Block(Some(number))) => {
                column.append_option(number);
                8
            }
            (CellColumn::Amount(column), Cell::Amount(number)) => {
                column.append_option(number.map(amount));
                8
            }
            (CellColumn::Float(column), Cell::Number(value)) => {
                column.append_option(value.and_then(|value| value.as_f64()));
                8
            }
            (CellColumn::Bool(column), Cell::Bool(is_true)) => {
                column.append_option(is_true);
                1
            }
            (CellColumn::Text(column), Cell::Text(text) | Cell::EventName(text)) => push_text(column, text.as_deref()),
            (CellColumn::Text(column), Cell::Value(value)) => push_value(column, value.as_deref()),
            (CellColumn::Text(column), Cell::Trace(id)) => push_id(column, id)?,
            (CellColumn::Text(column), Cell::Context(id)) => push_id(column, id)?,
            (CellColumn::Word(column), Cell::Word(word)) => 4 + column.push(word),
            (CellColumn::Spans(column), Cell::Spans(spans)) => {
                column.append_value(spans.iter().map(|id| Some(id.get())));
                4 + 8 * spans.len() as u64
            }
            (CellColumn::Site(column), Cell::Site(site)) => match site {
                RowSite::Of(site) => 4 + column.push(Some(site)),
                RowSite::Lost(_) | RowSite::None => 4 + column.push(None),
            },
            (CellColumn::Thread(column), Cell::Thread(thread)) => 4 + column.push(thread),
            (CellColumn::Fields(column), Cell::Fields(Some(fields))) => column.push(&fields.decoded())?,
            (CellColumn::Words(column), Cell::Words(Some(words))) => column.push(words),
            (CellColumn::Payload(column), Cell::Payload(Some(payload))) => column.push(payload)?,
            _ => return Err(another_row(column)),
        };
        Ok(())
    }
}

#[cold]
fn another_row(column: RowColumn) -> io::Error {
    io::Error::other(format!("a row of another kind: its column {} does not fit the table", column.name))
}

fn push_text(column: &mut StringBuilder, text: Option<&str>) -> u64 {
    column.append_option(text);
    4 + text.map_or(0, str::len) as u64
}

fn push_id(column: &mut StringBuilder, id: Option<impl fmt::Display>) -> io::Result<u64> {
    match id {
        Some(id) => {
            write!(column, "{id}").map_err(io::Error::other)?;
            column.append_value("");
        }
        None => column.append_null(),
    }
    Ok(36)
}

fn push_value(column: &mut StringBuilder, value: Option<&FieldValue>) -> u64 {
    let before = column.values_slice().len();
    match value {
        Some(value) => append_text(column, value),
        None => column.append_null(),
    }
    4 + (column.values_slice().len() - before) as u64
}

impl CellColumn {
    fn fields(&mut self, name: &str) -> Vec<Field> {
        self.as_column().map_or(Vec::new(), |column| column.fields(name))
    }

    fn as_column(&mut self) -> Option<&mut dyn Column> {
        Some(match self {
            Self::None => return None,
            Self::U32(column) => column,
            Self::U64(column) => column,
            Self::Amount(column) => column,
            Self::Float(column) => column,
            Self::Bool(column) => column,
            Self::Text(column) => column,
            Self::Word(column) => column,
            Self::Spans(column) => column,
            Self::Site(column) => column,
            Self::Thread(column) => column,
            Self::Fields(column) => column.as_mut(),
            Self::Words(column) => column,
            Self::Payload(column) => column,
        })
    }
}
