//! Columns of numbers.

use arrow_array::ArrayRef;
use arrow_array::builder::{BooleanBuilder, Int64Builder, UInt32Builder, UInt64Builder};
use arrow_schema::{DataType, Field};
use std::sync::Arc;

/// A column of times, durations and counts. They are signed, so that their differences are what people expect.
#[derive(Default)]
pub(super) struct Amounts(Int64Builder);

impl Amounts {
    /// Appends a number. A number above 2^63 − 1, which no program records, becomes this number.
    pub(super) fn push(&mut self, number: Option<u64>) {
        self.0.append_option(number.map(|number| i64::try_from(number).unwrap_or(i64::MAX)));
    }

    pub(super) fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

/// A column of ids and sequence numbers.
#[derive(Default)]
pub(super) struct Ids(UInt64Builder);

impl Ids {
    pub(super) fn push(&mut self, id: Option<u64>) {
        self.0.append_option(id);
    }

    pub(super) fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

/// A column of small numbers.
#[derive(Default)]
pub(super) struct Numbers(UInt32Builder);

impl Numbers {
    pub(super) fn push(&mut self, number: Option<u32>) {
        self.0.append_option(number);
    }

    pub(super) fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

/// A column of truth values.
#[derive(Default)]
pub(super) struct Flags(BooleanBuilder);

impl Flags {
    pub(super) fn push(&mut self, flag: bool) {
        self.0.append_value(flag);
    }

    pub(super) fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

pub(super) fn amounts(name: &str) -> Field {
    Field::new(name, DataType::Int64, true)
}

pub(super) fn ids(name: &str) -> Field {
    Field::new(name, DataType::UInt64, true)
}

pub(super) fn numbers(name: &str) -> Field {
    Field::new(name, DataType::UInt32, true)
}

pub(super) fn flags(name: &str) -> Field {
    Field::new(name, DataType::Boolean, true)
}

pub(super) fn texts(name: &str) -> Field {
    Field::new(name, DataType::Utf8, true)
}
