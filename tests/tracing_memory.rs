//! The recorder's memory has bounds, as `PerfRecorder` states them: rings and tables by its configuration, and a few bytes for each span that is open.
//! Counts what the allocator hands out, one test after the other.
#![cfg(feature = "tracing")]

use eventring::tracing::{PerfRecorder, RecorderLayer, RecorderSubscriber};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard};
use tracing::{Dispatch, Span};
use tracing_subscriber::prelude::*;

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are those that are asked for here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn heap_bytes() -> usize {
    BYTES.load(Ordering::Relaxed)
}

static ONE_AFTER_THE_OTHER: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AFTER_THE_OTHER.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn recorder() -> PerfRecorder {
    PerfRecorder::builder().anonymous().shifts(15, 21).tables_shift(16).shards(2).prefault(false).build().unwrap()
}

/// Has that many spans open at a time and closes them, as often as asked. The bytes for each span by which the heap has grown when they were open.
fn open_spans<const ROUNDS: usize>(count: usize, dispatch: &Dispatch) -> [usize; ROUNDS] {
    let mut spans: Vec<Span> = Vec::with_capacity(count);
    let before = heap_bytes();
    [(); ROUNDS].map(|()| {
        tracing::dispatcher::with_default(dispatch, || {
            for n in 0..count {
                spans.push(tracing::info_span!(parent: None, "open", n));
            }
        });
        let bytes = heap_bytes() - before;
        spans.clear();
        bytes / count
    })
}

#[test]
fn a_million_open_spans_of_the_subscriber_take_32_bytes_each_at_most_and_their_memory_is_used_again() {
    let _alone = alone();
    let recorder = recorder();
    let [first, second] = open_spans(1_000_000, &Dispatch::new(RecorderSubscriber::new(recorder.clone())));
    assert!((16..=32).contains(&first), "{first} bytes a span");
    assert_eq!(second, first);
    assert_eq!(recorder.stats().lost_spans, 0);
}

#[test]
fn a_quarter_of_a_million_open_spans_of_the_layer_take_96_bytes_each_at_most_besides_those_of_the_registry() {
    const SPANS: usize = 250_000;
    let _alone = alone();
    let recorder = recorder();
    let [registrys] = open_spans(SPANS, &Dispatch::new(tracing_subscriber::registry()));
    let layer = RecorderLayer::new(recorder.clone());
    let rounds: [usize; 2] = open_spans(SPANS, &Dispatch::new(tracing_subscriber::registry().with(layer)));
    for both in rounds {
        let layers = both - registrys;
        assert!((24..=96).contains(&layers), "{layers} bytes a span");
    }
    assert_eq!(recorder.stats().lost_spans, 0);
}

#[test]
fn rings_are_as_many_and_as_large_as_configured_whatever_the_number_of_threads() {
    const THREADS: usize = 60;
    let _alone = alone();
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let builder = PerfRecorder::builder().config(directory.path().join("ring")).shifts(16, 22).tables_shift(17);
    let recorder = builder.shards(3).prefault(false).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    let barrier = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for n in 0..THREADS {
            let (dispatch, barrier) = (&dispatch, &barrier);
            scope.spawn(move || {
                let log = || tracing::dispatcher::with_default(dispatch, || tracing::info!(n));
                log();
                barrier.wait();
                // More than the rings hold.
                (0..10_000).for_each(|_| log());
            });
        }
    });
    let files = std::fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().metadata().unwrap());
    let sizes: Vec<u64> = files.map(|file| file.len()).collect();
    // 64 bytes a descriptor, what fields may take, and 2 MiB for header and extension: all parts are multiples of that, for huge pages.
    assert_eq!(recorder.shard_bytes(), (64 << 16) + (1 << 22) + (2 << 20));
    assert_eq!(recorder.tables_bytes(), 1 << 17);
    assert_eq!((sizes.len(), recorder.shard_count()), (3, 3));
    assert_eq!(sizes.iter().sum::<u64>(), 3 * recorder.shard_bytes() + recorder.tables_bytes());
}

#[test]
fn threads_that_have_ended_leave_nothing_on_the_heap() {
    let _alone = alone();
    let recorder = recorder();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder));
    let work = || {
        for _ in 0..100 {
            let dispatch = dispatch.clone();
            let body = move || {
                tracing::dispatcher::with_default(&dispatch, || {
                    // Deeper than what a thread has room for without the heap, and more than it keeps of free cells.
                    let spans: Vec<_> = (0..300).map(|n| tracing::info_span!("deep", n).entered()).collect();
                    drop(spans);
                });
            };
            std::thread::spawn(body).join().unwrap();
        }
    };
    work();
    let before = heap_bytes();
    work();
    let grown = heap_bytes().saturating_sub(before);
    assert!(grown < 10_000, "{grown} bytes after 100 threads");
}
