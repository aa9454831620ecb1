//! File descriptors that the program may have closed.
//!
//! A program that becomes a daemon often closes every descriptor that it did not open itself. It then also closes
//! descriptors of this library. The number of such a descriptor is invalid, or it soon belongs to another file of the
//! program. If the library closed the number again, it would close that other file. Besides, the standard library's
//! `OwnedFd` aborts a debug build if the number is invalid.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::fstat;
use rustix::io::Errno;

use super::answers::FileId;

/// A file descriptor of this library. On drop, it is closed only if its number still leads to the file for which it was
/// opened.
#[derive(Debug)]
pub(super) struct OwnDescriptor {
    fd: ManuallyDrop<OwnedFd>,
    file: FileId,
}

impl OwnDescriptor {
    pub(super) fn new(fd: OwnedFd) -> Result<Self, Errno> {
        let file = FileId::of(&fstat(&fd)?);
        Ok(Self { fd: ManuallyDrop::new(fd), file })
    }

    /// Returns the file for which the descriptor was opened.
    pub(super) fn file(&self) -> FileId {
        self.file
    }

    /// Returns the descriptor if it still leads to its file.
    #[inline(never)]
    pub(super) fn checked(&self) -> Option<BorrowedFd<'_>> {
        let leads_to = fstat(&*self.fd).ok().map(|stat| FileId::of(&stat));
        (leads_to == Some(self.file)).then(|| self.fd.as_fd())
    }
}

impl AsFd for OwnDescriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for OwnDescriptor {
    fn drop(&mut self) {
        if self.checked().is_some() {
            // SAFETY: the value is dropped only here, and only once. Nothing uses the field afterwards.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        }
    }
}
