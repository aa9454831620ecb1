//! The writer's second lock, which no reader can hold. It is a lock for writing on one byte of the ring file, and
//! belongs to an open file description.
//!
//! The kernel gives a lock for writing only to processes that have the file open for writing. A reader can lock the
//! byte for reading, and so keep others from *taking* the lock for writing. Therefore a writer takes its lock before
//! others can open the file. So a file has a writer if the byte is locked for writing, whatever locks readers hold. The
//! word that begins at this byte is not 0 if the file's writer holds the second lock. Files of other implementations
//! hold 0 there, and only `flock` decides about them.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::{Errno, pread};

use super::super::WRITE_LOCK_OFFSET;

fn lock_of(kind: libc::c_int) -> libc::flock {
    // SAFETY: the structure consists of integers, for which 0 is a valid value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    // The constants fit the types on every machine.
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = WRITE_LOCK_OFFSET as libc::off_t;
    lock.l_len = 1;
    lock
}

fn control(file: impl AsFd, command: libc::c_int, lock: &mut libc::flock) -> Result<(), Errno> {
    // SAFETY: the descriptor is open, and the kernel may read and write the structure.
    let done = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, std::ptr::from_mut(lock)) };
    let failed = || Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO);
    if done == -1 { Err(failed()) } else { Ok(()) }
}

/// Takes the lock for the description of `file`, which must be open for writing. Returns true if it has the lock now.
/// Not every file system knows such locks.
pub(super) fn try_lock_for_writing(file: impl AsFd) -> bool {
    control(file, libc::F_OFD_SETLK, &mut lock_of(libc::F_WRLCK)).is_ok()
}

/// Returns whether an open file description other than the description of `file` holds the lock. Returns `None` if the
/// system does not show this.
fn is_locked_for_writing(file: impl AsFd) -> Option<bool> {
    // A lock for reading is refused only while another description holds the lock for writing.
    let mut lock = lock_of(libc::F_RDLCK);
    control(file, libc::F_OFD_GETLK, &mut lock).ok()?;
    Some(lock.l_type != libc::F_UNLCK as libc::c_short)
}

/// Returns whether a writer has the file open, if the second lock decides about this. Returns `None` if the file's word
/// is 0, so that the `flock` decides.
pub(super) fn has_writer(file: impl AsFd) -> Option<bool> {
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
