//! The rings of a perf recorder.
//!
//! | file | idea |
//! |---|---|
//! | `core` | the state that all handles of a recorder share |
//! | `shards` | which shard a thread records to |
//! | `tables` | call sites and threads in the tables of shard 0 |

pub(in crate::tracing) mod core;
pub(in crate::tracing) mod shards;
pub(in crate::tracing) mod tables;
