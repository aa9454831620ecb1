//! What a recorder knows of the times of all its threads.

use super::budget::millionths;
use crate::arch::switches::{self, NotTold, Offset};
use crate::recorder::Recorder;
use crate::schema::perf::measured_times::ThreadTimeState;
use crate::schema::perf::tables;
use crate::shm::{SchedstatFile, keep_loaded};
use crate::sync::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// How a recorder measures the times of its threads, and what this has cost.
pub(in crate::tracing::record) struct ThreadTimes {
    /// Where threads look; `None` if nothing is measured.
    pub(super) offset: Option<Offset>,
    /// The budget of each thread.
    pub(super) millionths: u32,
    cost_nanos: AtomicU64,
    times: AtomicU64,
    switches: AtomicU64,
}

impl ThreadTimes {
    /// Finds out whether times can be measured, and notes this in the tables of `shard0`.
    pub(in crate::tracing::record) fn new(share: f64, shard0: &Recorder) -> Self {
        let millionths = millionths(share);
        let (offset, state) = if millionths == 0 { (None, ThreadTimeState::Off) } else { found() };
        shard0.publish_context_word(tables::THREAD_TIME_STATE_OFFSET, state as u64);
        let [cost_nanos, times, switches] = [const { AtomicU64::new(0) }; 3];
        Self { offset, millionths, cost_nanos, times, switches }
    }

    /// Counts a THREAD_TIME, and what a thread has done since the one before.
    pub(super) fn count(&self, shard0: &Recorder, cost_nanos: u64, switches: u64) {
        let add = |sum: &AtomicU64, more, offset| {
            // Relaxed: counts. Two threads may publish their sums in the other order, and the next one mends this.
            let before = sum.fetch_add(more, Ordering::Relaxed);
            shard0.publish_context_word(offset, before + more);
        };
        add(&self.cost_nanos, cost_nanos, tables::THREAD_TIME_COST_OFFSET);
        add(&self.times, 1, tables::THREAD_TIMES_OFFSET);
        if switches > 0 {
            add(&self.switches, switches, tables::THREAD_SWITCHES_OFFSET);
        }
    }
}

/// Returns what is true for the whole process.
fn found() -> (Option<Offset>, ThreadTimeState) {
    static FOUND: OnceLock<Result<Offset, NotTold>> = OnceLock::new();
    // The kernel will hold the address of a descriptor in this code.
    if !keep_loaded() {
        return (None, ThreadTimeState::Unregistered);
    }
    match FOUND.get_or_init(switches::find) {
        Ok(offset) if SchedstatFile::open().read().is_some() => (Some(*offset), ThreadTimeState::Measured),
        Ok(offset) => (Some(*offset), ThreadTimeState::NoQueue),
        Err(NotTold::Architecture) => (None, ThreadTimeState::NotBuilt),
        Err(NotTold::Library) => (None, ThreadTimeState::Library),
        Err(NotTold::SwitchedOff) => (None, ThreadTimeState::Unregistered),
        Err(NotTold::Kernel) => (None, ThreadTimeState::Kernel),
    }
}
