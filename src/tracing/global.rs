//! The global recorder of perf events.

use super::recorder::PerfRecorder;
use super::switch::switch;
use crate::global::{GlobalRecorder, Installable};

/// The perf recorder of this process: [`init`](super::init) installs it, and [`Counter`](super::Counter)s and
/// [`Marker`](super::Marker)s go to it.
///
/// `PERF.set_enabled` is the same as [`PerfRecorder::set_enabled`] of the installed recorder.
pub static PERF: GlobalRecorder<PerfRecorder> = GlobalRecorder::empty("perf");

impl GlobalRecorder<PerfRecorder> {
    /// Returns the recorder to record to now; `None` if there is none, or it is switched off. Off, this is a relaxed
    /// load and a branch.
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

    // A subscriber that records to `PERF` answers `tracing` by what is installed there: all call sites are asked again.
    fn change(change: impl FnOnce() -> bool) {
        switch(change);
    }

    fn switch_installed(&'static self, _: &'static GlobalRecorder<Self>, is_on: bool) {
        self.set_enabled(is_on);
    }
}
