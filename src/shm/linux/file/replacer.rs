//! The right to take the name of a file without an owner.
//!
//! Only one process at a time may replace or remove a file without an owner. The `flock` of the file cannot ensure
//! this, because readers can hold this lock, too.
//!
//! So the process makes a lock file `<name>.~lock`, which only its user may open, beside the file. It locks the lock
//! file while it works, and then removes it. If the process dies, the lock file stays, empty and unlocked, and the next
//! process locks it.

use std::ffi::CString;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, fstat};

use super::super::system::trust;
use super::super::writer::lock::{self, TryLockError, holder, try_lock, unlock};
use super::super::writer::write_lock::has_writer;
use super::owned::DirectoryEntry;
use super::unfinished::{ATTEMPTS, already_owned, too_much_traffic};
use crate::shm::answers::FileId;
use crate::shm::error::{ShmError, ShmErrorKind};

pub(in crate::shm::linux) const SUFFIX: &[u8] = b".~lock";

/// The right to replace a file. While this value lives, no other process gets the right.
#[derive(Debug)]
pub(in crate::shm::linux) struct Replacer {
    place: DirectoryEntry,
    file: OwnedFd,
    id: FileId,
}

/// Takes the right to replace `file`, whose name is `place`. If the file has a writer, returns an error, in which
/// `wanted` is the name of the failed operation.
///
/// Returns `Ok(None)` if the second lock does not decide: the word at `WRITE_LOCK_OFFSET` of the file is 0, or the
/// system does not show the second lock. In these cases the right to replace the file is the `flock` on the file
/// itself. This process holds that `flock` now.
pub(in crate::shm::linux) fn try_take(
    place: &DirectoryEntry,
    file: &OwnedFd,
    wanted: &'static str,
) -> Result<Option<Replacer>, ShmError> {
    let failed = |error| match error {
        TryLockError::Held { pid } => already_owned(wanted, &place.path, pid),
        TryLockError::System(errno) => ShmError::from_errno(wanted, errno).at(&place.path),
    };
    // The `flock` is taken in every case, because other implementations know no other lock.
    let locked = try_lock(file);
    let taken = match has_writer(file) {
        None => return locked.map(|()| None).map_err(failed),
        Some(true) => Err(failed(TryLockError::Held { pid: pid_of_writer(file) })),
        Some(false) => Replacer::try_make(place, wanted),
    };
    if taken.is_err() && locked.is_ok() {
        unlock(file);
    }
    taken.map(Some)
}

/// Returns the process that holds the lock, as `/proc/locks` shows it. If no process is shown, looks again for a
/// while, as [`try_lock`] does.
fn pid_of_writer(file: &OwnedFd) -> Option<u32> {
    let id = FileId::from_stat(&fstat(file).ok()?);
    (0..lock::ATTEMPTS).find_map(|attempt| {
        if attempt > 0 {
            std::thread::sleep(lock::PAUSE);
        }
        holder(id)
    })
}

impl Replacer {
    fn try_make(of: &DirectoryEntry, wanted: &'static str) -> Result<Self, ShmError> {
        let name = CString::new([of.name.to_bytes(), SUFFIX].concat()).unwrap_or_default();
        let place = of.beside(name);
        let failed = |errno| {
            ShmError::from_errno(wanted, errno).at(&place.path).mend("remove that file, if no process has it open")
        };
        for _ in 0..ATTEMPTS {
            let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY;
            let file = place.open(flags, Mode::from_raw_mode(0o600)).map_err(failed)?;
            let stat = fstat(&file).map_err(failed)?;
            trust::check_regular_file(wanted, &stat, &place.path)?;
            trust::check_own(wanted, &stat, &place.path)?;
            if stat.st_size != 0 || stat.st_mode & 0o077 != 0 {
                let found = "a file that is no lock has that name";
                return Err(ShmError::new(ShmErrorKind::Occupied, wanted, found).at(&place.path).mend("remove it"));
            }
            match try_lock(&file) {
                Ok(()) => {}
                Err(TryLockError::Held { pid }) => return Err(already_owned(wanted, &of.path, pid)),
                Err(TryLockError::System(errno)) => return Err(failed(errno)),
            }
            let replacer = Self { place: place.beside(place.name.clone()), file, id: FileId::from_stat(&stat) };
            // The previous replacer may have removed the lock file before this process locked it. A lock on a file
            // without a name excludes nobody. So the loop checks the name, and begins again if it does not lead to
            // this file.
            if replacer.place.current() == Some(replacer.id) {
                return Ok(replacer);
            }
        }
        Err(too_much_traffic(&of.path))
    }
}

impl Drop for Replacer {
    fn drop(&mut self) {
        // The lock file is removed while it is still locked. If it were unlocked first, it could already belong to
        // another replacer when it is removed.
        self.place.remove(self.id);
        unlock(&self.file);
    }
}
