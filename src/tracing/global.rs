//! The global recorder of perf events.

use super::recorder::PerfRecorder;
use super::switch::switch;
use crate::global::{GlobalRecorder, Installable};

/// The perf recorder of this process. [`init`](super::init) installs it, and [`Counter`](super::Counter)s and
/// [`Marker`](super::Marker)s record to it.
///
/// `PERF.set_enabled` is the same as [`PerfRecorder::set_enabled`] of the installed recorder.
pub static PERF: GlobalRecorder<PerfRecorder> = GlobalRecorder::empty("perf");

impl GlobalRecorder<PerfRecorder> {
    /// Returns the recorder to record to now. Returns `None` if there is no recorder, or if it is switched off. While
    /// it is off, this call costs a relaxed load and a branch.
    #[inline(always)]
    pub fn active(&'static self) -> Option<&'static PerfRecorder> {
        if self.is_off() { None } else { self.installed() }
    }
}

impl Installable for PerfRecorder {
    fn belongs_to_this_process(&self) -> bool {
        self.belongs_to_this_process()
    }

    fn is_on_when_installed(&self) -> bool {
        self.core.is_enabled()
    }

    // `tracing` caches the answers of subscribers to the question whether they want a call site. The answer of a
    // subscriber that records to `PERF` depends on the recorder in `PERF`. So after a change `tracing` has to ask again
    // for all call sites.
    fn change(change: impl FnOnce() -> bool) {
        switch(change);
    }

    fn switch_installed(&'static self, _: &'static GlobalRecorder<Self>, is_on: bool) {
        self.set_enabled(is_on);
    }
}
