//! The global recorder of perf events.

use crate::global::{GlobalRecorder, Installable};
use crate::tracing::filter::switch::switch;
use crate::tracing::record::perf_recorder::handle::PerfRecorder;
use crate::tracing::record::threads::thread;

/// The perf recorder of this process. [`init`](fn@crate::tracing::init) installs a recorder here.
/// [`Counter`](crate::tracing::Counter)s and [`Marker`](crate::tracing::Marker)s record to it.
///
/// `PERF.set_enabled` does the same as [`PerfRecorder::set_enabled`] of the recorder that is installed here.
pub static PERF: GlobalRecorder<PerfRecorder> = GlobalRecorder::empty("perf");

impl GlobalRecorder<PerfRecorder> {
    /// Returns the recorder to record to at this moment. Returns `None` if there is no recorder, or if recording is
    /// switched off. While recording is off, the call costs one relaxed load and a branch.
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

    // A scope that is open now was begun in the parent process of this forked child. Its end belongs to no other rings.
    fn follow(&'static self, _: &'static GlobalRecorder<Self>) {
        thread::with(|thread| thread.span_stack.forget_begins_of_scopes());
    }

    // `tracing` caches for each call site whether a subscriber wants it. The answer of a subscriber that records to
    // `PERF` depends on the recorder in `PERF`. So after a change of that recorder, `switch` makes `tracing` ask again
    // for all call sites.
    fn change(change: impl FnOnce() -> bool) {
        switch(change);
    }

    fn switch_installed(&'static self, _: &'static GlobalRecorder<Self>, is_on: bool) {
        self.set_enabled(is_on);
    }
}
