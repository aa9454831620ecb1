//! The kernel's buffers and records.
//!
//! | file | idea |
//! |---|---|
//! | `rights` | the data that this user may get from the kernel, and the settings that allow the rest |
//! | `formats` | tracepoints: their ids, and the offsets of their fields |
//! | `counters`, `opening` | opening the kernel's buffers, and which buffers each process needs |
//! | `body`, `bytes` | the content of one record, and its bytes |
//! | `records`, `samples` | parsing one record; samples: stacks and tracepoints |
//! | `order` | records of all buffers in the order of time |
//! | `system` | processors and threads of the system |

pub(crate) mod body;
pub(crate) mod bytes;
pub(crate) mod counters;
pub(crate) mod formats;
pub(crate) mod opening;
pub(crate) mod order;
pub(crate) mod records;
pub(crate) mod rights;
pub(crate) mod samples;
pub(crate) mod system;
