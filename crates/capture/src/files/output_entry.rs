//! Making a file under a given name, and the rules about which existing files it may replace.
//!
//! A new file is made without a name, in the directory of the requested name, so no part of it stays if the process
//! dies. The complete file gets a temporary name, and then the requested name.
//!
//! On a file system that cannot make files without a name, the file has the temporary name from the start, and a part
//! of it may stay.
//!
//! The directory stays open until the file has the requested name. No link under this name is followed. If a replaced
//! file has other names (hard links), the other names keep the old content. No existing file is opened for writing,
//! except a device or a pipe that the user has named.

use crate::error::{CaptureError, CaptureErrorKind};
use crate::files::parts::{directory_of, part_path};
use crate::files::read_files::{IS_READ, ReadFiles};
use eventring::files::{FileId, LockState, lock_state};
use eventring::internal::shm;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The permissions of new files: the owner may read and write, the group may read. Rings have the same permissions by
/// default.
const MODE: Mode = Mode::from_raw_mode(0o640);

/// The longest time that a pipe without a reader is waited for: its reader may just be starting.
const READER_TIMEOUT: Duration = Duration::from_secs(1);
const READER_PAUSE: Duration = Duration::from_millis(5);
/// The type of the file system of pipes that have no name.
const PIPEFS: rustix::fs::FsWord = 0x5049_5045;

/// The place of a file that is to be written: a directory, which is held open, and a name in it.
#[derive(Debug)]
pub struct OutputEntry {
    directory: OwnedFd,
    directory_id: FileId,
    name: OsString,
    path: PathBuf,
}

/// The kind of output that [`OutputEntry::look`] has found.
#[derive(Debug)]
pub enum OutputKind {
    /// A file that shall be made.
    File,
    /// A device or a pipe, which is opened and written to.
    Stream(File),
}

