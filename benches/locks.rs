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

/// Locks at different places in their cache lines. Batches use them in turns.
const PLACES: usize = 8;

/// Lock and unlock: the one that is wrapped, and ours.
type Turn<'a> = (&'a str, [&'a dyn Fn(usize) -> f64; 2]);

fn main() {
    let recorder = PerfRecorder::builder().anonymous().build().expect("a recorder");
    PERF.install(recorder.clone()).expect("the first recorder");
    let std: Vec<_> = (0..PLACES).map(|_| std::sync::Mutex::new(0_u64)).collect();
    let ours: Vec<_> = (0..PLACES).map(|_| sync::Mutex::new("ours", 0_u64)).collect();
    let std_rw: Vec<_> = (0..PLACES).map(|_| std::sync::RwLock::new(0_u64)).collect();
    let ours_rw: Vec<_> = (0..PLACES).map(|_| sync::RwLock::new("ours", 0_u64)).collect();
    let parked: Vec<_> = (0..PLACES).map(|_| parking_lot::Mutex::new(0_u64)).collect();
    let ours_parked: Vec<_> = (0..PLACES).map(|_| sync::parking_lot::Mutex::new("ours", 0_u64)).collect();
    let turns: [Turn<'_>; 4] = [
        ("mutex", [&|at| time(|| *std[at].lock().unwrap() += 1), &|at| time(|| *ours[at].lock().unwrap() += 1)]),
        (
            "read",
            [&|at| time(|| _ = black_box(*std_rw[at].read().unwrap())), &|at| {
                time(|| _ = black_box(*ours_rw[at].read().unwrap()))
            }],
        ),
        (
            "write",
            [&|at| time(|| *std_rw[at].write().unwrap() += 1), &|at| time(|| *ours_rw[at].write().unwrap() += 1)],
        ),
        ("parking_lot", [&|at| time(|| *parked[at].lock() += 1), &|at| time(|| *ours_parked[at].lock() += 1)]),
    ];
    println!(
        "{:12} {:>8} {:>8} {:>8}   (ns for a lock and unlock that nobody waits for)",
        "", "wrapped", "ours", "more"
    );
    tracing::subscriber::with_default(RecorderSubscriber::new(recorder), || {
        let _inside = tracing::info_span!("request").entered();
        for (name, turn) in turns {
            let mut nanos = [(); 2].map(|()| [(); PLACES].map(|()| Vec::new()));
            for batch in 0..BATCHES {
                let at = batch % PLACES;
                nanos.iter_mut().zip(turn).for_each(|(nanos, turn)| nanos[at].push(turn(at)));
            }
            let [wrapped, ours] = nanos.map(|nanos| nanos.map(fast).iter().sum::<f64>() / PLACES as f64);
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
