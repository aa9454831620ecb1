//! A program whose global allocator records: each allocation, reallocation and release from a threshold on is a span
//! with a log record and a typed event in it. The allocator records at most one level deep on each thread.
//!
//! Whatever the recorder does when it allocates, the program must not wait for itself. So each part runs in a process
//! of its own, and a part that does not end within a minute has failed.

use crate::fixtures::*;
use eventring::global::GlobalRecorder;
use eventring::tracing::{Counter, FilterHandle, PerfItem};
use eventring::{EventPayload, EventType, ext_scope};
use eventring_stress::child::ends_within;
use std::alloc::{GlobalAlloc as _, Layout, System};
use tracing_subscriber::prelude::*;

#[derive(EventPayload)]
struct Allocation {
    bytes: u64,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, name = "HEAP", recorder = HEAP, ext(0 = round))]
#[repr(u16)]
enum Heap {
    #[event(payload = Allocation)]
    Allocated = 2,
}

static HEAP: GlobalRecorder = GlobalRecorder::new("heap");

/// The smallest allocation that is recorded.
static THRESHOLD: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Number of allocations that were recorded.
static RECORDED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_RECORDING: Cell<bool> = const { Cell::new(false) };
}

pub fn note(bytes: usize) {
    if bytes < THRESHOLD.load(Ordering::Relaxed) || IS_RECORDING.replace(true) {
        return;
    }
    {
        let _round = ext_scope!(Heap, round = 1);
        let _span = tracing::info_span!("allocation", bytes).entered();
        tracing::info!(bytes, "allocated");
        record!(Heap::Allocated, &Allocation { bytes: bytes as u64 });
        RECORDED.fetch_add(1, Ordering::Relaxed);
    }
    IS_RECORDING.set(false);
}

/// Memory that signal handlers may allocate, too: the next free byte is one atomic number, and nothing is released.
pub struct Arena;

const ARENA_BYTES: usize = 1 << 30;
static ARENA: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static ARENA_USED: AtomicUsize = AtomicUsize::new(0);

impl Arena {
    fn start() {
        let layout = Layout::from_size_align(ARENA_BYTES, 4096).unwrap();
        // SAFETY: the layout has a size.
        ARENA.store(unsafe { System.alloc_zeroed(layout) }, Ordering::Release);
    }

    pub fn take(layout: Layout) -> Option<*mut u8> {
        let arena = ARENA.load(Ordering::Acquire);
        if arena.is_null() {
            return None;
        }
        let bytes = (layout.size() + layout.align()).next_multiple_of(64);
        let at = ARENA_USED.fetch_add(bytes, Ordering::Relaxed).next_multiple_of(layout.align());
        (at + layout.size() <= ARENA_BYTES).then(|| arena.wrapping_add(at))
    }

    pub fn owns(place: *mut u8) -> bool {
        let arena = ARENA.load(Ordering::Acquire).addr();
        arena != 0 && (arena..arena + ARENA_BYTES).contains(&place.addr())
    }
}

/// Runs a part of a test in a process of its own.
fn run(test: &str, part: &str) {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("done");
    let run = ends_within(play(test, part, &place), Duration::from_secs(60));
    assert!(run.status.success(), "{part}: {}", String::from_utf8_lossy(&run.stderr));
    assert!(place.exists(), "{test} was not run");
}

/// Functions that each record a span and a log record of call sites of their own.
const WORK: &[fn()] = {
    macro_rules! work {
        ($($name:literal)*) => { &[$({
            fn work() {
                tracing::info_span!("work", kind = $name).in_scope(|| tracing::info!(name = $name, "working"));
            }
            work
        }),*] };
    }
    work!("a" "b" "c" "d" "e" "f" "g" "h" "i" "j" "k" "l" "m" "n" "o" "p" "q" "r" "s" "t" "u" "v" "w" "x" "y" "z")
};

/// Counters, which are call sites, too. The lists of call sites grow past the threshold.
static COUNTERS: [Counter; 2000] = [const { Counter::new("counter") }; 2000];
const THREADS: usize = 8;

/// A value that records while it is formatted, and when it is dropped.
struct Chatty;

impl Chatty {
    fn record(&self) {
        tracing::info_span!("chatty").in_scope(|| tracing::info!("chatting"));
        record!(Heap::Allocated, &Allocation { bytes: 0 });
    }
}

