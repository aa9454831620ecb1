//! Ring files that are open for reading.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, Stat, fstat, open, stat};
use rustix::io::{Errno, pread};

use super::super::system::descriptor::OwnDescriptor;
use super::super::system::page_size::path_of;
use super::super::system::trust;
use super::super::writer::liveness::writer_liveness;
use super::directory::{RingDirectories, not_found};
use crate::shm::answers::{FileId, Liveness, ProcessIdentity};
use crate::shm::error::{ShmError, ShmErrorKind};
use crate::shm::name::RingName;
use crate::shm::options::OpenOptions;

const OPERATION: &str = "open ring file";

/// A ring file that is open for reading. The value holds what the file system knows about the file. The content of the
/// file is not checked.
#[derive(Debug)]
pub struct RingFile {
    file: OwnDescriptor,
    path: Option<PathBuf>,
    stat: Stat,
}

impl RingFile {
    /// Opens the ring `name`. A path is opened as written. A bare name is opened in the first directory that has such
    /// a file.
    ///
    /// # Errors
    /// The errors are, among others, [`NotFound`](ShmErrorKind::NotFound),
    /// [`PermissionDenied`](ShmErrorKind::PermissionDenied) and [`NotARegularFile`](ShmErrorKind::NotARegularFile).
    pub fn open(name: &RingName, directories: &RingDirectories, options: &OpenOptions) -> Result<Self, ShmError> {
        let paths = directories.paths_for_reading(name);
        let mut first_error = None;
        for path in &paths {
            let opened = match name {
                RingName::Path(_) => return Self::open_path(path, options),
                RingName::Bare(_) => Self::open_in_ring_directory(path, options),
            };
            match opened {
                Err(error) if error.kind() == ShmErrorKind::NotFound => {}
                // The search goes on, because a directory that this process may not read can come before the directory
                // that has the ring. If no directory has the ring, the first error is returned.
                Err(error) => {
                    first_error.get_or_insert(error);
                }
                opened => return opened,
            }
        }
        Err(first_error.unwrap_or_else(|| not_found(name, &paths)))
    }

    fn open_in_ring_directory(path: &Path, options: &OpenOptions) -> Result<Self, ShmError> {
        let file = Self::open_path(path, options)?;
        if !options.allow_foreign_owner {
            trust::check_read_file(OPERATION, &file.stat, path)?;
        }
        Ok(file)
    }

    /// Opens exactly this file, also if it belongs to a stranger.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn open_path(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, ShmError> {
        let path = path.as_ref();
        // With NONBLOCK, opening a pipe does not wait. With NOCTTY, a terminal does not become the controlling
        // terminal.
        let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        if !options.follow_symlinks {
            flags |= OFlags::NOFOLLOW;
        }
        let file = open(path, flags, Mode::empty()).map_err(|errno| open_error(path, errno))?;
        Self::from_open(file, Some(path.to_path_buf()))
    }

    /// Takes an open file descriptor, for example that of a memfd, or one that another process has sent.
    ///
    /// # Errors
    /// [`NotARegularFile`](ShmErrorKind::NotARegularFile).
    pub fn from_descriptor(file: impl Into<OwnedFd>) -> Result<Self, ShmError> {
        Self::from_open(file.into(), None)
    }

    fn from_open(file: OwnedFd, path: Option<PathBuf>) -> Result<Self, ShmError> {
        let named = path.clone().or_else(|| path_of(file.as_fd())).unwrap_or_default();
        let failed = |errno| ShmError::from_errno(OPERATION, errno).at(&named);
        let stat = fstat(&file).map_err(failed)?;
        trust::check_regular_file(OPERATION, &stat, &named)?;
        let file = OwnDescriptor::new(file).map_err(failed)?;
        Ok(Self { file, path, stat })
    }

    /// Reads from `offset` until `buffer` is full or the file ends. Returns the number of bytes that were read. It is
    /// 0 if `offset` is not before the end of the file.
    ///
    /// # Errors
    /// [`Io`](ShmErrorKind::Io).
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, ShmError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match pread(&self.file, &mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(Errno::INTR) => {}
                Err(errno) => {
                    let error = ShmError::from_errno("read ring file", errno);
                    return Err(match self.path() {
                        Some(path) => error.at(path),
                        None => error,
                    });
                }
            }
        }
        Ok(filled)
    }

    /// Returns the path by which the file was opened. Returns `None` if the file was given as a descriptor.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the length that the file had when it was opened.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }

    /// Returns the identity of the file.
    #[must_use]
    pub fn id(&self) -> FileId {
        FileId::from_stat(&self.stat)
    }

    /// Returns the user who owns the file.
    #[must_use]
    pub fn owner(&self) -> u32 {
        self.stat.st_uid
    }

    /// Returns the permission bits of the file. The sticky bit is left out, because a new ring may still have this bit
    /// for a moment after it has got its name.
    #[must_use]
    pub fn mode(&self) -> u32 {
        self.stat.st_mode & 0o777
    }

    /// Returns true if the path by which the file was opened still leads to the file. Also returns true if there is no
    /// path.
    #[must_use]
    pub fn is_still_at_its_path(&self) -> bool {
        self.path.as_ref().is_none_or(|path| stat(path).is_ok_and(|stat| FileId::from_stat(&stat) == self.id()))
    }

    /// Returns true if the file is shorter now than when it was opened.
    #[must_use]
    pub fn was_truncated(&self) -> bool {
        self.file.checked().and_then(|file| fstat(file).ok()).is_some_and(|now| now.st_size < self.stat.st_size)
    }

    /// Returns whether the writer is alive, as [`writer_liveness`] does. If the program has closed the file's
    /// descriptor, the state of the lock cannot be read, and `identity` alone decides.
    #[must_use]
    pub fn writer_liveness(&self, identity: Option<&ProcessIdentity>) -> Liveness {
        match self.file.checked() {
            Some(file) => writer_liveness(file, identity),
            None => identity.map_or(Liveness::Unknown, ProcessIdentity::liveness),
        }
    }

    /// Returns the descriptor, which is open for reading.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsFd for RingFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor()
    }
}

fn open_error(path: &Path, errno: Errno) -> ShmError {
    let error = ShmError::from_errno(OPERATION, errno).at(path);
    match errno {
        Errno::NOENT => error.mend("start the program that records it, or check the path"),
        Errno::ACCESS => error.mend("join the group of the file, or ask its owner for a wider mode"),
        Errno::LOOP => error.mend("give the path that the link leads to"),
        // A socket cannot be opened at all.
        Errno::NXIO => ShmError::new(ShmErrorKind::NotARegularFile, OPERATION, "it is a socket or a device").at(path),
        _ => error,
    }
}
