//! The values of a block of events, in a column of the block. A reader that searches for a value skips the block if the
//! column shows that no event has the value.
//!
//! | file | idea |
//! |---|---|
//! | `operand` | a value, as conditions compare it |
//! | `integer` | integers of fields, up to 256 bits |
//! | `key` | the hashes of names and values |
//! | `tables` | the schema or the tables that hold the names of a ring's fields |
//! | `collect` | the values of a block's events, and of spans and log records |
//! | `typed` | the values of typed events |
//! | `seen` | the last values of a field |
//! | `names` | the values of each name: their keys and their range |
//! | `losses` | the losses of a block: events in gaps, lost payloads |
//! | `pages` | xor filters of keys, in pages that are read one at a time |
//! | `column` | the bytes of the column |
//! | `block_test` | the test of a block's values for a condition |

pub(crate) mod block_test;
pub(crate) mod collect;
pub(crate) mod column;
pub(crate) mod integer;
pub(crate) mod key;
pub(crate) mod losses;
mod names;
pub(crate) mod operand;
pub(crate) mod pages;
mod seen;
pub(crate) mod tables;
#[cfg(test)]
mod tests;
pub(crate) mod typed;
