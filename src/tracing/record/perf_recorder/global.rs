//! The global recorder of perf events.

use crate::global::{GlobalRecorder, Installable};
use crate::tracing::filter::switch::switch;
use crate::tracing::record::perf_recorder::handle::PerfRecorder;
use crate::tracing::record::threads::thread;
use std::sync::Arc;

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

impl PerfRecorder {
    /// Switches recording on or off while the program runs. This applies to all handles of the recorder.
    ///
    /// `tracing` caches for each call site whether a subscriber wants its spans or events. This function makes
    /// `tracing` ask again for all call sites. `tracing` asks through the calling thread's subscriber. If the program
    /// has only a scoped subscriber (`set_default`), call this function in the scope of that subscriber. While
    /// recording is off, a call site costs the same as without any subscriber, if a
    /// [`RecorderSubscriber`](crate::tracing::RecorderSubscriber) is the program's only subscriber.
    ///
    /// Some spans are created while recording is off, and are still open when recording is switched on. A
    /// `RecorderSubscriber` never records such a span. A `RecorderLayer` records it from its next use on. While
    /// recording is off, the exit of a span is still recorded if its enter was recorded. The close of a span is still
    /// recorded if its creation was recorded.
    pub fn set_enabled(&self, enabled: bool) {
        switch(|| {
            self.core.store_enabled(enabled);
            if PERF.installed().is_some_and(|installed| Arc::ptr_eq(&installed.core, &self.core)) {
                PERF.store_switch(enabled);
            }
            true
        });
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
