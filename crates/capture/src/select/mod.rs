//! The part of the events that a user wants.
//!
//! | file | idea |
//! |---|---|
//! | `selection` | what a user selects: times, threads, rings, spans |
//! | `sieve` | which blocks a selection needs, and which of their records |
//! | `roots` | the spans with which a selection of spans begins |
//! | `found` | spans and events that somebody has found by reading the capture |
//! | `block_test` | what a condition asks of the values of a block |
//! | `batch_filter/` | the events that a capture into batches leaves out |

pub(crate) mod batch_filter;
pub(crate) mod block_test;
pub(crate) mod found;
pub(crate) mod roots;
pub(crate) mod selection;
pub(crate) mod sieve;
