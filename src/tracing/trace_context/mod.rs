//! Ids and contexts of traces, behind the module [`context`](super::context).
//!
//! | file | idea |
//! |---|---|
//! | `ids` | the ids of traces and spans |
//! | `remote` | the context of a caller, and its headers |
//! | `tracestate` | whether a `tracestate` is valid |
//! | `recorded` | the fields of a span that hold a context in the ring |
//! | `recent_states` | the `tracestate`s that were stored lately |

pub(in crate::tracing) mod field_names;
pub(in crate::tracing) mod ids;
#[cfg(feature = "context")]
pub(in crate::tracing) mod recent_states;
pub(in crate::tracing) mod recorded;
pub(in crate::tracing) mod remote;
mod tracestate;
