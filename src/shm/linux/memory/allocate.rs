//! The allocation of all memory of a new file when the file is made. So no later access to the file fails for lack of
//! memory.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate, ftruncate};
use rustix::io::{Errno, pwrite};
use rustix::process::{Resource, getrlimit};

use super::free_memory::{FreeMemory, Mebibytes, OPERATION};
use crate::shm::error::{ShmError, ShmErrorKind};

/// The number of bytes that one call of `fallocate` allocates. If a signal arrives during a call on tmpfs, the kernel
/// undoes the whole call. A profiler sends signals all the time, so a single call for a large file would never
/// succeed.
const STEP_BYTES: u64 = 64 << 20;

/// Sets the file's length to `bytes` and allocates all of its memory. `bytes` is a multiple of the file's page size.
pub(in crate::shm::linux) fn allocate(
    file: BorrowedFd<'_>,
    bytes: u64,
    huge_page_bytes: Option<u64>,
    path: &Path,
) -> Result<(), ShmError> {
    check_limit(bytes).map_err(|error| error.at(path))?;
    // The free room is compared with `bytes` before any memory is allocated. Otherwise an allocation that cannot
    // succeed would take all free memory until its last step fails, and other processes would find none.
    let room = FreeMemory::now(file, huge_page_bytes);
    if room.bytes().is_some_and(|free| free < bytes) {
        return Err(room.no_space(bytes, Errno::NOSPC).at(path));
    }
    allocate_steps(file, bytes).map_err(|errno| match errno {
        Errno::NOSPC | Errno::NOMEM | Errno::DQUOT | Errno::FBIG => room.no_space(bytes, errno).at(path),
        errno => ShmError::from_errno(OPERATION, errno).at(path),
    })
}

/// Checks that the process may write files of this size (RLIMIT_FSIZE). The attempt would raise SIGXFSZ, which kills the
/// process.
fn check_limit(bytes: u64) -> Result<(), ShmError> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if bytes > limit => Err(ShmError::new(
            ShmErrorKind::NoSpace,
            OPERATION,
            format_args!("it needs {}, the process may write files of {}", Mebibytes(bytes), Mebibytes(limit)),
        )
        .mend("raise the limit (ulimit -f) or choose smaller shifts")),
        _ => Ok(()),
    }
}

fn allocate_steps(file: BorrowedFd<'_>, bytes: u64) -> Result<(), Errno> {
    ftruncate(file, bytes)?;
    let mut offset = 0;
    while offset < bytes {
        let step = STEP_BYTES.min(bytes - offset);
        match fallocate(file, FallocateFlags::empty(), offset, step) {
            Ok(()) => offset += step,
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return write_zeros(file, 0..bytes),
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Sets the file's length to `bytes`, without allocating memory for what is new.
///
/// # Errors
/// [`NoSpace`](ShmErrorKind::NoSpace) if the process may not write files of this length.
pub(crate) fn lengthen(file: impl AsFd, bytes: u64) -> Result<(), ShmError> {
    check_limit(bytes)?;
    ftruncate(file, bytes).map_err(|errno| ShmError::from_errno(OPERATION, errno))
}

/// Returns how many bytes of addresses the process may have (RLIMIT_AS).
pub(crate) fn address_space_limit() -> u64 {
    getrlimit(Resource::As).current.unwrap_or(u64::MAX)
}

/// Allocates a part of the file. Returns false if there is no memory for it.
pub(crate) fn allocate_more(file: impl AsFd, offset: u64, bytes: u64) -> bool {
    let file = file.as_fd();
    loop {
        match fallocate(file, FallocateFlags::empty(), offset, bytes) {
            Ok(()) => return true,
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return write_zeros(file, offset..offset + bytes).is_ok(),
            Err(_) => return false,
        }
    }
}

/// Allocates a part of the file by writing zeros to it. This is for file systems that have no `fallocate`.
fn write_zeros(file: BorrowedFd<'_>, part: Range<u64>) -> Result<(), Errno> {
    let zeros = vec![0; 1 << 20];
    let mut offset = part.start;
    while offset < part.end {
        let step = usize::try_from(part.end - offset).map_or(zeros.len(), |left| left.min(zeros.len()));
        match pwrite(file, &zeros[..step], offset) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(written) => offset += written as u64,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_allocated_also_where_only_writing_helps() {
        use std::os::fd::AsFd;
        use std::os::unix::fs::MetadataExt;
        for allocate_it in [allocate_steps, |file: BorrowedFd<'_>, bytes| {
            ftruncate(file, bytes)?;
            write_zeros(file, 0..bytes)
        }] {
            let file = tempfile::tempfile_in("/dev/shm").unwrap();
            allocate_it(file.as_fd(), 3 << 20).unwrap();
            let metadata = file.metadata().unwrap();
            assert_eq!(metadata.len(), 3 << 20);
            assert!(metadata.blocks() * 512 >= 3 << 20);
        }
    }
}
