//! Selecting a part of the events.
//!
//! | file | idea |
//! |---|---|
//! | `events` | the options for selecting events that all verbs have |
//! | `selection` | the options of a selection: times, threads, rings, spans |
//! | `block_filter` | the blocks that a selection reads, and the records that it returns |
//! | `roots` | the spans with which a selection of spans begins |
//! | `matches` | the spans and events of a capture that fulfil conditions |
//! | `batch_filter/` | the filter of a capture: the events that the capture leaves out |

pub(crate) mod batch_filter;
pub(crate) mod block_filter;
pub(crate) mod events;
pub(crate) mod matches;
pub(crate) mod roots;
pub(crate) mod selection;
