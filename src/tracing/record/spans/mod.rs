//! The spans that a thread is in, and the open spans.
//!
//! | file | idea |
//! |---|---|
//! | `stack/` | the spans that a thread is in |
//! | `map` | the map from span ids of a `Registry` to span ids in the ring |
//! | `open_spans` | the open spans of a recorder |
//! | `present` | the cells of open spans in the tables of the present |

pub(in crate::tracing) mod map;
pub(in crate::tracing) mod open_spans;
pub(in crate::tracing) mod present;
pub(in crate::tracing) mod stack;
