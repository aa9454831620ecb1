//! The cost of reading a ring, compared with plain copies of the same memory.

use crate::Medians;
use crate::interleave::Cases;
use crate::scan_floors::FloorCursor;
use eventring::reader::{Cursor, Next, Reader, ReadyEvent, Seek};
use eventring::recorder::{ContentDescription, Recorder};
use std::fs::File;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// The offset of the payload's size in a descriptor.
const SIZE_AT: usize = 12;
const PAYLOAD: [u8; 82] = [7; 82];
/// The bytes that a payload of that size occupies.
const PAYLOAD_STRIDE: usize = 96;
/// The number of operations in a batch.
const OPERATIONS: u64 = 50_000;
/// The number of parts of a large ring. Each case reads in another part.
const PARTS: u64 = 16;

/// Measures two rings. One is far larger than the caches. The other (`…_cached`) has so few events that everything
/// that is read stays in the second-level cache.
pub fn measure(rounds: usize) -> Medians {
    let mut medians = measure_ring(&Scanned::new(20, 29, 1 << 20, PARTS), "", rounds);
    medians.extend(measure_ring(&Scanned::new(16, 27, 1 << 12, 1), "_cached", rounds));
    medians
}

fn measure_ring(ring: &Scanned, suffix: &str, rounds: usize) -> Medians {
    // Each case reads in another part of the ring, and all go at the same pace. So no case finds data in the cache
    // that another case has brought there. (The small ring has only one part, which all cases read.)
    let mut parts = (0..PARTS).map(|part| part % ring.parts * (ring.events / ring.parts));
    let mut part = || parts.next().expect("as many parts as cases");
    let mut cases = Cases::default();

    let mut cursor = ring.cursor_at(part());
    cases.add(format!("scan_next{suffix}"), OPERATIONS, move || match cursor.next() {
        Next::Event(event) => {
            black_box(&event);
        }
        _ => cursor.seek(Seek::Seqno(1)),
    });
    // This case reads with `each_ready`, which can keep the cursor's position in a register.
    let mut cursor = ring.cursor_at(part());
    cases.add_batch(format!("scan_each{suffix}"), OPERATIONS, move |operations| {
        timed(&mut cursor, operations, |event| {
            black_box(event.descriptor());
        })
    });
    let (mut cursor, mut buffer) = (ring.cursor_at(part()), Vec::new());
    cases.add(format!("scan_copy82{suffix}"), OPERATIONS, move || match cursor.next() {
        Next::Event(event) => {
            black_box(cursor.payload(&event, &mut buffer).valid());
        }
        _ => cursor.seek(Seek::Seqno(1)),
    });
    let (mut cursor, mut buffer) = (ring.cursor_at(part()), Vec::new());
    cases.add_batch(format!("scan_each_copy82{suffix}"), OPERATIONS, move |operations| {
        timed(&mut cursor, operations, |event| {
            black_box(event.payload(&mut buffer).valid());
        })
    });
    // This case does only the work that every reader must do, and reads memory that nobody writes to.
    let mut cursor = FloorCursor::new(ring.descriptors, part());
    cases.add(format!("scan_floor_next{suffix}"), OPERATIONS, move || {
        if let Some(event) = cursor.next() {
            black_box(&event);
        }
    });

    // A mask is a power of two, less one: it needs no division.
    let last = ring.events as usize - 1;
    let (descriptors, payloads) = (ring.descriptors, ring.payloads);
    let (mut at, mut line) = (part() as usize, [0u8; 64]);
    cases.add(format!("scan_stride_64{suffix}"), OPERATIONS, move || {
        line.copy_from_slice(&descriptors[at * 64..at * 64 + 64]);
        black_box(&mut line);
        at = (at + 1) & last;
    });
    let (mut at, mut line, mut target) = (part() as usize, [0u8; 64], PAYLOAD);
    cases.add(format!("scan_stride_64_82{suffix}"), OPERATIONS, move || {
        line.copy_from_slice(&descriptors[at * 64..at * 64 + 64]);
        black_box(&mut line);
        target.copy_from_slice(&payloads[at * PAYLOAD_STRIDE..at * PAYLOAD_STRIDE + PAYLOAD.len()]);
        black_box(&mut target);
        at = (at + 1) & last;
    });
    // This case takes the payload's length from the descriptor, as every reader must. The length is not a constant
    // here, so the copy is a call of `memcpy`.
    let (mut at, mut line, mut target) = (part() as usize, [0u8; 64], [0u8; 128]);
    cases.add(format!("scan_stride_64_any{suffix}"), OPERATIONS, move || {
        line.copy_from_slice(&descriptors[at * 64..at * 64 + 64]);
        black_box(&mut line);
        let bytes = u32::from_le_bytes(line[SIZE_AT..SIZE_AT + 4].try_into().expect("four bytes")) as usize;
        let bytes = bytes.min(target.len());
        target[..bytes].copy_from_slice(&payloads[at * PAYLOAD_STRIDE..at * PAYLOAD_STRIDE + bytes]);
        black_box(&mut target);
        at = (at + 1) & last;
    });
    cases.measure(rounds)
}

