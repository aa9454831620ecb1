//! One line for the whole process.

use super::builder::PerfRecorderBuilder;
use super::filter::{FilterError, TargetFilter};
use super::recorder::PerfRecorder;
use super::slot::PERF;
use super::subscriber::{FilterHandle, RecorderSubscriber};
use crate::recorder::RecorderError;
use std::ffi::OsStr;
use std::fmt;
use tracing_core::{LevelFilter, dispatcher};

/// Environment variable that [`init_from_env`] takes the rings' name and size from.
pub const CONFIG_VARIABLE: &str = "EVENTRING_PERF";
/// Environment variable that [`init`] and [`init_from_env`] take the filter from, if it is set.
pub const FILTER_VARIABLE: &str = "EVENTRING_FILTER";

/// The process-wide recording that [`init`] has begun. It goes on until the process ends; dropping this ends nothing.
#[derive(Clone, Debug)]
pub struct Recording {
    recorder: &'static PerfRecorder,
    filter: FilterHandle,
}

impl Recording {
    /// The recorder.
    #[must_use]
    pub fn recorder(&self) -> &'static PerfRecorder {
        self.recorder
    }

    /// Switches recording on or off while the program runs.
    pub fn set_enabled(&self, enabled: bool) {
        PERF.set_enabled(enabled);
    }

    /// Changes what is recorded, while the program runs.
    pub fn set_filter(&self, filter: TargetFilter) {
        self.filter.set(filter);
    }

    /// What is recorded now.
    #[must_use]
    pub fn filter(&self) -> TargetFilter {
        self.filter.get()
    }
}

/// Records what this process does with `tracing` from here on, into rings of that name.
///
/// `config` is `<name-or-path>[:<descriptor-shift>:<payload-shift>]`, see [`PerfRecorderBuilder::config`]. Spans and events at level
/// INFO and more important ones are recorded, or what the environment variable `EVENTRING_FILTER` says (`info,my_crate=debug`).
///
/// ```no_run
/// eventring::tracing::init("my-app")?;
/// tracing::info_span!("request", path = "/").in_scope(|| tracing::info!("hello"));
/// // `eventring watch my-app` shows it.
/// # Ok::<(), eventring::tracing::SetupError>(())
/// ```
///
/// The files go away when the process exits normally; after a crash they stay and can be read. For log records of the `log` crate
/// call `tracing_log::LogTracer::init()` beside.
///
/// # Errors
/// There is a global subscriber or a recorder in [`PERF`] already, the rings cannot be created, or the filter is none.
pub fn init(config: impl AsRef<OsStr>) -> Result<Recording, SetupError> {
    init_with(PerfRecorder::builder().config(config), filter_from_env()?.unwrap_or(default_filter()))
}

/// As [`init`], with all that a [`PerfRecorderBuilder`] can set, and a filter that does not ask the environment.
///
/// # Errors
/// As [`init`].
pub fn init_with(recorder: PerfRecorderBuilder, filter: TargetFilter) -> Result<Recording, SetupError> {
    // Before rings are made for nothing.
    if is_set_globally() {
        return Err(SetupError(Cause::Subscriber));
    }
    if PERF.installed().is_some_and(PerfRecorder::belongs_to_this_process) {
        return Err(SetupError(Cause::Recorder));
    }
    let recorder = recorder.build().map_err(|error| SetupError(Cause::Rings(error)))?;
    if !PERF.install(recorder) {
        return Err(SetupError(Cause::Recorder));
    }
    let subscriber = RecorderSubscriber::global().with_filter(filter);
    let filter = subscriber.filter_handle();
    if dispatcher::set_global_default(dispatcher::Dispatch::new(subscriber)).is_err() {
        PERF.set_enabled(false);
        return Err(SetupError(Cause::Subscriber));
    }
    let recorder = PERF.installed().ok_or(SetupError(Cause::Recorder))?;
    Ok(Recording { recorder, filter })
}

/// As [`init`] with the configuration in the environment variable `EVENTRING_PERF`: a service can be recorded without a rebuild.
/// `Ok(None)`, and nothing happens, if that is not set or empty.
///
/// # Errors
/// As [`init`].
pub fn init_from_env() -> Result<Option<Recording>, SetupError> {
    match std::env::var_os(CONFIG_VARIABLE) {
        Some(config) if !config.is_empty() => init(config).map(Some),
        _ => Ok(None),
    }
}

fn filter_from_env() -> Result<Option<TargetFilter>, SetupError> {
    match std::env::var_os(FILTER_VARIABLE) {
        Some(filter) if !filter.is_empty() => {
            let filter = TargetFilter::parse(&filter.to_string_lossy());
            filter.map(Some).map_err(|error| SetupError(Cause::Filter(error)))
        }
        _ => Ok(None),
    }
}

fn default_filter() -> TargetFilter {
    TargetFilter::level(LevelFilter::INFO)
}

/// Whether there is a global subscriber; one that is set for this thread only is none.
fn is_set_globally() -> bool {
    // A thread of its own has no scoped subscriber.
    let look = || dispatcher::get_default(|dispatch| !dispatch.is::<tracing_core::subscriber::NoSubscriber>());
    std::thread::Builder::new().spawn(look).map_or(Ok(true), std::thread::JoinHandle::join).unwrap_or(true)
}

/// The process-wide recording could not begin.
#[derive(Debug)]
pub struct SetupError(Cause);

#[derive(Debug)]
enum Cause {
    Subscriber,
    Recorder,
    Rings(RecorderError),
    Filter(FilterError),
}

/// What kind of [`SetupError`] it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetupErrorKind {
    /// The process has a global `tracing` subscriber already.
    SubscriberSet,
    /// There is a recorder in [`PERF`] already.
    AlreadyInstalled,
    /// The rings could not be created; the source says why.
    Recorder,
    /// The filter is none; the source says why.
    Filter,
}

impl SetupError {
    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> SetupErrorKind {
        match self.0 {
            Cause::Subscriber => SetupErrorKind::SubscriberSet,
            Cause::Recorder => SetupErrorKind::AlreadyInstalled,
            Cause::Rings(_) => SetupErrorKind::Recorder,
            Cause::Filter(_) => SetupErrorKind::Filter,
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
        }
    }
}

impl std::error::Error for SetupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Cause::Rings(error) => Some(error),
            Cause::Filter(error) => Some(error),
            Cause::Subscriber | Cause::Recorder => None,
        }
    }
}
