//! The cost of a time stamp.
#![allow(missing_docs, reason = "criterion's macros make public functions")]

use criterion::{Criterion, criterion_group, criterion_main};
use eventring::recorder::Clock;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::{Duration, Instant};

fn time_stamps(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("clock");
    #[cfg(target_arch = "x86_64")]
    group.bench_function("rdtsc", |bencher| {
        // SAFETY: RDTSC exists on every x86-64 processor and touches no memory.
        bencher.iter(|| unsafe { std::arch::x86_64::_rdtsc() });
    });
    let global = Clock::global().init_once();
    group.bench_function("now_epoch_nanos", |bencher| bencher.iter(|| Clock::global().now_epoch_nanos()));
    // A recorder calls the clock in this way: it learns only at run time which clock to use.
    let chosen = black_box(global);
    group.bench_function("now_epoch_nanos_of_a_chosen_clock", |bencher| bencher.iter(|| chosen.now_epoch_nanos()));
    let realtime = Clock::realtime();
    group.bench_function("now_epoch_nanos_fallback", |bencher| bencher.iter(|| realtime.now_epoch_nanos()));
    group.bench_function("clock_gettime", |bencher| bencher.iter(|| clock_gettime(ClockId::Realtime)));
    group.bench_function("clock_gettime_coarse", |bencher| bencher.iter(|| clock_gettime(ClockId::RealtimeCoarse)));
    // After a pause of 600 µs, the call to the clock finds that its calibration segment has ended, and makes a new
    // one. The measured time includes one reading of the time for the benchmark itself.
    group.sample_size(20);
    group.bench_function("calibrating_call", |bencher| {
        bencher.iter_custom(|calls| {
            let mut spent = Duration::ZERO;
            for _ in 0..calls {
                let pause = Instant::now();
                while pause.elapsed() < Duration::from_micros(600) {
                    std::hint::spin_loop();
                }
                let start = Instant::now();
                black_box(global.now_epoch_nanos());
                spent += start.elapsed();
            }
            spent
        });
    });
    group.bench_function("first_use", |bencher| {
        bencher.iter_with_large_drop(|| {
            let clock = Clock::new(eventring::recorder::ClockKind::TickCounter);
            black_box(clock.now_epoch_nanos());
            clock
        });
    });
    group.finish();
}

criterion_group!(benches, time_stamps);
criterion_main!(benches);
