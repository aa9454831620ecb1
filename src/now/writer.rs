//! The writer's side of the file of the present.

use super::file::now_path;
use super::lock_cell::{self, LockCell};
use super::memory::{NowMemory, TaskCell};
use super::span_cell::{self, Begun, INDEX_BITS};
use super::{task_cell, thread_cell};
use crate::layout::now::{self as layout, CELL_BYTES, TASK_BYTES, header};
use crate::shm;
use crate::sync::locked_section::LockedSection;
use crate::sync::{AtomicU64, Ordering};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Span cells that get memory at a time, at least; a multiple of the cells of a page.
const GROWTH_CELLS: usize = 1 << 10;
/// Span cells, and task cells, of a table that does not grow. There are as many lock cells.
const FIXED_CELLS: usize = layout::LOCK_CELLS;
/// How many spans find no cell until room is asked for again.
const ASK_AGAIN: u64 = 1 << 12;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;

/// The tables of what is open in this process, of one recorder.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct NowTable {
    memory: NowMemory,
    /// Number of task cells that have memory. That of span cells is in `memory`.
    task_cells: AtomicU64,
    lock_cells: AtomicU64,
    /// How many spans have found no cell so far.
    misses: AtomicU64,
    growing: Mutex<()>,
    /// True if cells that have no memory get none.
    is_fixed: bool,
    file: shm::OwnedRingFile,
}

/// The cells of an array that may get memory.
#[derive(Clone, Copy)]
enum Array {
    Spans,
    Tasks,
    Locks,
}

impl NowTable {
    /// Makes the file beside shard 0.
    pub(crate) fn create(shard0: &Path, group: u64, options: &shm::CreateOptions) -> Result<Self, shm::ShmError> {
        let name = shm::RingName::Path(now_path(shard0));
        let place = shm::RingDirectories::from_environment().location_for_writing(&name);
        let prefix = const { &layout::MAGIC.to_le_bytes() };
        let options = shm::CreateOptions { replace_prefix: prefix, ..*options };
        let (file, memory) = shm::create(&place, layout::FIXED_BYTES as u64, &options, |file| initialise(file, group))?;
        let none = || AtomicU64::new(0);
        memory.set_span_cells(0);
        let growing = Mutex::new(());
        Ok(Self { memory, task_cells: none(), lock_cells: none(), misses: none(), growing, is_fixed: false, file })
    }

    /// Gives memory to all cells that will ever have any: the program may come into a sandbox that kills it at the
    /// system calls of growing.
    pub(crate) fn fix(&mut self) {
        for array in [Array::Spans, Array::Tasks, Array::Locks] {
            self.allocate(array, FIXED_CELLS - 1);
        }
        self.is_fixed = true;
    }

    /// Sets whether the file stays when the recorder ends.
    pub(crate) fn keep(&self, keep: bool) {
        self.file.keep(keep);
    }

    /// Begins a span that has been recorded. `payload` are its encoded fields.
    #[inline(always)]
    pub(crate) fn begin_span(&self, span: &Begun, entered_by: Option<u32>, payload: &[u8]) {
        match self.memory.span((span.id & INDEX_MASK) as usize) {
            Some(cell) => span_cell::begin(cell, span, entered_by, payload),
            // A copy: the fast path keeps the span in registers.
            None => self.begin_span_slow(*span, entered_by, payload),
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_span_slow(&self, span: Begun, entered_by: Option<u32>, payload: &[u8]) {
        let index = (span.id & INDEX_MASK) as usize;
        // Where there was no room, the next spans do not ask again at once: a question takes microseconds.
        if !self.misses.load(Ordering::Relaxed).is_multiple_of(ASK_AGAIN) || !self.grow(Array::Spans, index) {
            self.misses.fetch_add(1, Ordering::Relaxed);
            return self.count(header::SPANS_WITHOUT);
        }
        if let Some(cell) = self.memory.span(index) {
            span_cell::begin(cell, &span, entered_by, payload);
        }
    }

    #[inline(always)]
    fn open_span(&self, id: u64) -> Option<&super::memory::Cell> {
        self.memory.span((id & INDEX_MASK) as usize)
    }

    /// Notes that a thread has entered or left a span. Returns false if the span has no cell, or if another thread is in
    /// it already.
    #[inline(always)]
    pub(crate) fn set_presence(&self, id: u64, thread_id: u32, is_inside: bool, epoch_nanos: u64) -> bool {
        self.open_span(id).is_some_and(|cell| span_cell::set_presence(cell, id, thread_id, is_inside, epoch_nanos))
    }

    /// Sets a flag of a span.
    #[cold]
    pub(crate) fn mark_span(&self, id: u64, flag: u16) {
        if let Some(cell) = self.open_span(id).filter(|cell| span_cell::is_of(cell, id)) {
            span_cell::mark(cell, flag);
        }
    }

    /// Ends a span.
    #[inline(always)]
    pub(crate) fn end_span(&self, id: u64) {
        if !self.open_span(id).is_some_and(|cell| span_cell::end(cell, id)) {
            self.end_span_slow();
        }
    }

    /// Ends a span that has no cell.
    #[cold]
    #[inline(never)]
    fn end_span_slow(&self) {
        let without = self.memory.word(header::SPANS_WITHOUT);
        // A span that began before these tables was not counted.
        let _ = without.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1));
    }

