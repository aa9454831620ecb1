//! What the soak's threads record beside the demo's transactions, and how any of it is checked.

use crate::cli::demo::{Checksum, Workload};
use eventring::reader::Descriptor;
use eventring::recorder::Recorder;
use eventring::schema::exec::ExecEvent;
use eventring::schema::{EventType, RECORD_ERROR_CODE};
use std::sync::Arc;
use std::time::Duration;

/// Tags of events that are not the demo's have this in their second word.
const OURS: u64 = 1 << 63;

/// Bytes of no meaning, as many as the largest payload has.
pub(super) fn noise() -> Arc<[u8]> {
    (0..4u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// One thread's work.
pub(super) struct Torture {
    recorder: Recorder,
    transactions: Workload,
    bytes: Arc<[u8]>,
    codes: Vec<u16>,
    thread: u64,
    turn: u64,
}

impl Torture {
    /// `thread` is a small number; `bytes` are from [`noise`].
    pub(super) fn new(recorder: Recorder, thread: u64, bytes: Arc<[u8]>) -> Self {
        let transactions = Workload::new(recorder.clone(), thread);
        let codes = ExecEvent::schema().info().events.iter().map(|event| event.code).collect();
        Self { recorder, transactions, bytes, codes, thread, turn: 0 }
    }

    /// Records some events; gives how often it stalled.
    pub(super) fn turn(&mut self) -> u64 {
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
        if self.turn % 3000 == self.thread * 700 {
            self.stall();
            return 1;
        }
        0
    }

    fn record(&self, code: u16, bytes: usize) {
        let payload = &self.bytes[..bytes];
        let tags = [self.thread, OURS, self.turn];
        let mut sum = Checksum::new(code, tags, 0);
        sum.add(payload);
        self.recorder.record(code, [tags[0], tags[1], tags[2], sum.finish()], payload);
    }

    /// Holds a reservation open, half filled, while the others go round the ring; then commits it.
    fn stall(&self) {
        let code = ExecEvent::TxnCallFrame as u16;
        let payload = &self.bytes[..1000];
        let tags = [self.thread, OURS, self.turn];
        let mut sum = Checksum::new(code, tags, 0);
        sum.add(payload);
        let ext = [tags[0], tags[1], tags[2], sum.finish()];
        let Some(mut place) = self.recorder.reserve(code, ext, payload.len() as u64) else { return };
        place.append(&payload[..500]);
        std::thread::sleep(Duration::from_millis(5 + self.turn % 60));
        place.append(&payload[500..]);
        place.commit();
    }
}

/// Whether the event is one that [`Torture`] recorded, whole.
pub(super) fn is_whole(event: &Descriptor, payload: &[u8]) -> bool {
    if event.event_type == RECORD_ERROR_CODE {
        return true;
    }
    let [first, second, third, sum] = event.content_ext;
    if second & OURS == 0 {
        return crate::cli::demo::checksum(event, payload) == sum;
    }
    let mut expected = Checksum::new(event.event_type, [first, second, third], 0);
    expected.add(payload);
    expected.finish() == sum
}
