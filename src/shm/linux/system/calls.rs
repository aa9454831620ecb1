//! System calls that other layers need, for threads, clocks, and a few files that are not rings.

use rustix::fs::{OFlags, fstat};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::paths;
use super::trust::instead_of_a_file;
use crate::shm::answers::NotAFile;
use crate::shm::fd::{AsFd, BorrowedFd};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

/// Returns the id that the system has for the calling thread.
pub(crate) fn current_thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Returns the time since the epoch in nanoseconds, by `CLOCK_REALTIME`.
#[inline]
pub(crate) fn realtime_nanos() -> u64 {
    nanos(ClockId::Realtime)
}

/// Returns the system's name of this host; empty if it has none.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns the time since boot in nanoseconds. It includes the time for which the machine was suspended.
pub fn boottime_nanos() -> u64 {
    nanos(ClockId::Boottime)
}

/// Returns the time of the monotonic clock in nanoseconds.
pub fn monotonic_nanos() -> u64 {
    nanos(ClockId::Monotonic)
}

#[inline]
fn nanos(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    // A time before 1970 becomes 0. A time after the year 2554 does not fit into 64 bits, and becomes the largest
    // value.
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}

/// Opens a file for reading. Everything that a program of this project reads by a path, and that is no ring, is opened
/// here. Follows links. Waits for nobody: a pipe without a writer would wait, and so would some devices.
///
/// # Errors
/// [`NotAFile`] if there is no regular file at the path; the errors of the system.
pub fn open_file(path: &Path) -> io::Result<File> {
    open_file_if(path, |_| Ok(()))
}

/// Opens a file for reading like [`open_file`], if `check` allows it. `check` gets a descriptor that has found the file
/// and has not opened it: the file system was not asked for more than the path.
///
/// # Errors
/// The error of `check`, and those of [`open_file`].
pub fn open_file_if(path: &Path, check: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>) -> io::Result<File> {
    // Opening a pipe or a device can have effects. So the first opening only finds the file, and the second one opens
    // what was found, whatever the path leads to by then.
    let found = paths::open(path, OFlags::PATH)?;
    check(found.as_fd())?;
    let stat = fstat(&found)?;
    if let Some(found) = instead_of_a_file(&stat) {
        return Err(NotAFile(found).into());
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    match paths::open(&link_to(&found), flags) {
        // Without /proc, the path is all there is.
        Err(Errno::NOENT) => {
            let file = paths::open(path, flags)?;
            let now = fstat(&file)?;
            let is_same = (now.st_dev, now.st_ino) == (stat.st_dev, stat.st_ino);
            if is_same { Ok(file.into()) } else { Err(io::Error::other("another file has got this name meanwhile")) }
        }
        opened => Ok(opened?.into()),
    }
}

/// Returns the path of the kernel's link to an open file, by which this thread reaches the file whatever its name is.
/// Needs /proc.
pub fn link_to(file: impl AsFd) -> PathBuf {
    format!("/proc/thread-self/fd/{}", file.as_fd().as_raw_fd()).into()
}

/// Fills `buffer` with the bytes at `offset` of the file. The file's own offset does not move.
pub fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

/// Opens the file of a descriptor once more, only for reading. Needs /proc.
pub(crate) fn open_read_only(file: impl AsFd) -> io::Result<OwnedFd> {
    Ok(paths::open(&link_to(file), OFlags::RDONLY)?)
}

/// Returns true if the file is in memory: in tmpfs or hugetlbfs, or a memfd. Asks the kernel and no file system, so it
/// waits for nobody.
pub(crate) fn is_in_memory(file: impl AsFd) -> bool {
    // Only these file systems have seals, which may be none.
    rustix::fs::fcntl_get_seals(file).is_ok()
}

/// Returns a second descriptor of the same open file.
pub(crate) fn duplicate(file: impl AsFd) -> std::io::Result<File> {
    file.as_fd().try_clone_to_owned().map(File::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn pipes_devices_and_directories_are_not_opened_and_a_regular_file_is() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        // If the pipe was opened, this writer would find a reader.
        let opened = std::thread::spawn({
            let pipe = pipe.clone();
            move || {
                (0..200).any(|_| {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    paths::open(&pipe, OFlags::WRONLY | OFlags::NONBLOCK).is_ok()
                })
            }
        });
        for path in [&*pipe, "/dev/zero".as_ref(), directory.path(), "/no/such/file".as_ref()] {
            (0..100).for_each(|_| assert!(open_file(path).is_err(), "{}", path.display()));
        }
        assert!(!opened.join().unwrap());
        let path = directory.path().join("file");
        std::fs::write(&path, "content").unwrap();
        let file = open_file(&path).unwrap();
        assert!(open_file_if(&path, |_| Err(io::Error::other("no"))).is_err());
        // Whatever gets the name: what was looked at is opened.
        let swap = |_: BorrowedFd<'_>| std::fs::rename(&pipe, &path);
        let mut text = String::new();
        open_file_if(&path, swap).unwrap().read_to_string(&mut text).unwrap();
        assert!(text == "content" && open_file(&path).is_err());
        // The link leads to a file that has no name any more.
        open_file(&link_to(&file)).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "contentcontent");
    }
}
