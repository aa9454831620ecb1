//! Where the times of threads are not measured.

use crate::recorder::Recorder;
use crate::schema::perf::measured_times::ThreadTimeState;
use crate::schema::perf::tables;
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::threads::thread::ThreadState;

/// The word that would tell a thread whether it has left its processor. It tells nothing.
pub(in crate::tracing::record) struct SwitchWord;

impl SwitchWord {
    pub(in crate::tracing::record) const fn not_told() -> Self {
        Self
    }

    #[inline(always)]
    pub(in crate::tracing::record) fn is_armed(&self) -> bool {
        true
    }
}

/// How a recorder would measure the times of its threads.
pub(in crate::tracing::record) struct ThreadTimes;

impl ThreadTimes {
    pub(in crate::tracing::record) fn new(_: f64, shard0: &Recorder) -> Self {
        shard0.publish_context_word(tables::THREAD_TIME_STATE_OFFSET, ThreadTimeState::NotBuilt as u64);
        Self
    }
}

impl PerfCore {
    pub(super) fn measure_slow(&self, _: &ThreadState, _: &Recorder) {}

    /// Returns false: no thread is measured.
    pub(in crate::tracing::record) fn begin_times(self: &std::sync::Arc<Self>, _: &ThreadState, _: usize) -> bool {
        false
    }
}
