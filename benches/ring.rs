//! The cost of recording and reading, compared in one run with the algorithm of the original C implementation.

#![allow(missing_docs, clippy::undocumented_unsafe_blocks, clippy::multiple_unsafe_ops_per_block)]

#[allow(dead_code, reason = "the latency benchmark reads")]
mod reference;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use eventring::reader::{Next, Reader, Seek};
use eventring::recorder::{ContentDescription, Recorder};
use std::hint::black_box;

fn recorder() -> Recorder {
    Recorder::builder(ContentDescription::new(300, "BENCH")).anonymous().shifts(20, 29).build().unwrap()
}

fn record(c: &mut Criterion) {
    let recorder = recorder();
    let reference = reference::ReferenceRing::new(20, 29);
    // These events touch nearly all descriptor and payload pages of both rings, so that hardly any page fault is
    // measured.
    for i in 0..(1u64 << 20) {
        recorder.record(2, [i; 4], &[0; 480]);
        reference.record(2, [i; 4], &[0; 480]);
    }
    let mut group = c.benchmark_group("record");
    for bytes in [0usize, 16, 82, 350, 4096] {
        let payload = vec![7u8; bytes];
        group.throughput(Throughput::Elements(1));
        group.bench_function(BenchmarkId::new("eventring", bytes), |b| {
            b.iter(|| recorder.record(2, [1, 2, 3, 4], black_box(&payload)))
        });
        group.bench_function(BenchmarkId::new("reference", bytes), |b| {
            b.iter(|| reference.record(2, [1, 2, 3, 4], black_box(&payload)))
        });
    }
    let (head, topics, data) = ([1u8; 32], [2u8; 64], [3u8; 40]);
    group.bench_function("recordv of three slices", |b| {
        b.iter(|| recorder.recordv(2, [1, 2, 3, 4], black_box(&[&head, &topics, &data])))
    });
    recorder.set_enabled(false);
    group.bench_function("disabled", |b| b.iter(|| recorder.record(2, [1, 2, 3, 4], black_box(&head))));
    group.finish();
}

fn read(c: &mut Criterion) {
    let recorder = recorder();
    let events = 1u64 << 20;
    for i in 0..events {
        recorder.record(2, [i; 4], &[7; 82]);
    }
    let reader = Reader::options().open_fd(recorder.as_fd()).unwrap();
    let mut cursor = reader.cursor();
    let mut buffer = Vec::new();
    let mut group = c.benchmark_group("read");
    group.throughput(Throughput::Elements(1));
    group.bench_function("next", |b| {
        cursor.seek(Seek::Oldest);
        b.iter(|| match cursor.next() {
            Next::Event(event) => black_box(event.record_epoch_nanos),
            // The cursor is at the end of the ring. It goes back to the oldest event. If events were overwritten, the
            // next call first reports their gap.
            Next::NotReady => {
                cursor.seek(Seek::Oldest);
                0
            }
            Next::Gap(_) => 0,
        })
    });
    group.bench_function("next and payload of 82 bytes", |b| {
        cursor.seek(Seek::Oldest);
        b.iter(|| match cursor.next() {
            Next::Event(event) => {
                black_box(cursor.payload(&event, &mut buffer).valid().is_some());
            }
            Next::NotReady => cursor.seek(Seek::Oldest),
            Next::Gap(_) => {}
        })
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(50);
    targets = record, read
}
criterion_main!(benches);
