//! The columns of a table. They hold the rows that are not written yet.
//!
//! | file | idea |
//! |---|---|
//! | `row_columns` | the columns for the rows of a kind ([`eventring_export::rows`]) |
//! | `typed_columns` | columns of extension words and payloads |
//! | `fields` | columns of fields |
//! | `payload` | columns of a payload, by its schema |
//! | `sites` | columns of call sites and of threads |
//! | `names` | column names that every reader accepts |

pub(crate) mod fields;
pub(crate) mod names;
pub(crate) mod payload;
pub(crate) mod row_columns;
pub(crate) mod sites;
pub(crate) mod typed_columns;

use arrow_array::ArrayRef;
use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float32Builder, Float64Builder, Int64Builder, StringBuilder, UInt64Builder,
};
use arrow_schema::{DataType, Field};
use std::io;

/// A column, or several that are filled together.
pub(super) trait Column {
    /// Returns the names and types. Several columns have names of their own in place of `name`.
    fn fields(&mut self, name: &str) -> Vec<Field>;

    /// Takes the values out.
    fn take(&mut self) -> io::Result<Vec<ArrayRef>>;
}

impl<B: ArrayBuilder + ?Sized> Column for B {
    fn fields(&mut self, name: &str) -> Vec<Field> {
        vec![Field::new(name, self.finish_cloned().data_type().clone(), true)]
    }

    fn take(&mut self) -> io::Result<Vec<ArrayRef>> {
        Ok(vec![self.finish()])
    }
}

/// Returns the value of a column of times, durations or counts. They are signed, so that their differences are what
/// people expect. A number above 2^63 − 1, which no program records, becomes this number.
pub(super) fn amount(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A column whose type becomes known when a capture is read.
pub(super) enum ValueColumn {
    Int(Int64Builder),
    Uint(UInt64Builder),
    F32(Float32Builder),
    F64(Float64Builder),
    Bool(BooleanBuilder),
    /// Texts, and every value that is written as a text.
    Text(StringBuilder),
}

impl ValueColumn {
    pub(super) fn new(ty: &DataType) -> Self {
        match ty {
            DataType::Int64 => Self::Int(Int64Builder::new()),
            DataType::UInt64 => Self::Uint(UInt64Builder::new()),
            DataType::Float32 => Self::F32(Float32Builder::new()),
            DataType::Float64 => Self::F64(Float64Builder::new()),
            DataType::Boolean => Self::Bool(BooleanBuilder::new()),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    pub(super) fn builder(&mut self) -> &mut dyn ArrayBuilder {
        match self {
            Self::Int(column) => column,
            Self::Uint(column) => column,
            Self::F32(column) => column,
            Self::F64(column) => column,
            Self::Bool(column) => column,
            Self::Text(column) => column,
        }
    }

    /// Appends nulls until there are this many rows.
    pub(super) fn pad(&mut self, rows: usize) {
        let missing = rows - self.builder().len();
        match self {
            Self::Int(column) => column.append_nulls(missing),
            Self::Uint(column) => column.append_nulls(missing),
            Self::F32(column) => column.append_nulls(missing),
            Self::F64(column) => column.append_nulls(missing),
            Self::Bool(column) => column.append_nulls(missing),
            Self::Text(column) => column.append_nulls(missing),
        }
    }
}
