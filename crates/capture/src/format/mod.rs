//! The bytes of a capture file. Readers trust none of them.
//!
//! | file | idea |
//! |---|---|
//! | `header` | constants, file header, block header, index, footer |
//! | `filter_bits` | bits in a block's header that show types, call sites and threads without an event in the block |
//! | `block_records` | the events and gaps of a block, in memory |
//! | `columns/` | the content of a block of events |
//! | `values/` | the column that shows which values do not occur in a block |
//! | `varint` | numbers that take as few bytes as they need |
//! | `wire` | decoding numbers and texts from untrusted bytes |
//! | `ring`, `identity` | the description of a ring: identity, sizes, schema, clock |
//! | `record` | a record of a capture: an event or a gap |
//! | `tables` | the tables of call sites, threads and start records |
//! | `stats` | counts of each ring's events: captured, lost and others |
//! | `end` | the last block of a file: why the file ended, and the counts of its rings |
//! | `block` | reading and checking one block |
//! | `write` | writing blocks, index and footer |
//! | `fit` | the part of a block that fits into the rest of a file |

pub(crate) mod block;
pub(crate) mod block_records;
pub(crate) mod columns;
pub(crate) mod end;
pub(crate) mod filter_bits;
pub(crate) mod fit;
pub(crate) mod header;
pub(crate) mod identity;
pub(crate) mod record;
pub(crate) mod ring;
pub(crate) mod stats;
pub(crate) mod tables;
pub(crate) mod values;
pub(crate) mod varint;
pub(crate) mod wire;
pub(crate) mod write;