impl OutputEntry {
    /// Opens the directory of `path`.
    ///
    /// # Errors
    /// The directory cannot be opened, or `path` does not end with a name.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let name = path.file_name().ok_or_else(|| refused(IS_DIRECTORY).at(path))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(directory_of(path), flags, Mode::empty())
            .and_then(|directory| Ok((rustix::fs::fstat(&directory)?, directory)));
        let (stat, directory) = opened.map_err(|errno| failed(path, errno))?;
        Ok(Self {
            directory,
            directory_id: FileId::from_stat(&stat),
            name: name.to_os_string(),
            path: path.to_path_buf(),
        })
    }

    /// Returns the path that was given to [`Self::open`].
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Finds out whether the output is a stream or a file. A device or a pipe is a stream. It is opened here, even
    /// through a link (`/dev/stdout` is a link). Otherwise the output is a file, and its name must be free. If
    /// `overwrite` is true, it may also be the name of a regular file, which is then replaced. But a file in `read` and
    /// a ring with a living writer are never replaced.
    ///
    /// # Errors
    /// Something exists under the name that is not replaced.
    pub fn look(&self, overwrite: bool, read: &ReadFiles) -> Result<OutputKind, CaptureError> {
        let kind = self.kind_behind_links();
        if kind.is_some_and(FileType::is_dir) {
            return Err(refused(IS_DIRECTORY).at(&self.path));
        }
        if kind.is_some_and(is_stream)
            && let Some(stream) = self.open_stream()?
        {
            return Ok(OutputKind::Stream(stream));
        }
        self.check(overwrite, read)?;
        Ok(OutputKind::File)
    }

    /// Opens the device or the pipe to which the name leads. Returns `None` if a regular file has got the name
    /// meanwhile: nothing is written to it.
    ///
    /// # Errors
    /// Another user has put a pipe, or a link to a stream, under this name. Or nobody reads the pipe.
    fn open_stream(&self) -> Result<Option<File>, CaptureError> {
        let of_system = |errno| failed(&self.path, errno);
        self.check_link_owner()?;
        // What is looked at here is what is opened below: opening this descriptor does nothing to a pipe or a device.
        let found = rustix::fs::open(&self.path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(of_system)?;
        let stat = rustix::fs::fstat(&found).map_err(of_system)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind.is_file() {
            return Ok(None);
        }
        // A pipe without a name was given to this process, whoever has made it.
        let is_nameless = || rustix::fs::fstatfs(&found).is_ok_and(|system| system.f_type == PIPEFS);
        if kind == FileType::Fifo && !is_ours_or_roots(&stat) && !is_nameless() {
            return Err(of_another_user("a pipe", &stat).at(&self.path));
        }
        let begin = Instant::now();
        let stream = loop {
            // A pipe without a reader would keep the open waiting for ever. So would some devices.
            let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
            match rustix::fs::open(shm::link_to(&found), flags, Mode::empty()) {
                Err(Errno::NXIO) if begin.elapsed() < READER_TIMEOUT => std::thread::sleep(READER_PAUSE),
                Err(Errno::NXIO) => return Err(refused(IS_NOT_READ).at(&self.path)),
                opened => break opened.map_err(of_system)?,
            }
        };
        // From here on a write waits until there is room.
        let flags = rustix::fs::fcntl_getfl(&stream).map_err(of_system)?;
        rustix::fs::fcntl_setfl(&stream, flags - OFlags::NONBLOCK).map_err(of_system)?;
        Ok(Some(stream.into()))
    }

    /// Checks that no other user has put a link under this name. The links in `/dev` and `/proc` belong to root and to
    /// the user of the process.
    ///
    /// # Errors
    /// Another user has.
    pub fn check_link_owner(&self) -> Result<(), CaptureError> {
        let link = rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        match link {
            Ok(link) if FileType::from_raw_mode(link.st_mode).is_symlink() && !is_ours_or_roots(&link) => {
                Err(of_another_user("a symbolic link", &link).at(&self.path))
            }
            _ => Ok(()),
        }
    }

    /// Checks that a rotated capture can be begun under this name: the name leads to no device or pipe, and the name of
    /// the first file is free, or may be replaced as [`Self::look`] says.
    ///
    /// # Errors
    /// Something exists under one of these names that is not replaced.
    pub fn look_at_row(&self, overwrite: bool, read: &ReadFiles) -> Result<(), CaptureError> {
        self.check_no_stream()?;
        Self::open(&part_path(&self.path, 1))?.check(overwrite, read)
    }

    /// Checks that the name does not lead to a device or a pipe. A rotated capture makes several files, and a device
    /// or a pipe takes only one stream.
    pub(crate) fn check_no_stream(&self) -> Result<(), CaptureError> {
        if self.kind_behind_links().is_some_and(is_stream) { Err(refused(IS_STREAM).at(&self.path)) } else { Ok(()) }
    }

    /// Returns the kind of the file to which the name leads, after following links. Returns `None` if there is no such
    /// file.
    fn kind_behind_links(&self) -> Option<FileType> {
        Some(FileType::from_raw_mode(rustix::fs::stat(&self.path).ok()?.st_mode))
    }

    /// Checks that the name is free, or that it is the name of a regular file that may be replaced.
    fn check(&self, overwrite: bool, read: &ReadFiles) -> Result<(), CaptureError> {
        self.check_what_is_there(overwrite, read).map_err(|error| error.at(&self.path))
    }

    fn check_what_is_there(&self, overwrite: bool, read: &ReadFiles) -> Result<(), CaptureError> {
        if let Some(recorder) = read.recorder_of_shard(self.directory_id, &self.name) {
            let message = format!(
                "it has the name of a shard of the ring {}, which is read; choose another name",
                recorder.to_string_lossy()
            );
            return Err(refused(message));
        }
        let stat = match rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(failed(&self.path, errno)),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if read.holds(&stat) => Err(refused(IS_READ)),
            FileType::RegularFile if overwrite => self.check_that_nobody_writes_it(),
            FileType::RegularFile => {
                let message = "it exists; choose another name, or have it replaced (`overwrite`)";
                Err(CaptureError::new(CaptureErrorKind::Exists, message))
            }
            FileType::Symlink => {
                Err(refused("it is a symbolic link, which is not replaced; name the file that it leads to"))
            }
            FileType::Directory => Err(refused(IS_DIRECTORY)),
            FileType::Socket => {
                Err(refused("it is a socket; write to stdout (`-`) and pipe that into a program that connects"))
            }
            _ => Err(refused(IS_STREAM)),
        }
    }

    /// Checks that the existing file is not a ring with a living writer. If it were replaced, that writer would go on
    /// to record to a file that has no name any more.
    fn check_that_nobody_writes_it(&self) -> Result<(), CaptureError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        // A user who may not read the file may still be allowed to replace it: the directory's permissions decide. So
        // if the file cannot be opened, this check is left out.
        let Ok(file) = rustix::fs::openat(&self.directory, &self.name, flags, Mode::empty()) else { return Ok(()) };
        match lock_state(&file) {
            LockState::Held { pid } => {
                let by = pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
                Err(refused(format!("it is a ring that a living process writes{by}; choose another name")))
            }
            _ => Ok(()),
        }
    }

    /// Makes an empty file that has its requested name from the start, so that it can be read while it grows.
    pub fn create(&self, overwrite: bool, read: &ReadFiles) -> Result<File, CaptureError> {
        let unfinished = self.create_unfinished()?;
        let file = unfinished.file.try_clone().map_err(|error| io_failed(&self.path, error))?;
        unfinished.take_place(overwrite, read)?;
        Ok(file)
    }

    /// Opens the existing regular file under this name, to write on after what it has. Returns `None` if there is no
    /// file. No link is followed. The file stays locked against other writers of this kind until it is closed.
    ///
    /// # Errors
    /// It is no regular file, another program writes it, or the operating system refuses.
    pub fn open_to_append(&self) -> Result<Option<File>, CaptureError> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::openat(&self.directory, &self.name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(refused("it is a symbolic link; name the file that it leads to")),
            Err(errno) => return Err(failed(&self.path, errno)),
        };
        if !file.metadata().map_err(|error| io_failed(&self.path, error))?.is_file() {
            return Err(refused(IS_STREAM).at(&self.path));
        }
        self.lock(file).map(Some)
    }

    /// Locks a file that is written for long, so that no other process writes it, too.
    pub fn lock(&self, file: File) -> Result<File, CaptureError> {
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(file),
            Err(Errno::WOULDBLOCK) => {
                Err(refused("another process writes it; choose another name, or end that one").at(&self.path))
            }
            Err(errno) => Err(failed(&self.path, errno)),
        }
    }

    /// Makes a file without a name, or under a temporary name. It gets the requested name when it is
    /// [published](UnfinishedFile::publish).
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn create_unfinished(&self) -> Result<UnfinishedFile<'_>, CaptureError> {
        if let Some(file) = create_nameless(&self.directory, MODE) {
            return Ok(UnfinishedFile { file, name: None, place: self });
        }
        let made = create_new(&self.directory, MODE);
        let (file, name) = made.map_err(|errno| failed(&self.path, errno))?;
        Ok(UnfinishedFile { file, name: Some(name), place: self })
    }
}

