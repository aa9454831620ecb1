//! Making a ring file so that nobody ever sees half of it, and so that it has one owner.
//!
//! 1. `<name>.<pid>` is made with `O_EXCL`, locked, and given its whole memory. Its mode carries the sticky bit, which no finished ring has: so what
//!    a killed process left behind is told apart from a ring that happens to be called `x.123`.
//! 2. The caller fills it.
//! 3. It gets its final mode and is renamed to `<name>` without replacing anything.
//! 4. If there is a file already, its lock decides. Held: the ring is owned, the error names the process. Free: the file is stale. We take its lock,
//!    see that the name still leads to it, and exchange the two files in one step. What comes out of the exchange is looked at before it is
//!    removed, so that not even somebody who ignores the lock loses a file to us.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{
    AtFlags, Dir, Mode, OFlags, RenameFlags, Stat, fchmod, fstat, ftruncate, linkat, mkdir, open, openat,
    renameat_with, unlinkat,
};
use rustix::io::{Errno, pread};
use rustix::process::{Pid, test_kill_process};

use super::allocate::allocate;
use super::directory::{Place, PlaceWarning};
use super::error::{ShmError, ShmErrorKind};
use super::lock::{FileId, TryLockError, try_lock};
use super::owned::{NamedPlace, OwnedRingFile, Registration};
use super::page_size::huge_page_bytes;
use super::room::Room;
use super::trust;

const OPERATION: &str = "create ring file";

/// A file that is not finished: the sticky bit, and nobody else may open it.
const UNFINISHED_MODE: u32 = 0o1600;
const STICKY: u32 = 0o1000;

/// How often we start again because others change the same names at the same time.
const ATTEMPTS: u32 = 100;

/// How a ring file is made.
#[derive(Clone, Copy, Debug)]
pub struct CreateOptions {
    /// Mode of the file, exactly (the umask does not matter): 0640 by default, the owner writes and the group reads. Only permission bits; the owner
    /// may always read and write.
    pub file_mode: u32,
    /// Mode of a ring directory that has to be made, exactly: 0750 by default. A directory that exists keeps its mode.
    pub directory_mode: u32,
    /// Leave the file when its owner ends.
    pub keep: bool,
    /// With a bare name: use a ring directory, and replace a stale file in it, that belong to neither us nor root.
    pub allow_foreign_owner: bool,
    /// A stale file is replaced only if it starts with these bytes, or is empty: a mistyped path must not cost somebody his file.
    pub replace_prefix: &'static [u8],
}

impl Default for CreateOptions {
    fn default() -> Self {
        Self { file_mode: 0o640, directory_mode: 0o750, keep: false, allow_foreign_owner: false, replace_prefix: b"" }
    }
}

/// A file of its final size, full of zeros, that nobody else sees yet.
#[derive(Debug)]
pub struct UnpublishedFile<'a> {
    file: BorrowedFd<'a>,
    bytes: u64,
    page_bytes: u64,
}

impl<'a> UnpublishedFile<'a> {
    pub(super) fn new(file: BorrowedFd<'a>, bytes: u64, page_bytes: u64) -> Self {
        Self { file, bytes, page_bytes }
    }

    /// Its length: what was asked for, rounded up to whole pages.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The size of its pages: 4096, or 2 MiB on hugetlbfs.
    #[must_use]
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }
}

impl AsFd for UnpublishedFile<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file
    }
}

