//! Reading a full ring, next to plain copies of the same memory.

use crate::Medians;
use crate::interleave::Cases;
use eventring::reader::{Next, Reader, Seek};
use eventring::recorder::{ContentDescription, Recorder};
use std::hint::black_box;

const EVENTS: u64 = 1 << 20;

pub fn measure(rounds: usize) -> Medians {
    let recorder = Recorder::builder(ContentDescription::new(300, "BENCH")).anonymous().shifts(20, 29).build().unwrap();
    for i in 0..EVENTS {
        recorder.record(2, [i; 4], &[7; 82]);
    }
    let reader = Reader::options().open_fd(recorder.as_fd()).unwrap();
    let (mut next, mut copy) = (reader.cursor(), reader.cursor());
    next.seek(Seek::Oldest);
    copy.seek(Seek::Oldest);
    // The same amount of private memory: lines of 64 bytes, and payloads that take 96 bytes each.
    let lines = vec![[1u64; 8]; EVENTS as usize];
    let payloads = vec![7u8; EVENTS as usize * 96];
    let mut buffer = Vec::new();
    let mut cases = Cases::default();
    cases.add("scan_next", 50_000, || match next.next() {
        Next::Event(event) => {
            black_box(event);
        }
        _ => next.seek(Seek::Oldest),
    });
    let mut at = 0;
    cases.add("scan_stride_64", 50_000, || {
        black_box(lines[at]);
        at = (at + 1) % lines.len();
    });
    cases.add("scan_copy82", 50_000, || match copy.next() {
        Next::Event(event) => {
            black_box(copy.payload(&event, &mut buffer).valid());
        }
        _ => copy.seek(Seek::Oldest),
    });
    let (mut at, mut target) = (0, [0u8; 82]);
    let lines = &lines;
    cases.add("scan_stride_64_82", 50_000, || {
        black_box(lines[at]);
        target.copy_from_slice(&payloads[at * 96..at * 96 + 82]);
        black_box(&mut target);
        at = (at + 1) % lines.len();
    });
    cases.measure(rounds)
}
