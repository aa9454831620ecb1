//! A descriptor that the program may have closed under us.
//!
//! A program that becomes a daemon often closes every descriptor that it did not open itself. The number may then lead nowhere, or to a file of the
//! program's: closing it a second time would close that, and the standard library's `OwnedFd` ends a debug build that tries.

use super::answers::FileId;

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::fstat;
use rustix::io::Errno;

/// A descriptor that is closed on drop only if its number still leads to the file that it was made for.
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

    /// Which file it was made for.
    pub(super) fn file(&self) -> FileId {
        self.file
    }

    /// The descriptor, if it still leads to its file.
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
            // SAFETY: dropped once, here; nothing uses the field afterwards.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        }
    }
}
