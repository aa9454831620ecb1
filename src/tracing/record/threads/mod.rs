//! The state of each thread: its ring, the spans that it is in, and its instruction count.
//!
//! | file | idea |
//! |---|---|
//! | `thread` | the state of a thread |
//! | `stack/` | the spans that a thread is in |
//! | `end_of_thread` | the shards of a thread, which it gives back when it ends |
//! | `time/` | how long a thread ran, could have run, and slept |
//! | `instruction_count` | the instructions that a thread has executed |
//! | `allocated` | what a thread has allocated and freed |
//! | `live_bytes` | the bytes that are allocated now, by the name of the span |

pub(crate) mod allocated;
pub(in crate::tracing) mod end_of_thread;
pub(in crate::tracing) mod instruction_count;
#[cfg(feature = "allocations")]
pub(crate) mod live_bytes;
pub(in crate::tracing) mod stack;
#[allow(unsafe_code, reason = "one of the modules that ARCHITECTURE names for it")]
pub(in crate::tracing) mod thread;
pub(in crate::tracing) mod time;
