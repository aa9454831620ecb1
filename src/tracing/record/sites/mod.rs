//! Call sites: those of `tracing`, those of this crate's own macros, and their entries in the tables of shard 0.
//!
//! | file | idea |
//! |---|---|
//! | `call_sites` | the ids of call sites |
//! | `macro_site` | call sites of this crate's own macros |
//! | `constant_text` | texts that are the same in each record |
//! | `tables` | call sites and threads in the tables of shard 0 |

pub(in crate::tracing) mod call_sites;
pub(in crate::tracing) mod constant_text;
pub(in crate::tracing) mod macro_site;
pub(in crate::tracing) mod tables;
