//! The part of the events that a user wants.
//!
//! | file | idea |
//! |---|---|
//! | `events` | what users select by options that all verbs have |
//! | `now` | the selection of events as they come |
//! | `selection` | what a user selects: times, threads, rings, spans |
//! | `block_filter` | which blocks a selection needs, and which of their records |
//! | `roots` | the spans with which a selection of spans begins |
//! | `find`, `matches` | the pass over a capture that finds what fulfils conditions, and its result |
//! | `block_test` | what a condition asks of the values of a block |
//! | `batch_filter/` | the events that a capture into batches leaves out |

pub(crate) mod batch_filter;
pub(crate) mod block_filter;
pub(crate) mod block_test;
pub(crate) mod events;
pub(crate) mod find;
pub(crate) mod matches;
pub(crate) mod now;
pub(crate) mod roots;
pub(crate) mod selection;
