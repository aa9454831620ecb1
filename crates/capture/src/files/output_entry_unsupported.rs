//! Making a file under a given name, on systems other than Linux. This module uses only the standard library, and
//! checks less than `output_entry.rs`: for example, it accepts a link of another user, and does not keep the directory
//! open.

#![cfg_attr(not(test), expect(clippy::disallowed_methods, reason = "the standard library has no other way"))]

use crate::error::{CaptureError, CaptureErrorKind};
use crate::files::parts::{directory_of, part_path};
use crate::files::read_files::ReadFiles;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};

/// The place of a file that is to be written.
#[derive(Debug)]
pub struct OutputEntry(PathBuf);

/// The kind of output that [`OutputEntry::look`] has found.
#[derive(Debug)]
pub enum OutputKind {
    /// A file that shall be made.
    File,
    /// A device or a pipe, which is opened and written to.
    Stream(File),
}

impl OutputEntry {
    /// Checks that the directory of `path` exists.
    ///
    /// # Errors
    /// It does not, or `path` does not end with a name.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let this = Self(path.to_path_buf());
        if path.file_name().is_none() {
            return Err(this.refused(IS_DIRECTORY));
        }
        fs::read_dir(directory_of(path)).map_err(|error| this.failed(error))?;
        Ok(this)
    }

    /// Returns the path that was given to [`Self::open`].
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Checks that no other user has put a link under this name. The library does not say whose a link is, so none is
    /// refused here.
    ///
    /// # Errors
    /// None.
    pub fn check_link_owner(&self) -> Result<(), CaptureError> {
        Ok(())
    }

    /// Finds out whether the output is a device or a pipe, which is opened here, or a file. The name of a file must be
    /// free. With `overwrite`, it may be that of a regular file that is not in `read`.
    ///
    /// # Errors
    /// Something exists under the name that is not replaced.
    pub fn look(&self, overwrite: bool, read: &ReadFiles) -> Result<OutputKind, CaptureError> {
        if self.is_stream() {
            let stream = File::options().write(true).open(&self.0).map_err(|error| self.failed(error))?;
            return Ok(OutputKind::Stream(stream));
        }
        self.check(overwrite, read)?;
        Ok(OutputKind::File)
    }

    /// Checks that a rotated capture can be begun under this name, as [`Self::look`] does.
    ///
    /// # Errors
    /// Something exists under the name, or under that of the first file, that is not replaced.
    pub fn look_at_row(&self, overwrite: bool, read: &ReadFiles) -> Result<(), CaptureError> {
        self.check_no_stream()?;
        Self::open(&part_path(&self.0, 1))?.check(overwrite, read)
    }

    pub(crate) fn check_no_stream(&self) -> Result<(), CaptureError> {
        if self.is_stream() { Err(self.refused(IS_STREAM)) } else { Ok(()) }
    }

    fn is_stream(&self) -> bool {
        fs::metadata(&self.0).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
    }

    fn check(&self, overwrite: bool, read: &ReadFiles) -> Result<(), CaptureError> {
        let metadata = match fs::symlink_metadata(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found.map_err(|error| self.failed(error))?,
        };
        match metadata.file_type() {
            kind if kind.is_dir() => Err(self.refused(IS_DIRECTORY)),
            kind if kind.is_symlink() => {
                Err(self.refused("it is a symbolic link, which is not replaced; name the file that it leads to"))
            }
            kind if !kind.is_file() => Err(self.refused(IS_STREAM)),
            _ if read.holds(&metadata) => {
                Err(self.refused("it is a file that is read, which is not written over; choose another name"))
            }
            _ if overwrite => Ok(()),
            _ => {
                let message = "it exists; choose another name, or have it replaced (`overwrite`)";
                Err(CaptureError::new(CaptureErrorKind::Exists, message).at(&self.0))
            }
        }
    }

    /// Makes an empty file that has its requested name from the start, so that it can be read while it grows.
    ///
    /// # Errors
    /// The name belongs to something that may not be replaced, or the operating system refuses.
    pub fn create(&self, overwrite: bool, read: &ReadFiles) -> Result<File, CaptureError> {
        let unfinished = self.create_unfinished()?;
        let file = unfinished.file.try_clone().map_err(|error| self.failed(error))?;
        unfinished.take_place(overwrite, read)?;
        Ok(file)
    }

    /// Opens and locks the existing regular file under this name, to write on after what it has. Returns `None` if
    /// there is no file.
    ///
    /// # Errors
    /// It is no regular file, another program writes it, or the operating system refuses.
    pub fn open_to_append(&self) -> Result<Option<File>, CaptureError> {
        match fs::symlink_metadata(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Ok(metadata) if !metadata.is_file() => return Err(self.refused(IS_STREAM)),
            _ => {}
        }
        let file = File::options().read(true).write(true).open(&self.0).map_err(|error| self.failed(error))?;
        self.lock(file).map(Some)
    }

    /// Locks a file that is written for long, so that no other process writes it, too.
    ///
    /// # Errors
    /// Another process has locked it.
    pub fn lock(&self, file: File) -> Result<File, CaptureError> {
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                Err(self.refused("another process writes it; choose another name, or end that one"))
            }
            Err(TryLockError::Error(error)) => Err(self.failed(error)),
        }
    }

    /// Makes a file under a temporary name. It gets the requested name when it is
    /// [published](UnfinishedFile::publish).
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn create_unfinished(&self) -> Result<UnfinishedFile<'_>, CaptureError> {
        let name = format!(".eventring.{:016x}", RandomState::new().build_hasher().finish());
        let path = directory_of(&self.0).join(name);
        let file = File::options().read(true).write(true).create_new(true).open(&path);
        Ok(UnfinishedFile { file: file.map_err(|error| self.failed(error))?, path, place: self })
    }

    fn refused(&self, what: &str) -> CaptureError {
        CaptureError::new(CaptureErrorKind::NotReplaceable, what).at(&self.0)
    }

    fn failed(&self, error: io::Error) -> CaptureError {
        CaptureError::io_writing("write it", error).at(&self.0)
    }
}

/// A file under a temporary name. It is removed unless it is published.
#[derive(Debug)]
pub struct UnfinishedFile<'p> {
    file: File,
    path: PathBuf,
    place: &'p OutputEntry,
}

impl UnfinishedFile<'_> {
    /// Returns the file, open for writing.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Syncs the file to disk, checks once more that it may have the requested name, and gives it this name.
    ///
    /// # Errors
    /// The name belongs to something that may not be replaced, or the operating system refuses.
    pub fn publish(self, overwrite: bool, read: &ReadFiles) -> Result<(), CaptureError> {
        self.file.sync_all().map_err(|error| self.place.failed(error))?;
        self.take_place(overwrite, read)
    }

    fn take_place(self, overwrite: bool, read: &ReadFiles) -> Result<(), CaptureError> {
        self.place.check(overwrite, read)?;
        // A rename replaces what got the name since the check, but a link fails. Some file systems have no links.
        if !overwrite && fs::hard_link(&self.path, &self.place.0).is_ok() {
            return Ok(());
        }
        self.place.check(overwrite, read)?;
        fs::rename(&self.path, &self.place.0).map_err(|error| self.place.failed(error))
    }
}

impl Drop for UnfinishedFile<'_> {
    fn drop(&mut self) {
        // After a rename, the temporary name does not exist any more, so this call fails, and its error is ignored.
        let _ = fs::remove_file(&self.path);
    }
}

const IS_DIRECTORY: &str = "it is a directory; name a file in it";
const IS_STREAM: &str = "it is a device or a pipe, expected a file; choose another name";
