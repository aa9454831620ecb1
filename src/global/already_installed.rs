//! The error of installing a second recorder.

use std::fmt;

/// Error for a recorder that was not installed, because the [`GlobalRecorder`](super::GlobalRecorder) already holds a
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

// `Debug` is the same as `Display`, because a `main` that returns the error prints its `Debug`.
impl<R> fmt::Debug for AlreadyInstalled<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<R> std::error::Error for AlreadyInstalled<R> {}
