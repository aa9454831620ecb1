//! Types of file descriptors. On systems without file descriptors, these types exist, too, but have no values. So
//! functions that take a descriptor have the same signatures on every system.

#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub use std::os::fd::OwnedFd;
#[cfg(unix)]
pub use std::os::fd::{AsFd, BorrowedFd};

#[cfg(not(unix))]
pub use absent::{AsFd, BorrowedFd};

#[cfg(not(unix))]
mod absent {
    use std::convert::Infallible;
    use std::marker::PhantomData;

    /// A file descriptor that somebody else owns. No value of this type exists, because this system has no file
    /// descriptors.
    #[derive(Clone, Copy, Debug)]
    pub struct BorrowedFd<'fd> {
        never: Infallible,
        owner: PhantomData<&'fd ()>,
    }

    /// Owners of a file descriptor. No such owner exists, because this system has no file descriptors.
    pub trait AsFd {
        /// Borrows the file descriptor.
        fn as_fd(&self) -> BorrowedFd<'_>;
    }

    impl AsFd for BorrowedFd<'_> {
        fn as_fd(&self) -> BorrowedFd<'_> {
            match self.never {}
        }
    }

    impl<T: AsFd + ?Sized> AsFd for &T {
        fn as_fd(&self) -> BorrowedFd<'_> {
            (**self).as_fd()
        }
    }
}