/// Makes a ring file of at least `bytes` bytes at `place`, lets `initialise` fill it, and publishes it.
///
/// `initialise` must write through a mapping: hugetlbfs knows no `write`. If it fails or panics, nothing is left behind.
///
/// # Errors
/// [`AlreadyOwned`](ShmErrorKind::AlreadyOwned), [`NoSpace`](ShmErrorKind::NoSpace), [`PermissionDenied`](ShmErrorKind::PermissionDenied),
/// [`NotFound`](ShmErrorKind::NotFound) if the directory of a path is missing, [`NotARegularFile`](ShmErrorKind::NotARegularFile) or
/// [`Occupied`](ShmErrorKind::Occupied) if the name belongs to something that is no ring, [`BadConfig`](ShmErrorKind::BadConfig) for a mode that is
/// not allowed, and whatever `initialise` returns.
pub fn create<T, E: From<ShmError>>(
    place: &Place,
    bytes: u64,
    options: &CreateOptions,
    initialise: impl FnOnce(&UnpublishedFile<'_>) -> Result<T, E>,
) -> Result<(OwnedRingFile, T), E> {
    check_modes(options).map_err(|error| error.at(&place.path))?;
    let mut unpublished = Unpublished::allocated(place, bytes, options)?;
    let value = initialise(&UnpublishedFile::new(unpublished.file.as_fd(), unpublished.bytes, unpublished.page_bytes))?;
    unpublished.publish(options)?;
    let owned = unpublished.into_owned(place);
    owned.keep(options.keep);
    Ok((owned, value))
}

fn check_modes(options: &CreateOptions) -> Result<(), ShmError> {
    for (what, mode, needed) in [("file", options.file_mode, 0o600), ("directory", options.directory_mode, 0o700)] {
        if mode & !0o777 != 0 || mode & needed != needed {
            return Err(ShmError::new(
                ShmErrorKind::BadConfig,
                OPERATION,
                format!("{what} mode {mode:04o} is not allowed"),
            )
            .mend(format!("use permission bits only, with at least {needed:04o}")));
        }
    }
    Ok(())
}

/// The directory and names of a ring being made.
struct Target {
    finished: Arc<NamedPlace>,
    temporary: Arc<NamedPlace>,
}

impl Target {
    fn open(place: &Place, options: &CreateOptions) -> Result<Self, ShmError> {
        let path = &place.path;
        let name = path
            .file_name()
            .ok_or_else(|| ShmError::new(ShmErrorKind::BadConfig, OPERATION, "it names a directory").at(path))?;
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let directory = if place.in_ring_directory {
            open_ring_directory(parent, options)?
        } else {
            open_directory(parent, OFlags::empty()).map_err(|errno| directory_error(parent, errno))?
        };
        let mut temporary_name = name.to_os_string();
        temporary_name.push(format!(".{}", std::process::id()));
        let named = |name: OsString, directory| {
            Arc::new(NamedPlace {
                directory,
                path: parent.join(&name),
                name,
                in_ring_directory: place.in_ring_directory,
                remove_empty_directory: place.remove_empty_directory,
            })
        };
        let again = (directory.try_clone())
            .map_err(|error| ShmError::new(ShmErrorKind::Io, OPERATION, "no descriptor left").caused_by(error))?;
        Ok(Self { finished: named(name.to_os_string(), directory), temporary: named(temporary_name, again) })
    }
}

fn open_directory(path: &Path, more: OFlags) -> Result<OwnedFd, Errno> {
    open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | more, Mode::empty())
}

fn directory_error(directory: &Path, errno: Errno) -> ShmError {
    ShmError::from_errno("open the directory of the ring file,", errno)
        .at(directory)
        .mend("make it, or choose another path")
}

/// Opens the ring directory, makes it if it is missing, and refuses one that strangers control or have put a link to.
fn open_ring_directory(path: &Path, options: &CreateOptions) -> Result<OwnedFd, ShmError> {
    const OPERATION: &str = "use ring directory";
    let failed = |errno| ShmError::from_errno(OPERATION, errno).at(path);
    for _ in 0..ATTEMPTS {
        let directory = match open_directory(path, OFlags::NOFOLLOW) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => {
                make_ring_directory(path, options)?;
                continue;
            }
            Err(Errno::NOTDIR) => {
                return Err(ShmError::new(
                    ShmErrorKind::NotFound,
                    OPERATION,
                    "it is a link or a file, not a directory",
                )
                .at(path)
                .mend("remove it, or set EVENTRING_DIR to a directory"));
            }
            Err(errno) => return Err(failed(errno)),
        };
        if !options.allow_foreign_owner {
            trust::check_directory(OPERATION, &fstat(&directory).map_err(failed)?, path)?;
        }
        return Ok(directory);
    }
    // Each time it was gone again, because somebody removed it when it was empty.
    Err(too_much_traffic(path))
}

