//! Reading the file of the present, live or after the writer's death.

use super::file::now_path;
use super::lock_cell::{self, LockCell, LockCells as _};
use super::memory::NowMemory;
use super::present::{Present, Untabled, span_index};
use super::span_cell::{self, SpanCell};
use super::task_cell::{self, TaskCell};
use super::thread_cell::{self, ThreadCell};
use crate::layout::now::{self as layout, CELL_WORDS, TASK_WORDS, header};
use crate::reader::{Reader, ReaderError, ReaderErrorKind};
use crate::shm;
use crate::sync::Ordering;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

/// Number of times that the locks are read before their changes are given up.
const LOOKS_MAX: usize = 10;

/// The tables of what is open in a program: spans, threads, tasks, locks. The writer changes them while they are read;
/// each cell is whole, and two cells may be of different moments.
///
/// Nothing in the tables is trusted: any bytes give some answer.
#[derive(Debug)]
pub struct NowReader {
    memory: NowMemory,
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
            return Err(bad("its first bytes are not EVRNOW02; remove the file if no program writes it"));
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

    /// Returns the number of span cells that may be looked at.
    #[must_use]
    pub fn span_cells(&self) -> usize {
        self.cells(header::SPAN_CELLS, self.memory.capacity())
    }

    /// Returns an image of the tables, of which [`Present::of_image`] makes what they show. Cells that are read later
    /// may be of a later moment. `fields_of` is asked for the fields of each span, if its
    /// cell may not have them all.
    pub fn image(&self, mut fields_of: impl FnMut(&SpanCell) -> Option<Vec<u8>>) -> Vec<u8> {
        let (mut words, mut further): (Vec<u64>, Vec<u8>) = (vec![0; 9], Vec::new());
        let Untabled { spans, threads, locks, tasks } = self.untabled();
        words[..4].copy_from_slice(&[spans, threads, locks, tasks]);
        let mut ids = Vec::new();
        for cell in self.span_words(0..self.span_cells()) {
            words[4] += 1;
            words.extend(cell);
            let span = SpanCell::of_words(&cell);
            if let Some(fields) = fields_of(&span) {
                words[8] += 1;
                further.extend([span.id, fields.len() as u64].iter().flat_map(|word| word.to_le_bytes()));
                further.extend(fields);
            }
            ids.push(span.id);
        }
        for cell in self.thread_words() {
            words[5] += 1;
            words.extend(cell);
        }
        for cell in self.lock_words() {
            words[6] += 1;
            words.extend(cell);
        }
        for cell in ids.into_iter().filter_map(|id| self.task_words(id)) {
            words[7] += 1;
            words.extend(cell);
        }
        let mut image: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        image.extend(further);
        image
    }

    /// Returns the lock cells of one moment: what is held and waited for in some order may look like a deadlock that
    /// never was. Cells that tell of a dropped guard are left out, but for the last one of each lock that is waited for.
    fn lock_words(&self) -> Vec<[u64; CELL_WORDS]> {
        let cells = self.cells(header::LOCK_CELLS, layout::LOCK_CELLS);
        let read = || -> Vec<_> { (0..cells).filter_map(|index| lock_cell::read(self.memory.lock(index))).collect() };
        let mut words = read();
        for _ in 0..LOOKS_MAX {
            // No guard has a number twice, so cells that are the same again have not changed in between.
            let again = read();
            if std::mem::replace(&mut words, again) == words {
                break;
            }
        }
        let waited: HashSet<u64> =
            words.iter().map(LockCell::of_words).filter(LockCell::waits).map(|of| of.lock).collect();
        let mut freed: HashMap<u64, [u64; CELL_WORDS]> = HashMap::new();
        for cell in words.extract_if(.., |cell| LockCell::of_words(cell).guard == 0) {
            let of = LockCell::of_words(&cell);
            let is_last = freed.get(&of.lock).is_none_or(|last| last[2] < of.since_epoch_nanos);
            if is_last && waited.contains(&of.lock) {
                freed.insert(of.lock, cell);
            }
        }
        words.extend(freed.into_values());
        words
    }

    /// Reads all tables, without what they lack of fields.
    #[must_use]
    pub fn read(&self) -> Present {
        let mut present = Present { untabled: self.untabled(), threads: self.threads(), ..Present::default() };
        self.for_each_span(|span| present.spans.push(span));
        present.tasks = present.spans.iter().filter_map(|span| self.task_of(span.id)).collect();
        present.locks = self.locks();
        present.complete();
        present
    }

    /// Returns the waits for locks and the guards, as [`Present::locks`] has them, in no order.
    #[must_use]
    pub fn locks(&self) -> Vec<LockCell> {
        self.lock_words().iter().map(LockCell::of_words).collect()
    }

    /// Returns the threads that have recorded, as [`Present::threads`] has them.
    #[must_use]
    pub fn threads(&self) -> Vec<ThreadCell> {
        self.thread_words().map(|words| ThreadCell::of_words(&words)).collect()
    }

    fn thread_words(&self) -> impl Iterator<Item = [u64; CELL_WORDS]> {
        (0..layout::THREAD_CELLS as u32).filter_map(|index| thread_cell::read(self.memory.thread(index)))
    }

    fn span_words(&self, cells: Range<usize>) -> impl Iterator<Item = [u64; CELL_WORDS]> {
        let cells = cells.start..cells.end.min(self.span_cells());
        // A span whose id names another cell is damage.
        let is_its = |index: usize, words: &[u64; CELL_WORDS]| span_index(words[0]) == index;
        cells.filter_map(move |index| span_cell::read(self.memory.span(index)?).filter(|words| is_its(index, words)))
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

    /// Calls `each` with every open span, in the order of their cells. Of the threads in them, only the low 16 bits of
    /// their ids are known.
    pub fn for_each_span(&self, each: impl FnMut(SpanCell)) {
        self.for_each_span_in(0..self.span_cells(), each);
    }

    /// Does as [`Self::for_each_span`], with the spans in these cells.
    pub fn for_each_span_in(&self, cells: Range<usize>, mut each: impl FnMut(SpanCell)) {
        self.span_words(cells).for_each(|words| each(SpanCell::of_words(&words)));
    }

    /// Returns the span with this id, if it is open. Of the thread in it, only the low 16 bits of its id are known.
    #[must_use]
    pub fn span(&self, id: u64) -> Option<SpanCell> {
        let index = span_index(id);
        let words = span_cell::read(self.memory.span(index).filter(|_| index < self.span_cells())?)?;
        Some(SpanCell::of_words(&words)).filter(|span| span.id == id)
    }

    /// Returns the task whose span has this id, if it has not ended.
    #[must_use]
    pub fn task(&self, id: u64) -> Option<TaskCell> {
        self.span(id).and_then(|span| self.task_of(span.id))
    }

    /// Returns the task whose open span has this id.
    fn task_of(&self, id: u64) -> Option<TaskCell> {
        self.task_words(id).map(|words| TaskCell::of_words(&words))
    }

    fn task_words(&self, id: u64) -> Option<[u64; TASK_WORDS]> {
        let index = span_index(id);
        let has_memory = index < self.cells(header::TASK_CELLS, self.memory.capacity());
        task_cell::read(self.memory.task(index).filter(|_| has_memory)?, id)
    }
}
