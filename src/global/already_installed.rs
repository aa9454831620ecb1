//! The error of installing a second recorder.

use std::fmt;

/// Error for a recorder that was not installed. The [`GlobalRecorder`](super::GlobalRecorder) already holds another
/// recorder.
pub struct AlreadyInstalled<R> {
    global: &'static str,
    recorder: R,
}

impl<R> AlreadyInstalled<R> {
    pub(super) fn new(global: &'static str, recorder: R) -> Self {
        Self { global, recorder }
    }

    /// Returns the recorder that was not installed.
    pub fn into_recorder(self) -> R {
        self.recorder
    }
}

impl<R> fmt::Display for AlreadyInstalled<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "install a recorder in the global recorder `{}`: found an installed recorder, expected none; use its `set_enabled` to switch \
             that one",
            self.global
        )
    }
}

// `Debug` prints the same text as `Display`: if `main` returns this error, the program prints its `Debug` form.
impl<R> fmt::Debug for AlreadyInstalled<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<R> std::error::Error for AlreadyInstalled<R> {}
