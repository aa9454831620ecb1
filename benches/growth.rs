//! The cost of an event, in five tables: as the number of threads, readers, payload bytes, open spans or call sites
//! grows.
//!
//! `cargo bench -p eventring-benches --bench growth` prints all tables. With `-- threads readers` it prints only these
//! two. Each number is the median of several batches: a batch's wall time in nanoseconds, divided by the number of
//! events of all threads. See `docs/COST.md`.

#![allow(missing_docs, clippy::undocumented_unsafe_blocks, clippy::multiple_unsafe_ops_per_block)]

#[allow(dead_code, reason = "the rivals benchmark pins threads itself, too")]
mod threads;

use eventring::reader::{Follower, Reader, WaitStrategy};
use eventring::recorder::{ContentDescription, Recorder};
use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;
use tracing::field::FieldSet;
use tracing::metadata::Kind;
use tracing::subscriber::Interest;
use tracing::{Callsite, Dispatch, Level, Metadata};

const EXT: [u64; 4] = [1, 2, 3, 4];
const ROUNDS: usize = 9;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let tables: [(&str, fn()); 5] = [
        ("threads", threads),
        ("readers", readers),
        ("payload_sizes", payload_sizes),
        ("open_spans", open_spans),
        ("call_sites", call_sites),
    ];
    for (name, table) in tables {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            table();
        }
    }
}

fn recorder() -> Recorder {
    let recorder = Recorder::builder(ContentDescription::new(300, "BENCH")).anonymous().shifts(18, 28).build().unwrap();
    (0..1u64 << 18).for_each(|i| {
        recorder.record(2, [i; 4], &[0; 900]);
    });
    recorder
}

fn subscriber() -> Dispatch {
    Dispatch::new(RecorderSubscriber::new(PerfRecorder::builder().anonymous().build().unwrap()))
}

/// Runs several batches, and returns the median of their nanoseconds per event.
fn median(mut batch: impl FnMut() -> (Duration, u64)) -> f64 {
    batch();
    let mut samples: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let (time, events) = batch();
            time.as_nanos() as f64 / events as f64
        })
        .collect();
    samples.sort_by(f64::total_cmp);
    samples[ROUNDS / 2]
}

fn timed(events: u64, mut record: impl FnMut(u64)) -> (Duration, u64) {
    let start = Instant::now();
    (0..events).for_each(&mut record);
    (start.elapsed(), events)
}

/// The number of events that each thread records in a batch. A batch takes several milliseconds. So threads that share
/// a processor take turns as they would in a long run.
const THREAD_EVENTS: u64 = 400_000;

/// Runs `work` on `count` threads; its argument is the number of events to record. Returns the wall time, and the
/// number of events that all threads recorded.
fn on_threads(count: usize, work: impl Fn(u64) + Sync) -> (Duration, u64) {
    (threads::run_together(count, || work(1), |_| work(THREAD_EVENTS)), count as u64 * THREAD_EVENTS)
}

fn threads() {
    let (recorder, perf) = (recorder(), subscriber());
    println!("\nthreads   exec ring, 82 bytes   perf recorder, log record of two fields   (ns of wall time per event)");
    for count in [1, 2, 3, 4, 6, 8, 12, 16] {
        let exec = median(|| {
            on_threads(count, |events| {
                (0..events).for_each(|_| {
                    recorder.record(2, EXT, black_box(&[7; 82]));
                });
            })
        });
        let spans = median(|| {
            on_threads(count, |events| {
                tracing::dispatcher::with_default(&perf, || {
                    (0..events).for_each(|i| tracing::info!(id = black_box(i), name = "some text"));
                });
            })
        });
        println!("{count:>7} {exec:>21.1} {spans:>41.1}");
    }
}

