//! Installing process-wide recorders, from code or from the environment.

use super::slot::{GlobalRecorder, RecordsTo};
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
    OtherSlot { events: &'static str, slot: &'static str },
    Recorder(RecorderError),
}

/// What kind of [`InitError`] it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitErrorKind {
    /// The slot has a recorder already.
    AlreadyInstalled,
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
            Cause::OtherSlot { .. } => InitErrorKind::OtherSlot,
            Cause::Recorder(_) => InitErrorKind::Recorder,
        }
    }

    /// The recorder's error, if that was the cause.
    pub fn recorder_error(&self) -> Option<&RecorderError> {
        match &self.cause {
            Cause::Recorder(error) => Some(error),
            Cause::AlreadyInstalled | Cause::OtherSlot { .. } => None,
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

/// As it is displayed: this is what a `main` that returns the error prints.
impl fmt::Debug for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for InitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            Cause::Recorder(error) => Some(error),
            Cause::AlreadyInstalled | Cause::OtherSlot { .. } => None,
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
    /// `E` has another slot, the slot is in use already, or the ring cannot be created.
    pub fn try_init<E: RecordsTo>(&'static self, config: &str) -> Result<&'static Recorder, InitError> {
        self.check_events::<E>()?;
        self.try_init_with(Recorder::builder(ContentDescription::of::<E>()).config(config).keep_if_told())
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
    /// that they are recorded to this slot is up to the caller.
    ///
    /// # Errors
    /// As [`Self::try_init`].
    pub fn try_init_with(&'static self, builder: RecorderBuilder) -> Result<&'static Recorder, InitError> {
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
            Some(config) if !config.is_empty() => {
                self.check_events::<E>()?;
                let builder = Recorder::builder(ContentDescription::of::<E>());
                self.try_init_with(builder.config(config).keep_if_told()).map(Some)
            }
            _ => Ok(None),
        }
    }
}
