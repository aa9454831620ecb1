//! Opening rings.

use crate::reader::error::{ReaderError, ReaderErrorKind};
use crate::reader::handle::Reader;
use crate::reader::source::Source;
use crate::reader::source::options::ReaderOptions;
use crate::schema::EventType;
use crate::shm::{self, AsFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The pause between two attempts to open a ring that does not exist yet. It is short, because a program may live for
/// only a few milliseconds.
pub(in crate::reader) const WAIT_INTERVAL: Duration = Duration::from_millis(2);

impl ReaderOptions {
    /// Opens the ring of this name or path. A name without `/` is looked up in the ring directories, and then in the
    /// current directory. A name with a `/` is a path. With the feature `server`, `pid:N/RING` is a ring that the
    /// server of process N serves; `pid:N` is enough if it has only one. The path of a server's socket may stand in
    /// place of `pid:N`. `pid:N` also means a ring of process N whose file was removed, if this user may look into the
    /// process. If the file is a zstd frame, it is opened as a snapshot
    /// (feature `snapshot`).
    ///
    /// # Errors
    /// Returns an error if the file does not exist, if this process may not read the file, or if the file is damaged
    /// or truncated. Also returns an error if the file is not a ring, or if the options do not accept the ring.
    pub fn open(&self, name_or_path: impl AsRef<Path>) -> Result<Reader, ReaderError> {
        let name = name_or_path.as_ref();
        let Some(timeout) = self.wait else { return self.open_now(name, false) };
        let start = Instant::now();
        let mut was_awaited = false;
        loop {
            match self.open_now(name, was_awaited) {
                Err(error) if error.may_come() && start.elapsed() < timeout => {
                    was_awaited = true;
                    std::thread::sleep(WAIT_INTERVAL.min(timeout.saturating_sub(start.elapsed())));
                }
                opened => return opened,
            }
        }
    }

    /// Opens the ring that has replaced an older ring of this name. Returns `None` if there is no ring of this name
    /// now.
    pub(in crate::reader) fn open_successor(&self, name: &Path) -> Result<Option<Reader>, ReaderError> {
        match self.open_now(name, true) {
            Err(error) if error.may_come() => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn open_now(&self, name: &Path, was_awaited: bool) -> Result<Reader, ReaderError> {
        self.open_once(name, was_awaited).map_err(|error| match error.path() {
            // No ring has the name, only some file here.
            Some(path) if path != name && *path == here(name) => error.of_later_ring(),
            _ => error,
        })
    }

    fn open_once(&self, name: &Path, was_awaited: bool) -> Result<Reader, ReaderError> {
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        if let Some(opened) = super::served::open(self, name) {
            return match opened {
                Err(error) if error.kind() == ReaderErrorKind::NotFound => {
                    super::removed::open(self, name).unwrap_or(Err(error))
                }
                opened => opened,
            };
        }
        let file = match find(name) {
            Ok(file) => file,
            // A server may have made its socket since the look above.
            #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
            Err(error) if error.kind() == shm::ShmErrorKind::NotARegularFile => {
                return super::served::open(self, name).unwrap_or_else(|| Err(ReaderError::shm(error)));
            }
            Err(error) => return Err(ReaderError::shm(error)),
        };
        let path = file.path().unwrap_or(name).to_path_buf();
        let opened_as = Some((name.to_path_buf(), self.clone()));
        Ok(Reader::from_source(Source { opened_as, was_awaited, ..self.map_file(file, &path)? }))
    }

    /// Opens a ring by a file descriptor: that of a memfd, or of a ring file that another process has opened and sent.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_fd(&self, fd: impl AsFd) -> Result<Reader, ReaderError> {
        let file = shm::duplicate(fd).map_err(|error| ReaderError::io("duplicate the descriptor", error))?;
        self.map_descriptor(file).map(Reader::from_source)
    }
}

impl Reader {
    /// Opens the ring or snapshot of this name or path. Accepts events of every content type.
    ///
    /// # Errors
    /// See [`ReaderOptions::open`].
    pub fn open(name_or_path: impl AsRef<Path>) -> Result<Self, ReaderError> {
        Self::options().open(name_or_path)
    }

    /// Opens the ring of that name or path if its events are `E`.
    ///
    /// # Errors
    /// See [`ReaderOptions::open`].
    pub fn open_typed<E: EventType>(name_or_path: impl AsRef<Path>) -> Result<Self, ReaderError> {
        Self::options().expect_events::<E>().open(name_or_path)
    }

    /// Opens the ring that has replaced this ring at the same name. (This ring's writer has ended, and another writer
    /// has made a new ring.) Uses the options with which this ring was opened. Returns `None` while there is no new
    /// ring. The next ring of a server has the same name, and its program has the same address; no other program ever
    /// replaces `pid:N`.
    ///
    /// # Errors
    /// Returns an error if the new ring cannot be opened; see [`ReaderOptions::open`].
    pub fn reopen(&self) -> Result<Option<Self>, ReaderError> {
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        if let Some(server) = &self.source.served_by {
            return server.reopen();
        }
        let Some((name, options)) = self.source.opened_as.as_ref().filter(|_| self.was_replaced()) else {
            return Ok(None);
        };
        options.open_successor(name)
    }
}

/// Opens the ring's file, from the places that [`ReaderOptions::open`] lists.
fn find(name_or_path: &Path) -> Result<shm::RingFile, shm::ShmError> {
    let name = shm::RingName::new(name_or_path.as_os_str())?;
    let is_path = matches!(name, shm::RingName::Path(_));
    // Symbolic links are followed only in a path, because the user has chosen the path. In a ring directory, anybody
    // may have made a link, so links are not followed there.
    let options = shm::OpenOptions { follow_symlinks: is_path, ..shm::OpenOptions::default() };
    let found = shm::RingFile::open(&name, &shm::RingDirectories::from_environment(), &options);
    match found {
        Err(error) if !is_path && error.kind() == shm::ShmErrorKind::NotFound && name_or_path.is_file() => {
            let options = shm::OpenOptions { follow_symlinks: true, ..options };
            shm::RingFile::open_path(here(name_or_path), &options)
        }
        found => found,
    }
}

/// Returns the path of what has this name in the current directory.
fn here(name: &Path) -> PathBuf {
    Path::new(".").join(name)
}
