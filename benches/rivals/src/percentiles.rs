//! The spread of the times of single calls, by the method of Quill's published benchmark: a thread makes 20 calls,
//! divides their time by 20, pauses, and repeats this many times. The benchmark runs with one and with four threads.

use crate::Medians;
use crate::floors::ticks;
use crate::recording::{LARGE, warm_recorder};
use crate::spans::perf_recorder;
use eventring::tracing::PERF;
use eventring::{log, scope};
use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Calls between two readings of the clock.
const CALLS: u64 = 20;
/// More events than a shard has room for.
const CALLS_OF_A_LAP: u64 = 1 << 18;
const PAUSE: Duration = Duration::from_micros(200);

/// Measures the percentiles 50, 99 and 99.9 of each case. Records to the recorders that the other parts have installed.
pub fn measure(rounds: usize) -> Medians {
    // Scopes and texts go to the global recorder, which another part may have installed.
    let _ = PERF.install(perf_recorder());
    let recorder = warm_recorder(LARGE);
    let cases: [(&str, &(dyn Fn(u64) + Sync)); 4] = [
        // How evenly the machine itself runs.
        ("rdtsc", &|_| _ = black_box(ticks())),
        ("record_16", &|_| _ = recorder.record(2, [1, 2, 3, 4], black_box(&[7; 16]))),
        ("scope_0f", &|_| drop(black_box(scope!("percentile")))),
        ("log_text_2u", &|number| log::info!("sent {} of {} bytes", black_box(number), black_box(2 * number))),
    ];
    let rounds = 200 * rounds;
    let nanos_per_tick = nanos_per_tick();
    let mut found = Medians::new();
    for (name, call) in cases {
        for (threads, label) in [(1, "1thread"), (4, "4threads")] {
            let mut all = run(threads, rounds, call);
            all.sort_unstable();
            for (permille, percentile) in [(500, "p50"), (990, "p99"), (999, "p999")] {
                let at = (all.len() * permille / 1000).min(all.len() - 1);
                let nanos = all[at] as f64 * nanos_per_tick / CALLS as f64;
                found.insert(format!("{name}_{label}_{percentile}"), nanos);
            }
        }
    }
    found
}

/// Returns the ticks of 20 calls, of each round of each thread.
fn run(threads: usize, rounds: usize, call: &(dyn Fn(u64) + Sync)) -> Vec<u64> {
    let barrier = Barrier::new(threads);
    let thread = || {
        let mut all = Vec::with_capacity(rounds);
        // Once round the thread's shard, so that no call waits for a new page.
        (0..CALLS_OF_A_LAP).for_each(call);
        barrier.wait();
        for round in 0..rounds as u64 {
            let start = ticks();
            (0..CALLS).for_each(|number| call(round + number));
            all.push(ticks() - start);
            let pause = Instant::now();
            while pause.elapsed() < PAUSE {
                std::hint::spin_loop();
            }
        }
        all
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(thread)).collect();
        all.into_iter().flat_map(|thread| thread.join().expect("no call panics")).collect()
    })
}

fn nanos_per_tick() -> f64 {
    let (start, ticks_before) = (Instant::now(), ticks());
    std::thread::sleep(Duration::from_millis(50));
    start.elapsed().as_nanos() as f64 / (ticks() - ticks_before) as f64
}
