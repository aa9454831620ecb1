//! Set-up of a whole process in one line.

use super::builder::PerfRecorderBuilder;
use super::filter::TargetFilter;
use super::filter_handle::FilterHandle;
use super::global::PERF;
use super::layer::RecorderLayer;
use super::recorder::PerfRecorder;
use super::setup_error::{SetupCause, SetupError};
use super::subscriber::RecorderSubscriber;
use super::switch::switch;
use crate::global::NotInstalled;
use std::ffi::{OsStr, OsString};
use tracing_core::{LevelFilter, Subscriber, dispatcher};
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

/// Environment variable with the name and size of the rings, for [`try_init_from_env`] and
/// [`RecorderLayer::try_from_env`].
pub const CONFIG_VARIABLE: &str = "EVENTRING_PERF";
/// Environment variable with the filter, for [`init`], [`try_init`], [`try_init_from_env`] and
/// [`RecorderLayer::try_from_env`].
pub const FILTER_VARIABLE: &str = "EVENTRING_FILTER";
/// Environment variable with names of fields that are not to be recorded, separated by commas. The functions that read
/// [`FILTER_VARIABLE`] also read it; see [`PerfRecorderBuilder::redact_fields`].
pub const REDACT_VARIABLE: &str = "EVENTRING_REDACT";

/// The process-wide recording that [`init`] has begun. It continues until the process ends, also if this value is
/// dropped.
#[derive(Clone, Debug)]
pub struct Recording {
    recorder: &'static PerfRecorder,
    filter: FilterHandle,
}

impl Recording {
    /// Returns the recorder.
    #[must_use]
    pub fn recorder(&self) -> &'static PerfRecorder {
        self.recorder
    }

    /// Sets whether the files of all rings stay when the program exits, also the files of rings that are made later.
    /// After a crash they always stay.
    ///
    /// ```no_run
    /// eventring::tracing::init("my-app").keep(true);
    /// ```
    pub fn keep(&self, keep: bool) {
        self.recorder.keep(keep);
    }

    /// Switches recording on or off while the program runs.
    pub fn set_enabled(&self, enabled: bool) {
        PERF.set_enabled(enabled);
    }

    /// Changes the filter while the program runs.
    pub fn set_filter(&self, filter: TargetFilter) {
        self.filter.set(filter);
    }

    /// Returns the current filter.
    #[must_use]
    pub fn filter(&self) -> TargetFilter {
        self.filter.get()
    }
}

/// Begins to record the spans and log records of this process, into rings with this name. This is for programs that
/// cannot go on without a recording; other programs use [`try_init`].
///
/// `config` is `<name-or-path>[:<descriptor-shift>:<payload-shift>]`, see [`PerfRecorderBuilder::config`]. The
/// environment variable `EVENTRING_FILTER` (`info,my_crate=debug`) chooses spans and events. If this variable is not
/// set, spans and events at level INFO and more important levels are recorded. Fields that `EVENTRING_REDACT` names
/// (`password,token`) are left out.
///
/// ```no_run
/// eventring::tracing::init("my-app");
/// tracing::info_span!("request", path = "/").in_scope(|| tracing::info!("hello"));
/// // `eventring watch my-app` shows it.
/// ```
///
/// The files are removed when the process exits normally, unless the program calls [`Recording::keep`] or the
/// environment variable `EVENTRING_KEEP` is 1. After a crash they always stay. For log records of the `log` crate, also
/// call `tracing_log::LogTracer::init()`.
///
/// # Panics
/// If [`try_init`] fails, with its error's message.
pub fn init(config: impl AsRef<OsStr>) -> Recording {
    match try_init(config) {
        Ok(recording) => recording,
        Err(error) => panic!("{error}"),
    }
}

/// Does the same as [`init`], for programs that can go on without a recording. After an error nothing is installed,
/// spans cost the same as without a subscriber, and another subscriber can be installed.
///
/// ```
/// if let Err(error) = eventring::tracing::try_init("/no/such/directory/my-app") {
///     eprintln!("{error}"); // … and goes on.
/// }
/// ```
///
/// # Errors
/// There is a global subscriber or a recorder in [`PERF`] already, the rings cannot be created (for example, another
/// process has rings of this name, or there is no memory), or the filter or a name of a redacted field is invalid.
pub fn try_init(config: impl AsRef<OsStr>) -> Result<Recording, SetupError> {
    let filter = filter_from_env()?.unwrap_or(TargetFilter::level(LevelFilter::INFO));
    try_init_with(builder_from_env(config)?, filter)
}

