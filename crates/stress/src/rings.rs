//! Builders of small rings, for programs that a test plays.

use eventring::recorder::{ContentDescription, Recorder, RecorderBuilder};
use eventring::schema::EventType;
use eventring::tracing::{PerfRecorder, PerfRecorderBuilder};
use std::ffi::OsStr;

/// Begins a recorder of spans at this place, whose memory is taken as it is used.
pub fn spans_in(place: impl AsRef<OsStr>) -> PerfRecorderBuilder {
    PerfRecorder::builder().config(place).prefault(false)
}

/// Begins a recorder of typed events at this place, whose memory is taken as it is used.
pub fn typed_in<T: EventType>(place: impl AsRef<OsStr>) -> RecorderBuilder {
    Recorder::builder(ContentDescription::from_event_type::<T>()).config(place).prefault(false)
}
