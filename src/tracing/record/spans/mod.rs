//! The open spans.
//!
//! | file | idea |
//! |---|---|
//! | `map` | from span ids of a `Registry` to span ids in the ring |
//! | `open_spans` | the spans of subscribers and layers, as their filters see them |
//! | `scope_end` | the end of a scope |
//! | `at_thread_end` | the clean-up when a thread ends |

mod at_thread_end;
pub(in crate::tracing) mod map;
pub(in crate::tracing) mod open_spans;
pub(in crate::tracing) mod scope_end;
