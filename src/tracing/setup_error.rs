//! The error of the set-up of a process.

use super::filter::FilterError;
use super::init::{FILTER_VARIABLE, REDACT_VARIABLE};
use crate::recorder::{RecorderError, RecorderErrorKind};
use std::fmt;

/// The reason why the process-wide recording could not begin.
pub struct SetupError(pub(super) Cause);

pub(super) enum Cause {
    /// There is a global subscriber.
    Subscriber,
    /// There is a recorder in [`PERF`](super::PERF).
    Recorder,
    Rings(RecorderError),
    Filter(FilterError),
    /// A name that no field has.
    Redact(String),
}

/// The kinds of [`SetupError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetupErrorKind {
    /// The process has a global `tracing` subscriber already.
    SubscriberSet,
    /// There is a recorder in [`PERF`](super::PERF) already.
    AlreadyInstalled,
    /// The system has no event rings: it is not Linux. The source says more.
    Unsupported,
    /// The rings could not be created; the source says why.
    Recorder,
    /// The filter is invalid; the source says why.
    Filter,
    /// A name of a field that is not to be recorded is invalid.
    Redact,
}

impl SetupError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> SetupErrorKind {
        match self.0 {
            Cause::Subscriber => SetupErrorKind::SubscriberSet,
            Cause::Recorder => SetupErrorKind::AlreadyInstalled,
            Cause::Rings(ref error) if error.kind() == RecorderErrorKind::Unsupported => SetupErrorKind::Unsupported,
            Cause::Rings(_) => SetupErrorKind::Recorder,
            Cause::Filter(_) => SetupErrorKind::Filter,
            Cause::Redact(_) => SetupErrorKind::Redact,
        }
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("begin recording of `tracing`: ")?;
        match &self.0 {
            Cause::Subscriber => f.write_str(
                "the process has a global subscriber already, expected none; add a `RecorderLayer` to that one instead",
            ),
            Cause::Recorder => f.write_str(
                "the process has a global perf recorder already, expected none; use `PERF.set_enabled` to switch it",
            ),
            Cause::Rings(error) => error.fmt(f),
            Cause::Filter(error) => write!(f, "{error} (from the environment variable {FILTER_VARIABLE})"),
            Cause::Redact(name) => write!(
                f,
                "redact fields: found the name `{name}`, expected names of fields; separate names by commas, such as `password,token` \
                 (from the environment variable {REDACT_VARIABLE})"
            ),
        }
    }
}

debug_as_displayed!(SetupError);

impl std::error::Error for SetupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Cause::Rings(error) => Some(error),
            Cause::Filter(error) => Some(error),
            Cause::Subscriber | Cause::Recorder | Cause::Redact(_) => None,
        }
    }
}
