//! The owner's side of a ring file. The owner holds the file's lock. When the owner ends, it removes the file.
//!
//! An exit handler removes files, too, because Rust never drops a recorder in a static. If a process ends without
//! calling its exit handlers (by a signal, `_exit`, `abort` or `exec`), its file stays. Readers can then read the file,
//! and the next owner replaces it.
//!
//! A panic counts as a crash: the file stays if the owner is dropped while its thread unwinds. If `main` panics, the
//! exit handler decides:
//! - With glibc, which passes the exit status (101) to the handler, the file stays.
//! - With other C libraries, the file is removed.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, openat, statat, unlinkat};
use rustix::io::Errno;

use super::super::process::this_process::ThisProcess;
use super::super::system::descriptor::OwnDescriptor;
use super::super::system::handler_list::{HandlerList, ListEntry};
use super::super::system::paths;
use super::super::system::pinned;
use super::super::writer::lock::OwnedLock;
use crate::shm::answers::FileId;
use crate::shm::location::HugePageWarning;

/// A file name in an open directory. Because the directory is open, the name still means the same file after the
/// process has changed its working directory, and after the directory was renamed.
#[derive(Debug)]
pub(in crate::shm::linux) struct DirectoryEntry {
    pub directory: Arc<OwnDescriptor>,
    pub name: CString,
    /// The path, for messages and for the removal of the directory.
    pub path: PathBuf,
    /// The value of `path` if it is absolute, otherwise `None`. If the program has closed the directory's descriptor,
    /// the file is found by this absolute path.
    absolute: Option<CString>,
    pub in_ring_directory: bool,
    pub remove_empty_directory: bool,
}

impl DirectoryEntry {
    /// Makes the entry for `name` in `directory`. `parent` is the path of the directory. The directory is not removed
    /// when it becomes empty.
    pub(in crate::shm::linux) fn new(
        directory: &Arc<OwnDescriptor>,
        parent: &Path,
        name: CString,
        in_ring_directory: bool,
    ) -> Self {
        let path = parent.join(OsStr::from_bytes(name.to_bytes()));
        Self {
            directory: Arc::clone(directory),
            name,
            absolute: path.is_absolute().then(|| CString::new(path.as_os_str().as_bytes()).ok()).flatten(),
            path,
            in_ring_directory,
            remove_empty_directory: false,
        }
    }

    /// Opens the directory in which `path` lies, and returns the entry for the last component of `path`.
    pub(in crate::shm::linux) fn from_path(path: &Path) -> Result<Self, Errno> {
        let name = CString::new(path.file_name().ok_or(Errno::INVAL)?.as_bytes()).map_err(|_| Errno::INVAL)?;
        let parent = paths::parent(path).unwrap_or(Path::new("."));
        let directory = paths::open(parent, OFlags::PATH | OFlags::DIRECTORY)?;
        Ok(Self::new(&Arc::new(OwnDescriptor::new(directory)?), parent, name, false))
    }

    /// Returns true if the path of the directory still leads to the directory. Returns false if it has been removed.
    pub(in crate::shm::linux) fn is_directory_there(&self) -> bool {
        let parent = paths::parent(&self.path).unwrap_or(Path::new("."));
        paths::stat(parent).is_ok_and(|found| FileId::from_stat(&found) == self.directory.file())
    }

    /// Returns the entry of another name in the same directory.
    pub(in crate::shm::linux) fn beside(&self, name: CString) -> Self {
        let parent = self.path.parent().unwrap_or(Path::new(""));
        Self::new(&self.directory, parent, name, self.in_ring_directory)
    }

    /// Calls `each` with every name in the directory. If this process may not list the directory, `each` is never
    /// called.
    pub(in crate::shm::linux) fn for_each_name_beside(&self, mut each: impl FnMut(&CStr)) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(directory) = openat(&self.directory, c".", flags, Mode::empty()) else { return };
        let mut buffer = Vec::with_capacity(8192);
        let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
        while let Some(Ok(entry)) = entries.next() {
            each(entry.file_name());
        }
    }

    /// Opens or makes the file that has this name. If the name is a symbolic link, the call fails.
    #[inline(never)]
    pub(in crate::shm::linux) fn open(&self, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        openat(&self.directory, &self.name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode)
    }

    /// Returns the file that has the name now.
    pub(in crate::shm::linux) fn current(&self) -> Option<FileId> {
        let (directory, name) = self.here()?;
        statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| FileId::from_stat(&stat))
    }

    /// Returns a directory and a name in it, for a system call. If the program has closed the directory's descriptor,
    /// the name is the entry's absolute path. Returns `None` if there is no absolute path, either.
    fn here(&self) -> Option<(BorrowedFd<'_>, &CStr)> {
        match self.directory.checked() {
            Some(directory) => Some((directory, &self.name)),
            None => Some((CWD, self.absolute.as_deref()?)),
        }
    }

    /// Removes the name if it still leads to `file`.
    ///
    /// Between the check and the removal, no process that keeps the protocol can give the name to another file. To do
    /// so, a process needs the lock of `file`, which this process holds.
    pub(in crate::shm::linux) fn remove(&self, file: FileId) {
        if self.current() != Some(file) {
            return;
        }
        if let Some((directory, name)) = self.here() {
            let _ = unlinkat(directory, name, AtFlags::empty());
        }
        if self.remove_empty_directory
            && let Some(directory) = self.path.parent()
        {
            // This fails while other rings are in the directory.
            let _ = paths::remove_directory(directory);
        }
    }
}

