//! System calls that other layers need, for threads, clocks, and a few files that are not rings.

use rustix::time::{ClockId, clock_gettime};

use super::answers::NotAFile;
use super::fd::AsFd;
use std::fs::File;

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
pub fn open_file(path: &std::path::Path) -> std::io::Result<File> {
    use super::trust::instead_of_a_file;
    use rustix::fs::{OFlags, fstat};
    let check = |stat| instead_of_a_file(&stat).map_or(Ok(()), |found| Err(NotAFile(found)));
    // Opening a device can have effects, so a device is not opened.
    check(super::paths::stat(path)?)?;
    let file = super::paths::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
    // Something else may have got the name meanwhile.
    check(fstat(&file)?)?;
    Ok(file.into())
}

/// Fills `buffer` with the bytes at `offset` of the file. The file's own offset does not move.
pub fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

/// Opens the file of a descriptor once more, only for reading. Needs /proc.
pub(crate) fn open_read_only(file: impl AsFd) -> std::io::Result<std::os::fd::OwnedFd> {
    let path = format!("/proc/thread-self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file.as_fd()));
    Ok(super::paths::open(path.as_ref(), rustix::fs::OFlags::RDONLY)?)
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