/// Returns the time that the cursor takes to call `f` with `events` events. After the end of the ring, the cursor
/// starts again.
#[inline(always)]
fn timed(cursor: &mut Cursor, events: u64, mut f: impl FnMut(&ReadyEvent<'_>)) -> Duration {
    let (start, mut left) = (Instant::now(), events);
    while left > 0 {
        let end = cursor.each_ready(|event| {
            f(&event);
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if end.is_some() {
            cursor.seek(Seek::Seqno(1));
        }
    }
    start.elapsed()
}

/// A ring with events, and a second mapping of its file. The writer is done, and every page is touched before the
/// measurement.
struct Scanned {
    _recorder: Recorder,
    reader: Reader,
    descriptors: &'static [u8],
    payloads: &'static [u8],
    events: u64,
    /// The number of parts in which the cases read.
    parts: u64,
}

impl Scanned {
    fn new(descriptor_shift: u32, payload_shift: u32, events: u64, parts: u64) -> Self {
        let description = ContentDescription::new(300, "BENCH");
        let recorder =
            Recorder::builder(description).anonymous().shifts(descriptor_shift, payload_shift).build().unwrap();
        for i in 0..events {
            recorder.record(2, [i; 4], &PAYLOAD);
        }
        let reader = Reader::options().open_fd(recorder.as_fd()).unwrap();
        let image = Image::map(&recorder);
        let descriptors_at = 1 << 21;
        let descriptors = image.at(descriptors_at, events * 64);
        let payloads_at = descriptors_at + recorder.geometry().descriptor_section_bytes();
        // The end of a chunk is too small for one more payload.
        let payloads = image.at(payloads_at, events * (PAYLOAD_STRIDE as u64 + 1));
        let ring = Self { _recorder: recorder, reader, descriptors, payloads, events, parts };
        let (mut cursor, mut buffer) = (ring.cursor_at(0), Vec::new());
        while let Next::Event(event) = cursor.next() {
            let expected = &payloads[event.payload_buf_offset as usize..][..PAYLOAD.len()];
            assert_eq!(cursor.payload(&event, &mut buffer).valid(), Some(expected));
        }
        for page in descriptors.iter().step_by(4096) {
            black_box(*page);
        }
        ring
    }

    fn cursor_at(&self, place: u64) -> Cursor {
        let mut cursor = self.reader.cursor();
        cursor.seek(Seek::Seqno(place + 1));
        cursor
    }
}

/// A second mapping of the ring file. The writer is done, so nobody writes to it any more.
struct Image {
    start: *const u8,
    bytes: usize,
}

impl Image {
    fn map(recorder: &Recorder) -> Self {
        let file = File::from(recorder.as_fd().try_clone_to_owned().expect("a second descriptor"));
        let bytes = file.metadata().expect("the file's length").len() as usize;
        let fd = file.as_raw_fd();
        // SAFETY: this makes a new mapping of an open file. The result is checked below, and the mapping is never
        // unmapped.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, fd, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        Self { start: start.cast(), bytes }
    }

    fn at(&self, offset: u64, bytes: u64) -> &'static [u8] {
        assert!((offset + bytes) as usize <= self.bytes);
        // SAFETY: the bytes are inside the mapping, which is never unmapped, and nobody writes to them any more.
        unsafe { std::slice::from_raw_parts(self.start.add(offset as usize), bytes as usize) }
    }
}
