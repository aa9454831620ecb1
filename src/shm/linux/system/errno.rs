//! Errors of system calls.

use rustix::io::Errno;

use crate::shm::error::{ShmError, ShmErrorKind};

impl ShmError {
    /// Makes the error for a failed system call. The error number determines the kind of the error.
    #[cold]
    #[inline(never)]
    pub(crate) fn from_errno(operation: &'static str, errno: Errno) -> Self {
        let (kind, found) = match errno {
            Errno::NOENT => (ShmErrorKind::NotFound, "it does not exist"),
            Errno::NOTDIR => (ShmErrorKind::NotFound, "a part of its path is not a directory"),
            Errno::ACCESS | Errno::PERM => (ShmErrorKind::PermissionDenied, "permission denied"),
            Errno::ROFS => (ShmErrorKind::PermissionDenied, "the file system is mounted read-only"),
            Errno::LOOP => (ShmErrorKind::NotARegularFile, "it is a symbolic link, which is not followed here"),
            Errno::NOSPC => (ShmErrorKind::NoSpace, "no space left"),
            Errno::DQUOT => (ShmErrorKind::NoSpace, "the disk quota is used up"),
            Errno::NOSYS | Errno::OPNOTSUPP => {
                (ShmErrorKind::Unsupported, "the kernel or the file system does not support it")
            }
            _ => (ShmErrorKind::Io, "the system call failed"),
        };
        Self::new(kind, operation, found).caused_by(errno)
    }
}

/// Calls `f`, and then restores `errno`. The program may be about to look at it.
pub(crate) fn keeping_errno<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: the function returns the address of the calling thread's `errno`, which is valid as long as the thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above; no other thread accesses this `errno`.
    let before = unsafe { *errno };
    let result = f();
    // SAFETY: as above.
    unsafe { *errno = before };
    result
}
