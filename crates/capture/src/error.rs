//! Errors of making and reading captures.

use eventring::internal::shm::NotAFile;
use eventring::reader::ReaderError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The error that a capture could not be made or read.
pub struct CaptureError(Box<Inner>);

struct Inner {
    kind: CaptureErrorKind,
    path: Option<PathBuf>,
    message: String,
    source: Option<CaptureErrorSource>,
}

enum CaptureErrorSource {
    Io(io::Error),
    Reader(ReaderError),
}

/// The kind of a [`CaptureError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CaptureErrorKind {
    /// The file does not exist.
    NotFound,
    /// The operating system refused access.
    PermissionDenied,
    /// The file is not a capture.
    NotACapture,
    /// The file is a capture of a later version.
    WrongVersion,
    /// The file is damaged: it has bytes that no capture can have.
    Damaged,
    /// The file system is full, or the file cannot take more.
    NoSpace,
    /// The output file exists already.
    Exists,
    /// The output has the name of something that is never replaced: for example a directory, a link, or a file that
    /// this program reads.
    NotReplaceable,
    /// The options contradict each other, or a value is out of range.
    BadOptions,
    /// The capture holds no spans, where spans are needed.
    NoSpans,
    /// The capture's events have another schema than the one that this program knows.
    WrongSchema,
    /// A ring could not be opened; see [`CaptureError::reader_error`].
    Ring,
    /// A broker refuses, or cannot be reached.
    Broker,
    /// The system has no event rings: it is not Linux.
    Unsupported,
    /// Another error that the operating system reported.
    Io,
}

impl CaptureError {
    /// Makes an error of this kind. `message` says what is wrong and what helps.
    pub fn new(kind: CaptureErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, path: None, message: message.into(), source: None }))
    }

    /// Makes the error for a file that could not be read. `operation` completes the message "cannot …", for example
    /// with "open it".
    pub fn io(operation: &str, error: io::Error) -> Self {
        Self::io_with(operation, error, |kind| match kind {
            CaptureErrorKind::NotFound => "; check its name",
            CaptureErrorKind::PermissionDenied => "; join the group of the file, or ask its owner for a wider mode",
            _ => "",
        })
    }

    /// Makes the error for a file that could not be written. `operation` completes the message "cannot …", for example
    /// with "write it".
    pub fn io_writing(operation: &str, error: io::Error) -> Self {
        Self::io_with(operation, error, |kind| match kind {
            CaptureErrorKind::NotFound => "; make its directory first, or choose another path",
            CaptureErrorKind::PermissionDenied => "; let this user write to its directory, or choose another path",
            CaptureErrorKind::NoSpace => "; free some, or choose a place with more",
            _ => "",
        })
    }

    /// Makes the error for something that the operating system has refused. `operation` completes the message
    /// "cannot …".
    #[doc(hidden)]
    #[must_use]
    pub fn from_io(operation: &str, error: io::Error) -> Self {
        Self::io_writing(operation, error)
    }

    fn io_with(operation: &str, error: io::Error, remedy: impl Fn(CaptureErrorKind) -> &'static str) -> Self {
        let kind = match error.kind() {
            _ if NotAFile::is_cause(&error) => CaptureErrorKind::NotACapture,
            io::ErrorKind::NotFound => CaptureErrorKind::NotFound,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => CaptureErrorKind::PermissionDenied,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                CaptureErrorKind::NoSpace
            }
            io::ErrorKind::AlreadyExists => CaptureErrorKind::Exists,
            io::ErrorKind::Unsupported => CaptureErrorKind::Unsupported,
            _ => CaptureErrorKind::Io,
        };
        let message = format!("cannot {operation}: {error}{}", remedy(kind));
        Self(Box::new(Inner { kind, path: None, message, source: Some(CaptureErrorSource::Io(error)) }))
    }

    pub(super) fn ring(error: ReaderError) -> Self {
        let (message, path) = (error.to_string(), error.path().map(Path::to_path_buf));
        let kind = CaptureErrorKind::Ring;
        Self(Box::new(Inner { kind, path, message, source: Some(CaptureErrorSource::Reader(error)) }))
    }

    /// Adds the path of the file, if the error has none yet.
    #[must_use]
    pub fn at(mut self, path: &Path) -> Self {
        self.0.path.get_or_insert_with(|| path.to_path_buf());
        self
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> CaptureErrorKind {
        self.0.kind
    }

    /// Returns the path of the file, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Returns the reader's error if a ring could not be opened.
    #[must_use]
    pub fn reader_error(&self) -> Option<&ReaderError> {
        match &self.0.source {
            Some(CaptureErrorSource::Reader(error)) => Some(error),
            _ => None,
        }
    }

    /// Returns the operating system's error that caused this error, or `None` if there was no such cause.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        match &self.0.source {
            Some(CaptureErrorSource::Io(error)) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0.path, self.0.kind) {
            // The reader's message names the file.
            (_, CaptureErrorKind::Ring) | (None, _) => f.write_str(&self.0.message),
            (Some(path), CaptureErrorKind::Exists | CaptureErrorKind::NotReplaceable) => {
                write!(f, "cannot write {}: {}", path.display(), self.0.message)
            }
            (Some(path), _) => write!(f, "{}: {}", path.display(), self.0.message),
        }
    }
}

// Rust prints the `Debug` of an error that `main` returns. So the user sees all causes then, too.
impl fmt::Debug for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for CaptureError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.source {
            Some(CaptureErrorSource::Io(error)) => Some(error),
            Some(CaptureErrorSource::Reader(error)) => Some(error),
            None => None,
        }
    }
}
