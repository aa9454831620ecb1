//! The algorithm of the original C implementation (the published C event system whose ring format is `RING01`)
//! under stall injection. It is the positive control: the test must find in it the faults that eventring must not have.
//!
//! This code is transcribed from the algorithm's documentation, as in `benches/rivals`. A reservation is two
//! fetch-adds. The writer zeroes the slot without a claim, and moves the window by one compare-exchange. A reader
//! checks the seqno before and after it copies the descriptor, and the window after it copies the payload. Two things
//! differ from the documentation: the words are relaxed atomics, so that a race is not undefined behaviour here, and
//! the window moves in steps of an eighth of this small buffer.

use crate::parking;
use crate::stall::seal::{self, Count, Verdict, WITHOUT_SEQNO};
use crate::stall::{DESCRIPTOR_SHIFT, PAYLOAD_SHIFT, Subject};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::Duration;

const CAPACITY: u64 = 1 << DESCRIPTOR_SHIFT;
const PAYLOAD_BYTES: u64 = 1 << PAYLOAD_SHIFT;
const WINDOW_INCR: u64 = PAYLOAD_BYTES / 8;

/// Steps at which a writer can be parked by [`parking`].
pub const STEPS: [&str; 6] = ["reserved", "zeroed", "allocated", "window moved", "half described", "described"];

/// A ring of the original C implementation's algorithm, on the heap.
pub struct Published {
    last_seqno: AtomicU64,
    next_payload_byte: AtomicU64,
    window_start: AtomicU64,
    /// The descriptors. Each has seven words: the seqno, type << 32 | size, the payload offset, and four extension
    /// words.
    descriptors: Box<[[AtomicU64; 7]]>,
    payload: Box<[AtomicU64]>,
}

impl Published {
    pub fn new() -> Self {
        Self {
            last_seqno: AtomicU64::new(0),
            next_payload_byte: AtomicU64::new(0),
            window_start: AtomicU64::new(0),
            descriptors: (0..CAPACITY).map(|_| Default::default()).collect(),
            payload: (0..PAYLOAD_BYTES / 8).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn slot(&self, seqno: u64) -> &[AtomicU64; 7] {
        &self.descriptors[((seqno - 1) % CAPACITY) as usize]
    }

    fn payload_word(&self, offset: u64, index: usize) -> &AtomicU64 {
        &self.payload[(offset / 8 + index as u64) as usize % self.payload.len()]
    }

    /// Reads the event of `seqno` once and judges it. If the slot holds another seqno, returns that seqno as an
    /// error.
    fn look(&self, seqno: u64, verdict: &mut Verdict) -> Result<(), u64> {
        let slot = self.slot(seqno);
        let seen = slot[0].load(Ordering::Acquire);
        if seen != seqno {
            return Err(seen);
        }
        let words: [u64; 6] = std::array::from_fn(|i| slot[i + 1].load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        let seen = slot[0].load(Ordering::Relaxed);
        if seen != seqno {
            return Err(seen);
        }
        let [type_and_size, offset, ext @ ..] = words;
        // In a torn descriptor the size may be any number, so the copy is limited to the size of the buffer.
        let bytes = (type_and_size as u32 as usize).min(PAYLOAD_BYTES as usize);
        let mut payload: Vec<u8> = (0..bytes.div_ceil(8))
            .flat_map(|index| self.payload_word(offset, index).load(Ordering::Relaxed).to_le_bytes())
            .collect();
        payload.truncate(bytes);
        fence(Ordering::Acquire);
        let is_valid = self.window_start.load(Ordering::Relaxed) <= offset;
        verdict.event(seqno, (type_and_size >> 32) as u16, bytes, ext, is_valid.then_some(&payload));
        Ok(())
    }
}

impl Subject for Published {
    fn record(&self, _: Count, words: [u64; 3], payload: &[u8]) -> u64 {
        let [a, b, c] = words;
        let ext = [a, b, c, seal::seal(0, WITHOUT_SEQNO, payload.len(), words)];
        let seqno = self.last_seqno.fetch_add(1, Ordering::Relaxed) + 1;
        parking::at(0);
        let slot = self.slot(seqno);
        slot[0].store(0, Ordering::Release);
        fence(Ordering::Release);
        parking::at(1);
        let aligned = (payload.len() as u64).next_multiple_of(16);
        let offset = self.next_payload_byte.fetch_add(aligned, Ordering::Relaxed);
        parking::at(2);
        let end = offset + aligned;
        let start = self.window_start.load(Ordering::Relaxed);
        if end.wrapping_sub(start) > PAYLOAD_BYTES - WINDOW_INCR {
            // As in the original C algorithm, the subtractions are unsigned and may wrap. If other writers have moved
            // the window past this writer's payload, `end` is less than `start`. Then the difference wraps to a large
            // number, and `to` becomes a wrong start of the window.
            let to = (end.wrapping_sub(PAYLOAD_BYTES) & !(WINDOW_INCR - 1)).wrapping_add(2 * WINDOW_INCR);
            let _ = self.window_start.compare_exchange(start, to, Ordering::Relaxed, Ordering::Relaxed);
            fence(Ordering::Release);
        }
        parking::at(3);
        slot[1].store(u64::from(WITHOUT_SEQNO) << 32 | payload.len() as u64, Ordering::Relaxed);
        parking::at(4);
        slot[2].store(offset, Ordering::Relaxed);
        for (word, ext) in slot[3..].iter().zip(ext) {
            word.store(ext, Ordering::Relaxed);
        }
        for (index, part) in payload.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.payload_word(offset, index).store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        parking::at(5);
        slot[0].store(seqno, Ordering::Release);
        seqno
    }

    fn read(&self, done: &AtomicBool, verdict: &mut Verdict) {
        let mut next = 1;
        loop {
            let was_done = done.load(Ordering::Acquire);
            let last = self.last_seqno();
            if self.look(next, verdict).is_ok() {
                next += 1;
            } else if next > last {
                if was_done {
                    return;
                }
                std::thread::sleep(Duration::from_micros(100));
            } else if was_done || last - next >= CAPACITY {
                // The event was overwritten, or it will never be committed. The reader skips it. A reader that is far
                // back goes on at the seqno seven eighths of a lap before the last one. All seqnos that it skips
                // count as lost.
                let to = (next + 1).max(last.saturating_sub(CAPACITY - CAPACITY / 8));
                verdict.lost += to - next;
                next = to;
            } else {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    }

    fn read_post_mortem(&self, verdict: &mut Verdict, seen: &mut dyn FnMut(u64)) {
        let last = self.last_seqno();
        for seqno in last.saturating_sub(CAPACITY) + 1..=last {
            match self.look(seqno, verdict) {
                Ok(()) => seen(seqno),
                Err(_) => verdict.lost += 1,
            }
        }
    }

    fn last_seqno(&self) -> u64 {
        self.last_seqno.load(Ordering::Acquire)
    }

    fn skipped(&self) -> u64 {
        0
    }
}
