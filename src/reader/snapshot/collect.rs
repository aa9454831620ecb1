//! Copying the events of a ring out of it, into nameless files. Every loss is counted.

use super::super::error::{ReaderError, ReaderErrorKind};
use super::super::handle::Reader;
use super::numbers::SeqnoRuns;
use super::spool::Spool;
use crate::layout::Descriptor;
use crate::layout::limits::PAYLOAD_ALIGN;
use crate::reader::cursors::cursor::{Cursor, Next, Seek};
use crate::reader::cursors::event_batch::EventBatch;
use crate::reader::cursors::payload::PayloadRead;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// The total time that one snapshot may spend waiting for events that are being recorded.
const TIMEOUT: Duration = Duration::from_millis(200);
/// The size of a batch of events that are copied together.
const BATCH_BYTES: usize = 4 << 20;
/// The largest payload that is copied as part of a batch.
const BATCH_PAYLOAD_BYTES_MAX: u32 = 1 << 20;

/// The events of a ring, in order.
pub(super) struct Collected {
    /// The descriptors of the events, as the words of a ring. They are as in the ring, except that
    /// `payload_buf_offset` is the offset in `payloads`.
    pub descriptors: Spool,
    /// All payloads, each padded to [`PAYLOAD_ALIGN`].
    pub payloads: Spool,
    /// The seqnos of the events.
    pub seqnos: SeqnoRuns,
    /// The number of seqnos in the requested range that have no event in `descriptors`.
    pub lost: u64,
    /// The number of `lost` events that had a descriptor but no valid payload: the payload was overwritten or
    /// malformed.
    pub expired: u64,
    /// The number of `lost` events that were still being recorded when the snapshot stopped waiting for them.
    pub being_written: u64,
}

/// Copies the events from seqno `first_seqno` to `last_seqno`, as far as the ring still holds them. The copies are in
/// nameless files in `directory`, so they take no memory.
///
/// # Errors
/// Returns an error if the payloads are together larger than a sound ring can hold: then the descriptors are damaged.
/// Also returns an error if a file cannot be made or written.
pub(super) fn collect(
    reader: &Reader,
    first_seqno: u64,
    last_seqno: u64,
    directory: &Path,
) -> Result<Collected, ReaderError> {
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Seqno(first_seqno));
    let spool = |_| Spool::new(directory).map_err(no_spool);
    let [descriptors, payloads] = [spool(())?, spool(())?];
    let seqnos = SeqnoRuns::from_reader(reader);
    let mut collected = Collected { descriptors, payloads, seqnos, lost: 0, expired: 0, being_written: 0 };
    let mut batch = EventBatch::new(BATCH_BYTES, BATCH_PAYLOAD_BYTES_MAX);
    let mut deadline = Deadline::default();
    // An upper limit for the bytes of all payloads in a sound ring. Payloads do not overlap, so together they fit the
    // payload buffer. Padding each payload to its alignment at most doubles the sum.
    let payload_bytes_max = reader.info().geometry.payload_buf_bytes().saturating_mul(2);
    while cursor.next_seqno() <= last_seqno {
        batch.clear();
        let next = cursor.copy_batch(&mut batch);
        collected.take_batch(&cursor, &batch, last_seqno, payload_bytes_max)?;
        if !batch.is_empty() {
            // What was read is not read again, so it need not stay in the memory of this process.
            reader.release_pages();
        }
        match next {
            _ if cursor.next_seqno() > last_seqno && !matches!(next, Some(Next::Gap(_))) => {}
            // The batch is full. (`copy_batch` hands out no single events.)
            None | Some(Next::Event(_)) => {}
            Some(Next::Gap(gap)) => {
                let in_range = last_seqno.saturating_add(1).saturating_sub(gap.first_seqno);
                collected.lost += gap.count.min(in_range);
            }
            Some(Next::NotReady) if deadline.is_left() => std::thread::yield_now(),
            // `lag` is 0, so the header says now that the next seqno was not handed out. But the caller has read from
            // the header that `last_seqno` was handed out, and `last_seqno` is not smaller. So the header is damaged,
            // and there is no event to wait for.
            Some(Next::NotReady) if cursor.lag() == 0 => {
                collected.lost += last_seqno - cursor.next_seqno() + 1;
                break;
            }
            Some(Next::NotReady) => {
                let passed = cursor.pass_unready(last_seqno);
                collected.lost += passed;
                collected.being_written += passed;
            }
        }
    }
    Ok(collected)
}

/// Makes the error for a nameless file that cannot be made or written.
fn no_spool(error: io::Error) -> ReaderError {
    ReaderError::io("keep the events of the snapshot in a temporary file", error)
}

impl Collected {
    /// Takes the events of the batch up to `last_seqno`.
    fn take_batch(
        &mut self,
        cursor: &Cursor,
        batch: &EventBatch,
        last_seqno: u64,
        payload_bytes_max: u64,
    ) -> Result<(), ReaderError> {
        let mut buffer = Vec::new();
        for (index, descriptor) in batch.descriptors().iter().enumerate() {
            if descriptor.seqno > last_seqno {
                break;
            }
            let payload = match batch.payload(index) {
                _ if batch.is_left_out(index) => cursor.recorded_payload(descriptor, &mut buffer),
                payload => payload,
            };
            self.take(descriptor, payload).map_err(no_spool)?;
            if self.payloads.bytes() > payload_bytes_max {
                let message = format!(
                    "the ring is damaged: its payloads add up to more than {payload_bytes_max} bytes, twice its payload buffer"
                );
                return Err(ReaderError::new(ReaderErrorKind::BadHeader, message));
            }
        }
        Ok(())
    }

    fn take(&mut self, descriptor: &Descriptor, payload: PayloadRead<'_>) -> io::Result<()> {
        match payload {
            PayloadRead::Valid(payload) => {
                let moved = Descriptor { payload_buf_offset: self.payloads.bytes(), ..*descriptor };
                let padding = payload.len().next_multiple_of(PAYLOAD_ALIGN as usize) - payload.len();
                self.payloads.append(payload)?;
                self.payloads.append(&[0; PAYLOAD_ALIGN as usize][..padding])?;
                moved.to_words().into_iter().try_for_each(|word| self.descriptors.append(&word.to_le_bytes()))?;
                self.seqnos.push(descriptor);
            }
            PayloadRead::Expired | PayloadRead::Malformed => {
                self.lost += 1;
                self.expired += 1;
            }
        }
        Ok(())
    }
}

/// The end of the time in which a snapshot waits for events that are being recorded. The time begins with the first
/// wait.
#[derive(Default)]
struct Deadline {
    end: Option<Instant>,
}

impl Deadline {
    fn is_left(&mut self) -> bool {
        let now = Instant::now();
        now < *self.end.get_or_insert(now + TIMEOUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::{ContentDescription, Recorder};

    #[test]
    fn numbers_that_the_header_takes_back_are_lost_and_not_waited_for_one_by_one() {
        let recorder =
            Recorder::builder(ContentDescription::new(300, "X")).anonymous().prefault(false).build().unwrap();
        recorder.record(2, [0; 4], b"hello");
        let reader = Reader::options().open_fd(recorder.as_fd()).unwrap();
        // The range ends far beyond the ring's last seqno, as if a damaged header had held 2^62 a moment ago.
        let collected = collect(&reader, 1, 1 << 62, &std::env::temp_dir()).unwrap();
        assert_eq!((collected.seqnos.events(), collected.lost, collected.being_written), (1, (1 << 62) - 1, 0));
    }
}
