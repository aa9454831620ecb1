//! Functions that make a recorder, configured by code or by an environment variable, and install it for the whole
//! process.

use super::active::identity;
use super::ambient::RecordsTo;
use super::global_recorder::{GlobalRecorder, NotInstalled};
use crate::recorder::{ContentDescription, Recorder, RecorderBuilder, RecorderError, RecorderErrorKind};
use crate::schema::EventType;
use std::fmt;

/// The reason why a global recorder could not be initialised.
pub struct InitError {
    /// Name of the global recorder.
    global: &'static str,
    cause: InitCause,
}

enum InitCause {
    AlreadyInstalled,
    OtherEvents { events: &'static str, installed: String },
    OtherRecorder { events: &'static str, global: &'static str },
    Recorder(RecorderError),
}

/// The kinds of [`InitError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitErrorKind {
    /// A global recorder that holds a recorder already.
    AlreadyInstalled,
    /// A global recorder that already holds a recorder for events of another schema. The usual cause: two event types
    /// name the same global recorder.
    OtherEvents,
    /// Events of a type that names another global recorder. `record!` would record them to that other global recorder,
    /// and the ring of the new recorder would stay empty.
    OtherRecorder,
    /// A system that has no event rings, because it is not Linux. The source error has the details.
    Unsupported,
    /// A ring that could not be created. The source error has the reason.
    Recorder,
}

impl InitError {
    /// Returns the kind of the error.
    pub fn kind(&self) -> InitErrorKind {
        match self.cause {
            InitCause::AlreadyInstalled => InitErrorKind::AlreadyInstalled,
            InitCause::OtherEvents { .. } => InitErrorKind::OtherEvents,
            InitCause::OtherRecorder { .. } => InitErrorKind::OtherRecorder,
            InitCause::Recorder(ref error) if error.kind() == RecorderErrorKind::Unsupported => {
                InitErrorKind::Unsupported
            }
            InitCause::Recorder(_) => InitErrorKind::Recorder,
        }
    }

    /// Returns the error of the recorder, or `None` if the initialisation failed for another reason.
    pub fn recorder_error(&self) -> Option<&RecorderError> {
        match &self.cause {
            InitCause::Recorder(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "initialise the global recorder `{}`", self.global)?;
        match &self.cause {
            InitCause::AlreadyInstalled => f.write_str(
                ": it has been initialised before, expected once; use its `set_enabled` to switch it, or `override_with` in tests",
            ),
            InitCause::OtherEvents { events, installed } => write!(
                f,
                " for the events {events}: it records the events {installed}, whose schema is another, expected one schema for each \
                 recorder; give each event type a recorder of its own: `#[event(recorder = …)]` on the enum",
            ),
            InitCause::OtherRecorder { events, global } => write!(
                f,
                " for the events {events}: these are recorded to the global recorder `{global}`, expected events that are recorded \
                 here; initialise `{global}`, or name this one in `#[event(recorder = …)]` on the enum",
            ),
            InitCause::Recorder(error) => write!(f, ": {error}"),
        }
    }
}

debug_as_displayed!(InitError);

impl std::error::Error for InitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            InitCause::Recorder(error) => Some(error),
            _ => None,
        }
    }
}

impl ContentDescription {
    /// Returns the description of the events of type `E`: content type, name, schema hash, schema text and domains.
    pub fn from_event_type<E: EventType>() -> Self {
        let schema = E::schema();
        let domains = schema.domains().into_iter().map(|domain| (domain.number, domain.name));
        Self::new(E::CONTENT_TYPE, E::CONTENT_NAME)
            .schema_hash(schema.hash())
            .schema_text(schema.text())
            .domains(domains)
    }
}

