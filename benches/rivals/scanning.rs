//! Reading a full ring, next to plain copies of the same memory.

use crate::Medians;
use crate::interleave::Cases;
use eventring::reader::{Cursor, Next, Reader, ReadyEvent, Seek};
use eventring::recorder::{ContentDescription, Recorder};
use std::hint::black_box;
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

const EVENTS: u64 = 1 << 20;
/// Where a descriptor has its payload's size.
const SIZE_AT: usize = 12;

pub fn measure(rounds: usize) -> Medians {
    let recorder = Recorder::builder(ContentDescription::new(300, "BENCH")).anonymous().shifts(20, 29).build().unwrap();
    for i in 0..EVENTS {
        recorder.record(2, [i; 4], &[7; 82]);
    }
    let reader = Reader::options().open_fd(recorder.as_fd()).unwrap();
    let (mut next, mut copy) = (reader.cursor(), reader.cursor());
    next.seek(Seek::Oldest);
    copy.seek(Seek::Oldest);
    // The same memory, through a mapping of our own.
    let geometry = recorder.geometry();
    let image = Image::of(&recorder);
    let descriptors = image.at(1 << 21, geometry.descriptor_section_bytes());
    let payloads = image.at((1 << 21) + geometry.descriptor_section_bytes(), EVENTS * 96);
    let mut buffer = Vec::new();
    // Each mapping's pages are there before it is timed.
    while let Next::Event(event) = next.next() {
        black_box(next.payload(&event, &mut buffer).valid());
    }
    next.seek(Seek::Oldest);
    for page in descriptors.iter().step_by(4096).chain(payloads.iter().step_by(4096)) {
        black_box(*page);
    }
    let mut cases = Cases::default();
    cases.add("scan_next", 50_000, || match next.next() {
        Next::Event(event) => {
            black_box(&event);
        }
        _ => next.seek(Seek::Oldest),
    });
    // The same by `each_ready`, which keeps the place in a register.
    let (mut each, mut each_copy) = (reader.cursor(), reader.cursor());
    each.seek(Seek::Oldest);
    each_copy.seek(Seek::Oldest);
    cases.add_batch("scan_each", 50_000, move |operations| {
        timed(&mut each, operations, |event| {
            black_box(event.descriptor());
        })
    });
    let mut each_buffer = Vec::new();
    cases.add_batch("scan_each_copy82", 50_000, move |operations| {
        timed(&mut each_copy, operations, |event| {
            black_box(event.payload(&mut each_buffer).valid());
        })
    });
    let (mut at, mut line) = (0, [0u8; 64]);
    cases.add("scan_stride_64", 50_000, || {
        line.copy_from_slice(&descriptors[at * 64..at * 64 + 64]);
        black_box(&mut line);
        at = (at + 1) % EVENTS as usize;
    });
    cases.add("scan_copy82", 50_000, || match copy.next() {
        Next::Event(event) => {
            black_box(copy.payload(&event, &mut buffer).valid());
        }
        _ => copy.seek(Seek::Oldest),
    });
    let (mut at, mut line, mut target) = (0, [0u8; 64], [0u8; 82]);
    cases.add("scan_stride_64_82", 50_000, || {
        line.copy_from_slice(&descriptors[at * 64..at * 64 + 64]);
        black_box(&mut line);
        target.copy_from_slice(&payloads[at * 96..at * 96 + 82]);
        black_box(&mut target);
        at = (at + 1) % EVENTS as usize;
    });
    // The same with the payload's length as the descriptor says, as every reader must: a call of `memcpy`.
    let (mut at, mut line, mut target) = (0, [0u8; 64], [0u8; 128]);
    cases.add("scan_stride_64_any", 50_000, || {
        line.copy_from_slice(&descriptors[at * 64..at * 64 + 64]);
        black_box(&mut line);
        let bytes = u32::from_le_bytes(line[SIZE_AT..SIZE_AT + 4].try_into().expect("four bytes")) as usize;
        let bytes = bytes.min(target.len());
        target[..bytes].copy_from_slice(&payloads[at * 96..at * 96 + bytes]);
        black_box(&mut target);
        at = (at + 1) % EVENTS as usize;
    });
    cases.measure(rounds)
}

/// The time in which `f` is given that many events.
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
            cursor.seek(Seek::Oldest);
        }
    }
    start.elapsed()
}

/// The ring file, mapped once more. Nobody writes to it any more.
struct Image {
    start: *const u8,
    bytes: usize,
}

impl Image {
    fn of(recorder: &Recorder) -> Self {
        let bytes = recorder.geometry().file_bytes() as usize;
        let fd = recorder.as_fd().as_raw_fd();
        // SAFETY: a new mapping of an open file, checked below, never unmapped.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, fd, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        Self { start: start.cast(), bytes }
    }

    fn at(&self, offset: u64, bytes: u64) -> &'static [u8] {
        assert!((offset + bytes) as usize <= self.bytes);
        // SAFETY: inside the mapping, which stays, and whose writer is done.
        unsafe { std::slice::from_raw_parts(self.start.add(offset as usize), bytes as usize) }
    }
}
