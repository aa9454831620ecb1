//! Making a ring file, in five steps. The ring's name never leads to an unfinished ring, and a ring has only one owner.
//!
//! 1. This process makes the temporary file `<name>.~<pid>` (ten digits) with `O_EXCL`, locks it, gives it the sticky
//!    bit, and allocates all its memory. The sticky bit is the mark of unfinished files: no ring in use has it.
//! 2. The caller fills the file.
//! 3. The file gets its final permissions, but keeps the mark. It is renamed to `<name>` if no file has this name.
//! 4. If a file has the name already, the lock of that file decides:
//!    - If the lock is held, the ring has an owner, and the error names the owner's process.
//!    - If the lock is free, the file is stale. This process locks it, checks that the name still leads to it, and
//!      marks it. One system call exchanges the two names. This process then removes the stale file.
//! 5. The new file loses the mark before any event can be recorded.
//!
//! If the exchange has moved a third file, whose process ignores the lock, a second exchange gives that file its name
//! back. On a file system that cannot exchange names, the stale file is removed before the new file gets the name.
//!
//! If this process dies, a file may stay at the temporary name. The next process that makes the ring removes this file
//! if it has the mark or is empty. No other file stays there:
//! - The new file is empty before it gets the mark, and loses the mark only after it has its final name.
//! - A stale file gets the mark before it gets the temporary name.
//!
//! If the process dies while the file `<name>` has the mark, nothing is lost: a new ring has no event yet, and a stale
//! ring was about to be removed.
//!
//! While a file has the name, only the file's owner may rename or remove it. So the name cannot pass to another file
//! between a check of the name and the rename or removal. An owner holds the file's lock. A process becomes the owner
//! of a stale file by locking it (see [`replacer`](super::replacer)).
//!
//! All threads of a process share one temporary name, so only one of them can make the ring at a time.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, fchmod, fstat, ftruncate, linkat, renameat_with, unlinkat};
use rustix::io::Errno;

use super::super::memory::allocate::allocate;
use super::super::memory::free_memory::FreeMemory;
use super::super::system::descriptor::OwnDescriptor;
use super::super::system::page_size::huge_page_bytes;
use super::super::writer::ending::wait_for_end;
use super::super::writer::lock::{OwnedLock, TryLockError, try_lock};
use super::destination::Destination;
use super::leftovers::{remove_leftover, remove_leftovers};
use super::owned::{DirectoryEntry, OwnedRingFile, Registration};
use super::stale::StaleFile;
use super::unfinished::{ATTEMPTS, OPERATION, STICKY, already_owned, too_much_traffic};
use crate::shm::answers::FileId;
use crate::shm::error::{ShmError, ShmErrorKind};
use crate::shm::location::{HugePageWarning, RingLocation};
use crate::shm::options::CreateOptions;

/// The mode of an unfinished file: the sticky bit, and reading and writing for its owner only.
const UNFINISHED_MODE: u32 = 0o1600;

/// A file of its final size that is full of zeros. No reader can find the file yet.
#[derive(Debug)]
pub struct UnpublishedFile<'a> {
    file: BorrowedFd<'a>,
    is_locked_for_writing: bool,
}

impl<'a> UnpublishedFile<'a> {
    pub(in crate::shm::linux) fn new(owned: &'a OwnedRingFile) -> Self {
        let is_locked_for_writing = owned.lock.is_for_writing();
        Self { file: owned.descriptor(), is_locked_for_writing }
    }

    /// Returns true if the owner holds the second lock, which no reader can hold. In this case the caller should store
    /// a non-zero word at [`WRITE_LOCK_OFFSET`](crate::shm::WRITE_LOCK_OFFSET) of the file. The word shows other
    /// processes that the second lock alone decides whether the file has an owner.
    #[must_use]
    pub fn is_locked_for_writing(&self) -> bool {
        self.is_locked_for_writing
    }
}

impl AsFd for UnpublishedFile<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file
    }
}

