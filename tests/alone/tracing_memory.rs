//! The recorder's memory has the limits that `PerfRecorder` and docs/COST.md state. Its configuration limits the
//! rings and tables. In addition, each open span, thread and call site takes a few bytes. The tests count the bytes
//! that the allocator hands out.

use crate::allocator::heap_bytes;
use crate::fixtures::*;
use tracing::callsite::Identifier;
use tracing::field::FieldSet;
use tracing::metadata::Kind;
use tracing::subscriber::Interest;
use tracing::{Callsite, Level, Metadata, Span};
use tracing_subscriber::prelude::*;

fn recorder() -> PerfRecorder {
    small().shards(2).build().unwrap()
}

/// Opens `count` spans and closes them all, `ROUNDS` times. Returns one number for each round: the growth of the heap
/// since before the first round, in bytes per span, measured while the spans are open.
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

/// The bytes of a cell of the span slab with the feature `context`, which these tests have. Without it, they are 16.
const CELL_BYTES: usize = 40;

#[test]
fn a_million_open_spans_of_the_subscriber_take_two_cells_each_at_most_and_their_memory_is_used_again() {
    alone!();
    let recorder = recorder();
    let [first, second] = open_spans(1_000_000, &Dispatch::new(RecorderSubscriber::new(recorder.clone())));
    // The slab has one to two cells for each span. The lower bound is a little less than one, because the first 65,536
    // cells are not on the heap and are not counted.
    assert!((CELL_BYTES * 15 / 16..=2 * CELL_BYTES).contains(&first), "{first} bytes a span");
    assert_eq!(second, first);
    assert_eq!(recorder.stats().lost_spans, 0);
}

#[test]
fn a_quarter_of_a_million_open_spans_of_the_layer_take_two_cells_and_64_bytes_each_at_most_besides_those_of_the_registry()
 {
    alone!();
    const SPANS: usize = 250_000;
    let recorder = recorder();
    let [registrys] = open_spans(SPANS, &Dispatch::new(tracing_subscriber::registry()));
    let layer = RecorderLayer::new(recorder.clone());
    let rounds: [usize; 2] = open_spans(SPANS, &Dispatch::new(tracing_subscriber::registry().with(layer)));
    for both in rounds {
        let layers = both - registrys;
        assert!((24..=64 + 2 * CELL_BYTES).contains(&layers), "{layers} bytes a span");
    }
    assert_eq!(recorder.stats().lost_spans, 0);
}

#[test]
fn rings_are_as_many_and_as_large_as_configured_whatever_the_number_of_threads() {
    alone!();
    const THREADS: usize = 60;
    let directory = directory();
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
                // These are more events than the rings hold.
                (0..10_000).for_each(|_| log());
            });
        }
    });
    let files = std::fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().path());
    let (now, rings): (Vec<_>, Vec<_>) = files.partition(|path| path.extension().is_some_and(|end| end == "now"));
    assert_eq!(now.len(), 1, "the tables of the present");
    let sizes: Vec<u64> = rings.iter().map(|path| path.metadata().unwrap().len()).collect();
    // A ring needs 64 bytes for each descriptor, the payload buffer, and 2 MiB for the header with its extension. All
    // parts are multiples of 2 MiB, so that they can be on huge pages.
    assert_eq!(recorder.shard_bytes(), (64 << 16) + (1 << 22) + (2 << 20));
    assert_eq!(recorder.tables_bytes(), 1 << 17);
    assert_eq!((sizes.len(), recorder.shard_count()), (3, 3));
    assert_eq!(sizes.iter().sum::<u64>(), 3 * recorder.shard_bytes() + recorder.tables_bytes());
}

#[test]
fn threads_that_only_close_spans_while_nothing_is_recorded_give_their_cells_back() {
    alone!();
    const THREADS: usize = 64;
    const SPANS_EACH: usize = 100;
    let recorder = recorder();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    let cell_of = |span: &Span| span.id().unwrap().into_u64() & 0xff_ffff;
    let highest_cells: Vec<u64> = (0..6)
        .map(|_| {
            tracing::dispatcher::with_default(&dispatch, || {
                let mut spans: Vec<Span> =
                    (0..THREADS * SPANS_EACH).map(|n| tracing::info_span!(parent: None, "open", n)).collect();
                let highest_cell = spans.iter().map(cell_of).max().unwrap();
                recorder.set_enabled(false);
                for _ in 0..THREADS {
                    let closed = spans.split_off(spans.len() - SPANS_EACH);
                    std::thread::spawn(move || drop(closed)).join().unwrap();
                }
                recorder.set_enabled(true);
                highest_cell
            })
        })
        .collect();
    // Later rounds use the cells of closed spans again. A few cells may be new, because free cells move between
    // threads only in chains of 64.
    let (first, last) = (highest_cells[0], highest_cells[5]);
    assert!(last < first + 1_000, "{highest_cells:?}");
}

