//! The conversion of the capture, as the page sees it: how far it is, and the trace at its end.

use super::trace::ShownTrace;
use serde_json::json;
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A step of the conversion: its text, and how often it reads the capture.
pub(super) type ConversionStep = (&'static str, u32);

pub(super) const CONVERTING: ConversionStep = ("The capture is being converted", 2);
/// The capture is too large, and its last part is searched.
pub(super) const FINDING_LAST_PART: ConversionStep =
    ("The capture is too large for a browser, so its last part will be shown", 1);
pub(super) const CONVERTING_LAST_PART: ConversionStep = ("The last part of the capture is being converted", 2);

/// A conversion, shared by the thread that converts and by the connections of the server.
#[derive(Clone)]
pub(super) struct Conversion(Arc<Mutex<ConversionState>>);

struct ConversionState {
    step: ConversionStep,
    /// The number of readings of this step that are over.
    readings: u32,
    /// The bytes that the present reading has read, and those that it will read.
    read: (u64, u64),
    end: Option<End>,
}

enum End {
    Done { file: Arc<Mutex<File>>, bytes: u64, problems: Vec<String> },
    Failed,
}

impl Conversion {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(ConversionState { step: CONVERTING, readings: 0, read: (0, 0), end: None })))
    }

    fn state(&self) -> MutexGuard<'_, ConversionState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a step begins.
    pub(super) fn begin(&self, step: ConversionStep) {
        let mut state = self.state();
        (state.step, state.readings, state.read) = (step, 0, (0, 0));
    }

    /// Notes how many bytes of how many a reading of the capture has read. A step may read the capture several times.
    pub(super) fn read(&self, read_bytes: u64, all_bytes: u64) {
        let mut state = self.state();
        state.readings += u32::from(read_bytes < state.read.0);
        state.read = (read_bytes, all_bytes);
    }

    /// Notes that the trace is there, or that there will be none.
    pub(super) fn end(&self, trace: Option<ShownTrace>) {
        self.state().end = Some(match trace {
            Some(ShownTrace { file, bytes, summary }) => {
                End::Done { file: Arc::new(Mutex::new(file)), bytes, problems: summary.problems }
            }
            None => End::Failed,
        });
    }

    /// Returns the file of the trace and its size, once it is there.
    pub(super) fn trace(&self) -> Option<(Arc<Mutex<File>>, u64)> {
        match &self.state().end {
            Some(End::Done { file, bytes, .. }) => Some((file.clone(), *bytes)),
            _ => None,
        }
    }

    /// Returns the server-sent event with which the page learns how far the conversion is.
    pub(super) fn event(&self) -> String {
        let state = self.state();
        match &state.end {
            Some(End::Done { problems, .. }) => format!("event: ready\ndata: {}\n\n", json!({ "problems": problems })),
            Some(End::Failed) => "event: failed\ndata: 1\n\n".to_owned(),
            None => {
                let ((read, all), (text, readings)) = (state.read, state.step);
                let part = f64::from(state.readings) + read.min(all) as f64 / all.max(1) as f64;
                let percent = (part / f64::from(readings) * 100.0).min(99.0) as u64;
                format!("event: converting\ndata: {}\n\n", json!({ "text": text, "percent": percent }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentage_counts_all_readings_of_a_step_and_begins_anew_with_the_next() {
        let conversion = Conversion::new();
        let percent = || {
            let event = conversion.event();
            let (_, data) = event.split_once("data: ").unwrap();
            serde_json::from_str::<serde_json::Value>(data).unwrap()["percent"].as_u64().unwrap()
        };
        let read = |bytes| {
            conversion.read(bytes, 200);
            percent()
        };
        assert_eq!((percent(), [0, 50, 200].map(read), [0, 100, 200].map(read)), (0, [0, 12, 50], [50, 75, 99]));
        conversion.begin(FINDING_LAST_PART);
        assert_eq!((percent(), read(100)), (0, 50));
        conversion.end(None);
        assert_eq!((conversion.event().as_str(), conversion.trace().is_none()), ("event: failed\ndata: 1\n\n", true));
    }
}