/// Makes a ring file of at least `bytes` bytes at `place`. Lets `initialise` fill the file, then gives the file its
/// name.
///
/// `initialise` must write through a mapping, because files on hugetlbfs cannot be written with `write`. If
/// `initialise` fails or panics, the file is removed.
///
/// # Errors
/// The errors are, among others:
/// - [`AlreadyOwned`](ShmErrorKind::AlreadyOwned), [`NoSpace`](ShmErrorKind::NoSpace),
///   [`PermissionDenied`](ShmErrorKind::PermissionDenied).
/// - [`NotFound`](ShmErrorKind::NotFound) if the directory of a path is missing.
/// - [`NotARegularFile`](ShmErrorKind::NotARegularFile) or [`Occupied`](ShmErrorKind::Occupied) if the name belongs to
///   a file that is not a ring.
/// - [`BadConfig`](ShmErrorKind::BadConfig) for a mode that is not allowed.
/// - The errors of `initialise`.
pub fn create<T, E: From<ShmError>>(
    place: &RingLocation,
    bytes: u64,
    options: &CreateOptions,
    initialise: impl FnOnce(&UnpublishedFile<'_>) -> Result<T, E>,
) -> Result<(OwnedRingFile, T), E> {
    check_modes(options).map_err(|error| error.at(&place.path))?;
    let deadline = Instant::now() + options.owner_timeout;
    let unpublished = loop {
        match Unpublished::allocated(place, bytes, options) {
            Err(error) if is_awaited(&error, deadline) => {}
            made => break made?,
        }
    };
    let owned = &unpublished.owned;
    let value = initialise(&UnpublishedFile::new(owned))?;
    unpublished.publish(options)?;
    owned.keep(options.keep);
    Ok((unpublished.owned, value))
}

/// Waits a moment and returns true if the file has an owner that may end before `deadline`.
fn is_awaited(error: &ShmError, deadline: Instant) -> bool {
    matches!(error.kind(), ShmErrorKind::AlreadyOwned { pid } if wait_for_end(pid, deadline))
}

fn check_modes(options: &CreateOptions) -> Result<(), ShmError> {
    for (what, mode, needed) in [("file", options.file_mode, 0o600), ("directory", options.directory_mode, 0o700)] {
        if mode & !0o777 != 0 || mode & needed != needed {
            return Err(ShmError::new(
                ShmErrorKind::BadConfig,
                OPERATION,
                format_args!("{what} mode {mode:04o} is not allowed"),
            )
            .mend(format_args!("use permission bits only, with at least {needed:04o}")));
        }
    }
    Ok(())
}

/// A file under its temporary name. It is removed on drop.
struct Unpublished {
    target: Destination,
    /// The file with everything that its owner needs.
    owned: OwnedRingFile,
}

impl Unpublished {
    /// Makes a locked file with all of its memory.
    fn allocated(place: &RingLocation, bytes: u64, options: &CreateOptions) -> Result<Self, ShmError> {
        for _ in 0..ATTEMPTS {
            let target = Destination::open(place, options)?;
            // If the ring has an owner already, `StaleFile::lock` fails here, before any memory is taken for the new
            // file.
            drop(StaleFile::lock(&target.finished, options)?);
            remove_leftovers(&target.finished);
            let Some(mut unpublished) = Self::make(target)? else {
                continue;
            };
            let owned = &mut unpublished.owned;
            owned.path = Some(place.path.clone());
            let huge = huge_page_bytes(owned.file.as_fd())
                .map_err(|errno| ShmError::from_errno(OPERATION, errno).at(&place.path))?;
            let page_bytes = huge.unwrap_or(rustix::param::page_size() as u64);
            owned.bytes = bytes.checked_next_multiple_of(page_bytes).ok_or_else(|| {
                ShmError::new(ShmErrorKind::BadSections, OPERATION, "it is larger than any file").at(&place.path)
            })?;
            let no_warning = huge.is_some() || place.warning.is_some();
            owned.warning = if no_warning {
                place.warning.clone()
            } else {
                Some(HugePageWarning::SmallPages { path: place.path.clone() })
            };
            match unpublished.allocate(&place.path, huge) {
                // The stale ring may still hold the memory that is missing. For example, a pool of huge pages may have
                // room for one ring only. So the stale ring is removed, and the allocation is tried once more.
                Err(error) if error.kind() == ShmErrorKind::NoSpace => {
                    match StaleFile::lock(&unpublished.target.finished, options)? {
                        // The stale ring is removed only if the new ring then fits into memory. Otherwise the events
                        // of a crashed process would be lost for nothing.
                        Some(stale) if unpublished.would_fit_with(stale.bytes, huge) => {
                            stale.remove();
                            unpublished.allocate(&place.path, huge)?;
                        }
                        _ => return Err(error),
                    }
                }
                allocated => allocated?,
            }
            return Ok(unpublished);
        }
        Err(too_much_traffic(&place.path))
    }

    fn allocate(&self, path: &Path, huge: Option<u64>) -> Result<(), ShmError> {
        allocate(self.owned.descriptor(), self.owned.bytes, huge, path)
    }

    /// Returns true if the file would fit into memory after `freed` more bytes have been freed. Also returns true if
    /// the free memory is not known.
    fn would_fit_with(&self, freed: u64, huge: Option<u64>) -> bool {
        // The failed allocation has taken a part of the memory. Cutting the file frees this part, so that it counts as
        // free below.
        let _ = ftruncate(&self.owned, 0);
        let free = FreeMemory::now(self.owned.descriptor(), huge).bytes();
        free.is_none_or(|free| free.saturating_add(freed) >= self.owned.bytes)
    }

    /// Makes the temporary file and locks it. Returns `None` if another process has changed a name meanwhile; the
    /// caller then begins again.
    fn make(target: Destination) -> Result<Option<Self>, ShmError> {
        let place = &target.temporary;
        // Messages name the final path, because the user does not know the temporary path.
        let failed = |errno| ShmError::from_errno(OPERATION, errno).at(&target.finished.path);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR;
        let file = match place.open(flags, Mode::from_raw_mode(0o600)) {
            Ok(file) => file,
            Err(Errno::EXIST) => {
                // The temporary name is taken. Either a dead process with the same process id left the file, or
                // another thread of this process is making the same ring. `remove_leftover` removes the file of a dead
                // process only.
                return if remove_leftover(place) {
                    Ok(None)
                } else {
                    Err(already_owned(OPERATION, &target.finished.path, Some(std::process::id())))
                };
            }
            // Another process has removed the ring directory, because the directory was empty. The caller begins again
            // and makes the directory anew.
            Err(Errno::NOENT) if place.in_ring_directory && !place.is_directory_there() => return Ok(None),
            Err(Errno::NOENT) => {
                let found = "its directory is gone, or takes no files, as /proc does";
                let error = ShmError::new(ShmErrorKind::NotFound, OPERATION, found).at(&target.finished.path);
                return Err(error.mend("choose another path or EVENTRING_DIR"));
            }
            Err(Errno::ACCESS) => {
                return Err(failed(Errno::ACCESS).mend("let this user write to its directory, or choose another path"));
            }
            Err(errno) => return Err(failed(errno)),
        };
        let file = OwnDescriptor::new(file).map_err(failed)?;
        let id = file.file();
        // A second open file description holds the lock. Callers get a descriptor of the first description only, so
        // they cannot pass the lock on.
        let lock = match place.open(OFlags::RDWR, Mode::empty()) {
            Ok(lock) => lock,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => {
                // The second opening failed, so the file must be removed. Only the holder of a file's lock may remove
                // the file, so `file`, the first description, takes the lock here. The lock ends when `file` is closed
                // on return.
                if try_lock(&file).is_ok() {
                    place.remove(id);
                }
                return Err(failed(errno));
            }
        };
        match try_lock(&lock) {
            Ok(()) => {}
            // A process that removes leftovers has locked the file meanwhile, and will remove it. This process must
            // not remove the file, too: the name may then belong to a file of another process.
            Err(TryLockError::Held { .. }) => return Ok(None),
            Err(TryLockError::System(errno)) => {
                // The file system has no locks, so no other process can have locked the file. This process may remove
                // it.
                place.remove(id);
                return Err(failed(errno).mend("use a file system that supports flock"));
            }
        }
        let locked = fstat(&lock).map_err(failed)?;
        if FileId::from_stat(&locked) != id {
            // Our own file was removed meanwhile, and another maker has made a new file with the same name. The second
            // opening has opened that new file, and we have locked it. The other maker then finds its file locked,
            // leaves the file to us, and begins again. So we must remove that file here. (It is not a published ring: a
            // published ring no longer has the temporary name.)
            place.remove(FileId::from_stat(&locked));
            return Ok(None);
        }
        if place.current() != Some(id) {
            return Ok(None);
        }
        // From here on, `registration` removes the file if a later step fails. It is dropped before `lock`, so the
        // file is still locked when it is removed.
        let registration = Registration::new(Some(Arc::clone(place)), id);
        let held = OwnedLock::keep(&lock).map_err(failed)?;
        fchmod(&file, Mode::from_raw_mode(UNFINISHED_MODE)).map_err(failed)?;
        let owned = OwnedRingFile { registration, file, lock: held, path: None, bytes: 0, warning: None };
        Ok(Some(Self { target, owned }))
    }

    /// Gives the file its final mode and name.
    fn publish(&self, options: &CreateOptions) -> Result<(), ShmError> {
        let finished = &self.target.finished;
        let failed = |errno| ShmError::from_errno("publish ring file", errno).at(&finished.path);
        let set_mode = |mode| fchmod(&self.owned, Mode::from_raw_mode(mode)).map_err(failed);
        set_mode(options.file_mode | STICKY)?;
        self.take_name(options, &failed)?;
        self.owned.registration.set_place(Arc::clone(finished));
        // The sticky bit is cleared only after the rename. In the other order, a process that died between the two
        // steps would leave a file without the bit at the temporary name. Such a file looks like a ring, and nobody
        // removes it.
        set_mode(options.file_mode)
    }

    /// Moves the file from its temporary name to its final name.
    fn take_name(&self, options: &CreateOptions, failed: &dyn Fn(Errno) -> ShmError) -> Result<(), ShmError> {
        let finished = &self.target.finished;
        for _ in 0..ATTEMPTS {
            match self.rename_new() {
                Ok(()) => return Ok(()),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(errno)),
            }
            let Some(stale) = StaleFile::lock(finished, options)? else {
                continue;
            };
            if self.replace(stale).map_err(failed)? {
                return Ok(());
            }
        }
        Err(too_much_traffic(&finished.path))
    }

    /// Renames without replacing anything.
    fn rename_new(&self) -> Result<(), Errno> {
        let (from, to) = (&*self.target.temporary, &*self.target.finished);
        match rename(from, to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS) => {
                // The file system does not know NOREPLACE. A hard link gives the file its new name instead. Making the
                // link also fails if the new name exists.
                linkat(&from.directory, &from.name, &to.directory, &to.name, AtFlags::empty())?;
                unlinkat(&from.directory, &from.name, AtFlags::empty())
            }
            renamed => renamed,
        }
    }

    /// Exchanges the names of this file and the stale file, and removes the stale file. Returns false if this file did
    /// not get the name. The caller then begins again.
    fn replace(&self, stale: StaleFile) -> Result<bool, Errno> {
        let (ours, finished) = (&*self.target.temporary, &*self.target.finished);
        // After the exchange the stale file has the temporary name. If this process dies at that moment, the next
        // maker removes the file, but only if it has the mark of unfinished files. So the mark is set before the
        // exchange.
        stale.mark_unfinished(true);
        match rename(ours, finished, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(Errno::NOENT) => {
                stale.mark_unfinished(false);
                return Ok(false);
            }
            Err(Errno::INVAL | Errno::NOSYS) => {
                // The file system cannot exchange two names (hugetlbfs before Linux 5.16). So the stale file is
                // removed here, and the caller then renames the new file. Between these two steps no file has the
                // name.
                stale.remove();
                return Ok(false);
            }
            Err(errno) => {
                stale.mark_unfinished(false);
                return Err(errno);
            }
        }
        if ours.current() == Some(stale.id) {
            ours.remove(stale.id);
            return Ok(true);
        }
        // The exchange has moved another file than the stale file: a process that ignores the lock has given the name
        // to its own file at the last moment. A second exchange gives that file its name back.
        rename(ours, finished, RenameFlags::EXCHANGE)?;
        Ok(false)
    }
}

fn rename(from: &DirectoryEntry, to: &DirectoryEntry, flags: RenameFlags) -> Result<(), Errno> {
    renameat_with(&from.directory, &from.name, &to.directory, &to.name, flags)
}
