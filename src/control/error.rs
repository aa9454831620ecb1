//! `ControlError`: the error of a request to a server.

use std::fmt;
use std::io;
use std::sync::Arc;

/// Kind of a [`ControlError`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ControlErrorKind {
    /// No server answers at this address.
    NoServer,
    /// The user of this process may not do this.
    PermissionDenied,
    /// The server has no such file, or its content is not the expected one.
    NotFound,
    /// The directive is wrong, or nothing in the program takes it.
    BadDirective,
    /// The server has as many clients, filter overrides or unsent messages as it may have.
    TooMany,
    /// The other side has sent a message that is wrong or has another version.
    BadMessage,
    /// The process that serves has ended.
    Gone,
    /// The operating system has refused a call.
    Io,
    /// A server cannot have this address: something that is no socket has the path.
    Exists,
    /// The process that serves is there and does not answer. It may be stopped.
    NoAnswer,
}

impl ControlErrorKind {
    /// All kinds. The code of a kind in messages is its index here.
    pub(super) const ALL: [Self; 10] = [
        Self::NoServer,
        Self::PermissionDenied,
        Self::NotFound,
        Self::BadDirective,
        Self::TooMany,
        Self::BadMessage,
        Self::Gone,
        Self::Io,
        Self::Exists,
        Self::NoAnswer,
    ];

    pub(super) fn code(self) -> u16 {
        self as u16
    }

    pub(super) fn of_code(code: u16) -> Self {
        Self::ALL.get(usize::from(code)).copied().unwrap_or(Self::BadMessage)
    }
}

/// Error of a request to a server, or of starting one. Its text names the address, the operation and the reason.
#[derive(Clone)]
pub struct ControlError {
    kind: ControlErrorKind,
    message: String,
    source: Option<Arc<io::Error>>,
}

impl ControlError {
    pub(super) fn new(kind: ControlErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    pub(super) fn io(message: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self { kind: ControlErrorKind::Io, message: message.into(), source: Some(Arc::new(source.into())) }
    }

    /// Puts the address of the server before the message.
    pub(super) fn at(mut self, address: &impl fmt::Display) -> Self {
        self.message = format!("{address}: {}", self.message);
        self
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> ControlErrorKind {
        self.kind
    }
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

debug_as_displayed!(ControlError);

impl std::error::Error for ControlError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