    /// Takes a cell for a thread that has just got its shard.
    pub(crate) fn begin_thread(&self, id: u32, os_id: u32, shard: u64, epoch_nanos: u64, name: &str) {
        if !thread_cell::begin(self.memory.thread(id), id, os_id, shard, epoch_nanos, name) {
            self.count(header::THREADS_WITHOUT);
        }
    }

    /// Notes that a thread has ended.
    pub(crate) fn end_thread(&self, id: u32, epoch_nanos: u64) {
        thread_cell::end(self.memory.thread(id), id, epoch_nanos);
    }

    /// Begins a task, whose span has begun.
    #[cold]
    pub(crate) fn begin_task(&self, id: u64, payload: &[u8]) {
        let index = (id & INDEX_MASK) as usize;
        if !self.open_span(id).is_some_and(|cell| span_cell::is_of(cell, id)) {
            // Its span is counted.
            return;
        }
        if index as u64 >= self.task_cells.load(Ordering::Relaxed) && !self.grow(Array::Tasks, index) {
            return self.count(header::TASKS_WITHOUT);
        }
        if let Some(cell) = self.memory.task(index) {
            task_cell::begin(cell, id, &payload[..span_cell::whole_fields(payload, task_cell::FIELD_BYTES)]);
        }
    }

    #[inline(always)]
    fn open_task(&self, id: u64) -> Option<&TaskCell> {
        let index = id & INDEX_MASK;
        (index < self.task_cells.load(Ordering::Relaxed)).then(|| self.memory.task(index as usize)).flatten()
    }

    /// Notes that a poll of a task begins.
    pub(crate) fn begin_poll(&self, id: u64, epoch_nanos: u64) {
        self.open_task(id).into_iter().for_each(|cell| task_cell::begin_poll(cell, id, epoch_nanos));
    }

    /// Notes a wake of a task, by a thread that is in the span `by`.
    pub(crate) fn wake_task(&self, id: u64, thread_id: u32, by: u64, epoch_nanos: u64) {
        self.open_task(id).into_iter().for_each(|cell| task_cell::wake(cell, id, thread_id, by, epoch_nanos));
    }

    /// Notes that nobody can wake a task any more.
    pub(crate) fn set_unwakeable(&self, id: u64) {
        self.open_task(id).into_iter().for_each(|cell| task_cell::set_unwakeable(cell, id));
    }

    /// Notes that a lock is waited for, or held.
    pub(crate) fn set_lock(&self, of: &LockCell) {
        let has_memory = self.lock_cells.load(Ordering::Relaxed) > 0 || self.grow(Array::Locks, 0);
        if !has_memory || !lock_cell::set(&self.memory, of) {
            self.count(header::LOCKS_WITHOUT);
        }
    }

    /// Notes that a wait or guard has ended.
    pub(crate) fn free_lock(&self, guard: u64, epoch_nanos: u64) {
        if self.lock_cells.load(Ordering::Relaxed) > 0 {
            lock_cell::free(&self.memory, guard, epoch_nanos);
        }
    }

