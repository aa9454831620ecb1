//! Blocks of transactions, with payload sizes like those of a real blockchain.

use crate::checksum::Checksum;
use eventring::reader::Descriptor;
use eventring::recorder::Recorder;
use eventring::schema::EventPayload;
use eventring::schema::exec::{
    BlockEnd, BlockStart, BlockTag, ExecEvent, StorageAccess, TxnCallFrame, TxnEvmOutput, TxnHeader, TxnHeaderStart,
    TxnLog,
};
use std::rc::Rc;

const TRANSACTIONS_A_BLOCK: u64 = 200;
/// A payload is a fixed struct, followed by byte arrays. This is the largest size of one such array, in bytes.
const ARRAY_BYTES_MAX: usize = 70 << 10;

/// Returns true if events of this type are recorded with a reservation. A reservation gives the writer the seqno
/// before the payload is written, so the checksum of such an event includes the seqno.
fn knows_its_seqno(event_type: u16) -> bool {
    [ExecEvent::BlockStart as u16, ExecEvent::TxnHeaderStart as u16].contains(&event_type)
}

/// Recording state of one thread.
pub(crate) struct Blocks {
    recorder: Recorder,
    thread: u64,
    noise: Noise,
    /// The seqno of the current block's BLOCK_START event. All events of the block have this number in their first
    /// extension word.
    block: u64,
    next_transaction: u64,
}

impl Blocks {
    pub(crate) fn new(recorder: Recorder, thread: u64) -> Self {
        Self { recorder, thread, noise: Noise::new(thread), block: 0, next_transaction: 0 }
    }

    /// Records one transaction. Before the first transaction of a block, also records the events that begin the block.
    /// After the last one, also records the events that end it.
    pub(crate) fn transaction(&mut self) {
        if self.next_transaction == 0 {
            let block_tag = BlockTag { id: self.noise.array().into(), block_number: self.thread };
            let start = BlockStart { block_tag, round: self.thread, ..BlockStart::default() };
            self.block = self.reserve(ExecEvent::BlockStart, 0, &start, &[]);
            self.record(ExecEvent::BlockPerfEvmEnter, [0, 0], &(), &[]);
        }
        let index = self.next_transaction;
        self.body(index);
        self.next_transaction += 1;
        if self.next_transaction == TRANSACTIONS_A_BLOCK {
            self.record(ExecEvent::BlockPerfEvmExit, [0, 0], &(), &[]);
            let end = BlockEnd { eth_block_hash: self.noise.array().into(), gas_used: index, ..BlockEnd::default() };
            self.record(ExecEvent::BlockEnd, [0, 0], &end, &[]);
            self.next_transaction = 0;
        }
    }

    fn body(&mut self, index: u64) {
        let txn = index + 1;
        let bytes = self.noise.bytes.clone();
        let data = &bytes[self.noise.range()];
        let txn_header = TxnHeader { nonce: index, data_length: data.len() as u32, ..TxnHeader::default() };
        let (txn_hash, sender) = (self.noise.array().into(), self.noise.array().into());
        self.reserve(ExecEvent::TxnHeaderStart, txn, &TxnHeaderStart { txn_hash, sender, txn_header }, &[data]);
        self.record(ExecEvent::TxnHeaderEnd, [txn, 0], &(), &[]);
        self.record(ExecEvent::TxnPerfEvmEnter, [txn, 0], &(), &[]);
        for index in 0..1 + self.noise.draw() as u32 % 3 {
            let input = &bytes[self.noise.range()];
            let input_length = input.len() as u64;
            let frame = TxnCallFrame { index, caller: sender, input_length, ..TxnCallFrame::default() };
            self.record(ExecEvent::TxnCallFrame, [txn, 0], &frame, &[input]);
        }
        for index in 0..self.noise.draw() as u32 % 8 {
            let key = self.noise.array().into();
            let access = StorageAccess { address: sender, index, key, ..StorageAccess::default() };
            self.record(ExecEvent::StorageAccess, [txn, index.into()], &access, &[]);
        }
        for index in 0..self.noise.draw() as u32 % 2 {
            let (topics, data) = (&bytes[..64], &bytes[self.noise.range()]);
            let log = TxnLog { index, address: sender, topic_count: 2, data_length: data.len() as u32 };
            self.record(ExecEvent::TxnLog, [txn, 0], &log, &[topics, data]);
        }
        let output = TxnEvmOutput { status: true, gas_used: index, ..TxnEvmOutput::default() };
        self.record(ExecEvent::TxnEvmOutput, [txn, 0], &output, &[]);
        self.record(ExecEvent::TxnPerfEvmExit, [txn, 0], &(), &[]);
        self.record(ExecEvent::TxnEnd, [txn, 0], &(), &[]);
    }

