//! Descriptors that the forked children of this process do not inherit.
//!
//! A fork handler closes each [`UninheritedFd`] in the child. Otherwise the child would keep its parent's sockets open,
//! and the other side would not notice that the parent has ended. The handler does not run if a program forks by a
//! direct system call.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use rustix::fs::fstat;
use rustix::io::Errno;

use super::super::system::descriptor::OwnDescriptor;
use super::super::system::pinned;
use super::this_process::ThisProcess;
use super::timed_lock::lock_with_timeout;
use crate::shm::answers::FileId;

/// Descriptors, each with the file to which it leads.
type WithFiles = Vec<(RawFd, FileId)>;

/// The descriptors that a forked child closes.
static OPEN: Mutex<WithFiles> = Mutex::new(Vec::new());

thread_local! {
    /// The lock of [`OPEN`], while this thread forks. It has no destructor, so a thread that ends may fork, too.
    static WHILE_FORKING: Cell<ManuallyDrop<Option<MutexGuard<'static, WithFiles>>>> =
        const { Cell::new(ManuallyDrop::new(None)) };
}

/// A descriptor that forked children of this process do not have.
#[derive(Debug)]
pub(crate) struct UninheritedFd {
    /// The descriptor. It is always there until the value is dropped.
    fd: Option<OwnDescriptor>,
    process: ThisProcess,
    number: RawFd,
}

impl UninheritedFd {
    /// Makes a descriptor by `open`. No thread of this process can fork before it is known that children must close it.
    pub(crate) fn make(open: impl FnOnce() -> Result<OwnedFd, Errno>) -> Result<Self, Errno> {
        static HANDLERS: AtomicBool = AtomicBool::new(false);
        // Relaxed: another thread that finds the flag set may fork before the handlers are there. Its child then keeps
        // a descriptor, as it would without them.
        if !HANDLERS.swap(true, Ordering::Relaxed) {
            pinned::keep_loaded();
            // SAFETY: the handlers are plain functions that do not unwind.
            unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child)) };
        }
        let mut all = lock_with_timeout(&OPEN);
        let fd = open()?;
        let number = fd.as_raw_fd();
        let fd = OwnDescriptor::new(fd)?;
        if let Some(all) = &mut all {
            all.push((number, fd.file()));
        }
        Ok(Self { fd: Some(fd), process: ThisProcess::now(), number })
    }

    /// Returns true if the caller runs in the process that made the descriptor. In other processes it is closed.
    pub(crate) fn is_open_here(&self) -> bool {
        self.process.is_this()
    }
}

impl AsFd for UninheritedFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.fd {
            Some(fd) => fd.as_fd(),
            None => unreachable!("the descriptor is there until the value is dropped"),
        }
    }
}

impl Drop for UninheritedFd {
    fn drop(&mut self) {
        let fd = self.fd.take();
        if !self.is_open_here() {
            // It is closed already, and another file may have its number.
            std::mem::forget(fd);
            return;
        }
        let all = lock_with_timeout(&OPEN);
        if let (Some(mut all), Some(fd)) = (all, fd) {
            all.retain(|known| *known != (self.number, fd.file()));
            // No thread forks between these two steps.
            drop(fd);
        }
    }
}

extern "C" fn before_fork() {
    // If another thread never releases the lock, the child keeps its descriptors.
    WHILE_FORKING.set(ManuallyDrop::new(lock_with_timeout(&OPEN)));
}

extern "C" fn after_fork_in_parent() {
    drop(ManuallyDrop::into_inner(WHILE_FORKING.replace(ManuallyDrop::new(None))));
}

/// Closes the descriptors. Between a fork and `exec` only few functions may be called: those that are called here make
/// system calls, and neither allocate nor free memory.
extern "C" fn after_fork_in_child() {
    let Some(mut all) = ManuallyDrop::into_inner(WHILE_FORKING.replace(ManuallyDrop::new(None))) else { return };
    for (number, file) in all.drain(..) {
        // SAFETY: the number is used for a system call only, which fails if nothing is open there.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        // The program may have closed the descriptor, and may have opened another file with its number.
        if fstat(fd).is_ok_and(|stat| FileId::from_stat(&stat) == file) {
            // SAFETY: nothing in this process uses the descriptor: its owner asks in which process it is.
            unsafe { libc::close(number) };
        }
    }
}
