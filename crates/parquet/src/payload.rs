//! Columns of a payload, by its schema: numbers, texts, lists, structs.

use arrow_array::builder::{
    BooleanBuilder, Float32Builder, Float64Builder, Int64Builder, StringBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use eventring::schema::{Scalar, Shape, Value};
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

/// An estimate of the bytes that a number takes.
const NUMBER_BYTES: u64 = 8;

/// A column of decoded values.
pub(super) enum PayloadColumn {
    Int(Int64Builder),
    Uint(UInt64Builder),
    F32(Float32Builder),
    F64(Float64Builder),
    Bool(BooleanBuilder),
    /// Texts, and everything else that is written as a text: byte strings, enums, integers of more than 64 bits.
    Text(StringBuilder),
    List(Box<ListColumn>),
    Struct(StructColumn),
}

/// A column of lists.
pub(super) struct ListColumn {
    item: FieldRef,
    values: PayloadColumn,
    /// The number of values before each list, and after the last one.
    offsets: Vec<i32>,
    valid: NullBufferBuilder,
}

/// A column of structs.
pub(super) struct StructColumn {
    fields: Fields,
    columns: Vec<PayloadColumn>,
    valid: NullBufferBuilder,
}

impl PayloadColumn {
    /// Makes a column for values of this structure.
    pub(super) fn new(shape: &Shape<'_>) -> Self {
        match shape {
            Shape::Scalar(scalar) => Self::scalar(*scalar),
            Shape::Array(_, element) | Shape::List(element) => {
                let values = Self::new(element);
                let item = Arc::new(Field::new("item", values.data_type(), true));
                let list = ListColumn { item, values, offsets: vec![0], valid: NullBufferBuilder::new(0) };
                Self::List(Box::new(list))
            }
            Shape::Struct(shapes) if !shapes.is_empty() => {
                let columns: Vec<Self> = shapes.iter().map(|(_, shape)| Self::new(shape)).collect();
                let fields = shapes.iter().zip(&columns);
                let fields = fields.map(|((name, _), column)| Field::new(*name, column.data_type(), true)).collect();
                Self::Struct(StructColumn { fields, columns, valid: NullBufferBuilder::new(0) })
            }
            // No file has a struct without fields.
            Shape::Text | Shape::Bytes | Shape::Enum(..) | Shape::Redacted | Shape::Struct(_) => {
                Self::Text(StringBuilder::new())
            }
        }
    }

    fn scalar(scalar: Scalar) -> Self {
        match scalar {
            Scalar::U8 | Scalar::U16 | Scalar::U32 => Self::Int(Int64Builder::new()),
            Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => Self::Int(Int64Builder::new()),
            Scalar::U64 => Self::Uint(UInt64Builder::new()),
            Scalar::F32 => Self::F32(Float32Builder::new()),
            Scalar::F64 => Self::F64(Float64Builder::new()),
            Scalar::Bool => Self::Bool(BooleanBuilder::new()),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    pub(super) fn data_type(&self) -> DataType {
        match self {
            Self::Int(_) => DataType::Int64,
            Self::Uint(_) => DataType::UInt64,
            Self::F32(_) => DataType::Float32,
            Self::F64(_) => DataType::Float64,
            Self::Bool(_) => DataType::Boolean,
            Self::Text(_) => DataType::Utf8,
            Self::List(list) => DataType::List(list.item.clone()),
            Self::Struct(of) => DataType::Struct(of.fields.clone()),
        }
    }

    /// Appends a value, or null if there is none, or if it has not the structure of the column. Returns an estimate of
    /// the bytes that it takes.
    pub(super) fn push(&mut self, value: Option<&Value<'_>>) -> u64 {
        match self {
            Self::Int(column) => column.append_option(match value {
                Some(Value::Int(number)) => Some(*number),
                Some(Value::Uint(number)) => i64::try_from(*number).ok(),
                _ => None,
            }),
            Self::Uint(column) => column.append_option(match value {
                Some(Value::Uint(number)) => Some(*number),
                // The numbers of a RECORD_ERROR have names, whatever its schema says.
                Some(Value::Enum { number, .. }) => u64::try_from(*number).ok(),
                _ => None,
            }),
            Self::F32(column) => column.append_option(match value {
                Some(Value::F32(number)) => Some(*number),
                _ => None,
            }),
            Self::F64(column) => column.append_option(match value {
                Some(Value::F64(number)) => Some(*number),
                _ => None,
            }),
            Self::Bool(column) => column.append_option(match value {
                Some(Value::Bool(is_true)) => Some(*is_true),
                _ => None,
            }),
            Self::Text(column) => return push_text(column, value),
            Self::List(list) => return list.push(value),
            Self::Struct(of) => return of.push(value),
        }
        NUMBER_BYTES
    }

    /// Takes the values out.
    pub(super) fn finish(&mut self) -> io::Result<ArrayRef> {
        Ok(match self {
            Self::Int(column) => Arc::new(column.finish()),
            Self::Uint(column) => Arc::new(column.finish()),
            Self::F32(column) => Arc::new(column.finish()),
            Self::F64(column) => Arc::new(column.finish()),
            Self::Bool(column) => Arc::new(column.finish()),
            Self::Text(column) => Arc::new(column.finish()),
            Self::List(list) => Arc::new(list.finish()?),
            Self::Struct(of) => Arc::new(of.finish()?),
        })
    }
}

fn push_text(column: &mut StringBuilder, value: Option<&Value<'_>>) -> u64 {
    let before = column.values_slice().len();
    match value {
        None | Some(Value::Redacted | Value::Malformed { .. } | Value::List(_)) => column.append_null(),
        Some(Value::Text(text)) => column.append_value(text),
        Some(Value::Struct(_)) => column.append_value("{}"),
        Some(value) => {
            // Writing to memory does not fail.
            let _ = write!(column, "{value:#}");
            column.append_value("");
        }
    }
    NUMBER_BYTES + (column.values_slice().len() - before) as u64
}

impl ListColumn {
    fn push(&mut self, value: Option<&Value<'_>>) -> u64 {
        let (mut bytes, last) = (NUMBER_BYTES, self.offsets[self.offsets.len() - 1]);
        let mut count = 0;
        match value {
            Some(Value::List(values)) => {
                for value in values {
                    bytes += self.values.push(Some(value));
                    count += 1;
                }
                self.valid.append_non_null();
            }
            _ => self.valid.append_null(),
        }
        // A row group ends long before it has 2^31 values.
        self.offsets.push(last + count);
        bytes
    }

    fn finish(&mut self) -> io::Result<ListArray> {
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let (values, valid) = (self.values.finish()?, self.valid.finish());
        ListArray::try_new(self.item.clone(), offsets, values, valid).map_err(io::Error::other)
    }
}

impl StructColumn {
    fn push(&mut self, value: Option<&Value<'_>>) -> u64 {
        let values = match value {
            Some(Value::Struct(values)) if values.len() == self.columns.len() => Some(values),
            _ => None,
        };
        match values {
            Some(_) => self.valid.append_non_null(),
            None => self.valid.append_null(),
        }
        let columns = self.columns.iter_mut().enumerate();
        columns.map(|(index, column)| column.push(values.map(|values| &values[index].1))).sum()
    }

    fn finish(&mut self) -> io::Result<StructArray> {
        let columns = self.columns.iter_mut().map(PayloadColumn::finish).collect::<io::Result<_>>()?;
        StructArray::try_new(self.fields.clone(), columns, self.valid.finish()).map_err(io::Error::other)
    }
}
