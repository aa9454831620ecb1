//! The content of tables of the present, and its image for captures. The cells of an image are the same as in the file.
//!
//! An image consists of u64 numbers and the bytes of fields (see `docs/FORMAT.md`):
//! - Four counts: spans, threads, locks and tasks that got no cell, because the tables were full.
//! - Five counts: spans, threads, locks and tasks in the image, and spans with further fields.
//! - The words of the cells of all spans, threads, locks and tasks, in this order.
//! - For each span with further fields: the span's id, the number of bytes of these fields, and the bytes.

use super::lock_cell::LockCell;
use super::span_cell::{INDEX_MASK, Presence, SpanCell};
use super::task_cell::TaskCell;
use super::thread_cell::ThreadCell;
use crate::layout::now::{CELL_WORDS, TASK_WORDS};
use std::collections::HashMap;

/// What the tables of a recorder show.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Present {
    /// The open spans, in the order of their cells.
    pub spans: Vec<SpanCell>,
    /// The tasks that have not ended, in the same order.
    pub tasks: Vec<TaskCell>,
    /// The threads that have recorded, also those that have ended, if no later thread has taken their cells.
    pub threads: Vec<ThreadCell>,
    /// The waits for locks, and the guards, in the order of their numbers; and for locks that are waited for the guard that
    /// was dropped last, with the number 0.
    pub locks: Vec<LockCell>,
    /// The fields of spans whose cells do not have them all, encoded as in events, by span id. Of some spans nobody
    /// knows them any more.
    pub further_fields: HashMap<u64, Vec<u8>>,
    /// How much is missing.
    pub untabled: Untabled,
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

impl Present {
    /// Makes a present of an image. Returns `None` if the bytes are none. Nothing else in them is checked: any cells
    /// show something.
    #[must_use]
    pub fn of_image(image: &[u8]) -> Option<Self> {
        let mut rest = image;
        let [spans, threads, locks, tasks, ..]: [u64; 4] = take(&mut rest)?;
        let untabled = Untabled { spans, threads, locks, tasks };
        let [spans, threads, locks, tasks, further]: [u64; 5] = take(&mut rest)?;
        let mut present = Self { untabled, ..Self::default() };
        for _ in 0..spans {
            present.spans.push(SpanCell::of_words(&take::<CELL_WORDS>(&mut rest)?));
        }
        for _ in 0..threads {
            present.threads.push(ThreadCell::of_words(&take::<CELL_WORDS>(&mut rest)?));
        }
        for _ in 0..locks {
            present.locks.push(LockCell::of_words(&take::<CELL_WORDS>(&mut rest)?));
        }
        for _ in 0..tasks {
            present.tasks.push(TaskCell::of_words(&take::<TASK_WORDS>(&mut rest)?));
        }
        for _ in 0..further {
            let [id, bytes] = take(&mut rest)?;
            let (fields, after) = rest.split_at_checked(usize::try_from(bytes).ok()?)?;
            rest = after;
            present.further_fields.insert(id, fields.to_vec());
        }
        present.complete();
        rest.is_empty().then_some(present)
    }

    /// Puts the locks in order, and the whole id of a thread where a span cell has its low bits. Later threads may have
    /// these bits, too: after 65,535 others, or where the cell is not theirs.
    pub(super) fn complete(&mut self) {
        self.locks.sort_unstable_by_key(|lock| lock.guard);
        let whole = whole_thread_ids(&self.threads);
        for span in &mut self.spans {
            if let Presence::Inside(thread, _) | Presence::Left(thread, _) = &mut span.presence {
                *thread = whole.get(thread).copied().unwrap_or(*thread);
            }
        }
    }

    /// Returns the fields of a span, encoded as in events, as far as they are known.
    #[must_use]
    pub fn fields_of<'p>(&'p self, span: &'p SpanCell, task: Option<&'p TaskCell>) -> &'p [u8] {
        let further = self.further_fields.get(&span.id).map(Vec::as_slice);
        let all = [Some(span.fields()), task.map(TaskCell::fields), further];
        all.into_iter().flatten().max_by_key(|fields| fields.len()).unwrap_or_default()
    }
}

/// Returns the ids of threads by their low 16 bits, which are all that a span cell has of them.
#[must_use]
pub fn whole_thread_ids(threads: &[ThreadCell]) -> HashMap<u32, u32> {
    threads.iter().map(|thread| (thread.id & 0xffff, thread.id)).collect()
}

/// Returns the index of the cell of a span, and of its task, by the span's id.
#[must_use]
#[inline]
pub fn span_index(id: u64) -> usize {
    (id & INDEX_MASK) as usize
}

/// Takes the next numbers.
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u64; N]> {
    let (bytes, after) = rest.split_at_checked(N * 8)?;
    *rest = after;
    let mut words = bytes.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
    Some(std::array::from_fn(|_| words.next().unwrap_or(0)))
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_image_that_is_cut_or_longer_is_none() {
        let words = |count: usize| vec![7_u8; count * 8];
        let mut image: Vec<u8> = [1_u64, 2, 3, 4, 1, 1, 1, 1, 1].iter().flat_map(|word| word.to_le_bytes()).collect();
        image.extend([words(8), words(8), words(8), words(16)].concat());
        image.extend([9_u64, 3].iter().flat_map(|word| word.to_le_bytes()));
        image.extend([1, 2, 3]);
        let present = Present::of_image(&image).unwrap();
        assert_eq!(present.untabled, Untabled { spans: 1, threads: 2, locks: 3, tasks: 4 });
        assert_eq!((present.spans.len(), present.tasks.len(), present.further_fields[&9].len()), (1, 1, 3));
        assert!((0..image.len()).all(|end| Present::of_image(&image[..end]).is_none()));
        image.push(0);
        assert_eq!(Present::of_image(&image), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_image_or_none(counts in prop::collection::vec(0_u64..3, 9), rest in prop::collection::vec(any::<u8>(), 0..900)) {
            let mut image: Vec<u8> = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
            image.extend(rest);
            let _ = Present::of_image(&image);
        }
    }
}