fn make_ring_directory(path: &Path, options: &CreateOptions) -> Result<(), ShmError> {
    let made = mkdir(path, Mode::from_raw_mode(0o700)).and_then(|()| {
        // By descriptor: only the directory just made gets the mode, and exactly that mode whatever the umask is.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let made = open(path, flags, Mode::empty())?;
        fchmod(made, Mode::from_raw_mode(options.directory_mode))
    });
    match made {
        // Another process was faster, or has removed it again.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(Errno::NOENT) if path.parent().is_some_and(Path::exists) => Ok(()),
        Err(errno) => Err(ShmError::from_errno("make ring directory", errno)
            .at(path)
            .mend("make it and give it to this user, or set EVENTRING_DIR")),
    }
}

/// A file under its temporary name; removed on drop.
struct Unpublished {
    target: Target,
    registration: Registration,
    file: OwnedFd,
    lock: OwnedFd,
    id: FileId,
    bytes: u64,
    page_bytes: u64,
    is_huge: bool,
}

impl Unpublished {
    /// A locked file with all of its memory.
    fn allocated(place: &Place, bytes: u64, options: &CreateOptions) -> Result<Self, ShmError> {
        for _ in 0..ATTEMPTS {
            let target = Target::open(place, options)?;
            // The answer to the most frequent error comes before the memory is taken.
            drop(StaleFile::lock(&target.finished, options)?);
            remove_leftovers(&target.finished);
            let Some(mut unpublished) = Self::make(target)? else {
                continue;
            };
            let huge = huge_page_bytes(&unpublished.file)
                .map_err(|errno| ShmError::from_errno(OPERATION, errno).at(&place.path))?;
            let page_bytes = huge.unwrap_or(rustix::param::page_size() as u64);
            unpublished.page_bytes = page_bytes;
            unpublished.is_huge = huge.is_some();
            unpublished.bytes = bytes.checked_next_multiple_of(page_bytes).ok_or_else(|| {
                ShmError::new(ShmErrorKind::BadSections, OPERATION, "it is larger than any file").at(&place.path)
            })?;
            match unpublished.allocate(&place.path, huge) {
                // A stale ring may hold just the memory that we need, in a pool of huge pages that is measured for one ring.
                Err(error) if error.kind() == ShmErrorKind::NoSpace => {
                    match StaleFile::lock(&unpublished.target.finished, options)? {
                        // What a crashed process left is worth keeping if its memory would not be enough.
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
        allocate(self.file.as_fd(), self.bytes, huge, path)
    }

    /// Whether the file could be allocated if `freed` more bytes were there. Unknown counts as yes.
    fn would_fit_with(&self, freed: u64, huge: Option<u64>) -> bool {
        // What a failed attempt has taken is free again as well.
        let _ = ftruncate(&self.file, 0);
        let free = Room::now(self.file.as_fd(), huge).bytes();
        free.is_none_or(|free| free.saturating_add(freed) >= self.bytes)
    }

    /// Makes the temporary file and locks it. `None`: somebody else changed the names, begin again.
    fn make(target: Target) -> Result<Option<Self>, ShmError> {
        let place = &target.temporary;
        let failed = |errno| ShmError::from_errno(OPERATION, errno).at(&place.path);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match openat(&place.directory, &place.name, flags, Mode::from_raw_mode(0o600)) {
            Ok(file) => file,
            Err(Errno::EXIST) => {
                // Of a process that had our id, or of another thread of ours that makes the same ring.
                return if remove_leftover(place) {
                    Ok(None)
                } else {
                    Err(already_owned(&target.finished.path, Some(std::process::id())))
                };
            }
            // The directory was removed because it was empty.
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(failed(errno)),
        };
        let id = FileId::of(&fstat(&file).map_err(failed)?);
        // A second open file description carries the lock and is never handed out.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = match openat(&place.directory, &place.name, flags, Mode::empty()) {
            Ok(lock) => lock,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => {
                place.remove(id);
                return Err(failed(errno));
            }
        };
        let locked = try_lock(&lock);
        let registration = Registration::new(Some(Arc::clone(place)), id, &lock);
        match locked {
            Ok(()) => {}
            // Somebody who removes leftovers got between the two steps. He removes the file, too.
            Err(TryLockError::Held { .. }) => return Ok(None),
            Err(TryLockError::System(errno)) => {
                return Err(failed(errno).mend("use a file system that supports flock"));
            }
        }
        let lock_is_on_file = fstat(&lock).is_ok_and(|stat| FileId::of(&stat) == id);
        if !lock_is_on_file || place.current() != Some(id) {
            return Ok(None);
        }
        fchmod(&file, Mode::from_raw_mode(UNFINISHED_MODE)).map_err(failed)?;
        Ok(Some(Self { target, registration, file, lock, id, bytes: 0, page_bytes: 0, is_huge: false }))
    }

    /// Gives the file its final mode and name.
    fn publish(&mut self, options: &CreateOptions) -> Result<(), ShmError> {
        let finished = Arc::clone(&self.target.finished);
        let failed = |errno| ShmError::from_errno("publish ring file", errno).at(&finished.path);
        fchmod(&self.file, Mode::from_raw_mode(options.file_mode)).map_err(failed)?;
        for _ in 0..ATTEMPTS {
            match self.rename_new() {
                Ok(()) => {
                    self.registration.set_place(finished);
                    return Ok(());
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(errno)),
            }
            let Some(stale) = StaleFile::lock(&finished, options)? else {
                continue;
            };
            if self.replace(stale).map_err(failed)? {
                self.registration.set_place(finished);
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
                // A file system without the flag: a hard link does not replace anything either.
                linkat(&from.directory, &from.name, &to.directory, &to.name, AtFlags::empty())?;
                unlinkat(&from.directory, &from.name, AtFlags::empty())
            }
            renamed => renamed,
        }
    }

    /// Puts our file in the place of the stale one. `false`: the name leads elsewhere by now, look again.
    fn replace(&self, stale: StaleFile<'_>) -> Result<bool, Errno> {
        let (ours, finished) = (&*self.target.temporary, &*self.target.finished);
        match rename(ours, finished, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(false),
            Err(Errno::INVAL | Errno::NOSYS) => {
                // Without the flag (hugetlbfs before Linux 5.16) there is an instant without a file.
                stale.remove();
                return Ok(false);
            }
            Err(errno) => return Err(errno),
        }
        if ours.current() == Some(stale.id) {
            ours.remove(stale.id);
            return Ok(true);
        }
        // Somebody who ignores the lock put his file there meanwhile. Give it back.
        rename(ours, finished, RenameFlags::EXCHANGE)?;
        Ok(false)
    }

    fn into_owned(self, place: &Place) -> OwnedRingFile {
        let warning = place
            .warning
            .clone()
            .or_else(|| (!self.is_huge).then(|| PlaceWarning::SmallPages { path: place.path.clone() }));
        OwnedRingFile {
            registration: self.registration,
            file: self.file,
            _lock: self.lock,
            id: self.id,
            path: Some(place.path.clone()),
            bytes: self.bytes,
            page_bytes: self.page_bytes,
            warning,
        }
    }
}

fn rename(from: &NamedPlace, to: &NamedPlace, flags: RenameFlags) -> Result<(), Errno> {
    renameat_with(&from.directory, &from.name, &to.directory, &to.name, flags)
}

/// A file without an owner, which we have locked so that nobody else replaces it.
struct StaleFile<'a> {
    place: &'a NamedPlace,
    _locked: OwnedFd,
    id: FileId,
    bytes: u64,
}

impl<'a> StaleFile<'a> {
    /// Locks the file that has the name now. `None`: there is none.
    fn lock(place: &'a NamedPlace, options: &CreateOptions) -> Result<Option<Self>, ShmError> {
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
            // The name may have passed to another file before we had the lock.
            if place.current() != Some(id) {
                continue;
            }
            check_prefix(&file, options.replace_prefix, OPERATION, &place.path)?;
            let bytes = u64::try_from(stat.st_size).unwrap_or(0);
            return Ok(Some(Self { place, _locked: file, id, bytes }));
        }
        Err(too_much_traffic(&place.path))
    }

    fn remove(self) {
        self.place.remove(self.id);
    }
}

fn open_existing(place: &NamedPlace, operation: &'static str) -> Result<Option<(OwnedFd, Stat)>, ShmError> {
    // NONBLOCK and NOCTTY: opening a pipe must not wait, nor a terminal become ours.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let failed = |errno| ShmError::from_errno(operation, errno).at(&place.path);
    let file = match openat(&place.directory, &place.name, flags, Mode::empty()) {
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

fn already_owned(path: &Path, pid: Option<u32>) -> ShmError {
    let error = |found: String| ShmError::new(ShmErrorKind::AlreadyOwned { pid }, OPERATION, found).at(path);
    match pid {
        Some(pid) if pid == std::process::id() => error(format!("this process ({pid}) owns it already"))
            .mend("use the recorder that it has, or choose another name"),
        Some(pid) => error(format!("process {pid} owns it")).mend("stop that process, or choose another name"),
        None => error("a process that cannot be seen from here owns it".into())
            .mend("find it with `fuser` or in another container, or choose another name"),
    }
}

fn too_much_traffic(path: &Path) -> ShmError {
    ShmError::new(ShmErrorKind::Io, OPERATION, "other processes keep changing the same name").at(path).mend("try again")
}

/// Removes what killed processes left of unfinished files for this name.
fn remove_leftovers(finished: &NamedPlace) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // Without the right to list the directory they stay.
    let Ok(entries) = openat(&finished.directory, ".", flags, Mode::empty()).and_then(Dir::new) else {
        return;
    };
    for entry in entries.flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let Some(pid) = leftover_pid(name, &finished.name) else {
            continue;
        };
        let is_dead = Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH));
        if is_dead && let Ok(directory) = finished.directory.try_clone() {
            remove_leftover(&NamedPlace {
                directory,
                path: finished.path.with_file_name(name),
                name: name.to_os_string(),
                in_ring_directory: finished.in_ring_directory,
                remove_empty_directory: false,
            });
        }
    }
}

/// The pid in `<name>.<pid>`.
fn leftover_pid(name: &OsStr, ring: &OsStr) -> Option<i32> {
    let digits = name.as_bytes().strip_prefix(ring.as_bytes())?.strip_prefix(b".")?;
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(digits).ok()?.parse().ok()
}

/// Removes an unfinished file that nobody holds locked; says whether it did.
fn remove_leftover(place: &NamedPlace) -> bool {
    let Ok(Some((file, stat))) = open_existing(place, OPERATION) else {
        return false;
    };
    // Empty without the bit: its maker died before the first step was complete.
    let is_unfinished = stat.st_mode & STICKY != 0 || stat.st_size == 0;
    if !is_unfinished || try_lock(&file).is_err() {
        return false;
    }
    let id = FileId::of(&stat);
    let was_there = place.current() == Some(id);
    place.remove(id);
    was_there
}
