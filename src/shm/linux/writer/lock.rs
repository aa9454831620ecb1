//! The writer's lock, which is a `flock` on the ring file, and the holder of this lock.
//!
//! The owner holds the lock through a mapping ([`OwnedLock`]): it opens a separate file description for the lock, maps
//! a page of the file through this description, and closes the descriptor. The lock stays held as long as the mapping
//! exists.
//!
//! A `flock` belongs to an open file description. Each process that inherits or receives a descriptor holds the lock,
//! too, but a forked child does not inherit the mapping.
//!
//! The owner's description also holds a second lock ([`write_lock`](super::write_lock)), which readers cannot hold. A
//! reader can hold the `flock`, and so make a dead ring look as if the ring had a writer.
//!
//! If a word in the file is not 0, the owner took the second lock, and this lock alone decides whether the file has an
//! owner. The owner also holds the `flock`, for implementations that know only the `flock`.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, Stat, flock, fstat, major, minor};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use super::super::process::this_process::ThisProcess;
use super::super::system::page_size::page_bytes;
use super::super::system::paths::{self, field};
use super::write_lock::{has_writer, try_lock_for_writing};
use crate::shm::answers::{FileId, LockState};

impl FileId {
    /// Returns the identity of the file with this status.
    pub fn from_stat(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// Returns the state of the exclusive lock on `file`.
///
/// If the word at `WRITE_LOCK_OFFSET` of the file is not 0, the owner took the second lock, and the second lock alone
/// decides. A process that holds only the `flock` is then a reader.
///
/// If the word is 0, or the system does not show the second lock, the `flock` decides. This function looks for the
/// holder of the `flock` in `/proc/locks`, which disturbs no process. If `/proc/locks` shows no holder, this function
/// tries to take a shared `flock` for an instant.
#[must_use]
pub fn lock_state(file: impl AsFd) -> LockState {
    let file = file.as_fd();
    match has_writer(file) {
        Some(false) => return LockState::Free,
        Some(true) => {
            let pid = fstat(file).ok().and_then(|stat| holder(FileId::from_stat(&stat)));
            return LockState::Held { pid };
        }
        None => {}
    }
    if let Some(pid) = fstat(file).ok().and_then(|stat| holder(FileId::from_stat(&stat))) {
        return LockState::Held { pid: Some(pid) };
    }
    // The attempt below uses a new description. On the description of `file`, the attempt could weaken or release a
    // lock that this description holds already.
    let path = format!("/proc/thread-self/fd/{}", file.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let Ok(fresh) = paths::open(path.as_ref(), flags) else {
        return LockState::Unknown;
    };
    match flock(&fresh, FlockOperation::NonBlockingLockShared) {
        Ok(()) => LockState::Free,
        Err(Errno::WOULDBLOCK) => LockState::Held { pid: None },
        Err(_) => LockState::Unknown,
    }
}

/// Returns the process that holds the file's `flock` exclusively, as `/proc/locks` shows it.
pub(in crate::shm::linux) fn holder(file: FileId) -> Option<u32> {
    find_holder(&paths::read_text("/proc/locks")?, file)
}

/// Finds the holder in the text of `/proc/locks`, in lines such as `1: FLOCK  ADVISORY  WRITE 1234 00:1a:5678 0 EOF`.
/// Lines with `->` are skipped: they are for processes that wait for a lock.
fn find_holder(locks: &str, file: FileId) -> Option<u32> {
    let place = format!("{:02x}:{:02x}:{}", major(file.device), minor(file.device), file.inode);
    locks.split('\n').find_map(|line| {
        let is_it = field(line, 5)? == place && field(line, 1)? == "FLOCK" && field(line, 3)? == "WRITE";
        field(line, 4)?.parse().ok().filter(|&pid| is_it && pid > 0)
    })
}

/// The number of attempts to take the lock, and the pause between two attempts. An attempt can fail because a reader
/// holds a shared lock at that moment. [`lock_state`] takes such a lock for an instant.
pub(in crate::shm::linux) const ATTEMPTS: u32 = 20;
pub(in crate::shm::linux) const PAUSE: Duration = Duration::from_millis(1);

/// Takes the exclusive lock. If another process holds it, returns an error with the holder.
pub(in crate::shm::linux) fn try_lock(file: impl AsFd) -> Result<(), TryLockError> {
    let file = file.as_fd();
    for attempt in 1.. {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) => {
                let stat = fstat(file).map_err(TryLockError::System)?;
                let pid = holder(FileId::from_stat(&stat));
                if pid.is_some() || attempt == ATTEMPTS {
                    return Err(TryLockError::Held { pid });
                }
                // No process holds the lock exclusively. A reader holds a shared lock for an instant, to check whether
                // the writer lives.
                std::thread::sleep(PAUSE);
            }
            Err(errno) => return Err(TryLockError::System(errno)),
        }
    }
    Err(TryLockError::Held { pid: None })
}

/// Releases a lock that was taken for a short time. Closing the descriptor would not be enough. If another thread
/// forks at this moment, the child has a copy of the descriptor, and with it the lock, until it calls `exec`.
pub(in crate::shm::linux) fn unlock(file: impl AsFd) {
    // Unlocking fails only if `file` is not an open descriptor.
    let _ = flock(file, FlockOperation::Unlock);
}

#[derive(Debug)]
pub(in crate::shm::linux) enum TryLockError {
    Held { pid: Option<u32> },
    System(Errno),
}

/// The lock of an owner. The owner holds the lock until this value is dropped.
///
/// An open file description, and with it the lock, lives as long as a descriptor or a mapping refers to it. This value
/// is a mapping of one page of the file, without access rights. So a program that closes all of its descriptors keeps
/// the lock. A forked child does not get the lock, because it does not inherit the mapping.
#[derive(Debug)]
pub(in crate::shm::linux) struct OwnedLock {
    page: NonNull<std::ffi::c_void>,
    page_bytes: usize,
    process: ThisProcess,
    is_for_writing: bool,
}

// SAFETY: the value owns the page, nobody accesses the page, and any thread may unmap it.
unsafe impl Send for OwnedLock {}
// SAFETY: as above, and no method reads or writes the page.
unsafe impl Sync for OwnedLock {}

impl OwnedLock {
    /// Keeps the `flock` that the description of `file` holds, even after `file` is closed. If the file system supports
    /// the second lock, takes and keeps the second lock, too. Call this before other processes can open the file.
    pub(in crate::shm::linux) fn keep(file: &OwnedFd) -> Result<Self, Errno> {
        let is_for_writing = try_lock_for_writing(file);
        let page_bytes = usize::try_from(page_bytes(file.as_fd())?).map_err(|_| Errno::NOMEM)?;
        // With NORESERVE the mapping takes no page from the pool of huge pages. The file may still be empty, because
        // the page is never accessed.
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let page = unsafe {
            let flags = MapFlags::SHARED | MapFlags::NORESERVE;
            mmap(ptr::null_mut(), page_bytes, ProtFlags::empty(), flags, file, 0)
        }?;
        let held = Self {
            page: NonNull::new(page).ok_or(Errno::NOMEM)?,
            page_bytes,
            process: ThisProcess::now(),
            is_for_writing,
        };
        // SAFETY: exactly the page just mapped, which nobody touches.
        unsafe { madvise(page, page_bytes, Advice::LinuxDontFork) }?;
        Ok(held)
    }

