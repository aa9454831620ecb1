//! Call sites and their ids.
//!
//! | file | idea |
//! |---|---|
//! | `call_sites` | the ids of call sites |
//! | `seen_texts`, `constant_text` | texts that are the same in each record |
//! | `task_sites` | the call sites of tasks |

pub(in crate::tracing) mod call_sites;
pub(in crate::tracing) mod constant_text;
pub(in crate::tracing) mod seen_texts;
pub(in crate::tracing) mod task_sites;
