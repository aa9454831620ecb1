//! The cost of time stamps: the clock of recorders, compared with the system's clocks.

use crate::Medians;
use crate::interleave::Cases;
use eventring::recorder::{Clock, ClockKind};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::{Duration, Instant};

pub fn measure(rounds: usize) -> Medians {
    let global = Clock::global().init_once();
    let realtime = Clock::realtime();
    let mut cases = Cases::default();
    cases.add("rdtsc", 20_000, || _ = black_box(crate::floors::ticks()));
    cases.add("clock_now", 20_000, || _ = black_box(Clock::global().now_epoch_nanos()));
    // A recorder calls the clock in this way: it learns only at run time which clock to use.
    cases.add("clock_now_of_a_chosen_clock", 20_000, || _ = black_box(black_box(global).now_epoch_nanos()));
    cases.add("clock_now_fallback", 20_000, || _ = black_box(realtime.now_epoch_nanos()));
    cases.add("clock_gettime", 20_000, || _ = black_box(clock_gettime(ClockId::Realtime)));
    cases.add("clock_gettime_coarse", 20_000, || _ = black_box(clock_gettime(ClockId::RealtimeCoarse)));
    // After a pause of 600 µs, the call to the clock finds that its calibration segment has ended, and makes a new
    // one. The measured time includes one reading of the time for the benchmark itself.
    cases.add_batch("clock_calibrating_call", 5, |calls| {
        let call = |_| {
            let pause = Instant::now();
            while pause.elapsed() < Duration::from_micros(600) {
                std::hint::spin_loop();
            }
            let start = Instant::now();
            black_box(global.now_epoch_nanos());
            start.elapsed()
        };
        (0..calls).map(call).sum()
    });
    cases.add("clock_first_use", 1, || _ = black_box(Clock::new(ClockKind::TickCounter).now_epoch_nanos()));
    cases.measure(rounds)
}
