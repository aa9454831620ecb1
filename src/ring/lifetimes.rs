//! Tests of the lifetime of payloads, under the worst known traffic. The lifetime is the number of payload bytes that
//! are recorded after a payload and before it expires. Payload cursors take turns in an order that no scheduler would
//! choose.

use super::commit::DescriptorFields;
use super::heap::HeapMemory;
use super::memory::{ControlWord, RingMemory};
use super::writer::RingWriter;
use crate::layout::Geometry;
use crate::sync::Ordering;
use std::collections::BTreeMap;

/// A ring with writers and without readers, and a record of how long its payloads lived.
struct Traffic {
    ring: RingWriter<HeapMemory>,
    cursors: Vec<u16>,
    /// Payloads that have not expired. The key is the payload's offset. The value is the sum `recorded` immediately
    /// after this payload was recorded.
    readable: BTreeMap<u64, u64>,
    recorded: u64,
    /// Shortest lifetime so far: the number of bytes that were recorded between a payload and its expiry.
    shortest: u64,
}

impl Traffic {
    fn new(payload_shift: u32, cursors: usize) -> Self {
        // The tests never read the contents of payloads, so few words of payload memory suffice.
        let memory = HeapMemory::new(Geometry::new(16, 1 << payload_shift, 0).unwrap(), 1);
        let ring = RingWriter::new(memory);
        let cursors = (0..cursors).map(|_| ring.cursors().acquire().unwrap().id()).collect();
        Self { ring, cursors, readable: BTreeMap::new(), recorded: 0, shortest: u64::MAX }
    }

    fn record(&mut self, cursor: usize, bytes: u64) {
        let cursor = self.ring.cursors().get(self.cursors[cursor]);
        let claim = self.ring.reserve(cursor, bytes);
        self.recorded += bytes.next_multiple_of(16);
        self.readable.insert(claim.payload_offset, self.recorded);
        let fields =
            DescriptorFields { event_type: 2, payload_bytes: bytes as u32, epoch_nanos: 0, content_ext: [0; 4] };
        self.ring.commit(cursor, claim, &fields);
        let window = self.ring.memory().control(ControlWord::BufferWindowStart).load(Ordering::Relaxed);
        while let Some(oldest) = self.readable.first_entry().filter(|oldest| *oldest.key() < window) {
            self.shortest = self.shortest.min(self.recorded - oldest.remove());
        }
    }

    /// Returns true if the payloads recorded so far would fill the buffer more than four times. That is enough for a
    /// test.
    fn is_enough(&self) -> bool {
        self.recorded > 4 * self.ring.memory().geometry().payload_buf_bytes()
    }

    /// Returns the shortest lifetime of a payload, as a percentage of the payload buffer.
    fn shortest_percent(&self) -> u64 {
        assert!(self.shortest < u64::MAX, "nothing has expired");
        self.shortest * 100 / self.ring.memory().geometry().payload_buf_bytes()
    }
}

/// Records rounds of payloads. In each round, each of `cursors` payload cursors records one payload of `bytes` bytes.
/// Then one further payload cursor records `busy` bytes, in pieces of at most 30 KiB. Returns the shortest lifetime
/// of a payload (the bytes recorded until it expires), as a percentage of the size of the payload buffer.
fn by_turns(payload_shift: u32, cursors: usize, bytes: u64, busy: u64) -> u64 {
    let mut traffic = Traffic::new(payload_shift, cursors + 1);
    while !traffic.is_enough() {
        (0..cursors).for_each(|cursor| traffic.record(cursor, bytes));
        let mut left = busy;
        while left > 0 {
            let piece = left.min(30 << 10);
            traffic.record(cursors, piece);
            left -= piece;
        }
    }
    let percent = traffic.shortest_percent();
    println!("2^{payload_shift}: {cursors} cursors of {bytes} bytes by turns, and {busy} bytes: {percent} %");
    percent
}

