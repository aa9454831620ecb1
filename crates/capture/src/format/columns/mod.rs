//! The content of a block of events of one ring: columns. Each column holds one property of the events: their times,
//! for example, or one field of their payloads. Adjacent numbers of one kind compress well, and a reader decodes only
//! the columns that it needs.
//!
//! | file | idea |
//! |---|---|
//! | `ints` | a column of numbers, in the form that takes the fewest bytes |
//! | `ids` | a column of ids, most of which have appeared for the first time shortly before |
//! | `layout` | the columns of a ring: which extension words hold ids, which fields payloads have |
//! | `body` | the bytes of a block: its head, the list of its columns, the columns |
//! | `encode`, `group`, `put` | making the columns from the events |
//! | `decode` | making the events from the columns; nothing in the bytes is trusted |

mod body;
mod decode;
mod encode;
mod group;
mod ids;
mod ints;
mod layout;
mod put;

pub(crate) use crate::format::block_records::{BlockRecords, PlacedGap, RecordRange};
pub(crate) use decode::{PayloadsWanted, decode};
pub(crate) use encode::{BlockEncoder, EncodedBlock};
pub(crate) use layout::RingLayout;

#[cfg(test)]
mod tests;
