//! The events that the soak's threads record in addition to the transactions of [`Blocks`], and the check of all these
//! events.

use crate::blocks::{self, Blocks};
use crate::checksum::Checksum;
use eventring::reader::Descriptor;
use eventring::recorder::Recorder;
use eventring::schema::exec::ExecEvent;
use eventring::schema::{EventType, RECORD_ERROR_CODE};
use std::sync::Arc;
use std::time::Duration;

/// A bit of the second extension word. It is set in the events of [`Stress`] and clear in those of [`Blocks`].
const SOAK_EVENT: u64 = 1 << 63;

/// Returns pseudo-random bytes, enough for the largest payload.
pub(crate) fn noise() -> Arc<[u8]> {
    (0..4u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Recording state of one thread.
pub(crate) struct Stress {
    recorder: Recorder,
    transactions: Blocks,
    bytes: Arc<[u8]>,
    codes: Vec<u16>,
    thread: u64,
    turn: u64,
}

impl Stress {
    /// Creates the state of a thread. `thread` is the number that its events carry, and `bytes` come from [`noise`].
    pub(crate) fn new(recorder: Recorder, thread: u64, bytes: Arc<[u8]>) -> Self {
        let transactions = Blocks::new(recorder.clone(), thread);
        let codes = ExecEvent::schema().info().events.iter().map(|event| event.code).collect();
        Self { recorder, transactions, bytes, codes, thread, turn: 0 }
    }

    /// Records several events. Returns the number of times that the thread stalled: 0 or 1.
    pub(crate) fn turn(&mut self) -> u64 {
        self.turn += 1;
        self.transactions.transaction();
        if self.turn.is_multiple_of(64) {
            for code in self.codes.clone() {
                if code != RECORD_ERROR_CODE {
                    self.record(code, (self.turn * 37 % 3000) as usize);
                }
            }
        }
        if self.turn.is_multiple_of(5000) {
            self.record(ExecEvent::TxnLog as u16, (1 << 20) | ((self.turn as usize * 4099) % (3 << 20)));
        }
        if stalls_in(self.turn, self.thread) {
            self.stall();
            return 1;
        }
        0
    }

    fn record(&self, code: u16, bytes: usize) {
        let payload = &self.bytes[..bytes];
        self.recorder.record(code, self.extension_words(code, payload), payload);
    }

    /// Makes a reservation and fills half of it, waits while the other threads record, and then fills the rest and
    /// commits.
    fn stall(&self) {
        let code = ExecEvent::TxnCallFrame as u16;
        let payload = &self.bytes[..1000];
        let words = self.extension_words(code, payload);
        let Some(mut reservation) = self.recorder.reserve(code, words, payload.len() as u64) else { return };
        reservation.append(&payload[..500]);
        std::thread::sleep(Duration::from_millis(5 + self.turn % 60));
        reservation.append(&payload[500..]);
        reservation.commit();
    }

    /// Returns the extension words of an event of this turn: the thread, the mark [`SOAK_EVENT`], the turn, and a
    /// checksum. The checksum covers the event's type, the first three words and the payload.
    fn extension_words(&self, code: u16, payload: &[u8]) -> [u64; 4] {
        let mut sum = Checksum::new(code, [self.thread, SOAK_EVENT, self.turn], 0);
        sum.add(payload);
        [self.thread, SOAK_EVENT, self.turn, sum.finish()]
    }
}

/// Returns true if a thread stalls in that turn. Each thread stalls once in 3,000 turns. Threads with neighbouring
/// numbers stall in turns that are far apart.
pub(crate) fn stalls_in(turn: u64, thread: u64) -> bool {
    turn % 3000 == thread * 700 % 3000
}

/// Returns true if the event is whole: the checksum in its last extension word matches its type, its other words and
/// its payload. [`Stress`] and [`Blocks`] compute checksums in different ways. The mark [`SOAK_EVENT`] shows
/// which of them has recorded the event. A RECORD_ERROR has no checksum and counts as whole.
pub(crate) fn is_whole(event: &Descriptor, payload: &[u8]) -> bool {
    if event.event_type == RECORD_ERROR_CODE {
        return true;
    }
    let [first, second, third, sum] = event.content_ext;
    if second & SOAK_EVENT == 0 {
        return blocks::checksum(event, payload) == sum;
    }
    let mut expected = Checksum::new(event.event_type, [first, second, third], 0);
    expected.add(payload);
    expected.finish() == sum
}
