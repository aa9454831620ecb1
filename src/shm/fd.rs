//! Types of file descriptors. On systems without descriptors, types of the same names borrow an open
//! [`File`](std::fs::File). So functions have the same signatures on every system.

#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub use std::os::fd::OwnedFd;
#[cfg(unix)]
pub use std::os::fd::{AsFd, BorrowedFd};

#[cfg(not(unix))]
pub use absent::{AsFd, BorrowedFd};

#[cfg(not(unix))]
mod absent {
    use std::fs::File;

    /// A file that somebody else owns.
    #[derive(Clone, Copy, Debug)]
    pub struct BorrowedFd<'fd>(pub(in super::super) &'fd File);

    /// Owners of an open file.
    pub trait AsFd {
        /// Borrows the file.
        fn as_fd(&self) -> BorrowedFd<'_>;
    }

    impl AsFd for File {
        fn as_fd(&self) -> BorrowedFd<'_> {
            BorrowedFd(self)
        }
    }

    impl AsFd for BorrowedFd<'_> {
        fn as_fd(&self) -> BorrowedFd<'_> {
            *self
        }
    }

    impl<T: AsFd + ?Sized> AsFd for &T {
        fn as_fd(&self) -> BorrowedFd<'_> {
            (**self).as_fd()
        }
    }
}