impl std::fmt::Debug for Chatty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.record();
        // This allocates, too.
        f.write_str(&"chatty".repeat(1000))
    }
}

impl std::fmt::Display for Chatty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self, f)
    }
}

impl Drop for Chatty {
    fn drop(&mut self) {
        self.record();
    }
}

/// More spans than the first block of cells has.
const MANY_OPEN: usize = 70_000;

/// Does what makes the recorder allocate: many open spans, deep spans, values, and panics with a hook that records.
fn demand(depth: u64) {
    let open: Vec<tracing::Span> = (0..MANY_OPEN).map(|_| tracing::info_span!("open")).collect();
    drop(open);
    let deep: Vec<_> = (0..depth).map(|depth| tracing::info_span!("deep", depth).entered()).collect();
    deep.into_iter().rev().for_each(drop);
    for _ in 0..10 {
        let value = Chatty;
        tracing::info_span!("valued", debug = ?value, display = %value)
            .in_scope(|| tracing::info!(?value, "of {value}"));
        let _ = std::panic::catch_unwind(|| panic!("on purpose: {}", "x".repeat(5000)));
    }
}

/// Records with a subscriber or with a layer, on several threads.
fn program(kind: &str, threshold: usize, is_early: bool) {
    if is_early {
        THRESHOLD.store(threshold, Ordering::Relaxed);
    }
    // On a busy machine the threads come one after another, and all of them get one shard: it holds what they record.
    let builder = PerfRecorder::builder().anonymous().shifts(18, 24).tables_shift(20).prefault(false);
    let recorder = builder.shards(4).build().unwrap();
    PERF.install(recorder.clone()).unwrap();
    // The values of fields are judged, which takes a lock and memory.
    let filter: TargetFilter = "info,[work{kind=\"never\"}]=trace".parse().unwrap();
    if kind == "subscriber" {
        tracing::subscriber::set_global_default(RecorderSubscriber::global().with_filter(filter)).unwrap();
    } else {
        let layer = RecorderLayer::global().filtered(&FilterHandle::new(filter));
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer)).unwrap();
    }
    let heap = ContentDescription::from_event_type::<Heap>();
    HEAP.install(Recorder::builder(heap).anonymous().prefault(false).build().unwrap()).unwrap();
    std::panic::set_hook(Box::new(|info| {
        tracing::error_span!("panic").in_scope(|| tracing::error!(%info, "panicked"));
        record!(Heap::Allocated, &Allocation { bytes: 1 });
    }));
    THRESHOLD.store(threshold, Ordering::Relaxed);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                COUNTERS.iter().skip(thread).step_by(THREADS).for_each(|counter| counter.sample(1u64));
                WORK.iter().for_each(|work| work());
            });
        }
    });
    THRESHOLD.store(usize::MAX, Ordering::Relaxed);
    let mut reader = PerfReader::from_shards(recorder.open_readers().unwrap());
    let (mut names, mut others) = (Vec::<String>::new(), Vec::new());
    while let Some(item) = reader.next_timeout(Duration::from_millis(30)) {
        match item {
            PerfItem::Record(PerfRecord { content: PerfContent::SpanNew { fields, .. }, .. }) => {
                names.extend(fields.get("kind").map(ToString::to_string));
            }
            PerfItem::Record(_) => {}
            other => others.push(other),
        }
    }
    THRESHOLD.store(threshold, Ordering::Relaxed);
    // A `Registry` panics if its own stack of spans allocates 4 KiB and the allocator enters a span: the stack is
    // borrowed meanwhile.
    let depth = if kind == "subscriber" { 300 } else { 100 };
    std::thread::spawn(move || demand(depth)).join().unwrap();
    THRESHOLD.store(usize::MAX, Ordering::Relaxed);

    drop(std::panic::take_hook());
    assert!(RECORDED.load(Ordering::Relaxed) > 0);
    assert_eq!(recorder.stats().lost_spans, 0);
    assert!(others.is_empty(), "the rings hold everything: {others:?}");
    assert_eq!(names.len(), THREADS * WORK.len(), "every span of the program is there");
    assert!(HEAP.installed().unwrap().stats().last_seqno > 0);
}

