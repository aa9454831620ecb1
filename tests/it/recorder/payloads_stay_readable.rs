//! A payload stays readable until half of the payload buffer has been recorded after it. This holds for one thread,
//! for a hundred thousand threads one after another, and for a thousand threads at the same time.

use crate::fixtures::*;
use crate::read_back::reader_of;

/// Creates a ring for many small events. Its payload buffer has 8 MiB, twice what each shard of a perf recorder
/// has by default.
fn small_ring() -> Recorder {
    let builder = Recorder::builder(ContentDescription::new(300, "PAYLOADS")).anonymous().compact(true);
    builder.shifts(19, 23).prefault(false).build().unwrap()
}

/// Counts of a ring's readable and expired payloads.
#[derive(Debug, Default, Clone, Copy)]
struct Found {
    /// Events with a readable payload.
    payloads: u64,
    /// Events whose payload has expired.
    expired: u64,
    /// The number of bytes that were recorded after the newest expired payload. The size of each payload is rounded
    /// up to a multiple of 16.
    since_newest_expired: u64,
}

fn look(reader: &Reader) -> Found {
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Oldest);
    let mut found = Found::default();
    let mut buffer = Vec::new();
    loop {
        match cursor.next() {
            Next::Event(event) if event.payload_size == 0 => {}
            Next::Event(event) => {
                found.payloads += 1;
                if cursor.payload(&event, &mut buffer).valid().is_some() {
                    found.since_newest_expired += u64::from(event.payload_size).next_multiple_of(16);
                } else {
                    found.expired += 1;
                    found.since_newest_expired = 0;
                }
            }
            Next::Gap(_) => {}
            Next::NotReady => return found,
        }
    }
}

/// Checks that some payloads have expired, and that half of the payload buffer, or more, was recorded after each of
/// them.
fn check_half(recorder: &Recorder) {
    let found = look(&reader_of(recorder));
    let half = recorder.geometry().payload_buf_bytes() / 2;
    assert!(found.expired > 0, "too little was recorded to learn anything: {found:?}");
    assert!(found.since_newest_expired >= half, "a payload has expired {found:?} bytes, less than {half}, after");
}

/// A function from a random number to the size of the next payload.
type NextSize = fn(u64) -> u64;

/// The kinds of traffic: the name of each kind, and a function that gives the sizes of its payloads. Some names
/// compare a size with a run, the payload memory that a thread takes at one time.
const TRAFFIC: [(&str, NextSize); 9] = [
    ("tiny", |_| 16),
    ("small", |random| 1 + random % 200),
    ("a quarter of a run and a little", |_| 4200),
    ("half of a run and a little", |_| 8250),
    ("more than a run", |_| 17_000),
    ("of any size up to 64 KiB", |random| 1 + random % (64 << 10)),
    ("small and half of a run by turns", |random| if random.is_multiple_of(2) { 32 } else { 8250 }),
    ("small and a few large", |random| if random.is_multiple_of(50) { 100_000 } else { 40 }),
    ("mostly small, of any order of magnitude", |random| 1 + random % (1 << (4 + random / 7 % 14))),
];

/// The number of bytes to record for each kind of traffic: three times the size of the payload buffer.
const TURNS_BYTES: u64 = 24 << 20;

#[test]
fn what_one_thread_recorded_is_readable_until_half_of_the_buffer_was_recorded_since() {
    for (name, size) in TRAFFIC {
        let recorder = small_ring();
        let payload = vec![7; 128 << 10];
        let (mut random, mut bytes) = (Random(1), 0);
        while bytes < TURNS_BYTES {
            let size = size(random.below(1 << 31));
            bytes += size.next_multiple_of(16);
            recorder.record(2, [0; 4], &payload[..size as usize]);
        }
        println!("{name}: {:?}", look(&reader_of(&recorder)));
        check_half(&recorder);
    }
}

