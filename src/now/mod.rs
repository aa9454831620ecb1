//! The present in a file: what is open in a program at this moment, in tables that outlive the rings.
//!
//! A ring says how things came to be, and forgets. The tables say what is: each open span, thread, task and lock has a
//! cell, which its program changes, and which a kill leaves behind. `docs/FORMAT.md` has the bytes.
//!
//! | file | idea |
//! |---|---|
//! | `span_cell`, `thread_cell`, `task_cell`, `lock_cell` | the words of a cell, and how they are written and read |
//! | `pair` | two words that change together, and that a signal handler may change in between |
//! | `file` | whose tables a file has, and the removal of those of the dead |
//! | `memory` | the mapped file |
//! | `writer` | the tables of a recorder |
//! | `reader` | reading the tables of another process |
//! | `models` | models of the cells (`tests/models`) |
//! | `present` | what they show, and their image in captures |
//! | `saved` | the file beside a snapshot |

pub(crate) mod file;
// The tables are those of perf recorders.
#[cfg(feature = "tracing")]
mod lock_cell;
#[cfg(feature = "tracing")]
#[allow(unsafe_code, reason = "one of the modules that ARCHITECTURE names for it")]
mod memory;
#[cfg(feature = "tracing")]
mod pair;
#[cfg(feature = "tracing")]
pub(crate) mod present;
#[cfg(feature = "tracing")]
mod reader;
#[cfg(feature = "tracing")]
pub(crate) mod saved;
#[cfg(feature = "tracing")]
mod span_cell;
#[cfg(feature = "tracing")]
mod task_cell;
#[cfg(feature = "tracing")]
mod thread_cell;
#[cfg(feature = "tracing")]
mod writer;

pub(crate) use file::remove_all_dead_tables;
#[cfg(feature = "tracing")]
pub use {
    lock_cell::LockCell,
    present::{Present, Untabled},
    reader::NowReader,
    span_cell::{Presence, SpanCell},
    task_cell::{TaskCell, TaskPhase, Wake},
    thread_cell::ThreadCell,
};
#[cfg(feature = "tracing")]
pub(crate) use {
    lock_cell::LockMode,
    span_cell::{Begun, HAS_ERROR, HAS_RECORDED},
    writer::NowTable,
};
