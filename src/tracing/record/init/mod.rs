//! Set-up of a whole process in one line.
//!
//! | file | idea |
//! |---|---|
//! | `variables` | the environment variables |
//! | `setup_error` | why the set-up failed |

pub(in crate::tracing) mod setup_error;
pub(in crate::tracing) mod variables;

use crate::global::NotInstalled;
use crate::shm;
use crate::tracing::filter::field_name::field_names;
use crate::tracing::filter::filter::TargetFilter;
use crate::tracing::filter::filter_handle::FilterHandle;
use crate::tracing::filter::switch::switch;
use crate::tracing::record::init::setup_error::{SetupCause, SetupError};
use crate::tracing::record::init::variables::{
    CONFIG_VARIABLE, FILTER_VARIABLE, INSTRUCTIONS_VARIABLE, REDACT_VARIABLE, THREAD_TIME_VARIABLE,
};
use crate::tracing::record::layer::RecorderLayer;
use crate::tracing::record::perf_recorder::builder::PerfRecorderBuilder;
use crate::tracing::record::perf_recorder::global::PERF;
use crate::tracing::record::perf_recorder::handle::PerfRecorder;
use crate::tracing::record::subscriber::RecorderSubscriber;
use crate::tracing::record::threads::instruction_count::InstructionSource;
use crate::tracing::record::threads::time::share::share_from_text;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use tracing_core::{LevelFilter, Subscriber, dispatcher};
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

/// The recording of the whole process, as [`init`] has begun it. It continues until the process ends, even if this
/// value is dropped.
///
/// If [`init`] could not begin a recording, nothing is recorded: [`Self::problem`] says why, and the other functions
/// have no effect.
#[derive(Clone, Debug)]
pub struct Recording {
    begun: Result<&'static PerfRecorder, Arc<SetupError>>,
    filter: FilterHandle,
}

impl Recording {
    /// Makes the handle of a recording that could not be begun.
    fn failed(problem: SetupError) -> Self {
        let filter = FilterHandle::new(TargetFilter::level(LevelFilter::OFF));
        Self { begun: Err(Arc::new(problem)), filter }
    }