    /// Records an event with one call. The payload is `fixed`, followed by `arrays`. The checksum goes into the fourth
    /// extension word, which holds the span id in other programs.
    fn record(&self, event: ExecEvent, [txn, account]: [u64; 2], fixed: &impl EventPayload, arrays: &[&[u8]]) {
        let (code, tags) = (event as u16, [self.block, txn, account]);
        fixed.with_bytes(|fixed| {
            let mut parts: [&[u8]; 3] = [fixed, &[], &[]];
            parts[1..=arrays.len()].copy_from_slice(arrays);
            let mut sum = Checksum::new(code, tags, 0);
            parts.iter().for_each(|part| sum.add(part));
            let ext = [tags[0], tags[1], tags[2], sum.finish()];
            if arrays.is_empty() {
                self.recorder.record(code, ext, fixed);
            } else {
                self.recorder.recordv(code, ext, &parts);
            }
        });
    }

    /// Records an event with a reservation, and returns its seqno, or 0 if the recorder refused the reservation. The
    /// first extension word of a BLOCK_START is the event's own seqno.
    fn reserve(&self, event: ExecEvent, txn: u64, fixed: &impl EventPayload, arrays: &[&[u8]]) -> u64 {
        let code = event as u16;
        fixed.with_bytes(|fixed| {
            let bytes = std::iter::once(&fixed).chain(arrays).map(|part| part.len() as u64).sum();
            let Some(mut reservation) = self.recorder.reserve(code, [0, txn, 0, 0], bytes) else { return 0 };
            let seqno = reservation.seqno();
            let block = if event == ExecEvent::BlockStart { seqno } else { self.block };
            let mut sum = Checksum::new(code, [block, txn, 0], seqno);
            for part in std::iter::once(&fixed).chain(arrays) {
                reservation.append(part);
                sum.add(part);
            }
            reservation.set_content_ext(0, block);
            reservation.set_content_ext(3, sum.finish());
            reservation.commit()
        })
    }
}

/// Returns the checksum that the writer must have stored in this event.
pub(crate) fn checksum(event: &Descriptor, payload: &[u8]) -> u64 {
    let [block, txn, account, _] = event.content_ext;
    let seqno = if knows_its_seqno(event.event_type) { event.seqno } else { 0 };
    let mut sum = Checksum::new(event.event_type, [block, txn, account], seqno);
    sum.add(payload);
    sum.finish()
}

/// Pseudo-random numbers and bytes, the same in every run.
struct Noise {
    state: u64,
    bytes: Rc<[u8]>,
}

impl Noise {
    fn new(seed: u64) -> Self {
        let mut noise = Self { state: seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1, bytes: Rc::new([]) };
        noise.bytes = (0..2 * ARRAY_BYTES_MAX).map(|_| noise.draw() as u8).collect();
        noise
    }

    /// Returns the next number (xorshift).
    fn draw(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// Returns a part of the bytes, which is short in most calls.
    fn range(&mut self) -> std::ops::Range<usize> {
        let length = match self.draw() % 2000 {
            0 => ARRAY_BYTES_MAX as u64,
            1..20 => self.draw() % 5000,
            20..200 => self.draw() % 300,
            _ => self.draw() % 90,
        };
        let start = self.draw() % ARRAY_BYTES_MAX as u64;
        // `start` and `length` are below 2^17, so the conversions lose nothing.
        start as usize..(start + length) as usize
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let start = self.draw() as usize % ARRAY_BYTES_MAX;
        std::array::from_fn(|i| self.bytes[start + i])
    }
}