fn readers() {
    let recorder = recorder();
    println!("\nreaders that follow   flat out   an event each 2 us   (ns per event of the writer's time)");
    for count in 0..=8 {
        let stop = AtomicBool::new(false);
        let (flat_out, paced) = std::thread::scope(|scope| {
            for _ in 0..count {
                scope.spawn(|| {
                    let cursor = Reader::options().open_fd(recorder.as_fd()).unwrap().cursor();
                    let mut follower = Follower::new(cursor, WaitStrategy::default());
                    while !stop.load(Ordering::Relaxed) {
                        black_box(follower.next_timeout(Duration::from_millis(1)));
                    }
                });
            }
            let record = |_| {
                recorder.record(2, EXT, black_box(&[7; 82]));
            };
            let flat_out = median(|| timed(100_000, record));
            // The writer records one event every two microseconds, and only the recording is timed. The measured time
            // includes one reading of the clock for the benchmark itself.
            let paced = median(|| {
                let mut spent = Duration::ZERO;
                for _ in 0..5_000 {
                    let start = Instant::now();
                    record(0);
                    spent += start.elapsed();
                    while start.elapsed() < Duration::from_micros(2) {
                        std::hint::spin_loop();
                    }
                }
                (spent, 5_000)
            });
            stop.store(true, Ordering::Relaxed);
            (flat_out, paced)
        });
        println!("{count:>19} {flat_out:>10.1} {paced:>20.1}");
    }
}

fn payload_sizes() {
    let recorder = recorder();
    let payload = vec![7; 1 << 20];
    println!("\npayload bytes   ns per event   ns per KiB");
    for bytes in [0, 1, 8, 16, 32, 64, 82, 128, 256, 350, 512, 1024, 4096, 16_384, 32_768, 65_536, 262_144, 1_048_576] {
        let events = (20_000_000 / (bytes as u64 + 100)).min(100_000);
        let nanos = median(|| {
            timed(events, |_| {
                recorder.record(2, EXT, black_box(&payload[..bytes]));
            })
        });
        let per_kib = if bytes == 0 { String::new() } else { format!("{:.1}", nanos * 1024.0 / bytes as f64) };
        println!("{bytes:>13} {nanos:>14.1} {per_kib:>12}");
    }
}

fn open_spans() {
    println!("\nopen spans   ns per span (create, enter, exit, close; recorded: four events)");
    let dispatch = subscriber();
    tracing::dispatcher::with_default(&dispatch, || {
        let mut open = Vec::new();
        for count in [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000] {
            open.resize_with(count, || tracing::info_span!("open"));
            let nanos = median(|| timed(20_000, |_| drop(tracing::info_span!("work").entered())));
            println!("{count:>10} {nanos:>14.1}");
        }
    });
}

/// A call site that is made while the program runs.
struct Site {
    metadata: OnceLock<Metadata<'static>>,
}

impl Callsite for Site {
    fn set_interest(&self, _: Interest) {}

    fn metadata(&self) -> &Metadata<'_> {
        self.metadata.get().expect("set before it is used")
    }
}

impl Site {
    fn leaked() -> &'static Self {
        let site: &'static Self = Box::leak(Box::new(Self { metadata: OnceLock::new() }));
        let fields = FieldSet::new(&["id"], Identifier(site));
        let metadata = Metadata::new("event", "growth", Level::INFO, None, None, None, fields, Kind::EVENT);
        site.metadata.set(metadata).expect("only set here");
        tracing::callsite::register(site);
        site
    }

    fn event(&'static self, id: u64) {
        let metadata = self.metadata.get().expect("set when it was made");
        let field = metadata.fields().field("id").expect("its only field");
        let values = [(&field, Some(&id as &dyn tracing::Value))];
        tracing::Event::dispatch(metadata, &metadata.fields().value_set(&values));
    }
}

fn call_sites() {
    println!("\ncall sites   ns per log record of one field, from each in turn");
    let dispatch = subscriber();
    tracing::dispatcher::with_default(&dispatch, || {
        let mut sites = Vec::new();
        for count in [1, 10, 100, 1_000, 10_000] {
            sites.resize_with(count, Site::leaked);
            let nanos = median(|| timed(100_000, |i| sites[i as usize % count].event(i)));
            println!("{count:>10} {nanos:>14.1}");
        }
    });
}
