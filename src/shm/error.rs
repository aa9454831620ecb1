//! Errors of the operating-system layer.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The class of a [`ShmError`], for programs that react to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ShmErrorKind {
    /// A file or directory that does not exist.
    NotFound,
    /// An access that the operating system refused, or a file or directory that this library refused because it
    /// belongs to another user.
    PermissionDenied,
    /// A path that leads to a symbolic link, a directory, a pipe or a device.
    NotARegularFile,
    /// A name that belongs to an existing file that is not a ring. The library never replaces such a file.
    Occupied,
    /// A ring whose writer's lock is held.
    AlreadyOwned {
        /// The process that holds the lock. `None` if the system does not show the process to the caller, for example
        /// because it is in another pid namespace.
        pid: Option<u32>,
    },
    /// A file system, pool of huge pages or quota that is too small.
    NoSpace,
    /// A request for huge pages on a system that has none.
    NoHugePages,
    /// A configuration string or setting that is malformed or out of range.
    BadConfig,
    /// Sizes of sections that overflow, that do not fit the page size, or that exceed the address space.
    BadSections,
    /// A file that is shorter than its sections.
    Truncated,
    /// A missing ability of the kernel or the file system.
    Unsupported,
    /// Anything else that a system call reported; see `source()`.
    Io,
}

/// An error of the operating-system layer.
///
/// The message names four things: the operation, the file, what was found, and how to mend it.
pub struct ShmError(Box<Inner>);

struct Inner {
    kind: ShmErrorKind,
    operation: &'static str,
    path: Option<PathBuf>,
    found: String,
    mend: String,
    source: Option<io::Error>,
}

// Errors are made seldom, but in many places of the code. These functions are not inlined, because inlined code would
// take about 250 bytes in each of these places.
impl ShmError {
    /// Makes an error of this kind. `operation` is a verb phrase: the message begins with "cannot" and this phrase.
    /// `found` is the cause.
    #[cold]
    #[inline(never)]
    pub(crate) fn new(kind: ShmErrorKind, operation: &'static str, found: impl fmt::Display) -> Self {
        Self::boxed(kind, operation, found.to_string())
    }

    #[inline(never)]
    fn boxed(kind: ShmErrorKind, operation: &'static str, found: String) -> Self {
        Self(Box::new(Inner { kind, operation, path: None, found, mend: String::new(), source: None }))
    }

    /// Adds the path of the file or directory.
    #[must_use]
    #[cold]
    #[inline(never)]
    pub(crate) fn at(mut self, path: &Path) -> Self {
        self.0.path = Some(path.to_path_buf());
        self
    }

    /// Adds a remedy to the message.
    #[must_use]
    #[cold]
    #[inline(never)]
    pub(crate) fn mend(mut self, mend: impl fmt::Display) -> Self {
        self.0.mend = mend.to_string();
        self
    }

    /// Attaches the system's own error.
    #[must_use]
    #[cold]
    #[inline(never)]
    pub(crate) fn caused_by(mut self, source: impl Into<io::Error>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Returns the class of the error.
    #[must_use]
    pub fn kind(&self) -> ShmErrorKind {
        self.0.kind
    }

    /// Returns the file or directory concerned, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }
}

impl fmt::Display for ShmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        write!(f, "cannot {}", inner.operation)?;
        if let Some(path) = &inner.path {
            write!(f, " {}", path.display())?;
        }
        write!(f, ": {}", inner.found)?;
        if let Some(source) = &inner.source {
            write!(f, " ({source})")?;
        }
        if !inner.mend.is_empty() {
            write!(f, "; {}", inner.mend)?;
        }
        Ok(())
    }
}

debug_as_displayed!(ShmError);

impl std::error::Error for ShmError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn a_message_names_operation_file_finding_cause_and_remedy() {
        let error =
            ShmError::from_errno("open ring file", Errno::ACCESS).at(Path::new("/dev/shm/x")).mend("ask its owner");
        insta::assert_snapshot!(error, @"cannot open ring file /dev/shm/x: permission denied (Permission denied (os error 13)); ask its owner");
        assert_eq!(error.kind(), ShmErrorKind::PermissionDenied);
        assert_eq!(error.path(), Some(Path::new("/dev/shm/x")));
        assert!(std::error::Error::source(&error).is_some());
    }

    #[test]
    fn an_error_is_one_pointer_and_crosses_threads() {
        fn crosses_threads<T: Send + Sync + 'static>() {}
        crosses_threads::<ShmError>();
        assert_eq!(size_of::<ShmError>(), size_of::<usize>());
    }
}
