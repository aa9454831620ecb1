//! The cost of a lock and unlock of `eventring::sync` where nobody waits, in turns with std and parking_lot, and that of
//! the event of a wait:
//!
//! ```console
//! $ cargo bench -p eventring-benches --bench locks
//! ```

#![allow(missing_docs)]

use eventring::internal::record_waits;
use eventring::sync;
use eventring::tracing::{PERF, PerfRecorder, RecorderSubscriber};
use std::hint::black_box;
use std::time::Instant;

const BATCHES: usize = 2_000;
const OPERATIONS: u32 = 4_000;

/// A lock and unlock, in turns by both.
type Turn<'a> = (&'a str, [&'a dyn Fn() -> f64; 2]);

fn main() {
    let recorder = PerfRecorder::builder().anonymous().build().expect("a recorder");
    PERF.install(recorder.clone()).expect("the first recorder");
    let (ours, std) = (sync::Mutex::new("ours", 0_u64), std::sync::Mutex::new(0_u64));
    let (ours_rw, std_rw) = (sync::RwLock::new("ours", 0_u64), std::sync::RwLock::new(0_u64));
    let (ours_parked, parked) = (sync::parking_lot::Mutex::new("ours", 0_u64), parking_lot::Mutex::new(0_u64));
    let turns: [Turn<'_>; 4] = [
        ("mutex", [&|| time(|| *std.lock().unwrap() += 1), &|| time(|| *ours.lock().unwrap() += 1)]),
        (
            "read",
            [&|| time(|| _ = black_box(*std_rw.read().unwrap())), &|| time(|| _ = black_box(*ours_rw.read().unwrap()))],
        ),
        ("write", [&|| time(|| *std_rw.write().unwrap() += 1), &|| time(|| *ours_rw.write().unwrap() += 1)]),
        ("parking_lot", [&|| time(|| *parked.lock() += 1), &|| time(|| *ours_parked.lock() += 1)]),
    ];
    println!(
        "{:12} {:>8} {:>8} {:>8}   (ns for a lock and unlock that nobody waits for)",
        "", "wrapped", "ours", "more"
    );
    tracing::subscriber::with_default(RecorderSubscriber::new(recorder), || {
        let _inside = tracing::info_span!("request").entered();
        for (name, turn) in turns {
            let mut nanos = [Vec::new(), Vec::new()];
            for _ in 0..BATCHES {
                nanos.iter_mut().zip(turn).for_each(|(nanos, turn)| nanos.push(turn()));
            }
            let [wrapped, ours] = nanos.map(fast);
            println!("{name:12} {wrapped:8.2} {ours:8.2} {:8.2}", ours - wrapped);
        }
        let event = || {
            let start = Instant::now();
            record_waits("ours", OPERATIONS.into());
            start.elapsed().as_nanos() as f64 / f64::from(OPERATIONS)
        };
        println!("{:12} {:8.2} ns", "event", fast((0..BATCHES).map(|_| event()).collect()));
    });
}

/// Returns the fastest twentieth.
fn fast(mut nanos: Vec<f64>) -> f64 {
    nanos.sort_by(f64::total_cmp);
    nanos[nanos.len() / 20]
}

fn time(operation: impl Fn()) -> f64 {
    let start = Instant::now();
    (0..OPERATIONS).for_each(|_| operation());
    start.elapsed().as_nanos() as f64 / f64::from(OPERATIONS)
}
