//! The ring of each thread, and the thread's instruction count.
//!
//! | file | idea |
//! |---|---|
//! | `thread` | the state of a thread |
//! | `shards` | which shard a thread records to |
//! | `end_of_thread` | the clean-up when a thread ends |
//! | `instruction_count` | the instructions that a thread has executed |

pub(in crate::tracing) mod end_of_thread;
pub(in crate::tracing) mod instruction_count;
pub(in crate::tracing) mod shards;
#[allow(unsafe_code, reason = "one of the modules that ARCHITECTURE names for it")]
pub(in crate::tracing) mod thread;
