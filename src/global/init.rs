//! Installing process-wide recorders, from code or from the environment.

use super::slot::{GlobalRecorder, RecordsTo, identity};
use crate::recorder::{ContentDescription, Recorder, RecorderBuilder, RecorderError};
use crate::schema::EventType;
use std::fmt;

/// A slot could not be switched on.
pub struct InitError {
    slot: &'static str,
    cause: Cause,
}

enum Cause {
    AlreadyInstalled,
    OtherEvents { events: &'static str, installed: String },
    OtherSlot { events: &'static str, slot: &'static str },
    Recorder(RecorderError),
}

/// What kind of [`InitError`] it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitErrorKind {
    /// The slot has a recorder already.
    AlreadyInstalled,
    /// The slot has a recorder already, and its ring was made for events with another schema: two event types name one slot.
    OtherEvents,
    /// The events have another slot: what `record!` records of them would not come here, and the ring would describe events that it
    /// never holds.
    OtherSlot,
    /// The ring could not be created; the source says why.
    Recorder,
}

impl InitError {
    /// What kind of error it is.
    pub fn kind(&self) -> InitErrorKind {
        match self.cause {
            Cause::AlreadyInstalled => InitErrorKind::AlreadyInstalled,
            Cause::OtherEvents { .. } => InitErrorKind::OtherEvents,
            Cause::OtherSlot { .. } => InitErrorKind::OtherSlot,
            Cause::Recorder(_) => InitErrorKind::Recorder,
        }
    }

    /// The recorder's error, if that was the cause.
    pub fn recorder_error(&self) -> Option<&RecorderError> {
        match &self.cause {
            Cause::Recorder(error) => Some(error),
            _ => None,
        }
    }

    pub(crate) fn already_installed(slot: &'static str) -> Self {
        Self { slot, cause: Cause::AlreadyInstalled }
    }

    pub(crate) fn recorder(slot: &'static str, error: RecorderError) -> Self {
        Self { slot, cause: Cause::Recorder(error) }
    }
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::AlreadyInstalled => write!(
                f,
                "initialise the global recorder `{}`: it has been initialised before, expected once; use its \
                 `set_enabled` to switch it, or `override_with` in tests",
                self.slot
            ),
            Cause::OtherEvents { events, installed } => write!(
                f,
                "initialise the global recorder `{}` for the events {events}: it records the events {installed}, whose schema is \
                 another, expected one schema for each recorder; give each event type a recorder of its own: \
                 `#[event(recorder = …)]` on the enum",
                self.slot
            ),
            Cause::OtherSlot { events, slot } => write!(
                f,
                "initialise the global recorder `{}` for the events {events}: these are recorded to the global recorder `{slot}`, \
                 expected events that are recorded here; initialise `{slot}`, or name this one in \
                 `#[event(recorder = …)]` on the enum",
                self.slot
            ),
            Cause::Recorder(error) => write!(f, "initialise the global recorder `{}`: {error}", self.slot),
        }
    }
}

debug_as_displayed!(InitError);

impl std::error::Error for InitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            Cause::Recorder(error) => Some(error),
            _ => None,
        }
    }
}

impl ContentDescription {
    /// The description of the events `E`: content type, name, schema hash and schema text.
    pub fn of<E: EventType>() -> Self {
        let schema = E::schema();
        Self::new(E::CONTENT_TYPE, E::CONTENT_NAME).schema_hash(schema.hash()).schema_text(schema.text())
    }
}

impl GlobalRecorder {
    /// Creates the ring that `config` names (`<name-or-path>[:<descriptor-shift>:<payload-shift>]`) for the events `E` and
    /// switches this slot on.
    ///
    /// Without shifts the ring has 2^21 descriptors and 2^29 bytes of payload, 642 MiB, all of it touched at once;
    /// `NAME:16:27` is 134 MiB.
    ///
    /// The file goes away when the process exits: `main` returns, also with an error, or somebody calls `exit`. It stays, to be
    /// read, after whatever ends the process in another way: a panic of `main`, an abort, any signal, Ctrl-C and SIGTERM
    /// included. The next recorder of that name replaces it; `eventring info NAME` shows its path, to remove it. To keep
    /// it in any case: `.keep(true)` on the recorder that this returns, or the environment variable `EVENTRING_KEEP=1`.
    ///
    /// ```no_run
    /// # use eventring::{global::EXEC, schema::exec::ExecEvent};
    /// EXEC.try_init::<ExecEvent>("my-service:16:27")?.keep(true);
    /// # Ok::<(), eventring::global::InitError>(())
    /// ```
    ///
    /// # Errors
    /// `E` has another slot, the slot is in use already (by these events or by others), or the ring cannot be created.
    pub fn try_init<E: RecordsTo>(&'static self, config: &str) -> Result<&'static Recorder, InitError> {
        self.try_init_for::<E>(|builder| builder.config(config))
    }

    fn try_init_for<E: RecordsTo>(
        &'static self,
        place: impl FnOnce(RecorderBuilder) -> RecorderBuilder,
    ) -> Result<&'static Recorder, InitError> {
        self.check_events::<E>()?;
        let builder = place(Recorder::builder(ContentDescription::of::<E>())).keep_if_told();
        self.try_init_with(builder).map_err(|error| match (&error.cause, self.installed()) {
            (Cause::AlreadyInstalled, Some(installed)) if !installed.takes(identity::<E>()) => {
                let installed = installed.description().content_name().to_owned();
                InitError { slot: self.name(), cause: Cause::OtherEvents { events: E::CONTENT_NAME, installed } }
            }
            _ => error,
        })
    }

    /// That `record!` records the events `E` to this slot.
    fn check_events<E: RecordsTo>(&'static self) -> Result<(), InitError> {
        let slot = E::slot();
        if std::ptr::eq(slot, self) {
            return Ok(());
        }
        Err(InitError { slot: self.name(), cause: Cause::OtherSlot { events: E::CONTENT_NAME, slot: slot.name() } })
    }

    /// As [`Self::try_init`], with all that a [`RecorderBuilder`] can set. The events are those of the builder's description;
    /// that they are recorded to this slot is up to the caller: `record!` refuses
    /// those of another schema, see [`Self::active_for`].
    ///
    /// # Errors
    /// As [`Self::try_init`].
    pub fn try_init_with(&'static self, builder: RecorderBuilder) -> Result<&'static Recorder, InitError> {
        // Of several threads that come at once, one makes the ring, and the others learn that it is there.
        let _turn = self.take_turn_to_install();
        if self.installed().is_some_and(Recorder::belongs_to_this_process) {
            return Err(InitError::already_installed(self.name()));
        }
        let recorder = builder.build().map_err(|error| InitError::recorder(self.name(), error))?;
        if !self.install(recorder) {
            return Err(InitError::already_installed(self.name()));
        }
        self.installed().ok_or(InitError::already_installed(self.name()))
    }

    /// As [`Self::try_init`], for programs that cannot go on without.
    ///
    /// # Panics
    /// If it fails, with the error's message.
    pub fn init<E: RecordsTo>(&'static self, config: &str) -> &'static Recorder {
        match self.try_init::<E>(config) {
            Ok(recorder) => recorder,
            Err(error) => panic!("{error}"),
        }
    }

    /// As [`Self::try_init`], with the configuration string from the environment variable `variable`: a service can be
    /// switched on without a rebuild. `Ok(None)` and nothing happens if it is not set or empty.
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
