//! Errors of opening rings and writing snapshots.

use crate::layout::GeometryError;
use crate::schema::SchemaDifference;
use crate::shm::{LostPages, ShmError, ShmErrorKind};
use std::fmt;
use std::path::{Path, PathBuf};

/// An error of opening a ring or of writing a snapshot.
pub struct ReaderError(Box<Inner>);

struct Inner {
    kind: ReaderErrorKind,
    path: Option<PathBuf>,
    message: String,
    /// True if a ring may still come to the name of the file: the file is being made in place, or lies elsewhere.
    is_of_later_ring: bool,
    differences: Vec<SchemaDifference>,
    source: Option<ReaderErrorSource>,
}

enum ReaderErrorSource {
    Shm(ShmError),
    Io(std::io::Error),
}

/// The kind of a [`ReaderError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReaderErrorKind {
    /// The file does not exist.
    NotFound,
    /// The given name cannot be the name of a ring.
    BadName,
    /// The operating system refused access.
    PermissionDenied,
    /// The file is not an event ring (and not a snapshot).
    NotARing,
    /// The file is a ring of another version.
    WrongVersion,
    /// The header holds sizes that no ring can have.
    BadHeader,
    /// The file is shorter than its header says.
    Truncated,
    /// The ring holds events of another content type.
    WrongContentType {
        /// The ring's content type.
        found: u16,
        /// The content type that the reader expects.
        expected: u16,
    },
    /// The ring's events have another schema. [`ReaderError::differences`] says what differs.
    WrongSchema {
        /// The hash of the ring's schema.
        found: [u8; 32],
        /// The hash that the reader expects.
        expected: [u8; 32],
    },
    /// The snapshot is damaged, or larger than allowed.
    BadSnapshot,
    /// The file system, or memory for the snapshot, is full.
    NoSpace,
    /// The operation needs a feature that was not compiled in, or the operating system does not support the operation.
    Unsupported,
    /// A page of the file could not be read: an I/O error.
    Unreadable,
    /// Another error that the operating system reported.
    Io,
}

impl ReaderError {
    pub(crate) fn new(kind: ReaderErrorKind, message: impl Into<String>) -> Self {
        let (message, differences) = (message.into(), Vec::new());
        Self(Box::new(Inner { kind, path: None, message, is_of_later_ring: false, differences, source: None }))
    }

    pub(crate) fn shm(error: ShmError) -> Self {
        let kind = match error.kind() {
            ShmErrorKind::NotFound => ReaderErrorKind::NotFound,
            ShmErrorKind::PermissionDenied => ReaderErrorKind::PermissionDenied,
            ShmErrorKind::NotARegularFile => ReaderErrorKind::NotARing,
            ShmErrorKind::Truncated => ReaderErrorKind::Truncated,
            ShmErrorKind::BadSections => ReaderErrorKind::BadHeader,
            ShmErrorKind::Unsupported => ReaderErrorKind::Unsupported,
            ShmErrorKind::BadConfig => ReaderErrorKind::BadName,
            ShmErrorKind::NoSpace | ShmErrorKind::NoHugePages => ReaderErrorKind::NoSpace,
            _ => ReaderErrorKind::Io,
        };
        let mut made = Self::new(kind, error.to_string());
        made.0.path = error.path().map(Path::to_path_buf);
        made.0.source = Some(ReaderErrorSource::Shm(error));
        made
    }

    pub(super) fn io(operation: &str, error: std::io::Error) -> Self {
        let message = format!("cannot {operation}: {error}");
        let kind = match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => ReaderErrorKind::NoSpace,
            _ => ReaderErrorKind::Io,
        };
        let mut made = Self::new(kind, message);
        made.0.source = Some(ReaderErrorSource::Io(error));
        made
    }

    /// Adds what differs between the schemas of ring and reader.
    pub(super) fn because_of(mut self, differences: Vec<SchemaDifference>) -> Self {
        self.0.differences = differences;
        self
    }

    /// Makes the error for events that are missing because pages of the file could not be read.
    #[cfg(feature = "snapshot")]
    pub(super) fn lost_pages(lost: LostPages) -> Self {
        let kind = match lost {
            LostPages::NoMemory => ReaderErrorKind::NoSpace,
            LostPages::Unreadable => ReaderErrorKind::Unreadable,
            _ => ReaderErrorKind::Truncated,
        };
        Self::new(kind, lost.advice())
    }

    pub(super) fn bad_header(error: &GeometryError) -> Self {
        Self::new(ReaderErrorKind::BadHeader, format!("the header is damaged: {error}"))
    }

    pub(super) fn at(mut self, path: &Path) -> Self {
        self.0.path.get_or_insert_with(|| path.to_path_buf());
        self
    }

    /// Says that a ring may still come to the name.
    pub(super) fn of_later_ring(mut self) -> Self {
        self.0.is_of_later_ring = true;
        self
    }

    /// Returns true if waiting may help, in three cases:
    /// - There is no file of that name.
    /// - The file is empty or begins with zeros. The original C implementation makes some rings in place, and writes
    ///   the header last. (Rings of this crate get their name only when they are finished.)
    /// - The name has no `/`, no ring has it, and a file of the current directory that has it is no ring, as a program
    ///   beside its rings. A ring of this name goes before the file.
    pub fn may_come(&self) -> bool {
        self.0.kind == ReaderErrorKind::NotFound || self.0.is_of_later_ring
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ReaderErrorKind {
        self.0.kind
    }

    /// Returns what differs between the schemas of ring and reader, for [`ReaderErrorKind::WrongSchema`]. The
    /// differences that are not compatible come first. Returns at most 200 differences. Returns an empty list for all
    /// other kinds of error, and if the ring has no schema text that can be read.
    pub fn differences(&self) -> &[SchemaDifference] {
        &self.0.differences
    }

    /// Returns the path of the file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }
}

impl LostPages {
    /// Returns the last part of an error message: what happened, what it means for the reader, and what to do about
    /// it.
    #[must_use]
    pub fn advice(self) -> String {
        let remedy = match self {
            Self::NoMemory => "free some, and read the ring again",
            Self::Truncated => "leave ring files alone while their programs run, and start the program again",
            Self::Unreadable => "copy the file to another disk, as far as it can be read",
        };
        format!("{self}: events are lost, and how many cannot be told; {remedy}")
    }
}

impl fmt::Display for ReaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0.path, &self.0.source) {
            // The message of the module `shm` names the file.
            (_, Some(ReaderErrorSource::Shm(_))) | (None, _) => f.write_str(&self.0.message),
            (Some(path), _) => write!(f, "cannot open event ring {}: {}", path.display(), self.0.message),
        }
    }
}

debug_as_displayed!(ReaderError);

impl std::error::Error for ReaderError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.source {
            Some(ReaderErrorSource::Shm(error)) => Some(error),
            Some(ReaderErrorSource::Io(error)) => Some(error),
            None => None,
        }
    }
}
