//! Copying the events of a ring into private memory. Every loss is counted.

use super::super::cursor::{Cursor, Next, Seek};
use super::super::error::{ReaderError, ReaderErrorKind};
use super::super::handle::Reader;
use super::super::payload::PayloadRead;
use crate::layout::Descriptor;
use crate::layout::limits::PAYLOAD_ALIGN;
use std::time::{Duration, Instant};

/// The size of the blocks that hold the payload bytes. A single vector would copy all of its bytes whenever it grows.
/// In that time, a live writer would overwrite events that are not collected yet.
const BLOCK_BYTES: usize = 16 << 20;

/// The total time that one snapshot may spend waiting for events that are being recorded.
const PATIENCE: Duration = Duration::from_millis(200);

/// The events of a ring, in order.
#[derive(Default)]
pub(super) struct Collected {
    /// The descriptors of the events. They are as in the ring, except that `payload_buf_offset` is the offset in
    /// `payloads`.
    pub descriptors: Vec<Descriptor>,
    /// All payloads, each padded to [`PAYLOAD_ALIGN`].
    pub payloads: Blocks,
    /// The number of seqnos in the requested range that have no event in `descriptors`.
    pub lost: u64,
    /// The number of `lost` events that had a descriptor but no valid payload: the payload was overwritten or
    /// malformed.
    pub expired: u64,
    /// The number of `lost` events that were still being recorded when the snapshot stopped waiting for them.
    pub being_written: u64,
}

/// A sequence of bytes that grows by blocks. So appending never copies more than one block of earlier bytes.
#[derive(Default)]
pub(super) struct Blocks {
    blocks: Vec<Vec<u8>>,
    bytes: u64,
}

impl Blocks {
    fn append(&mut self, mut bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.blocks.last().is_none_or(|block| block.len() == BLOCK_BYTES) {
                self.blocks.push(Vec::with_capacity(BLOCK_BYTES.min(bytes.len().max(1 << 16))));
            }
            let Some(block) = self.blocks.last_mut() else { return };
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK_BYTES - block.len()));
            block.extend_from_slice(now);
            bytes = later;
        }
    }

    /// Returns the number of bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the bytes, in pieces.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.blocks.iter().map(Vec::as_slice)
    }
}

/// Copies the events from seqno `first_seqno` to `last_seqno`, as far as the ring still holds them.
///
/// # Errors
/// Returns an error if the payloads are together larger than a sound ring can hold: then the descriptors are damaged.
pub(super) fn collect(reader: &Reader, first_seqno: u64, last_seqno: u64) -> Result<Collected, ReaderError> {
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Seqno(first_seqno));
    let mut collected = Collected::default();
    let mut buffer = Vec::new();
    let mut patience = Patience::default();
    // An upper limit for the bytes of all payloads in a sound ring. Payloads do not overlap, so together they fit the
    // payload buffer. Padding each payload to its alignment at most doubles the sum.
    let payload_bytes_max = reader.info().geometry.payload_buf_bytes().saturating_mul(2);
    while cursor.next_seqno() <= last_seqno {
        match cursor.next() {
            Next::Event(descriptor) => collected.take(&cursor, descriptor, &mut buffer),
            Next::Gap(gap) => {
                let in_range = last_seqno.saturating_add(1).saturating_sub(gap.first_seqno);
                collected.lost += gap.count.min(in_range);
            }
            Next::NotReady if patience.is_left() => std::thread::yield_now(),
            // `lag` is 0, so the header says now that the next seqno was not handed out. But the caller has read from
            // the header that `last_seqno` was handed out, and `last_seqno` is not smaller. So the header is damaged,
            // and there is no event to wait for.
            Next::NotReady if cursor.lag() == 0 => {
                collected.lost += last_seqno - cursor.next_seqno() + 1;
                break;
            }
            Next::NotReady => {
                let passed = cursor.pass_unready(last_seqno);
                collected.lost += passed;
                collected.being_written += passed;
            }
        }
        if collected.payloads.bytes() > payload_bytes_max {
            let message = format!(
                "the ring is damaged: its payloads add up to more than {payload_bytes_max} bytes, twice its payload buffer"
            );
            return Err(ReaderError::new(ReaderErrorKind::BadHeader, message));
        }
    }
    Ok(collected)
}

impl Collected {
    fn take(&mut self, cursor: &Cursor, descriptor: Descriptor, buffer: &mut Vec<u8>) {
        match cursor.payload(&descriptor, buffer) {
            PayloadRead::Valid(payload) => {
                let payload_buf_offset = self.payloads.bytes();
                self.payloads.append(payload);
                let padding = payload.len().next_multiple_of(PAYLOAD_ALIGN as usize) - payload.len();
                self.payloads.append(&[0; PAYLOAD_ALIGN as usize][..padding]);
                self.descriptors.push(Descriptor { payload_buf_offset, ..descriptor });
            }
            PayloadRead::Expired | PayloadRead::Malformed => {
                self.lost += 1;
                self.expired += 1;
            }
        }
    }
}

/// The end of the time in which a snapshot waits for events that are being recorded. The time begins with the first
/// wait.
#[derive(Default)]
struct Patience {
    end: Option<Instant>,
}

impl Patience {
    fn is_left(&mut self) -> bool {
        let now = Instant::now();
        now < *self.end.get_or_insert(now + PATIENCE)
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
        let collected = collect(&reader, 1, 1 << 62).unwrap();
        assert_eq!((collected.descriptors.len(), collected.lost, collected.being_written), (1, (1 << 62) - 1, 0));
    }
}
