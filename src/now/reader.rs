//! Reading the file of the present, live or after the writer's death.

use super::lock_cell::{self, LockCell};
use super::memory::NowMemory;
use super::span_cell::{self, Presence, SpanCell};
use super::task_cell::{self, TaskCell};
use super::thread_cell::{self, ThreadCell};
use super::writer::now_path;
use crate::layout::now::{self as layout, header};
use crate::reader::{Reader, ReaderError, ReaderErrorKind};
use crate::shm;
use crate::sync::Ordering;
use std::path::Path;

/// The tables of what is open in a program: spans, threads, tasks, locks. The writer changes them while they are read;
/// each cell is whole, and two cells may be of different moments.
///
/// Nothing in the tables is trusted: any bytes give some answer.
#[derive(Debug)]
pub struct NowReader {
    memory: NowMemory,
}

/// How much is missing in the tables, because there was no room for it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Untabled {
    /// Spans that were opened without a cell.
    pub spans: u64,
    /// Threads.
    pub threads: u64,
    /// Waits for locks, and guards.
    pub locks: u64,
    /// Tasks.
    pub tasks: u64,
}

/// What the tables of a recorder show.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Present {
    /// The open spans, in the order of their cells.
    pub spans: Vec<SpanCell>,
    /// The tasks that have not ended, in the same order.
    pub tasks: Vec<TaskCell>,
    /// The threads.
    pub threads: Vec<ThreadCell>,
    /// The waits for locks, and the guards, in the order of their numbers.
    pub locks: Vec<LockCell>,
    /// How much is missing.
    pub untabled: Untabled,
}

impl NowReader {
    /// Opens the tables of the recorder of this shard. Returns `Ok(None)` if it has none: its writer is older, or
    /// could not make the file, or the ring has no name.
    ///
    /// # Errors
    /// The file is there and cannot be read, or is none.
    pub fn open_beside(shard0: &Reader) -> Result<Option<Self>, ReaderError> {
        let Some(path) = shard0.path() else { return Ok(None) };
        let Some(group) = shard0.info().extension.map(|extension| extension.shard_group) else { return Ok(None) };
        match Self::open(&now_path(path), group) {
            Err(error) if error.kind() == ReaderErrorKind::NotFound => Ok(None),
            opened => opened,
        }
    }

    /// Opens the file at this path. Returns `Ok(None)` if it is of another recorder than that with this group number.
    fn open(path: &Path, group: u64) -> Result<Option<Self>, ReaderError> {
        let file = shm::RingFile::open_path(path, &shm::OpenOptions::default()).map_err(ReaderError::shm)?;
        let mut start = [0; layout::WRITER_LOCK];
        let read = file.read_at(&mut start, 0).map_err(ReaderError::shm)?;
        let word = |offset: usize| start.get(offset..offset + 8).and_then(|bytes| bytes.try_into().ok());
        let word = |offset| word(offset).map_or(0, u64::from_le_bytes);
        let bad = |found: &str| {
            let message = format!("cannot read the tables of the present in {}: {found}", path.display());
            ReaderError::new(ReaderErrorKind::BadHeader, message)
        };
        if read < start.len() || word(header::MAGIC_OFFSET) != layout::MAGIC {
            return Err(bad("its first bytes are not EVRNOW01; remove the file if no program writes it"));
        }
        if word(header::GROUP) != group {
            return Ok(None);
        }
        let capacity = word(header::SPAN_CAPACITY) as usize;
        let is_possible = (layout::SPAN_CELLS_MIN..=layout::SPAN_CELLS_MAX).contains(&capacity);
        if !capacity.is_power_of_two() || !is_possible {
            return Err(bad(&format!("it says {capacity} span cells, expected a power of two from 65536 to 2097152")));
        }
        let options = shm::MapOptions { map_holes: true, ..shm::MapOptions::reader() };
        let mapping = shm::Mapping::map(file.descriptor(), NowMemory::sections(capacity), options);
        let memory = NowMemory::new(mapping.map_err(ReaderError::shm)?, capacity);
        let memory = memory.ok_or_else(|| bad("its sections do not fit its pages"))?;
        Ok(Some(Self { memory }))
    }