impl GlobalRecorder {
    /// Creates a ring for the events of type `E`, and switches this global recorder on. `config` has the name and the
    /// size of the ring, as [`RecorderBuilder::config`] describes them: `<name-or-path>`, `<name-or-path>:<size>` or
    /// `<name-or-path>:<descriptor-shift>:<payload-shift>`.
    ///
    /// `NAME:64MiB` means a ring that takes at most 64 MiB. The two shifts are exponents of 2: `NAME:16:27` means 2^16
    /// descriptors and 2^27 bytes of payload, and such a ring takes 134 MiB. Without a size, a ring of a program's own
    /// events takes 98 MiB, and a ring of execution events 162 MiB, or less if little memory is free. All of its memory
    /// is touched immediately.
    ///
    /// The file is removed when the process exits normally: `main` returns (also with an error), or the program calls
    /// `exit`. After a panic of `main`, an abort or any signal (also Ctrl-C and SIGTERM), the file stays and is
    /// readable.
    ///
    /// The next recorder of the same name replaces a file that stayed. To remove it yourself, look up its path with
    /// `eventring info NAME`. To keep the file after a normal exit, too, call `.keep(true)` on the recorder that this
    /// function returns, or set the environment variable `EVENTRING_KEEP=1`.
    ///
    /// If another living process has a ring of this name, the ring gets a name with a number
    /// ([`RecorderBuilder::numbered`]): [`Recorder::path`] tells it.
    ///
    /// The environment variable `EVENTRING_DOMAINS` says which domains of the events are recorded
    /// ([`DOMAINS_VARIABLE`](crate::recorder::DOMAINS_VARIABLE)). Without it, all domains are.
    ///
    /// ```no_run
    /// # use eventring::{global::EXEC, schema::exec::ExecEvent};
    /// EXEC.try_init::<ExecEvent>("my-service:256MiB")?.keep(true);
    /// # Ok::<(), eventring::global::InitError>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if `E` names another global recorder, if this global recorder already holds a recorder (for
    /// the same or other events), if `EVENTRING_DOMAINS` names an unknown domain, or if the ring cannot be created.
    pub fn try_init<E: RecordsTo>(&'static self, config: &str) -> Result<&'static Recorder, InitError> {
        self.try_init_for::<E>(|builder| builder.config(config))
    }

    fn try_init_for<E: RecordsTo>(
        &'static self,
        configure: impl FnOnce(RecorderBuilder) -> RecorderBuilder,
    ) -> Result<&'static Recorder, InitError> {
        self.check_events::<E>()?;
        let builder =
            configure(Recorder::builder(ContentDescription::from_event_type::<E>())).keep_from_env().domains_from_env();
        let builder = builder.numbered(true);
        self.try_init_with(builder).map_err(|error| match (&error.cause, self.installed()) {
            (InitCause::AlreadyInstalled, Some(installed)) if !installed.takes(identity::<E>()) => {
                let installed = installed.description().content_name().to_owned();
                self.error(InitCause::OtherEvents { events: E::CONTENT_NAME, installed })
            }
            _ => error,
        })
    }

    /// Returns an error if `record!` would record the events of type `E` to another global recorder.
    fn check_events<E: RecordsTo>(&'static self) -> Result<(), InitError> {
        let global = E::global_recorder();
        if std::ptr::eq(global, self) {
            return Ok(());
        }
        Err(self.error(InitCause::OtherRecorder { events: E::CONTENT_NAME, global: global.name() }))
    }

    fn error(&self, cause: InitCause) -> InitError {
        InitError { global: self.name(), cause }
    }

    /// Makes a recorder with `builder` and installs it, like [`Self::try_init`]. The builder sets everything, also the
    /// description of the events. Describe an event type that names this global recorder. `record!` sends only events
    /// of such types to this global recorder, and refuses every event that does not fit the description, see
    /// [`Self::active_for`].
    ///
    /// # Errors
    /// As [`Self::try_init`].
    pub fn try_init_with(&'static self, builder: RecorderBuilder) -> Result<&'static Recorder, InitError> {
        self.install_new(|| builder.build()).map_err(|reason| match reason {
            NotInstalled::AlreadyInstalled => self.error(InitCause::AlreadyInstalled),
            NotInstalled::NotMade(error) => self.error(InitCause::Recorder(error)),
        })
    }

    /// Calls [`Self::try_init`] with the configuration that the environment variable `variable` contains. So a
    /// service can be recorded without a rebuild. Returns `Ok(None)` and does nothing if the variable is empty or not
    /// set.
    ///
    /// # Errors
    /// As [`Self::try_init`].
    pub fn try_init_from_env<E: RecordsTo>(
        &'static self,
        variable: &str,
    ) -> Result<Option<&'static Recorder>, InitError> {
        match std::env::var_os(variable) {
            Some(config) if !config.is_empty() => self.try_init_for::<E>(|builder| builder.config(config)).map(Some),
            _ => Ok(None),
        }
    }
}