#[test]
fn what_a_few_threads_recorded_at_a_time_is_readable_until_half_of_the_buffer_was_recorded_since() {
    const THREADS: u64 = 4;
    for (name, size) in TRAFFIC {
        let recorder = small_ring();
        let turn = Barrier::new(THREADS as usize);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (recorder, turn) = (&recorder, &turn);
                scope.spawn(move || {
                    let payload = vec![7; 128 << 10];
                    let (mut random, mut bytes) = (Random(1 + thread), 0);
                    turn.wait();
                    while bytes < TURNS_BYTES / THREADS {
                        let size = size(random.below(1 << 31));
                        bytes += size.next_multiple_of(16);
                        recorder.record(2, [0; 4], &payload[..size as usize]);
                        // The thread yields now and then. So the threads record in turns, even on a machine with a
                        // single processor.
                        if random.below(4) == 0 {
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
        println!("{name}: {:?}", look(&reader_of(&recorder)));
        check_half(&recorder);
    }
}

#[test]
fn one_event_of_each_of_2_500_threads_one_after_another_keeps_its_payload() {
    let recorder = small_ring();
    for thread in 0..2500u64 {
        let recorder = &recorder;
        std::thread::scope(|scope| {
            _ = scope.spawn(move || recorder.record(2, [0; 4], &[thread.to_le_bytes(); 2].concat()))
        });
    }
    let found = look(&reader_of(&recorder));
    assert_eq!((found.payloads, found.expired), (2500, 0));
}

#[test]
fn what_100_000_threads_recorded_one_after_another_is_readable_until_half_of_the_buffer_was_recorded_since() {
    let recorder = small_ring();
    for thread in 0..100_000u64 {
        let recorder = &recorder;
        // A few threads record much more than the others.
        let events = if thread.is_multiple_of(100) { 50 } else { 1 + thread % 3 };
        let record = move || (0..events).for_each(|_| _ = recorder.record(2, [0; 4], &[7; 96]));
        std::thread::scope(|scope| _ = scope.spawn(record));
    }
    check_half(&recorder);
}

#[test]
fn what_a_thousand_threads_recorded_at_a_time_into_one_ring_is_readable_until_half_of_the_buffer_was_recorded_since() {
    const THREADS: usize = 1000;
    let recorder = small_ring();
    let turn = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            let (recorder, turn) = (&recorder, &turn);
            scope.spawn(move || {
                for _ in 0..250 {
                    turn.wait();
                    recorder.record(2, [0; 4], &[7; 48]);
                }
            });
        }
    });
    check_half(&recorder);
}

mod spans {
    use super::{Barrier, Found, look};
    use eventring::tracing::{PerfRecorder, RecorderSubscriber};
    use tracing::Dispatch;

    /// Makes a recorder with the default sizes, as `eventring::tracing::init` does, but in anonymous memory.
    fn default_recorder() -> PerfRecorder {
        PerfRecorder::builder().prefault(false).thread_time(0.0).build().unwrap()
    }

    fn found(recorder: &PerfRecorder) -> Vec<Found> {
        recorder.open_readers().unwrap().iter().map(look).collect()
    }

    fn span_and_log_record(bytes: &str) {
        let _span = tracing::info_span!("request", user = bytes).entered();
        tracing::info!(order = bytes, "placed");
    }

    #[test]
    fn a_span_and_a_log_record_of_each_of_2_000_threads_one_after_another_keep_their_fields() {
        // Other tests' call sites would be described in its rings, too.
        eventring_stress::alone!();
        let recorder = default_recorder();
        let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
        for _ in 0..2000 {
            let dispatch = &dispatch;
            let work = move || tracing::dispatcher::with_default(dispatch, || span_and_log_record("somebody"));
            std::thread::scope(|scope| _ = scope.spawn(work));
        }
        let sum = |what: fn(&Found) -> u64| found(&recorder).iter().map(what).sum::<u64>();
        // Each of the 2000 threads recorded three payloads: a span, a log record and a THREAD_STARTED. Three
        // more payloads describe the two call sites, and the constant text of the log record.
        assert_eq!((sum(|found| found.payloads), sum(|found| found.expired)), (6003, 0));
    }

    #[test]
    fn what_a_thousand_threads_recorded_at_a_time_is_readable_until_half_of_each_shard_was_recorded_since() {
        const THREADS: usize = 1000;
        let shards = (2 * std::thread::available_parallelism().map_or(1, |processors| processors.get()) + 2).min(16);
        for text in ["somebody", &"x".repeat(300), &"y".repeat(900)] {
            let recorder = default_recorder();
            let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
            let turn = Barrier::new(THREADS);
            // This number of rounds fills half of the payload buffers. Space for the THREAD_STARTED events is
            // subtracted.
            let rounds = (shards * (4 << 20) / 2 - (1 << 20)) / (THREADS * (2 * text.len() + 96));
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    let (dispatch, turn) = (&dispatch, &turn);
                    scope.spawn(move || {
                        tracing::dispatcher::with_default(dispatch, || {
                            for _ in 0..rounds {
                                turn.wait();
                                span_and_log_record(text);
                            }
                        });
                    });
                }
            });
            let found = found(&recorder);
            println!("{rounds} rounds: {found:?}");
            assert!(found.iter().all(|found| found.expired == 0), "{} bytes of text: {found:?}", text.len());
            assert!(found.iter().map(|found| found.payloads).sum::<u64>() >= (THREADS * (2 * rounds + 1)) as u64 / 2);
        }
    }
}