/// Size of one shard's payload buffer (as a shift), and number of threads that record to the shard. On one processor, a
/// perf recorder with default settings has four shards of this size. A thousand threads share them.
const SHARD_SHIFT: u32 = 22;
const SHARD_THREADS: usize = 250;

/// Payload sizes in bytes. Many are near a limit above which a payload gets chunks of its own instead of a place in a
/// run.
const SIZES: [u64; 26] = [
    16, 112, 144, 208, 256, 272, 400, 496, 512, 528, 784, 1024, 1040, 1104, 1552, 1584, 2048, 2064, 3136, 4112, 4192,
    8208, 8320, 13_104, 15_872, 16_400,
];

#[test]
fn cursors_of_a_default_shard_that_take_turns_keep_payloads_for_half_of_the_buffer() {
    for cursors in [1, 63, SHARD_THREADS] {
        for bytes in SIZES {
            assert!(by_turns(SHARD_SHIFT, cursors, bytes, 0) >= 50);
        }
    }
}

#[test]
fn slow_cursors_of_a_default_shard_beside_a_busy_one_keep_payloads_for_half_of_the_buffer() {
    for cursors in [33, SHARD_THREADS] {
        for bytes in SIZES {
            for busy in [3 << 10, 300 << 10] {
                assert!(by_turns(SHARD_SHIFT, cursors, bytes, busy) >= 50);
            }
        }
    }
}

#[test]
fn one_cursor_keeps_payloads_of_mixed_sizes_for_half_of_the_buffer_of_any_size() {
    // Three sizes in bytes for each case: a large payload, all small payloads after it together, and one of these
    // small payloads.
    let mixes = [
        (43_696, 13_700, 100),
        (8208, 16_400, 16_400),
        (16_400, 49_200, 16_400),
        (100_000, 4000, 40),
        (4112, 32, 32),
        (70_000, 66_000, 66_000),
    ];
    for payload_shift in [21, 23, 25] {
        for (large, small_in_all, small) in mixes {
            let mut traffic = Traffic::new(payload_shift, 1);
            while !traffic.is_enough() {
                traffic.record(0, large);
                (0..small_in_all / small).for_each(|_| traffic.record(0, small));
            }
            let percent = traffic.shortest_percent();
            println!("2^{payload_shift}: {large} bytes, then {small_in_all} in pieces of {small}: {percent} %");
            assert!(percent >= 50);
        }
    }
}

#[test]
fn a_cursor_beside_a_thousand_idle_ones_has_runs_as_if_it_were_alone() {
    let mut traffic = Traffic::new(SHARD_SHIFT, 1000);
    (0..1000).for_each(|cursor| traffic.record(cursor, 100));
    for _ in 0..2 {
        // The thousand cursors that recorded above count as active until a quarter of the buffer has been allocated.
        // The first pass of this loop allocates more than that. The lifetimes of the first pass are not used.
        (traffic.shortest, traffic.recorded) = (u64::MAX, 0);
        traffic.readable.clear();
        while !traffic.is_enough() {
            traffic.record(0, 528);
        }
    }
    assert!(traffic.shortest_percent() >= 80, "{}", traffic.shortest_percent());
}

/// Checks the claims of docs/RELIABILITY.md about 1,000 threads that record to one ring. The buffer of 2^21 bytes is
/// the smallest that a ring may have.
#[test]
fn many_cursors_that_take_turns_keep_payloads_for_a_third_of_the_buffer_and_beside_a_busy_one_for_an_eighth() {
    for (payload_shift, cursors, sizes) in
        [(21, 500, &[48, 144, 8208][..]), (SHARD_SHIFT, 1000, &[48, 144, 8208]), (27, 1000, &[8208])]
    {
        for bytes in sizes {
            // The bounds are below the shortest lifetimes that were seen.
            for (busy, percent_at_least) in [(0, 33), (30 << 10, 12)] {
                assert!(by_turns(payload_shift, cursors, *bytes, busy) >= percent_at_least);
            }
        }
    }
}
