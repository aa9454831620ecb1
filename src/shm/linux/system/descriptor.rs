//! File descriptors that the program may have closed.
//!
//! A program that becomes a daemon often closes descriptors of this library. A later file of the program may get such a
//! number, and the library would close that file. If no file has the number, closing it by `OwnedFd` aborts a debug
//! build. So [`OwnDescriptor`] first checks which file has the number.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::fstat;
use rustix::io::Errno;

use crate::shm::answers::FileId;

/// A file descriptor of this library. On drop, it is closed only if its number still leads to the file for which it was
/// opened.
#[derive(Debug)]
pub(crate) struct OwnDescriptor {
    fd: ManuallyDrop<OwnedFd>,
    file: FileId,
}

impl OwnDescriptor {
    pub(crate) fn new(fd: OwnedFd) -> Result<Self, Errno> {
        let file = FileId::from_stat(&fstat(&fd)?);
        Ok(Self { fd: ManuallyDrop::new(fd), file })
    }

    /// Returns the file for which the descriptor was opened.
    pub(crate) fn file(&self) -> FileId {
        self.file
    }

    /// Returns the descriptor if it still leads to its file.
    #[inline(never)]
    pub(crate) fn checked(&self) -> Option<BorrowedFd<'_>> {
        let leads_to = fstat(&*self.fd).ok().map(|stat| FileId::from_stat(&stat));
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
