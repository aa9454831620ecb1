//! The file of the present, `NAME.now`, beside the rings of a recorder of spans: tables of the program's open spans,
//! threads, tasks and locks. It lists up to [`SPAN_CELLS_MAX`] open spans, even if the rings have overwritten their
//! events. `docs/FORMAT.md` has the tables, too.
//!
//! The file has a header of words, and then arrays of cells: threads, locks, spans, tasks. Cells that were never used
//! take no memory, except those of threads.

/// The first word of the file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"EVRNOW02");

/// Offsets of the words of the header.
pub mod header {
    /// [`MAGIC`](super::MAGIC).
    pub const MAGIC_OFFSET: usize = 0x00;
    /// The group number of the recorder, as in the headers of its shards.
    pub const GROUP: usize = 0x08;
    /// The process id of the writer, in its own namespace.
    pub const WRITER_PID: usize = 0x10;
    /// Number of span cells for which the file has room, and of task cells. A power of two.
    pub const SPAN_CAPACITY: usize = 0x18;
    /// Number of span cells that have memory behind them: cells from here on were never used.
    pub const SPAN_CELLS: usize = 0x20;
    /// The same of task cells.
    pub const TASK_CELLS: usize = 0x28;
    /// The same of lock cells: none or all.
    pub const LOCK_CELLS: usize = 0x50;
    /// Number of spans that were opened without a cell, because there was no memory for it.
    pub const SPANS_WITHOUT: usize = 0x30;
    /// Number of threads without a cell: a living thread had it.
    pub const THREADS_WITHOUT: usize = 0x38;
    /// Number of waits and guards without a cell, because all cells were taken.
    pub const LOCKS_WITHOUT: usize = 0x40;
    /// Number of tasks without a cell.
    pub const TASKS_WITHOUT: usize = 0x48;
}

/// Bytes of a cell of a span, thread or lock.
pub const CELL_BYTES: usize = 64;
/// Words of such a cell.
pub const CELL_WORDS: usize = CELL_BYTES / 8;
/// Bytes of a cell of a task.
pub const TASK_BYTES: usize = 128;
/// Words of such a cell.
pub const TASK_WORDS: usize = TASK_BYTES / 8;

/// Offset of the word that says whether the writer holds the second lock, as in rings.
pub const WRITER_LOCK: usize = 0x198;

/// Number of thread cells. Thread *n* has cell *n* modulo this number.
pub const THREAD_CELLS: usize = 1 << 12;
/// Offset of the thread cells.
pub const THREADS_OFFSET: usize = 0x1000;
/// Bytes of the words and the thread cells. They always have memory behind them.
pub const FIXED_BYTES: usize = THREADS_OFFSET + THREAD_CELLS * CELL_BYTES;
/// Number of lock cells, one for each wait and each guard. Guard *n* has one of [`LOCK_WINDOW`] cells from cell *n*
/// modulo this number on.
pub const LOCK_CELLS: usize = 1 << 14;
/// Number of neighbouring lock cells of which a guard takes the first that is free.
pub const LOCK_WINDOW: usize = 16;
/// Offset of the lock cells.
pub const LOCKS_OFFSET: usize = 0x20_0000;
/// Offset of the span cells. The task cells follow them.
pub const SPANS_OFFSET: usize = 0x40_0000;

const _: () = assert!(FIXED_BYTES <= LOCKS_OFFSET && LOCKS_OFFSET + LOCK_CELLS * CELL_BYTES <= SPANS_OFFSET);

/// The largest number of span cells. Spans beyond it are recorded, and have no cell.
pub const SPAN_CELLS_MAX: usize = 1 << 21;
/// The smallest number of span cells, so that the cells fill whole pages, of whatever size.
pub const SPAN_CELLS_MIN: usize = 1 << 16;

/// Returns the length of a file with room for this many span cells, in bytes.
#[must_use]
pub const fn file_bytes(span_capacity: usize) -> u64 {
    (SPANS_OFFSET + span_capacity * (CELL_BYTES + TASK_BYTES)) as u64
}