#[test]
fn an_allocator_that_records_does_not_stop_its_program() {
    let Some(part) = part() else {
        let parts = ["subscriber 4096", "subscriber 1", "layer 4096"];
        let parts = parts.iter().flat_map(|part| ["early", "late"].map(|when| format!("{part} {when}")));
        return parts.for_each(|part| run(test_name!(), &part));
    };
    let [kind, threshold, when] = part.split(' ').collect::<Vec<_>>().try_into().unwrap();
    program(kind, threshold.parse().unwrap(), when == "early");
    std::fs::write(place(), "done").unwrap();
}

/// Counters that only signal handlers use.
static INTERRUPTIONS: [Counter; 2000] = [const { Counter::new("interruption") }; 2000];
static HANDLED: AtomicUsize = AtomicUsize::new(0);

/// Records a typed event, a log record, and a sample of a call site that is new.
extern "C" fn handle(_: libc::c_int) {
    let number = HANDLED.fetch_add(1, Ordering::Relaxed);
    record!(Heap::Allocated, &Allocation { bytes: number as u64 });
    tracing::info!(number, "interrupted");
    INTERRUPTIONS[number % INTERRUPTIONS.len()].sample(number as u64);
}

/// Threads that meet new call sites while signals interrupt them. The handler allocates, so the memory is an arena.
fn interrupted_program() {
    let builder = PerfRecorder::builder().anonymous().shifts(17, 23).tables_shift(20).shards(4).prefault(false);
    let recorder = builder.build().unwrap();
    PERF.install(recorder.clone()).unwrap();
    tracing::subscriber::set_global_default(RecorderSubscriber::global()).unwrap();
    let heap = ContentDescription::from_event_type::<Heap>();
    HEAP.install(Recorder::builder(heap).anonymous().prefault(false).build().unwrap()).unwrap();
    Arena::start();
    let action = libc::sigaction {
        sa_sigaction: handle as *const () as usize,
        // SAFETY: a signal set, and an action, may be all zeros.
        ..unsafe { std::mem::zeroed() }
    };
    // SAFETY: the action is complete, and no old action is asked for.
    assert_eq!(unsafe { libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()) }, 0);

    let (have_begun, have_met_all, may_end) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let threads = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (have_begun, have_met_all, may_end, threads) = (&have_begun, &have_met_all, &may_end, &threads);
            scope.spawn(move || {
                // A thread must have recorded before its handlers may record.
                handle(0);
                // SAFETY: the function has no preconditions.
                threads.lock().unwrap().push(unsafe { libc::pthread_self() });
                have_begun.fetch_add(1, Ordering::Release);
                while have_begun.load(Ordering::Acquire) < THREADS {
                    std::hint::spin_loop();
                }
                COUNTERS.iter().skip(thread).step_by(THREADS).for_each(|counter| counter.sample(1u64));
                WORK.iter().for_each(|work| work());
                have_met_all.fetch_add(1, Ordering::Release);
                while !may_end.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
            });
        }
        while have_begun.load(Ordering::Acquire) < THREADS {
            std::hint::spin_loop();
        }
        let threads = threads.lock().unwrap();
        let mut sent = 0;
        while have_met_all.load(Ordering::Acquire) < THREADS || sent < 20_000 {
            // SAFETY: the threads do not end before `may_end` is true.
            unsafe { libc::pthread_kill(threads[sent % THREADS], libc::SIGUSR1) };
            sent += 1;
        }
        may_end.store(true, Ordering::Release);
    });
    assert!(HANDLED.load(Ordering::Relaxed) > THREADS);
    // Whatever was interrupted, each call site has one id, and records go on.
    COUNTERS.iter().for_each(|counter| counter.sample(u64::MAX));
    let readers = recorder.open_readers().unwrap();
    let mut reader = PerfReader::from_shards(readers);
    let mut sampled = std::collections::HashSet::new();
    while let Some(item) = reader.next_timeout(Duration::from_millis(30)) {
        let PerfItem::Record(record) = item else { continue };
        if let PerfContent::Counter { call_site, value, .. } = record.content
            && value == eventring::schema::perf::FieldValue::U64(u64::MAX)
        {
            sampled.insert(call_site.id);
        }
    }
    assert_eq!(sampled.len(), COUNTERS.len());
}

#[test]
fn a_signal_handler_that_records_does_not_stop_its_program() {
    match part() {
        None => run(test_name!(), "signals"),
        Some(_) => {
            interrupted_program();
            std::fs::write(place(), "done").unwrap();
        }
    }
}
