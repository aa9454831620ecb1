//! An independent reader reads a ring file of this crate. It knows only `RING01`, the format of the
//! original C implementation (a published C event system), and uses nothing of this crate: the offsets are those of
//! `docs/FORMAT.md`, and it reads the file with plain `read` calls.

use crate::fixtures::*;
use std::os::unix::fs::FileExt as _;

/// The independent reader, which uses only the standard library.
mod published {
    use super::*;

    pub struct Ring {
        file: File,
        capacity: u64,
        payload_bytes: u64,
    }

    #[derive(Debug, PartialEq)]
    pub struct Event {
        pub seqno: u64,
        pub event_type: u16,
        pub epoch_nanos: u64,
        pub content_ext: [u64; 4],
        /// The payload's bytes, or `None` if the payload has expired.
        pub payload: Option<Vec<u8>>,
    }

    impl Ring {
        /// Opens a ring of that content type and schema hash.
        pub fn open(path: &Path, content_type: u16, schema_hash: [u8; 32]) -> Self {
            let file = File::open(path).unwrap();
            let mut ring = Self { file, capacity: 0, payload_bytes: 0 };
            assert_eq!(ring.bytes(0, 6), b"RING01");
            assert_eq!(ring.bytes(6, 2), content_type.to_le_bytes());
            assert_eq!(ring.bytes(8, 32), schema_hash);
            (ring.capacity, ring.payload_bytes) = (ring.word(40), ring.word(48));
            let context_bytes = ring.word(56);
            assert!(ring.capacity.is_power_of_two() && ring.payload_bytes.is_power_of_two());
            let bytes = (2 << 20) + ring.capacity * 64 + ring.payload_bytes + context_bytes;
            assert_eq!(ring.file.metadata().unwrap().len(), bytes);
            ring
        }

        fn bytes(&self, offset: u64, bytes: usize) -> Vec<u8> {
            let mut buffer = vec![0; bytes];
            self.file.read_exact_at(&mut buffer, offset).unwrap();
            buffer
        }

        fn word(&self, offset: u64) -> u64 {
            u64::from_le_bytes(self.bytes(offset, 8).try_into().unwrap())
        }

        pub fn last_seqno(&self) -> u64 {
            self.word(64)
        }

        /// Returns the event with this seqno, or `None` if its slot holds another event.
        pub fn event(&self, seqno: u64) -> Option<Event> {
            let slot = (seqno - 1) % self.capacity;
            let descriptor = self.bytes((2 << 20) + slot * 64, 64);
            let word = |at: usize| u64::from_le_bytes(descriptor[at..at + 8].try_into().unwrap());
            if word(0) != seqno {
                return None;
            }
            assert_eq!(descriptor[10..12], [0, 0]);
            let size = u32::from_le_bytes(descriptor[12..16].try_into().unwrap());
            let offset = word(24);
            let is_valid = offset >= self.word(128);
            assert!(offset + u64::from(size) <= self.word(72), "the payload ends behind what was handed out");
            Some(Event {
                seqno,
                event_type: u16::from_le_bytes(descriptor[8..10].try_into().unwrap()),
                epoch_nanos: word(16),
                content_ext: [word(32), word(40), word(48), word(56)],
                payload: is_valid.then(|| self.payload(offset, size as usize)),
            })
        }

        fn payload(&self, offset: u64, size: usize) -> Vec<u8> {
            let start = (2 << 20) + self.capacity * 64;
            let at = offset % self.payload_bytes;
            let up_to_end = size.min((self.payload_bytes - at) as usize);
            let mut payload = self.bytes(start + at, up_to_end);
            payload.extend(self.bytes(start, size - up_to_end));
            payload
        }
    }
}

use published::{Event, Ring};

const HASH: [u8; 32] = [
    0x89, 0x33, 0xf9, 0x07, 0xc4, 0x32, 0xc9, 0x8a, 0xc0, 0xc8, 0xdb, 0x62, 0xf9, 0xaa, 0x16, 0x4c, 0x0c, 0x3f, 0x16,
    0x72, 0xf4, 0x12, 0x90, 0xe4, 0xea, 0x34, 0x08, 0xdf, 0x6c, 0x67, 0x23, 0xf3,
];

fn payload(index: u64, size: usize) -> Vec<u8> {
    (0..size as u64).map(|i| (index * 31 + i) as u8).collect()
}