    #[cold]
    fn count(&self, offset: usize) {
        self.memory.word(offset).fetch_add(1, Ordering::Relaxed);
    }

    /// Gives memory to the cells up to the one with this index. Returns false if there is none, or if the thread must
    /// not wait for another one that does it.
    #[cold]
    #[inline(never)]
    fn grow(&self, array: Array, index: usize) -> bool {
        if self.is_fixed {
            return false;
        }
        let Some(_section) = LockedSection::enter() else { return false };
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        self.allocate(array, index)
    }

    /// Does what [`Self::grow`] says, on the only thread that does it.
    fn allocate(&self, array: Array, index: usize) -> bool {
        let capacity = self.memory.capacity();
        let now = match array {
            Array::Spans => self.memory.span_cells(),
            Array::Tasks => self.task_cells.load(Ordering::Relaxed) as usize,
            Array::Locks => self.lock_cells.load(Ordering::Relaxed) as usize,
        };
        if index < now {
            return true;
        }
        let (start, bytes, word, end) = match array {
            Array::Spans => (layout::SPANS_OFFSET, CELL_BYTES, header::SPAN_CELLS, capacity),
            Array::Tasks => (layout::SPANS_OFFSET + capacity * CELL_BYTES, TASK_BYTES, header::TASK_CELLS, capacity),
            Array::Locks => (layout::LOCKS_OFFSET, CELL_BYTES, header::LOCK_CELLS, layout::LOCK_CELLS),
        };
        let page_cells = self.memory.mapping().page_bytes() / bytes;
        let wanted = match array {
            Array::Locks => end,
            // An eighth more than there are, so that many open spans need few calls.
            _ => (index + 1).max(now + GROWTH_CELLS.max(now / 8)).next_multiple_of(page_cells.max(1)).min(end),
        };
        let has_memory = index < end
            && shm::allocate_more(&self.file, (start + now * bytes) as u64, ((wanted - now) * bytes) as u64);
        if has_memory {
            // Release, pairs with the acquire of readers: they look at no cell without memory.
            self.memory.word(word).store(wanted as u64, Ordering::Release);
            match array {
                Array::Spans => self.memory.set_span_cells(wanted),
                Array::Tasks => self.task_cells.store(wanted as u64, Ordering::Relaxed),
                Array::Locks => self.lock_cells.store(wanted as u64, Ordering::Relaxed),
            }
        }
        has_memory
    }
}

/// Makes the file as long as its cells need, maps it, and writes its header.
fn initialise(file: &shm::UnpublishedFile<'_>, group: u64) -> Result<NowMemory, shm::ShmError> {
    // Cells that were never used take no memory, but addresses. A program that has few gets few cells.
    let addresses = shm::address_space_limit() / 16;
    let mut capacity = layout::SPAN_CELLS_MAX;
    while capacity > layout::SPAN_CELLS_MIN && layout::file_bytes(capacity) > addresses {
        capacity /= 2;
    }
    let mapping = loop {
        let made = shm::lengthen(file, layout::file_bytes(capacity)).and_then(|()| {
            let options = shm::MapOptions { prefault: false, ..shm::MapOptions::writer() };
            shm::Mapping::map(file, NowMemory::sections(capacity), options)
        });
        match made {
            // The process may have little address space, or may not make large files.
            Err(_) if capacity > layout::SPAN_CELLS_MIN => capacity = (capacity / 4).max(layout::SPAN_CELLS_MIN),
            made => break made?,
        }
    };
    let Some(memory) = NowMemory::new(mapping, capacity) else {
        let found = "its sections do not fit its pages";
        return Err(shm::ShmError::new(shm::ShmErrorKind::BadSections, "make the tables of the present", found));
    };
    memory.mapping().leave_out_of_cores();
    let words = [
        (header::GROUP, group),
        (header::WRITER_PID, std::process::id().into()),
        (header::SPAN_CAPACITY, capacity as u64),
        (layout::WRITER_LOCK, file.is_locked_for_writing().into()),
        (header::MAGIC_OFFSET, layout::MAGIC),
    ];
    // No reader can see the file yet, so the stores need no ordering.
    words.iter().for_each(|(offset, value)| memory.word(*offset).store(*value, Ordering::Relaxed));
    Ok(memory)
}
