//! A ring file whose owner has gone.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, Stat, fchmod, fstat};
use rustix::io::{Errno, pread};

use super::create::{ATTEMPTS, CreateOptions, STICKY, already_owned, too_much_traffic};
use super::error::{ShmError, ShmErrorKind};
use super::lock::{FileId, TryLockError, try_lock, unlock};
use super::owned::NamedPlace;
use super::trust;

/// A file without an owner, which we have locked so that nobody else replaces it.
pub(super) struct StaleFile<'a> {
    place: &'a NamedPlace,
    locked: OwnedFd,
    mode: u32,
    pub id: FileId,
    pub bytes: u64,
}

impl<'a> StaleFile<'a> {
    /// Locks the file that has the name now. `None`: there is none.
    pub(super) fn lock(place: &'a NamedPlace, options: &CreateOptions) -> Result<Option<Self>, ShmError> {
        const OPERATION: &str = "replace stale ring file";
        for _ in 0..ATTEMPTS {
            let Some((file, stat)) = open_existing(place, OPERATION)? else {
                return Ok(None);
            };
            if place.in_ring_directory && !options.allow_foreign_owner {
                trust::check_ours(OPERATION, &stat, &place.path)?;
            }
            match try_lock(&file) {
                Ok(()) => {}
                Err(TryLockError::Held { pid }) => return Err(already_owned(&place.path, pid)),
                Err(TryLockError::System(errno)) => {
                    return Err(ShmError::from_errno(OPERATION, errno).at(&place.path));
                }
            }
            let id = FileId::of(&stat);
            let bytes = u64::try_from(stat.st_size).unwrap_or(0);
            let stale = Self { place, locked: file, mode: stat.st_mode & 0o7777 & !STICKY, id, bytes };
            // The name may have passed to another file before we had the lock.
            if place.current() != Some(id) {
                continue;
            }
            check_prefix(&stale.locked, options.replace_prefix, OPERATION, &place.path)?;
            return Ok(Some(stale));
        }
        Err(too_much_traffic(&place.path))
    }

    pub(super) fn remove(self) {
        self.place.remove(self.id);
    }

    /// Has its mode say that it is nobody's loss, or no more. Does nothing to a stranger's file, whose mode is not ours to change.
    pub(super) fn mark_unfinished(&self, is_unfinished: bool) {
        let mode = if is_unfinished { self.mode | STICKY } else { self.mode };
        let _ = fchmod(&self.locked, Mode::from_raw_mode(mode));
    }
}

impl Drop for StaleFile<'_> {
    fn drop(&mut self) {
        unlock(&self.locked);
    }
}

pub(super) fn open_existing(place: &NamedPlace, operation: &'static str) -> Result<Option<(OwnedFd, Stat)>, ShmError> {
    // NONBLOCK and NOCTTY: opening a pipe must not wait, nor a terminal become ours.
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