/// A function that the exit handler calls for an owner when the process exits.
#[derive(Clone)]
struct ExitHook(Arc<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for ExitHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ExitHook")
    }
}

/// The facts about an owned file that the exit handler needs.
#[derive(Debug)]
struct FileCleanup {
    process: ThisProcess,
    place: Option<Arc<DirectoryEntry>>,
    file: FileId,
    keep: bool,
    /// True if the file has the name by which readers find it.
    is_published: bool,
    at_exit: Vec<ExitHook>,
}

impl FileCleanup {
    /// Removes the file, unless its owner wants to keep it, or another process made it. `crashes` is true if a panic
    /// ends the owner. In that case a published file stays, because it holds events. An unfinished file holds none and
    /// is removed.
    fn remove_file(&self, crashes: bool) {
        if self.process.is_this()
            && !self.keep
            && !(crashes && self.is_published)
            && let Some(place) = &self.place
        {
            place.remove(self.file);
        }
    }
}

/// An entry of the exit handler's list, with a lock of its own. The exit handler does not wait for this lock: in a
/// forked child, the thread that holds it may not exist.
#[derive(Debug)]
struct FileEntry {
    claimed: AtomicBool,
    entry: Mutex<Option<FileCleanup>>,
}

impl ListEntry for FileEntry {
    const EMPTY: Self = Self { claimed: AtomicBool::new(false), entry: Mutex::new(None) };

    fn try_claim(&self) -> bool {
        // Acquire, pairs with the release in `Registration::drop`. `claimed` only prevents two threads from claiming
        // the same entry. The mutex `entry` orders all accesses to the content of the entry.
        !self.claimed.load(Ordering::Relaxed) && !self.claimed.swap(true, Ordering::Acquire)
    }
}

static ENTRIES: HandlerList<FileEntry> = HandlerList::new();

/// The status of a Rust program whose main thread panicked.
#[cfg(target_env = "gnu")]
const PANIC_STATUS: libc::c_int = 101;

// glibc's variant of `atexit`, which passes the exit status to the handler. The crate `libc` does not declare it.
#[cfg(target_env = "gnu")]
unsafe extern "C" {
    fn on_exit(
        handler: extern "C" fn(status: libc::c_int, argument: *mut libc::c_void),
        argument: *mut libc::c_void,
    ) -> libc::c_int;
}

#[cfg(target_env = "gnu")]
extern "C" fn remove_files_unless_panicked(status: libc::c_int, _: *mut libc::c_void) {
    remove_files(status == PANIC_STATUS);
}

/// Installs the exit handler that removes the files.
fn listen_for_exit() {
    pinned::keep_loaded();
    #[cfg(target_env = "gnu")]
    // SAFETY: the handler is a plain function that does not unwind, and it does not use its argument.
    unsafe {
        on_exit(remove_files_unless_panicked, std::ptr::null_mut())
    };
    // `atexit` does not pass the exit status to the handler. So a panic of `main` looks like a normal exit.
    #[cfg(not(target_env = "gnu"))]
    // SAFETY: the handler is a plain function that does not unwind.
    unsafe {
        libc::atexit(remove_files_at_exit)
    };
}

#[cfg(not(target_env = "gnu"))]
extern "C" fn remove_files_at_exit() {
    remove_files(false);
}

/// Calls the exit hooks of all owners. The exit handler calls this function before it removes any files.
fn tell_owners() {
    for slot in ENTRIES.iter() {
        let Ok(entry) = slot.entry.try_lock() else { continue };
        let hooks = match &*entry {
            Some(entry) if entry.process.is_this() => entry.at_exit.clone(),
            _ => continue,
        };
        // The lock is released before the hooks are called. A hook may drop the owner, and dropping the owner takes
        // the same lock.
        drop(entry);
        hooks.iter().for_each(|hook| (hook.0)());
    }
}

