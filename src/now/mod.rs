//! The present in a file: tables of the open spans, threads, tasks and locks of a program at this moment.
//!
//! The program updates a cell for each open span, each thread and task, and each held lock or wait for a lock. The file
//! stays if the program is killed. `docs/FORMAT.md` describes the bytes.
//!
//! | file | idea |
//! |---|---|
//! | `span_cell`, `thread_cell`, `task_cell`, `lock_cell` | the words of a cell: meaning, writing, reading |
//! | `pair` | two words that change together, also if a signal handler interrupts the change |
//! | `file` | the recorder to which a file belongs, and the removal of the files of dead recorders |
//! | `memory` | the mapped file |
//! | `writer` | the tables of a recorder |
//! | `reader` | reading the tables of another process |
//! | `models` | models of the cells (`tests/models`) |
//! | `present` | the content of the tables, and their image in captures |
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
