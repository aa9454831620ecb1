//! The error of the set-up of a process.

use crate::recorder::{RecorderError, RecorderErrorKind};
use crate::tracing::filter::filter::FilterError;
use crate::tracing::record::init::variables::{
    FILTER_VARIABLE, INSTRUCTIONS_VARIABLE, REDACT_VARIABLE, THREAD_TIME_VARIABLE,
};
use std::fmt;

/// The reason why the process-wide recording could not begin.
pub struct SetupError(pub(in crate::tracing::record) SetupCause);

pub(in crate::tracing::record) enum SetupCause {
    /// A global subscriber that exists already.
    Subscriber,
    /// A recorder that [`PERF`](crate::tracing::PERF) holds already.
    Recorder,
    Rings(RecorderError),
    Filter(FilterError),
    /// A name of a redacted field that no field can have.
    Redact(String),
    /// An unknown source of instruction counts.
    Instructions(String),
    /// What is no share of a thread's time.
    ThreadTime(String),
}

/// The kinds of [`SetupError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetupErrorKind {
    /// A global `tracing` subscriber that the process has already.
    SubscriberSet,
    /// A recorder that is in [`PERF`](crate::tracing::PERF) already.
    AlreadyInstalled,
    /// A system that has no event rings, because it is not Linux. The source error has the details.
    Unsupported,
    /// Rings that could not be created. The source error has the reason.
    Recorder,
    /// An invalid filter. The source error has the reason.
    Filter,
    /// An invalid name of a field that is not to be recorded.
    Redact,
    /// An unknown source of instruction counts.
    Instructions,
    /// An invalid share of the time of threads.
    ThreadTime,
}

impl SetupError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> SetupErrorKind {
        match self.0 {
            SetupCause::Subscriber => SetupErrorKind::SubscriberSet,
            SetupCause::Recorder => SetupErrorKind::AlreadyInstalled,
            SetupCause::Rings(ref error) if error.kind() == RecorderErrorKind::Unsupported => {
                SetupErrorKind::Unsupported
            }
            SetupCause::Rings(_) => SetupErrorKind::Recorder,
            SetupCause::Filter(_) => SetupErrorKind::Filter,
            SetupCause::Redact(_) => SetupErrorKind::Redact,
            SetupCause::Instructions(_) => SetupErrorKind::Instructions,
            SetupCause::ThreadTime(_) => SetupErrorKind::ThreadTime,
        }
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("begin recording of `tracing`: ")?;
        match &self.0 {
            SetupCause::Subscriber => f.write_str(
                "the process has a global subscriber already, expected none; add a `RecorderLayer` to that one instead",
            ),
            SetupCause::Recorder => f.write_str(
                "the process has a global perf recorder already, expected none; use `PERF.set_enabled` to switch it",
            ),
            SetupCause::Rings(error) => error.fmt(f),
            SetupCause::Filter(error) => write!(f, "{error} (from the environment variable {FILTER_VARIABLE})"),
            SetupCause::Instructions(source) => write!(
                f,
                "count instructions: found `{source}`, expected `off`, `plugin` or `hardware`; write one of these (from the environment variable \
                 {INSTRUCTIONS_VARIABLE})"
            ),
            SetupCause::ThreadTime(share) => write!(
                f,
                "measure the times of threads: found `{share}`, expected `off` or a share of at most 100 %; write for example `0.2%` \
                 (from the environment variable {THREAD_TIME_VARIABLE})"
            ),
            SetupCause::Redact(name) => write!(
                f,
                "redact fields: found `{name}`, which no field can be named, expected names of fields, separated by commas; write \
                 names without patterns, such as `password,user.token,\"user id\"` (from the environment variable {REDACT_VARIABLE})"
            ),
        }
    }
}

debug_as_displayed!(SetupError);

impl std::error::Error for SetupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            SetupCause::Rings(error) => Some(error),
            SetupCause::Filter(error) => Some(error),
            SetupCause::Subscriber
            | SetupCause::Recorder
            | SetupCause::Redact(_)
            | SetupCause::Instructions(_)
            | SetupCause::ThreadTime(_) => None,
        }
    }
}
