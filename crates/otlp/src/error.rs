//! Problems with the settings.

use std::fmt;

/// The kind of an [`OtlpError`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OtlpErrorKind {
    /// The address of the collector is malformed.
    BadEndpoint,
    /// A header is malformed, or is one that the forwarding sets.
    BadHeader,
    /// A certificate or a key cannot be used.
    BadCertificate,
    /// The system gave no thread.
    NoThread,
}

/// The error that spans cannot be forwarded.
#[derive(Clone, PartialEq, Eq)]
pub struct OtlpError {
    kind: OtlpErrorKind,
    message: String,
}

impl OtlpError {
    pub(super) fn new(kind: OtlpErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> OtlpErrorKind {
        self.kind
    }
}

impl fmt::Display for OtlpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

// Rust prints the `Debug` of an error that `main` returns. So the user sees all causes then, too.
impl fmt::Debug for OtlpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for OtlpError {}