/// A file without a name, or under a temporary name. It is removed unless it is published.
#[derive(Debug)]
pub struct UnfinishedFile<'p> {
    file: File,
    /// The temporary name, if it has one.
    name: Option<OsString>,
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
        self.file.sync_all().map_err(|error| io_failed(self.place.path(), error))?;
        self.take_place(overwrite, read)
    }

    fn take_place(mut self, overwrite: bool, read: &ReadFiles) -> Result<(), CaptureError> {
        let OutputEntry { directory, name, path, .. } = self.place;
        self.place.check(overwrite, read)?;
        let named = match self.name.take() {
            Some(named) => Ok(named),
            None => name_file(&self.file, directory),
        };
        let named = self.name.insert(named.map_err(|errno| failed(path, errno))?);
        if !overwrite {
            // Another file may have got this name since the check. A rename would replace that file, but a link fails.
            // The drop of `self` removes the temporary name.
            match rustix::fs::linkat(directory, &*named, directory, name, AtFlags::empty()) {
                Ok(()) => return Ok(()),
                Err(Errno::EXIST) => return self.place.check(false, read).and(Err(failed(path, Errno::EXIST))),
                // Some file systems have no hard links. There the name is checked once more, and the rename below
                // gives the file its name.
                Err(_) => self.place.check(false, read)?,
            }
        }
        // If another file has got this name since the check, the rename replaces it. If the name is a symbolic link
        // now, the rename replaces the link itself and does not follow it.
        rustix::fs::renameat(directory, &*named, directory, name).map_err(|errno| failed(path, errno))
    }
}