/// Does the same as [`try_init`], with everything that a [`PerfRecorderBuilder`] can set, and with a filter. It reads
/// no environment variable.
///
/// # Errors
/// As [`try_init`].
pub fn try_init_with(recorder: PerfRecorderBuilder, filter: TargetFilter) -> Result<Recording, SetupError> {
    // This check comes before the rings are made, because they would be useless if the subscriber cannot be installed.
    if has_global_subscriber() {
        return Err(SetupError(SetupCause::Subscriber));
    }
    let recorder = install(recorder)?;
    let subscriber = RecorderSubscriber::global().with_filter(filter);
    let filter = subscriber.filter_handle();
    // The subscriber is set inside `switch`, whose lock keeps other threads from changing the recording at the same
    // time. Otherwise `tracing` could ask for all call sites because of another thread's change, before the subscriber
    // is set.
    let is_set = switch(|| dispatcher::set_global_default(dispatcher::Dispatch::new(subscriber)).is_ok());
    if !is_set {
        PERF.set_enabled(false);
        return Err(SetupError(SetupCause::Subscriber));
    }
    Ok(Recording { recorder, filter })
}

/// Calls [`try_init`] with the configuration from the environment variable `EVENTRING_PERF`. A service can thus be
/// recorded without a rebuild. Returns `Ok(None)` and does nothing if the variable is not set or empty.
///
/// ```
/// // Does nothing, unless the service is started with EVENTRING_PERF=my-service.
/// eventring::tracing::try_init_from_env()?;
/// # Ok::<(), eventring::tracing::SetupError>(())
/// ```
///
/// # Errors
/// As [`try_init`].
pub fn try_init_from_env() -> Result<Option<Recording>, SetupError> {
    config_from_env().map(try_init).transpose()
}

impl RecorderLayer {
    /// Returns a layer if the environment variable `EVENTRING_PERF` is set and not empty. This is [`try_init_from_env`]
    /// for programs with layers of their own. The layer's recorder is installed in [`PERF`]. If `EVENTRING_FILTER` is
    /// set, the filter applies to this layer alone; otherwise the layer filters nothing.
    ///
    /// ```
    /// use eventring::tracing::RecorderLayer;
    /// use tracing_subscriber::prelude::*;
    ///
    /// let recorder_layer = RecorderLayer::try_from_env()?;
    /// let stack = tracing_subscriber::registry().with(recorder_layer).with(tracing_subscriber::fmt::layer());
    /// # drop(stack);
    /// # Ok::<(), eventring::tracing::SetupError>(())
    /// ```
    ///
    /// # Errors
    /// There is a recorder in [`PERF`] already, the rings cannot be created, or the filter or a name of a redacted
    /// field is invalid.
    pub fn try_from_env<S>() -> Result<Option<Box<dyn Layer<S> + Send + Sync>>, SetupError>
    where
        S: Subscriber + for<'l> LookupSpan<'l>,
    {
        let Some(config) = config_from_env() else { return Ok(None) };
        let filter = filter_from_env()?;
        install(builder_from_env(config)?)?;
        Ok(Some(match filter {
            Some(filter) => Self::global().with_filter(filter).boxed(),
            None => Self::global().boxed(),
        }))
    }
}

/// Makes the rings and installs their recorder for the whole process.
fn install(builder: PerfRecorderBuilder) -> Result<&'static PerfRecorder, SetupError> {
    PERF.install_new(|| builder.build()).map_err(|reason| match reason {
        NotInstalled::AlreadyInstalled => SetupError(SetupCause::Recorder),
        NotInstalled::NotMade(error) => SetupError(SetupCause::Rings(error)),
    })
}

fn set_and_not_empty(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}

fn config_from_env() -> Option<OsString> {
    set_and_not_empty(CONFIG_VARIABLE)
}

fn builder_from_env(config: impl AsRef<OsStr>) -> Result<PerfRecorderBuilder, SetupError> {
    let redacted = set_and_not_empty(REDACT_VARIABLE).unwrap_or_default();
    let redacted = redacted.to_string_lossy();
    // Names are separated by commas. A list with other separators would be taken for a single name that no field has,
    // and the secrets would be recorded. So such a list is an error.
    let is_no_name =
        |name: &&str| name.contains([';', '|', char::REPLACEMENT_CHARACTER]) || name.contains(char::is_whitespace);
    if let Some(name) = redacted.split(',').map(str::trim).find(is_no_name) {
        return Err(SetupError(SetupCause::Redact(name.to_owned())));
    }
    Ok(PerfRecorder::builder().config(config).keep_from_env().redact_fields(redacted.split(',')))
}

fn filter_from_env() -> Result<Option<TargetFilter>, SetupError> {
    let Some(filter) = set_and_not_empty(FILTER_VARIABLE) else { return Ok(None) };
    let filter = TargetFilter::parse_set(&filter.to_string_lossy());
    filter.map(Some).map_err(|error| SetupError(SetupCause::Filter(error)))
}

/// Returns true if there is a global subscriber. A subscriber of this thread alone does not count.
fn has_global_subscriber() -> bool {
    // The question is asked in a new thread, because a new thread has no scoped subscriber.
    let look = || dispatcher::get_default(|dispatch| !dispatch.is::<tracing_core::subscriber::NoSubscriber>());
    std::thread::Builder::new().spawn(look).map_or(Ok(true), std::thread::JoinHandle::join).unwrap_or(true)
}
