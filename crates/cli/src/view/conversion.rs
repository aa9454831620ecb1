//! The conversion of the capture, as the page sees it: how far it is, and the trace at its end.

use super::trace::ShownTrace;
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A conversion, shared by the thread that converts and by the connections of the server.
#[derive(Clone, Default)]
pub(super) struct Conversion(Arc<Mutex<ConversionState>>);

#[derive(Default)]
struct ConversionState {
    step: ConversionStep,
    /// The number of readings of this step that are over.
    readings: u32,
    /// The bytes that the present reading has read, and those that it will read.
    read: (u64, u64),
    end: Option<End>,
}

enum End {
    Done { file: Arc<File>, bytes: u64, problems: Arc<[String]> },
    Failed,
}

/// A step of the conversion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum ConversionStep {
    #[default]
    Converting,
    /// The capture is too large, and its last part is searched.
    FindingLastPart,
    ConvertingLastPart,
}

impl ConversionStep {
    /// Returns how often the step reads the capture.
    fn readings(self) -> u32 {
        match self {
            Self::Converting | Self::ConvertingLastPart => 2,
            Self::FindingLastPart => 1,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Converting => "The capture is being converted",
            Self::FindingLastPart => "The capture is too large for a browser, so its last part will be shown",
            Self::ConvertingLastPart => "The last part of the capture is being converted",
        }
    }
}

/// A sign of life for the page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Sign {
    /// A conversion that goes on, and the percentage of its present step that is done.
    Converting {
        text: &'static str,
        percent: u64,
    },
    /// The trace is there. It lacks what these problems of the capture say.
    Ready {
        problems: Arc<[String]>,
    },
    Failed,
}

impl Conversion {
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
        if read_bytes < state.read.0 {
            state.readings += 1;
        }
        state.read = (read_bytes, all_bytes);
    }

    /// Notes that the trace is there.
    pub(super) fn done(&self, trace: ShownTrace) {
        let problems = trace.summary.problems.into();
        self.state().end = Some(End::Done { file: Arc::new(trace.file), bytes: trace.bytes, problems });
    }

    pub(super) fn failed(&self) {
        self.state().end = Some(End::Failed);
    }

    /// Returns the file of the trace and its size, once it is there.
    pub(super) fn trace(&self) -> Option<(Arc<File>, u64)> {
        match &self.state().end {
            Some(End::Done { file, bytes, .. }) => Some((file.clone(), *bytes)),
            _ => None,
        }
    }

    pub(super) fn sign(&self) -> Sign {
        let state = self.state();
        match &state.end {
            Some(End::Done { problems, .. }) => Sign::Ready { problems: problems.clone() },
            Some(End::Failed) => Sign::Failed,
            None => {
                let part = |(read, all): (u64, u64)| read.min(all) as f64 / all.max(1) as f64;
                let all = (f64::from(state.readings) + part(state.read)) / f64::from(state.step.readings());
                Sign::Converting { text: state.step.text(), percent: (all * 100.0).min(99.0) as u64 }
            }
        }
    }
}

impl Sign {
    /// Returns the server-sent event with which the page learns of it.
    pub(super) fn event(&self) -> String {
        match self {
            Self::Converting { text, percent } => {
                format!("event: converting\ndata: {}\n\n", serde_json::json!({ "text": text, "percent": percent }))
            }
            Self::Ready { problems } => {
                format!("event: ready\ndata: {}\n\n", serde_json::json!({ "problems": &problems[..] }))
            }
            Self::Failed => "event: failed\ndata: 1\n\n".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentage_counts_all_readings_of_a_step_and_begins_anew_with_the_next() {
        let conversion = Conversion::default();
        let percent = || match conversion.sign() {
            Sign::Converting { percent, .. } => percent,
            other => panic!("{other:?}"),
        };
        let read = |bytes| {
            conversion.read(bytes, 200);
            percent()
        };
        assert_eq!((percent(), [0, 50, 200].map(read), [0, 100, 200].map(read)), (0, [0, 12, 50], [50, 75, 99]));
        conversion.begin(ConversionStep::FindingLastPart);
        assert_eq!((percent(), read(100)), (0, 50));
        conversion.failed();
        assert_eq!((conversion.sign(), conversion.trace().is_none()), (Sign::Failed, true));
    }
}