#[test]
fn a_reader_of_the_published_format_reads_what_we_record() {
    record_and_read(false);
}

#[test]
fn a_reader_of_the_published_format_reads_a_ring_with_a_block_table() {
    record_and_read(true);
}

fn record_and_read(block_table: bool) {
    let (_directory, [path]) = places(["ring"]);
    let description = ContentDescription::from_event_type::<ExecEvent>();
    let recorder =
        Recorder::builder(description).config(&path).shifts(16, 27).block_table(block_table).build().unwrap();
    let ring = Ring::open(&path, 2, HASH);
    assert_eq!((ring.last_seqno(), ring.event(1)), (0, None));

    // This thread, and then four other threads, record 72,000 events. The ring has only 65,536 slots. The payloads
    // have sizes from 0 bytes to 5 MiB.
    let sizes = [0, 1, 15, 16, 17, 4096, 70_000, 5 << 20];
    let mut expected = BTreeMap::new();
    for index in 0..70_000u64 {
        let size = match index % 1000 {
            7 => sizes[(index / 1000) as usize % sizes.len()],
            rest => rest as usize % 200,
        };
        let payload = payload(index, size);
        let ext = [index, 1, 2, u64::MAX];
        // Some of the events are BLOCK_STARTs, which the table describes.
        let code = if size >= 528 { 2 } else { 18 };
        let seqno = recorder.recordv(code, ext, &[&payload[..size / 3], &payload[size / 3..]]);
        expected.insert(seqno, (code, ext, payload));
    }
    let counted = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4u64)
            .map(|thread| {
                let recorder = &recorder;
                scope.spawn(move || {
                    (0..500)
                        .map(|index| {
                            let payload = payload(thread, 300 + index as usize);
                            let ext = [thread, index, 0, 0];
                            (recorder.record(19, ext, &payload), (19, ext, payload))
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    expected.extend(counted);
    // This payload is too large for the ring and is not recorded.
    let large = payload(3, 100 << 20);
    let oversized = recorder.record(20, [9; 4], &large);
    drop(recorder.reserve(21, [8; 4], 77));

    let blocks = Reader::open(&path).unwrap().blocks().map(|blocks| blocks.len());
    assert_eq!(blocks, block_table.then_some(25));
    let last = ring.last_seqno();
    assert_eq!(last, 72_002);
    let oldest = last - (1 << 16) + 1;
    let (mut valid, mut before) = (0, 0);
    for seqno in oldest..=last - 2 {
        let event = ring.event(seqno).unwrap();
        let (event_type, ext, payload) = &expected[&seqno];
        assert_eq!((event.event_type, event.content_ext), (*event_type, *ext));
        // Neighbouring events were recorded within milliseconds. The check allows a minute, because the machine may
        // be slow.
        assert!(event.epoch_nanos.abs_diff(before) < 60_000_000_000 || before == 0);
        before = event.epoch_nanos;
        if let Some(found) = event.payload {
            assert!(found == *payload, "seqno {seqno}");
            valid += 1;
        }
    }
    // A payload is readable until half of the payload buffer has been recorded after it. All payloads that still have a
    // descriptor take less than that, even if each takes a few bytes more for alignment. So none has expired.
    let recorded: usize = expected.range(oldest..).map(|(_, (_, _, payload))| payload.len() + 16).sum();
    assert!(recorded < 64 << 20, "{recorded}");
    assert_eq!(valid, (1 << 16) - 2);
    assert_eq!(ring.event(oldest - 1), None);

    let error = ring.event(oversized).unwrap();
    let bytes = error.payload.unwrap();
    assert_eq!((error.event_type, error.content_ext, bytes.len()), (1, [9; 4], 8192));
    assert_eq!(bytes[..2], 2u16.to_le_bytes());
    assert_eq!(bytes[2..4], 20u16.to_le_bytes());
    assert_eq!(bytes[4..8], 8176u32.to_le_bytes());
    assert_eq!(bytes[8..16], (100u64 << 20).to_le_bytes());
    assert_eq!(bytes[16..], large[..8176]);
    let Event { event_type, content_ext, payload, .. } = ring.event(last).unwrap();
    let payload = payload.unwrap();
    assert_eq!((event_type, content_ext, payload.len()), (1, [8; 4], 16));
    assert_eq!((&payload[..4], &payload[8..]), (&[3, 0, 21, 0][..], &77u64.to_le_bytes()[..]));
}