fn remove_files(crashes: bool) {
    if !crashes {
        tell_owners();
    }
    for slot in ENTRIES.iter() {
        if let Ok(mut entry) = slot.entry.try_lock()
            // An entry of a file that stays is left alone: to drop it closes descriptors, which a sandbox may refuse.
            && let Some(entry) = entry.take_if(|entry| !entry.keep)
        {
            entry.remove_file(crashes);
        }
    }
}

/// The registration of an owned file with the exit handler. Dropping it removes the file, unless the file is to be
/// kept, or the thread is panicking and the file is published.
#[derive(Debug)]
pub(in crate::shm::linux) struct Registration {
    slot: &'static FileEntry,
    process: ThisProcess,
}

impl Registration {
    /// Registers the file.
    pub(in crate::shm::linux) fn new(place: Option<Arc<DirectoryEntry>>, file: FileId) -> Self {
        static HANDLERS: AtomicBool = AtomicBool::new(false);
        if !HANDLERS.swap(true, Ordering::Relaxed) {
            listen_for_exit();
        }
        let registration = Self { slot: ENTRIES.claim(), process: ThisProcess::now() };
        if let Some(mut entry) = registration.entry() {
            let process = registration.process;
            *entry = Some(FileCleanup { process, place, file, keep: false, is_published: false, at_exit: Vec::new() });
        }
        registration
    }

    /// Tells the exit handler that the file has its final name.
    pub(in crate::shm::linux) fn set_place(&self, place: Arc<DirectoryEntry>) {
        if let Some(Some(entry)) = self.entry().as_deref_mut() {
            entry.place = Some(place);
            entry.is_published = true;
        }
    }

    pub(in crate::shm::linux) fn set_keep(&self, keep: bool) {
        if let Some(Some(entry)) = self.entry().as_deref_mut() {
            entry.keep = keep;
        }
    }

    fn at_exit(&self, hook: ExitHook) {
        if let Some(Some(entry)) = self.entry().as_deref_mut() {
            entry.at_exit.push(hook);
        }
    }

    /// Locks the entry. Returns `None` in a forked child. There the lock could be held forever, by a thread that
    /// exists only in the parent.
    #[inline(never)]
    fn entry(&self) -> Option<MutexGuard<'_, Option<FileCleanup>>> {
        self.process.is_this().then(|| self.slot.entry.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let crashes = std::thread::panicking();
        let Some(mut entry) = self.entry() else { return };
        if let Some(entry) = entry.take() {
            entry.remove_file(crashes);
        }
        drop(entry);
        self.slot.claimed.store(false, Ordering::Release);
    }
}

/// A ring file that this process made and owns.
///
/// The value holds the writer's lock as long as it lives. When the value is dropped, or the process exits, the file is
/// removed if the file's name still leads to the file. The file stays if [`keep`](Self::keep) was called, if the
/// dropping thread panics, or (with glibc) if `main` panics. In a forked child, the copy of the value does not hold the
/// lock and removes nothing.
#[derive(Debug)]
pub struct OwnedRingFile {
    // The registration is dropped before the lock, so that the lock is still held when the file is removed.
    pub(in crate::shm::linux) registration: Registration,
    pub(in crate::shm::linux) file: OwnDescriptor,
    pub(in crate::shm::linux) lock: OwnedLock,
    pub(in crate::shm::linux) path: Option<PathBuf>,
    pub(in crate::shm::linux) bytes: u64,
    pub(in crate::shm::linux) warning: Option<HugePageWarning>,
}

impl OwnedRingFile {
    /// Sets whether the file stays when its owner ends. This has no effect on a memfd.
    pub fn keep(&self, keep: bool) {
        self.registration.set_keep(keep);
    }

    /// Registers `hook`. If the process exits normally while this value lives, the exiting thread calls `hook`, before
    /// any file is removed. Other threads may still run at that time. In a crash, and in a forked child, `hook` is not
    /// called.
    pub(crate) fn at_exit(&self, hook: impl Fn() + Send + Sync + 'static) {
        self.registration.at_exit(ExitHook(Arc::new(hook)));
    }

    /// Returns the path of the file. Returns `None` if the file is a memfd, which has no path.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the identity of the file.
    #[must_use]
    pub fn id(&self) -> FileId {
        self.file.file()
    }

    /// Returns the length of the file in bytes: the requested length, rounded up to whole pages.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the reason why the file does not use huge pages.
    #[must_use]
    pub fn warning(&self) -> Option<&HugePageWarning> {
        self.warning.as_ref()
    }

    /// Returns the descriptor, which is open for reading and writing. The program may send the descriptor to other
    /// processes: they do not get the lock with it.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsFd for OwnedRingFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor()
    }
}
