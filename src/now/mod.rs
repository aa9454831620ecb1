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

mod file;
mod lock_cell;
#[allow(unsafe_code, reason = "one of the modules that ARCHITECTURE names for it")]
mod memory;
mod pair;
mod present;
mod reader;
mod span_cell;
mod task_cell;
mod thread_cell;
mod writer;

pub(crate) use file::remove_all_dead_tables;
pub use file::{remove_dead_tables, tables_group};
pub use lock_cell::LockCell;
pub(crate) use lock_cell::LockMode;
pub use present::{Present, Untabled};
pub use reader::NowReader;
pub(crate) use span_cell::{Begun, HAS_ERROR, HAS_RECORDED};
pub use span_cell::{Presence, SpanCell};
pub use task_cell::{TaskCell, TaskPhase, Wake};
pub use thread_cell::ThreadCell;
pub(crate) use writer::NowTable;
pub use writer::now_path;
