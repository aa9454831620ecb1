//! The process-wide perf recorder: a thin slot over a first-class one.

use super::recorder::PerfRecorder;
use super::switch::switch;
use crate::global::Leaked;
use crate::sync::{AtomicBool, Ordering};

/// The perf recorder of this process: what [`init`](super::init) installs, and where [`Counter`](super::Counter)s and
/// [`Marker`](super::Marker)s go.
pub static PERF: PerfSlot = PerfSlot { is_on: AtomicBool::new(false), installed: Leaked::empty() };

/// A slot for a perf recorder. Empty or switched off, recording to it costs a relaxed load and a branch.
pub struct PerfSlot {
    is_on: AtomicBool,
    installed: Leaked<PerfRecorder>,
}

impl PerfSlot {
    /// The recorder to record to now; `None` if there is none or it is switched off.
    #[inline(always)]
    pub fn active(&'static self) -> Option<&'static PerfRecorder> {
        // Relaxed: it only says whether to look; the recorder behind the pointer is loaded with acquire.
        if self.is_on.load(Ordering::Relaxed) { self.installed.get() } else { None }
    }

    /// The installed recorder, switched on or not.
    #[inline(always)]
    pub fn installed(&'static self) -> Option<&'static PerfRecorder> {
        self.installed.get()
    }

    /// Installs `recorder` and switches the slot on. False, and nothing changes, if there is one already; one that was inherited
    /// by a fork does not count, so that a forked child can go on with rings of its own.
    pub fn install(&'static self, recorder: PerfRecorder) -> bool {
        // A subscriber that records to this slot had no use for call sites until now: they are asked again.
        switch(|| {
            if self.installed().is_some_and(PerfRecorder::belongs_to_this_process) {
                return false;
            }
            // Never freed: threads may be recording.
            self.installed.set(recorder);
            self.is_on.store(true, Ordering::Relaxed);
            true
        })
    }

    /// Switches recording on or off while the program runs, as [`PerfRecorder::set_enabled`]. Nothing happens without a recorder.
    pub fn set_enabled(&'static self, enabled: bool) {
        switch(|| {
            let Some(recorder) = self.installed() else { return false };
            self.is_on.store(enabled, Ordering::Relaxed);
            recorder.store_enabled(enabled);
            true
        });
    }
}

impl std::fmt::Debug for PerfSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PerfSlot").field("is_on", &self.is_on.load(Ordering::Relaxed)).finish_non_exhaustive()
    }
}