    /// Returns the recorder, or `None` if there is no recording.
    #[must_use]
    pub fn recorder(&self) -> Option<&'static PerfRecorder> {
        self.begun.as_ref().ok().copied()
    }

    /// Returns the reason why there is no recording, or `None` if there is one. A recording that [`try_init`] has
    /// returned has no problem.
    ///
    /// ```no_run
    /// if let Some(problem) = eventring::tracing::init("my-app").problem() {
    ///     eprintln!("{problem}");
    /// }
    /// ```
    #[must_use]
    pub fn problem(&self) -> Option<&SetupError> {
        self.begun.as_ref().err().map(|problem| &**problem)
    }

    /// Sets whether the files of all rings stay when the program exits normally. This includes the files of rings
    /// that are made later. After a crash the files always stay.
    ///
    /// ```no_run
    /// eventring::tracing::init("my-app").keep(true);
    /// ```
    pub fn keep(&self, keep: bool) {
        if let Ok(recorder) = self.begun {
            recorder.keep(keep);
        }
    }

    /// Switches recording on or off while the program runs.
    pub fn set_enabled(&self, enabled: bool) {
        if self.begun.is_ok() {
            PERF.set_enabled(enabled);
        }
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

/// Begins to record the spans and log records of this process into new rings. Never ends the program: if there can be
/// no recording, for whatever reason, nothing is recorded, [`Recording::problem`] says why, and `eventring list` shows
/// it. A program that wants to react to the error uses [`try_init`].
///
/// `config` has the name and the size of the rings: `my-app`, `my-app:256MiB` or
/// `<name-or-path>:<descriptor-shift>:<payload-shift>`, see [`PerfRecorderBuilder::config`]. Without a size, all rings
/// together take at most 64 MiB, or less if little memory is free. In the name, `{pid}` and `{exe}` stand for the id of
/// the process and the name of its program.
///
/// If another living process has rings of this name, for example another instance of the same service, the rings are
/// called `my-app~2`, or have the lowest number that is free. If that process was killed and is not gone yet, its end
/// is waited for, up to a second, and its rings are replaced.
///
/// Four environment variables have an effect. `EVENTRING_FILTER` (`info,my_crate=debug`) is the filter of spans and
/// events; without it, everything at level INFO or a more important level is recorded. `EVENTRING_REDACT`
/// (`password,token`) names fields whose values are left out. `EVENTRING_INSTRUCTIONS` (`hardware`) is the source of
/// instruction counts, see [`InstructionSource`]. `EVENTRING_THREAD_TIME` (`0.2%`, `off`) is the share of a thread's
/// time that measuring its times may cost, see [`PerfRecorderBuilder::thread_time`].
///
/// ```no_run
/// eventring::tracing::init("my-app");
/// tracing::info_span!("request", path = "/").in_scope(|| tracing::info!("hello"));
/// // `eventring watch my-app` shows it.
/// ```
///
/// When the process exits normally, the files are removed. They stay if the program calls [`Recording::keep`], if the
/// environment variable `EVENTRING_KEEP` is 1, or after a crash.
///
/// To record the log records of the `log` crate, too, call `tracing_log::LogTracer::init()`.
pub fn init(config: impl AsRef<OsStr>) -> Recording {
    let config = config.as_ref();
    let recording = try_init(config).unwrap_or_else(Recording::failed);
    let records = PERF.installed().is_some_and(PerfRecorder::belongs_to_this_process);
    let problem = recording.problem().filter(|_| !records);
    let note = problem.map(|problem| format!("records nothing as `{}`: {problem}", config.to_string_lossy()));
    shm::leave_note(note.as_deref());
    recording
}

/// Does the same as [`init`], but returns an error if there can be no recording. It is for programs that react to the
/// error. After an error no subscriber is installed: spans cost the same as before, and the program can install another
/// subscriber.
///
/// ```
/// if let Err(error) = eventring::tracing::try_init("/no/such/directory/my-app") {
///     eprintln!("{error}"); // … and goes on.
/// }
/// ```
///
/// # Errors
/// Returns an error in one of these cases:
/// - There is a global subscriber already.
/// - There is a recorder in [`PERF`] already.
/// - The rings cannot be created, for example because there is no memory, or a permission is missing.
/// - The filter or a name of a redacted field is invalid.
pub fn try_init(config: impl AsRef<OsStr>) -> Result<Recording, SetupError> {
    let filter = filter_from_env()?.unwrap_or(TargetFilter::level(LevelFilter::INFO));
    try_init_with(builder_from_env(config)?, filter)
}

/// Does the same as [`try_init`], but the builder and the filter come from the caller, and not from environment
/// variables. (`EVENTRING_DIR` and `EVENTRING_SERVER` still apply.) The builder can set everything that a recorder has.
///
/// # Errors
/// As [`try_init`].
pub fn try_init_with(recorder: PerfRecorderBuilder, filter: TargetFilter) -> Result<Recording, SetupError> {
    // Without this check, the rings would be made first and would be useless, because the subscriber cannot be
    // installed.
    if has_global_subscriber() {
        return Err(SetupError(SetupCause::Subscriber));
    }
    let recorder = install(recorder)?;
    let subscriber = RecorderSubscriber::global().with_filter(filter);
    let filter = subscriber.filter_handle();
    // The subscriber is set inside `switch`, which holds the lock of all changes. Without the lock, another thread's
    // change could make `tracing` ask at the same time which call sites are wanted. `tracing` could then collect the
    // answers before this subscriber is set, and store these old answers after it is set.
    let is_set = switch(|| dispatcher::set_global_default(dispatcher::Dispatch::new(subscriber)).is_ok());
    if !is_set {
        PERF.set_enabled(false);
        return Err(SetupError(SetupCause::Subscriber));
    }
    Ok(Recording { begun: Ok(recorder), filter })
}

/// Calls [`try_init`] with the configuration that the environment variable `EVENTRING_PERF` contains. So a service
/// can be recorded without a rebuild. Returns `Ok(None)` and does nothing if the variable is empty or not set.
///
/// ```no_run
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
    /// Makes a recorder from the environment variable `EVENTRING_PERF`, installs it in [`PERF`], and returns a layer
    /// that records to it. Returns `Ok(None)` and does nothing if the variable is empty or not set. It is for
    /// programs with other layers; programs without other layers use [`try_init_from_env`].
    ///
    /// If `EVENTRING_FILTER` is set, it filters this layer alone, as [`Self::filtered`] does. Otherwise the layer
    /// filters nothing.
    ///
    /// ```no_run
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
    /// Returns an error if there is a recorder in [`PERF`] already, if the rings cannot be created, or if the filter
    /// or a name of a redacted field is invalid.
    pub fn try_from_env<S>() -> Result<Option<Box<dyn Layer<S> + Send + Sync>>, SetupError>
    where
        S: Subscriber + for<'l> LookupSpan<'l>,
    {
        let Some(config) = config_from_env() else { return Ok(None) };
        let filter = filter_from_env()?;
        install(builder_from_env(config)?)?;
        Ok(Some(match filter {
            Some(filter) => Box::new(Self::global().filtered(&FilterHandle::new(filter))),
            None => Self::global().boxed(),
        }))
    }
}

