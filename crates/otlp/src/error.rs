//! Problems with the settings.

use std::fmt;

/// The error that spans cannot be forwarded.
#[derive(Clone, PartialEq, Eq)]
pub struct OtlpError(pub(super) String);

impl fmt::Display for OtlpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// Rust prints the `Debug` of an error that `main` returns. So the user sees all causes then, too.
impl fmt::Debug for OtlpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for OtlpError {}
