//! The values of a block of events: a column from which a reader sees, without reading the events, that none of them
//! has a value.
//!
//! | file | idea |
//! |---|---|
//! | `operand` | a value, as conditions compare it |
//! | `integer` | integers of fields, up to 256 bits |
//! | `key` | the hashes of names and values |
//! | `tables` | where the names of a ring's fields come from |
//! | `collect` | the values of a block's events, and of spans and log records |
//! | `typed` | those of typed events |
//! | `seen` | the last values of a field |
//! | `names` | the values of each name: their keys and their range |
//! | `losses` | what a block does not have: events in gaps, payloads |
//! | `pages` | xor filters of keys, in pages that are read one at a time |
//! | `column` | the bytes of the column |

pub(crate) mod collect;
pub(crate) mod column;
pub(crate) mod integer;
pub(crate) mod key;
pub(crate) mod losses;
mod names;
pub(crate) mod operand;
mod pages;
mod seen;
pub(crate) mod tables;
#[cfg(test)]
mod tests;
pub(crate) mod typed;
