//! The writer's second lock, which no reader can hold: a write lock on one byte of the ring file (`F_OFD_SETLK`). Like
//! a `flock`, this lock belongs to an open file description.
//!
//! The kernel grants a write lock only if the file is open for writing. But a reader can take a read lock on the byte,
//! and then nobody can *take* the write lock. Therefore a writer takes the write lock before other processes can open
//! the file. The byte then stays locked exactly as long as the file has a writer.
//!
//! The locked byte is the first byte of a word of 8 bytes. The word is not 0 if the file's writer took the write lock
//! when it made the file. If the word is 0, as in files of other implementations, the `flock` alone decides whether the
//! file has a writer.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::{Errno, pread};

use crate::shm::sections::WRITE_LOCK_OFFSET;

fn lock_of(kind: libc::c_int) -> libc::flock {
    // SAFETY: the structure consists of integers only, and 0 is a valid value of each.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    // The constants fit the types on every machine.
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = WRITE_LOCK_OFFSET as libc::off_t;
    lock.l_len = 1;
    lock
}

fn control(file: impl AsFd, command: libc::c_int, lock: &mut libc::flock) -> Result<(), Errno> {
    // SAFETY: the descriptor is open. The kernel may read and write the structure.
    let done = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, std::ptr::from_mut(lock)) };
    let failed = || Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO);
    if done == -1 { Err(failed()) } else { Ok(()) }
}

/// Takes the write lock for the open file description of `file`, which must be open for writing. Returns true if the
/// description has the lock now. Returns false, for example, if the file system does not support such locks.
pub(in crate::shm::linux) fn try_lock_for_writing(file: impl AsFd) -> bool {
    control(file, libc::F_OFD_SETLK, &mut lock_of(libc::F_WRLCK)).is_ok()
}

/// Returns `Some(true)` if the byte has a write lock of another open file description than that of `file`, otherwise
/// `Some(false)`. Returns `None` if the system does not show the lock.
fn is_locked_for_writing(file: impl AsFd) -> Option<bool> {
    // F_OFD_GETLK asks whether this description could take a read lock. Only a write lock of another description
    // prevents that.
    let mut lock = lock_of(libc::F_RDLCK);
    control(file, libc::F_OFD_GETLK, &mut lock).ok()?;
    Some(lock.l_type != libc::F_UNLCK as libc::c_short)
}

/// Returns `Some(true)` if the file has a writer, and `Some(false)` if it has none. Returns `None` if the word at
/// `WRITE_LOCK_OFFSET` of the file is 0, or if the system does not show the lock. In both cases the `flock` decides.
pub(in crate::shm::linux) fn has_writer(file: impl AsFd) -> Option<bool> {
    let file = file.as_fd();
    let mut word = [0; 8];
    let is_said = pread(file, &mut word, WRITE_LOCK_OFFSET) == Ok(word.len()) && word != [0; 8];
    if is_said { is_locked_for_writing(file) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, OpenOptions};

    fn lock(file: &File, kind: libc::c_int) -> Result<(), Errno> {
        control(file, libc::F_OFD_SETLK, &mut lock_of(kind))
    }

    #[test]
    fn only_a_lock_for_writing_is_a_writer_and_a_reader_cannot_take_it() {
        let named = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        let path = named.path();
        let [reader, other] = [(); 2].map(|()| File::open(path).unwrap());
        assert_eq!(has_writer(&reader), None, "the file does not say that its writer has the lock");
        named.as_file().set_len(4096).unwrap();
        rustix::io::pwrite(named.as_file(), &[1], WRITE_LOCK_OFFSET).unwrap();
        assert_eq!(has_writer(&reader), Some(false));

        assert_eq!(lock(&other, libc::F_WRLCK), Err(Errno::BADF));
        lock(&other, libc::F_RDLCK).unwrap();
        assert_eq!(has_writer(&reader), Some(false));
        let writer = OpenOptions::new().read(true).write(true).open(path).unwrap();
        assert!(!try_lock_for_writing(&writer), "a reader's lock keeps it away");
        drop(other);
        assert!(try_lock_for_writing(&writer));
        assert_eq!((has_writer(&reader), lock(&reader, libc::F_RDLCK)), (Some(true), Err(Errno::AGAIN)));
        drop(writer);
        assert_eq!(has_writer(&reader), Some(false));
    }
}