    /// Returns true if the owner holds the second lock, too.
    pub(in crate::shm::linux) fn is_for_writing(&self) -> bool {
        self.is_for_writing
    }
}

impl Drop for OwnedLock {
    fn drop(&mut self) {
        // In a forked child, another mapping may be at the address.
        if self.process.is_this() {
            // SAFETY: our own mapping, to which nobody has a pointer.
            let _ = unsafe { munmap(self.page.as_ptr(), self.page_bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::makedev;

    #[test]
    fn a_holder_is_found_by_device_and_inode_and_mode() {
        let locks = "\
1: POSIX  ADVISORY  WRITE 11 00:1a:77 0 EOF
2: FLOCK  ADVISORY  WRITE 12 00:1b:77 0 EOF
3: FLOCK  ADVISORY  READ  13 00:1a:77 0 EOF
3: -> FLOCK  ADVISORY  WRITE 14 00:1a:77 0 EOF
4: FLOCK  ADVISORY  WRITE 0 00:1a:77 0 EOF
5: FLOCK  ADVISORY  WRITE 15 00:1a:77 0 EOF
6: FLOCK  ADVISORY  WRITE 16 00:1a:78 0 EOF
bad line
";
        let file = |device, inode| FileId { device, inode };
        assert_eq!(find_holder(locks, file(makedev(0, 0x1a), 77)), Some(15));
        assert_eq!(find_holder(locks, file(makedev(0, 0x1b), 77)), Some(12));
        assert_eq!(find_holder(locks, file(makedev(0, 0x1a), 79)), None);
        assert_eq!(find_holder(locks, file(makedev(1, 0x1a), 77)), None);
    }

    #[test]
    fn a_lock_is_seen_while_it_is_held_and_not_longer() {
        let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        assert_eq!(lock_state(file.as_file()), LockState::Free);
        let owner: OwnedFd = file.reopen().unwrap().into();
        try_lock(&owner).unwrap();
        let pid = std::process::id();
        assert_eq!(lock_state(file.as_file()), LockState::Held { pid: Some(pid) });
        // Here `lock_state` gets the owner's own descriptor. `lock_state` must not release the owner's lock.
        assert_eq!(lock_state(&owner), LockState::Held { pid: Some(pid) });
        let other: OwnedFd = file.reopen().unwrap().into();
        assert!(matches!(try_lock(&other), Err(TryLockError::Held { pid: Some(p) }) if p == pid));
        drop(owner);
        assert_eq!(lock_state(file.as_file()), LockState::Free);
        try_lock(&other).unwrap();
    }

    #[test]
    fn a_readers_short_shared_lock_does_not_keep_a_writer_away() {
        // If `try_lock` tried only once, every round would fail, and so the test. One successful round is enough,
        // because single rounds can fail for other reasons: the machine is busy, or a child that another test has
        // forked holds the lock.
        let succeeds = || {
            let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
            let reader: OwnedFd = file.reopen().unwrap().into();
            flock(&reader, FlockOperation::LockShared).unwrap();
            let thread = std::thread::spawn(move || {
                std::thread::sleep(PAUSE);
                drop(reader);
            });
            let locked = try_lock(OwnedFd::from(file.reopen().unwrap()));
            thread.join().unwrap();
            locked.is_ok()
        };
        assert!((0..50).any(|_| succeeds()));
    }
}