/// Makes a recorder with its rings, and installs it in [`PERF`].
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
    // A list with another separator than a comma is an error, and so is a pattern. Otherwise it would count as a name,
    // which no field has, and the secret values would be recorded.
    let redacted = field_names(&redacted).map_err(|wrong| SetupError(SetupCause::Redact(wrong.to_owned())))?;
    let builder = PerfRecorder::builder().config(config).numbered(true).keep_from_env().redact_fields(redacted);
    let builder = match set_and_not_empty(THREAD_TIME_VARIABLE) {
        Some(share) => builder.thread_time(thread_time_share(&share)?),
        None => builder,
    };
    Ok(match set_and_not_empty(INSTRUCTIONS_VARIABLE) {
        Some(source) => builder.instructions(instruction_source(&source)?),
        None => builder,
    })
}

fn thread_time_share(text: &OsStr) -> Result<f64, SetupError> {
    let wrong = || SetupError(SetupCause::ThreadTime(text.to_string_lossy().into_owned()));
    text.to_str().and_then(share_from_text).ok_or_else(wrong)
}

fn instruction_source(source: &OsStr) -> Result<InstructionSource, SetupError> {
    match source.to_str() {
        Some("off") => Ok(InstructionSource::Off),
        Some("plugin") => Ok(InstructionSource::Plugin),
        Some("hardware") => Ok(InstructionSource::Hardware),
        _ => Err(SetupError(SetupCause::Instructions(source.to_string_lossy().into_owned()))),
    }
}

fn filter_from_env() -> Result<Option<TargetFilter>, SetupError> {
    let Some(filter) = set_and_not_empty(FILTER_VARIABLE) else { return Ok(None) };
    let filter = TargetFilter::parse_set(&filter.to_string_lossy());
    filter.map(Some).map_err(|error| SetupError(SetupCause::Filter(error)))
}

/// Returns true if the process has a global subscriber. A scoped subscriber of the calling thread does not count.
fn has_global_subscriber() -> bool {
    // A new thread asks, because it has no scoped subscriber: it sees the global subscriber or none.
    let look = || dispatcher::get_default(|dispatch| !dispatch.is::<tracing_core::subscriber::NoSubscriber>());
    // Without a thread nobody can tell, so the setting of the subscriber will.
    std::thread::Builder::new().spawn(look).is_ok_and(|thread| thread.join().unwrap_or(true))
}