#[test]
fn a_recorder_takes_16_bytes_for_each_payload_chunk_and_128_for_each_thread_that_ever_recorded_at_a_time() {
    alone!();
    const CHUNKS: usize = 1 << 14;
    const THREADS: usize = 1_000;
    let before = heap_bytes();
    let description = ContentDescription::new(300, "MEMORY");
    let recorder = Recorder::builder(description).anonymous().shifts(16, 27).prefault(false).build().unwrap();
    let of_chunks = heap_bytes() - before;
    // While this test counts the bytes, the thread of the previous test may free some of its own. So the count can be a
    // little too low.
    let expected = 16 * CHUNKS - 1_024..=16 * CHUNKS + 16_384;
    assert!(expected.contains(&of_chunks), "{of_chunks} bytes for {CHUNKS} chunks");

    let barrier = Arc::new(Barrier::new(THREADS));
    let before = heap_bytes();
    let body = || {
        let (recorder, barrier) = (recorder.clone(), barrier.clone());
        move || {
            recorder.record(2, [0; 4], b"payload");
            barrier.wait();
        }
    };
    // A scope can end before its threads have given back all of their memory. `join` waits until a thread has done so.
    // So these threads are not scoped, and the test joins them.
    let threads: Vec<_> = (0..THREADS).map(|_| std::thread::spawn(body())).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let of_threads = heap_bytes() - before;
    // The recorder allocates this memory in steps of 32 KiB. Two other things remain after the threads' end: the list
    // of the payload cursors that they gave back, and the memory that ended threads leave in any program.
    let most = (128 * THREADS).next_multiple_of(32_768) + 16 * THREADS;
    assert!((128 * THREADS..=most).contains(&of_threads), "{of_threads} bytes for {THREADS} threads");
}

/// A call site that is created at run time.
struct Site(OnceLock<Metadata<'static>>);

impl Callsite for Site {
    fn set_interest(&self, _: Interest) {}

    fn metadata(&self) -> &Metadata<'_> {
        self.0.get().unwrap()
    }
}

#[test]
fn some_thousand_call_sites_take_304_bytes_each_at_most() {
    alone!();
    const SITES: usize = 5_000;
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder()));
    let sites: Vec<&'static Site> = (0..SITES)
        .map(|n| {
            // This memory is never freed. It puts irregular distances between the call sites, as in a real program.
            Box::leak(vec![0u8; 16 * (n * 7_919 % 13)].into_boxed_slice());
            let site: &'static Site = Box::leak(Box::new(Site(OnceLock::new())));
            let fields = FieldSet::new(&["id", "name"], Identifier(site));
            let (file, module) = (Some("src/main.rs"), Some("program"));
            let metadata = Metadata::new("event", "memory", Level::INFO, file, Some(7), module, fields, Kind::EVENT);
            site.0.set(metadata).unwrap();
            site
        })
        .collect();
    let before = heap_bytes();
    for site in sites {
        dispatch.register_callsite(site.0.get().unwrap());
    }
    // The count includes the tables in which the recorder finds call sites: a first one of 96 KiB, and a second one
    // of 768 KiB when the first one is full.
    let each = (heap_bytes() - before) / SITES;
    println!("{each} bytes a call site");
    assert!((24..=304).contains(&each), "{each} bytes a call site");
}

#[test]
fn threads_that_have_ended_leave_nothing_on_the_heap() {
    alone!();
    let recorder = recorder();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder));
    let work = || {
        for _ in 0..100 {
            let dispatch = dispatch.clone();
            let body = move || {
                tracing::dispatcher::with_default(&dispatch, || {
                    // These spans are so many that the span stack stores most of them on the heap. They also take
                    // more cells than the thread keeps free for itself.
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
