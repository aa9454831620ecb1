//! A perf recorder: how it is made, installed and used.
//!
//! | file | idea |
//! |---|---|
//! | `init`, `variables`, `setup_error`, `global` | switching recording on, in code or by the environment |
//! | `handle`, `core` | a perf recorder, and the state that its handles share |
//! | `builder`, `memory_plan` | the configuration of a recorder, and the sizes of its rings |
//! | `replayed` | recording captured events again |

pub(in crate::tracing) mod builder;
pub(in crate::tracing) mod core;
pub(in crate::tracing) mod global;
pub(in crate::tracing) mod handle;
pub(in crate::tracing) mod init;
pub(in crate::tracing) mod memory_plan;
pub(crate) mod replayed;
pub(in crate::tracing) mod setup_error;
pub(in crate::tracing) mod variables;
