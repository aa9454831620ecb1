//! The error that a value has no counterpart in alloy.

use crate::values::{Block, Txn};
use alloy_primitives::U256;
use eventring::schema::exec;
use std::fmt;

/// The reason why a value cannot be converted. The text names the block or the transaction, what was found, and what
/// was expected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConversionError(String);

impl fmt::Display for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConversionError {}

/// What is converted.
#[derive(Clone, Copy)]
pub(super) enum Subject {
    Block(u64),
    Txn(u64),
}

impl From<&Block> for Subject {
    fn from(block: &Block) -> Self {
        Self::Block(block.start.eth_block_input.number)
    }
}

impl From<&Txn> for Subject {
    fn from(txn: &Txn) -> Self {
        Self::Txn(txn.index)
    }
}

impl Subject {
    pub(super) fn error(self, found: impl fmt::Display, expected: impl fmt::Display) -> ConversionError {
        let (kind, number) = match self {
            Self::Block(number) => ("block", number),
            Self::Txn(index) => ("transaction", index),
        };
        ConversionError(format!("{kind} {number}: found {found}, expected {expected}"))
    }

    /// Returns a number as a smaller type.
    pub(super) fn narrow<T>(self, what: &str, number: exec::U256) -> Result<T, ConversionError>
    where
        T: TryFrom<U256>,
    {
        let bits = 8 * size_of::<T>();
        T::try_from(super::wide(number))
            .map_err(|_| self.error(format_args!("{what} {number}"), format_args!("at most {bits} bits")))
    }

    /// Returns an error unless a list has all entries.
    pub(super) fn whole(
        self,
        what: &str,
        indices: impl ExactSizeIterator<Item = u32>,
        count: u32,
    ) -> Result<(), ConversionError> {
        let found = indices.len();
        if indices.eq(0..count) {
            return Ok(());
        }
        Err(self.error(format_args!("{found} {what}"), format_args!("{count}, numbered from 0")))
    }
}
