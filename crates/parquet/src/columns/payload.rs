//! Columns of a payload, by its schema: numbers, texts, lists, structs.

use crate::columns::{Column, ValueColumn};
use arrow_array::builder::StringBuilder;
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
pub(crate) enum PayloadColumn {
    /// A value by itself. Texts stand also for byte strings, enums and integers of more than 64 bits.
    Value(ValueColumn),
    List(Box<ListColumn>),
    Struct(StructColumn),
}

/// A column of lists.
pub(crate) struct ListColumn {
    item: FieldRef,
    values: PayloadColumn,
    /// The number of values before each list, and after the last one.
    offsets: Vec<i32>,
    valid: NullBufferBuilder,
}

/// A column of structs.
pub(crate) struct StructColumn {
    fields: Fields,
    columns: Vec<PayloadColumn>,
    valid: NullBufferBuilder,
}

impl PayloadColumn {
    /// Makes a column for values of this structure.
    pub(crate) fn new(shape: &Shape<'_>) -> Self {
        match shape {
            Shape::Scalar(scalar) => Self::Value(ValueColumn::new(&scalar_type(*scalar))),
            Shape::Array(_, element) | Shape::List(element) => {
                let mut values = Self::new(element);
                let item = Arc::new(Field::new("item", values.data_type(), true));
                let list = ListColumn { item, values, offsets: vec![0], valid: NullBufferBuilder::new(0) };
                Self::List(Box::new(list))
            }
            Shape::Struct(shapes) if !shapes.is_empty() => {
                let mut columns: Vec<Self> = shapes.iter().map(|(_, shape)| Self::new(shape)).collect();
                let fields = shapes.iter().zip(&mut columns);
                let fields = fields.map(|((name, _), column)| Field::new(*name, column.data_type(), true)).collect();
                Self::Struct(StructColumn { fields, columns, valid: NullBufferBuilder::new(0) })
            }
            // No file has a struct without fields.
            Shape::Text | Shape::Bytes | Shape::Enum(..) | Shape::Redacted | Shape::Struct(_) => {
                Self::Value(ValueColumn::new(&DataType::Utf8))
            }
        }
    }

    pub(crate) fn data_type(&mut self) -> DataType {
        match self {
            Self::Value(column) => column.builder().finish_cloned().data_type().clone(),
            Self::List(list) => DataType::List(list.item.clone()),
            Self::Struct(of) => DataType::Struct(of.fields.clone()),
        }
    }

    /// Appends a value, or null if there is none, or if it has not the structure of the column. Returns an estimate of
    /// the bytes that it takes.
    pub(crate) fn push(&mut self, value: Option<&Value<'_>>) -> u64 {
        match self {
            Self::Value(column) => push_value(column, value),
            Self::List(list) => list.push(value),
            Self::Struct(of) => of.push(value),
        }
    }

    fn array(&mut self) -> io::Result<ArrayRef> {
        Ok(match self {
            Self::Value(column) => column.builder().finish(),
            Self::List(list) => Arc::new(list.finish()?),
            Self::Struct(of) => Arc::new(of.finish()?),
        })
    }
}

impl Column for PayloadColumn {
    fn fields(&mut self, name: &str) -> Vec<Field> {
        vec![Field::new(name, self.data_type(), true)]
    }

    fn take(&mut self) -> io::Result<Vec<ArrayRef>> {
        Ok(vec![self.array()?])
    }
}

/// Returns the type of a column of scalars.
fn scalar_type(scalar: Scalar) -> DataType {
    match scalar {
        Scalar::U8 | Scalar::U16 | Scalar::U32 => DataType::Int64,
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => DataType::Int64,
        Scalar::U64 => DataType::UInt64,
        Scalar::F32 => DataType::Float32,
        Scalar::F64 => DataType::Float64,
        Scalar::Bool => DataType::Boolean,
        _ => DataType::Utf8,
    }
}

fn push_value(column: &mut ValueColumn, value: Option<&Value<'_>>) -> u64 {
    match (column, value) {
        (ValueColumn::Text(column), value) => return push_text(column, value),
        (ValueColumn::Int(column), Some(Value::Int(number))) => column.append_value(*number),
        (ValueColumn::Int(column), Some(Value::Uint(number))) => column.append_option(i64::try_from(*number).ok()),
        (ValueColumn::Uint(column), Some(Value::Uint(number))) => column.append_value(*number),
        (ValueColumn::F32(column), Some(Value::F32(number))) => column.append_value(*number),
        (ValueColumn::F64(column), Some(Value::F64(number))) => column.append_value(*number),
        (ValueColumn::Bool(column), Some(Value::Bool(is_true))) => column.append_value(*is_true),
        (column, _) => {
            let rows = column.builder().len();
            column.pad(rows + 1);
        }
    }
    NUMBER_BYTES
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
        let (values, valid) = (self.values.array()?, self.valid.finish());
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
        let columns = self.columns.iter_mut().map(PayloadColumn::array).collect::<io::Result<_>>()?;
        StructArray::try_new(self.fields.clone(), columns, self.valid.finish()).map_err(io::Error::other)
    }
}