    /// Returns the value of a word that counts cells with memory, as far as there are so many.
    fn cells(&self, offset: usize, max: usize) -> usize {
        // Acquire, pairs with the release in `NowTable::grow`.
        (self.memory.word(offset).load(Ordering::Acquire) as usize).min(max)
    }

    /// Returns the id of the thread of which a cell has the low bits.
    fn thread_id(&self, low: u32) -> u32 {
        // Later threads may have these bits, too: after 65,535 others, or where the cell is not theirs.
        thread_cell::id(self.memory.thread(low)).filter(|id| id & 0xffff == low).unwrap_or(low)
    }

    fn span_at(&self, index: usize) -> Option<SpanCell> {
        let mut span = span_cell::read(self.memory.span(index)?, index)?;
        if let Presence::Inside(thread_id, _) | Presence::Left(thread_id, _) = &mut span.presence {
            *thread_id = self.thread_id(*thread_id);
        }
        Some(span)
    }

    /// Calls `each` with every open span, in the order of their cells.
    pub fn for_each_span(&self, mut each: impl FnMut(SpanCell)) {
        for index in 0..self.cells(header::SPAN_CELLS, self.memory.capacity()) {
            if let Some(span) = self.span_at(index) {
                each(span);
            }
        }
    }

    /// Returns the span with this id, if it is open.
    #[must_use]
    pub fn span(&self, id: u64) -> Option<SpanCell> {
        let index = (id & ((1 << span_cell::INDEX_BITS) - 1)) as usize;
        if index >= self.cells(header::SPAN_CELLS, self.memory.capacity()) {
            return None;
        }
        self.span_at(index).filter(|span| span.id == id)
    }

    /// Returns the task whose span has this id, if it has not ended.
    #[must_use]
    pub fn task(&self, id: u64) -> Option<TaskCell> {
        let index = (id & ((1 << span_cell::INDEX_BITS) - 1)) as usize;
        if index >= self.cells(header::TASK_CELLS, self.memory.capacity()) {
            return None;
        }
        self.span(id)?;
        task_cell::read(self.memory.task(index)?, id)
    }

    /// Returns true if the program has ever had a task.
    #[must_use]
    pub fn has_tasks(&self) -> bool {
        self.cells(header::TASK_CELLS, self.memory.capacity()) > 0
    }

    /// Returns the threads that have recorded, also those that have ended, if no later thread has taken their cells.
    #[must_use]
    pub fn threads(&self) -> Vec<ThreadCell> {
        (0..layout::THREAD_CELLS as u32).filter_map(|index| thread_cell::read(self.memory.thread(index))).collect()
    }

    /// Returns the waits for locks, and the guards, in the order of their numbers.
    #[must_use]
    pub fn locks(&self) -> Vec<LockCell> {
        let cells = self.cells(header::LOCK_CELLS, layout::LOCK_CELLS);
        let mut locks: Vec<_> = (0..cells).filter_map(|index| lock_cell::read(self.memory.lock(index))).collect();
        locks.sort_unstable_by_key(|lock| lock.guard);
        locks
    }

    /// Reads all tables. Cells that are read later may be of a later moment.
    #[must_use]
    pub fn read(&self) -> Present {
        let mut present = Present { threads: self.threads(), locks: self.locks(), ..Present::default() };
        self.for_each_span(|span| present.spans.push(span));
        if self.has_tasks() {
            present.tasks = present.spans.iter().filter_map(|span| self.task(span.id)).collect();
        }
        present.untabled = self.untabled();
        present
    }

    /// Returns how much is missing in the tables.
    #[must_use]
    pub fn untabled(&self) -> Untabled {
        let count = |offset| self.memory.word(offset).load(Ordering::Relaxed);
        Untabled {
            spans: count(header::SPANS_WITHOUT),
            threads: count(header::THREADS_WITHOUT),
            locks: count(header::LOCKS_WITHOUT),
            tasks: count(header::TASKS_WITHOUT),
        }
    }
}
