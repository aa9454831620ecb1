//! Tables of the present that are saved with a snapshot: a file beside the snapshot, with only the used cells.

use super::span_cell::INDEX_MASK;
use crate::layout::now::{self as layout, CELL_BYTES, CELL_WORDS, TASK_BYTES, TASK_WORDS, header};
use std::fs::File;
use std::io::{self, BufWriter, Seek as _, Write as _};

/// The number of words of an image before its cells.
const IMAGE_WORDS: usize = 9;
/// The word of a span cell that says where the SPAN_NEW event is.
const PLACE: usize = 5;
/// The bits of its seqno.
const SEQNO: u64 = (1 << 53) - 1;

/// Writes an image of tables into an empty file, as the file of the recorder with this group number. `lost` is the
/// difference between the seqnos of the ring and those of the snapshot.
///
/// # Errors
/// The file cannot be written.
pub fn save_tables(image: &[u8], group: u64, lost: u64, file: &File) -> io::Result<()> {
    let mut words: Vec<u64> = image.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let Some((numbers, cells)) = words.split_first_chunk_mut::<IMAGE_WORDS>() else { return Ok(()) };
    let [without_spans, without_threads, without_locks, without_tasks, counts @ .., _] = numbers.map(|it| it as usize);
    let index = |id: u64| (id & INDEX_MASK) as usize;
    let mut used = 0;
    for span in cells.as_chunks_mut::<CELL_WORDS>().0.iter_mut().take(counts[0]) {
        used = used.max(index(span[0]) + 1);
        let is_kept = span[PLACE] & SEQNO > lost;
        span[PLACE] = if is_kept { span[PLACE] - lost } else { 0 };
    }
    let capacity = used.next_power_of_two().clamp(layout::SPAN_CELLS_MIN, layout::SPAN_CELLS_MAX);
    file.set_len(layout::file_bytes(capacity))?;
    let (mut out, mut end) = (BufWriter::new(file), 0);
    let mut put = |offset: usize, words: &[u64]| {
        if offset != std::mem::replace(&mut end, offset + words.len() * 8) {
            out.seek(io::SeekFrom::Start(offset as u64))?;
        }
        words.iter().try_for_each(|word| out.write_all(&word.to_le_bytes()))
    };
    put(header::MAGIC_OFFSET, &[layout::MAGIC, group, 0, capacity as u64, used as u64, used as u64])?;
    let without = [without_spans, without_threads, without_locks, without_tasks].map(|count| count as u64);
    put(header::SPANS_WITHOUT, &without)?;
    put(header::LOCK_CELLS, &[layout::LOCK_CELLS as u64])?;
    let mut rest = &*cells;
    for (kind, count) in counts.into_iter().enumerate() {
        for at in 0..count {
            let cell_words = if kind == 3 { TASK_WORDS } else { CELL_WORDS };
            let Some((cell, after)) = rest.split_at_checked(cell_words) else { return Ok(()) };
            rest = after;
            let offset = match kind {
                0 => layout::SPANS_OFFSET + index(cell[0]) * CELL_BYTES,
                1 => layout::THREADS_OFFSET + cell[0] as u32 as usize % layout::THREAD_CELLS * CELL_BYTES,
                2 => layout::LOCKS_OFFSET + at % layout::LOCK_CELLS * CELL_BYTES,
                _ => layout::SPANS_OFFSET + capacity * CELL_BYTES + index(cell[0]) * TASK_BYTES,
            };
            put(offset, cell)?;
        }
    }
    out.flush()
}
