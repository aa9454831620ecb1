//! The programs that record: they run in processes of their own.

use eventring::recorder::{ContentDescription, Recorder};
use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use std::time::{Duration, Instant};

/// The payload of an event. With LTTng's header, an event of LTTng has about the same size.
pub const PAYLOAD_BYTES: usize = 127;

/// Records `events` events at `per_second`, as `benches/lttng/load.c` does. Prints the nanoseconds that recording one
/// event took, without the waiting.
pub fn write(ring: &str, events: u64, per_second: u64) {
    let content = ContentDescription::new(300, "LOAD");
    let recorder = Recorder::builder(content).config(ring).shifts(20, 28).build().expect("a ring");
    println!("ready");
    // The reader opens the ring meanwhile.
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a line");
    let (mut number, mut bytes) = (0x9e37_79b9_7f4a_7c15_u64, [7_u8; PAYLOAD_BYTES]);
    let start = Instant::now();
    let mut recording = Duration::ZERO;
    let mut event = 0_u64;
    while event < events {
        let due = Duration::from_nanos((u128::from(event) * 1_000_000_000 / u128::from(per_second)) as u64);
        while start.elapsed() < due {
            std::hint::spin_loop();
        }
        let begun = Instant::now();
        for _ in 0..1000 {
            number ^= number << 13;
            number ^= number >> 7;
            number ^= number << 17;
            bytes[..8].copy_from_slice(&event.to_le_bytes());
            bytes[8..16].copy_from_slice(&number.to_le_bytes());
            recorder.record(2, [0; 4], &bytes);
            event += 1;
        }
        recording += begun.elapsed();
    }
    println!("{}", recording.as_nanos() as f64 / events as f64);
    // The ring stays until the reader has seen enough.
    std::io::stdin().read_line(&mut line).expect("the end");
}

/// Records spans: requests with a child each and a log record, on two threads. `events` is the number of events.
pub fn write_spans(ring: &str, events: u64) {
    let recorder = PerfRecorder::builder().config(ring).shifts(20, 26).build().expect("a ring");
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a line");
    // A request has nine events: two spans with four events each, and a log record.
    let requests = events / 9 / 2;
    let subscriber = || RecorderSubscriber::new(recorder.clone());
    std::thread::scope(|scope| {
        for thread in 0..2 {
            scope.spawn(move || {
                tracing::subscriber::with_default(subscriber(), || {
                    for request in 0..requests {
                        let span = tracing::info_span!("request", id = request, thread);
                        let _in_request = span.enter();
                        let query = tracing::info_span!("query", table = "orders", rows = request % 100);
                        query.in_scope(|| tracing::info!(item = request % 1000, "found"));
                        // The two threads together record about two million events a second.
                        if request % 64 == 0 {
                            std::thread::sleep(Duration::from_micros(500));
                        }
                    }
                });
            });
        }
    });
    println!("done");
}