impl Drop for UnfinishedFile<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // After a rename, the temporary name does not exist any more, so this call fails, and its error is ignored.
            let _ = rustix::fs::unlinkat(&self.place.directory, name, AtFlags::empty());
        }
    }
}

/// Makes a file without a name. Returns `None` if the file system has no such files, or if the file could not get a
/// name later.
fn create_nameless(directory: &OwnedFd, mode: Mode) -> Option<File> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(directory, ".", flags, mode).ok()?);
    rustix::fs::stat(shm::link_to(&file)).is_ok().then_some(file)
}

/// Gives a file without a name an unpredictable one.
fn name_file(file: &File, directory: &OwnedFd) -> Result<OsString, Errno> {
    let link = |name: &OsString| rustix::fs::linkat(CWD, shm::link_to(file), directory, name, AtFlags::SYMLINK_FOLLOW);
    with_new_name(link).map(|(_, name)| name)
}

/// Makes a file with an unpredictable name.
fn create_new(directory: &OwnedFd, mode: Mode) -> Result<(File, OsString), Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    with_new_name(|name| rustix::fs::openat(directory, name, flags, mode)).map(|(file, name)| (file.into(), name))
}

/// Calls `make` with unpredictable names until one of them is free. So nobody can have put a file or a link under this
/// name before, even in a directory in which everybody may write.
fn with_new_name<T>(make: impl Fn(&OsString) -> Result<T, Errno>) -> Result<(T, OsString), Errno> {
    const ATTEMPTS: u32 = 16;
    for _ in 0..ATTEMPTS {
        let name = OsString::from(format!(".eventring.{:016x}", RandomState::new().build_hasher().finish()));
        match make(&name) {
            Ok(made) => return Ok((made, name)),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::EXIST)
}

const IS_DIRECTORY: &str = "it is a directory; name a file in it";
const IS_STREAM: &str = "it is a device or a pipe, expected a file; choose another name";

fn is_stream(kind: FileType) -> bool {
    !kind.is_file() && !kind.is_dir() && kind != FileType::Socket
}

const IS_NOT_READ: &str = "it is a pipe that nobody reads; start its reader first, or choose another name";

fn is_ours_or_roots(stat: &Stat) -> bool {
    stat.st_uid == 0 || stat.st_uid == rustix::process::geteuid().as_raw()
}

/// Returns the refusal of what another user may have put in the place of an output.
fn of_another_user(what: &str, stat: &Stat) -> CaptureError {
    refused(format!("it is {what} of user {}; choose another name, or a pipe of your own", stat.st_uid))
}

fn refused(what: impl Into<String>) -> CaptureError {
    CaptureError::new(CaptureErrorKind::NotReplaceable, what)
}

fn failed(path: &Path, errno: Errno) -> CaptureError {
    io_failed(path, errno.into())
}

fn io_failed(path: &Path, error: io::Error) -> CaptureError {
    CaptureError::io_writing("write it", error).at(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_file_is_gone_unless_it_is_published_and_replaces_nothing_unasked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let place = OutputEntry::open(&path).unwrap();
        let read = ReadFiles::default();
        drop(place.create_unfinished().unwrap());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let unfinished = place.create_unfinished().unwrap();
        // Another file is made under the name after `look`.
        std::fs::write(&path, "earlier").unwrap();
        assert_eq!(unfinished.publish(false, &read).unwrap_err().kind(), CaptureErrorKind::Exists);
        assert_eq!(std::fs::read(&path).unwrap(), b"earlier");
        place.create_unfinished().unwrap().publish(true, &read).unwrap();
        assert_eq!((std::fs::read(&path).unwrap().len(), std::fs::read_dir(directory.path()).unwrap().count()), (0, 1));
    }
}
