//! Locks of threads: `open` shows who waits for whom, and `why` names the lock of a slow span, its holder and the time.

mod deadlocks;
mod waits;

use crate::fixtures::*;
use eventring::tracing::PERF;
use eventring_stress::child::place as handed_over;

/// Records the spans, log records and locks of this process.
fn recording(shifts: (u32, u32), shards: usize) -> PerfRecorder {
    let recorder = spans_in(handed_over()).shifts(shifts.0, shifts.1).shards(shards).build().unwrap();
    record_to(&recorder);
    recorder
}

fn record_to(recorder: &PerfRecorder) {
    PERF.install(recorder.clone()).unwrap();
    subscriber::set_global_default(RecorderSubscriber::new(recorder.clone())).unwrap();
}
