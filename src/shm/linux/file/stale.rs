//! Ring files without an owner.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, Stat, fchmod, fstat};
use rustix::io::{Errno, pread};

use super::super::system::trust;
use super::super::writer::lock::unlock;
use super::owned::DirectoryEntry;
use super::replacer::{self, Replacer};
use super::unfinished::{self, ATTEMPTS, STICKY, too_much_traffic};
use crate::shm::answers::FileId;
use crate::shm::error::{ShmError, ShmErrorKind};
use crate::shm::options::CreateOptions;

const REMOVE: &str = "remove ring file";

/// A file without an owner. This process has locked it, so no other process can replace or remove it. Dropping the
/// value releases the lock.
#[derive(Debug)]
pub struct StaleFile {
    place: Arc<DirectoryEntry>,
    locked: OwnedFd,
    _replacer: Option<Replacer>,
    mode: u32,
    pub(in crate::shm::linux) id: FileId,
    pub(in crate::shm::linux) bytes: u64,
}

impl StaleFile {
    /// Locks the file at `path` if it has no owner. The file must belong to this user. Returns `None` if `path` leads
    /// to no file.
    ///
    /// # Errors
    /// The errors are, among others:
    /// - [`AlreadyOwned`](ShmErrorKind::AlreadyOwned).
    /// - [`PermissionDenied`](ShmErrorKind::PermissionDenied), also if the file belongs to another user.
    /// - [`NotARegularFile`](ShmErrorKind::NotARegularFile).
    pub fn lock_own(path: impl AsRef<Path>) -> Result<Option<Self>, ShmError> {
        let path = path.as_ref();
        match DirectoryEntry::from_path(path) {
            Ok(place) => Self::lock_own_at(&Arc::new(place)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(ShmError::from_errno(REMOVE, errno).at(path)),
        }
    }

    pub(in crate::shm::linux) fn lock_own_at(place: &Arc<DirectoryEntry>) -> Result<Option<Self>, ShmError> {
        Self::lock_current(place, REMOVE, REMOVE, |stat| trust::check_own(REMOVE, stat, &place.path))
    }

    /// Locks the file at `place`, in order to replace it. Returns `None` if there is no file. Returns an error if the
    /// file has an owner.
    pub(in crate::shm::linux) fn lock(
        place: &Arc<DirectoryEntry>,
        options: &CreateOptions,
    ) -> Result<Option<Self>, ShmError> {
        const OPERATION: &str = "replace stale ring file";
        let stale = Self::lock_current(place, OPERATION, unfinished::OPERATION, |stat| {
            let checks = place.in_ring_directory && !options.allow_foreign_owner;
            if checks { trust::check_ours(OPERATION, stat, &place.path) } else { Ok(()) }
        })?;
        if let Some(stale) = &stale {
            check_prefix(&stale.locked, options.replace_prefix, OPERATION, &place.path)?;
        }
        Ok(stale)
    }

    fn lock_current(
        place: &Arc<DirectoryEntry>,
        operation: &'static str,
        // If the file has an owner, the error names this operation.
        wanted: &'static str,
        check: impl Fn(&Stat) -> Result<(), ShmError>,
    ) -> Result<Option<Self>, ShmError> {
        for _ in 0..ATTEMPTS {
            let Some((file, stat)) = open_existing(place, operation)? else {
                return Ok(None);
            };
            check(&stat)?;
            let stale = Self::try_lock(place, file, &stat, wanted)?;
            // The name may have passed to another file before this file was locked. Then the loop begins again.
            if place.current() == Some(stale.id) {
                return Ok(Some(stale));
            }
        }
        Err(too_much_traffic(&place.path))
    }

    /// Locks an open file whose name was `place`. By now the name may lead to another file; the caller checks this.
    pub(in crate::shm::linux) fn try_lock(
        place: &Arc<DirectoryEntry>,
        file: OwnedFd,
        stat: &Stat,
        wanted: &'static str,
    ) -> Result<Self, ShmError> {
        let replacer = replacer::try_take(place, &file, wanted)?;
        let bytes = u64::try_from(stat.st_size).unwrap_or(0);
        let (mode, id) = (stat.st_mode & 0o7777 & !STICKY, FileId::from_stat(stat));
        Ok(Self { place: Arc::clone(place), locked: file, _replacer: replacer, mode, id, bytes })
    }

    /// Returns the identity of the file.
    #[must_use]
    pub fn id(&self) -> FileId {
        self.id
    }

    pub(in crate::shm::linux) fn descriptor(&self) -> BorrowedFd<'_> {
        self.locked.as_fd()
    }

    /// Removes the file if its name still leads to it.
    pub fn remove(self) {
        self.place.remove(self.id);
    }

    /// Sets or clears the mark of an unfinished file. This has no effect on another user's file, because this process
    /// may not change the mode of such a file.
    pub(in crate::shm::linux) fn mark_unfinished(&self, is_unfinished: bool) {
        let mode = if is_unfinished { self.mode | STICKY } else { self.mode };
        let _ = fchmod(&self.locked, Mode::from_raw_mode(mode));
    }
}

impl Drop for StaleFile {
    fn drop(&mut self) {
        unlock(&self.locked);
    }
}

pub(in crate::shm::linux) fn open_existing(
    place: &DirectoryEntry,
    operation: &'static str,
) -> Result<Option<(OwnedFd, Stat)>, ShmError> {
    // With NONBLOCK, opening a pipe does not wait. With NOCTTY, a terminal does not become the controlling terminal.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let failed = |errno| ShmError::from_errno(operation, errno).at(&place.path);
    let file = match place.open(flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(failed(errno)),
    };
    let stat = fstat(&file).map_err(failed)?;
    trust::check_regular_file(operation, &stat, &place.path)?;
    Ok(Some((file, stat)))
}

fn check_prefix(file: &OwnedFd, prefix: &[u8], operation: &'static str, path: &Path) -> Result<(), ShmError> {
    let mut found = vec![0; prefix.len()];
    let read = pread(file, &mut found, 0).map_err(|errno| ShmError::from_errno(operation, errno).at(path))?;
    if read == 0 || found == prefix {
        return Ok(());
    }
    Err(ShmError::new(ShmErrorKind::Occupied, operation, "a file of another kind has that name")
        .at(path)
        .mend("choose another name, or remove the file"))
}
