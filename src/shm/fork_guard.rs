//! Am I still the process that made this, or its forked child?
//!
//! A forked child inherits a writable mapping of its parent's ring, and with it the right to spoil it. The recording path must notice, at the price of
//! one load. The kernel helps: a page marked `MADV_WIPEONFORK` holds zeros in a child.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use super::error::ShmError;

/// What the word holds in the process that made the guard.
const ORIGINAL: u32 = 1;
/// The kernel cannot wipe the page: the process id decides.
const ASK_PID: u32 = 2;

/// A word that is non-zero only in the process that made it.
///
/// It needs Linux 4.14; on an older kernel every question costs a `getpid` call instead. A `vfork` child, which shares its parent's memory until it
/// calls `exec`, counts as the original process.
#[derive(Debug)]
#[repr(C)]
pub struct ForkGuard {
    word: NonNull<AtomicU32>,
    page_bytes: usize,
    pid: u32,
}

// SAFETY: the guard owns its page; the page holds an atomic and may be unmapped from any thread.
unsafe impl Send for ForkGuard {}
// SAFETY: through `&self` the page is only read, by atomic loads.
unsafe impl Sync for ForkGuard {}

impl ForkGuard {
    /// A guard for the calling process.
    ///
    /// # Errors
    /// If the process can map no more memory.
    pub fn new() -> Result<Self, ShmError> {
        let page_bytes = rustix::param::page_size();
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice overlaps nothing.
        let page = unsafe {
            mmap_anonymous(ptr::null_mut(), page_bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }
        .map_err(|errno| ShmError::from_errno("map a page for the fork guard", errno))?;
        // SAFETY: exactly the page just mapped, which holds nothing yet.
        let wiped = unsafe { madvise(page, page_bytes, Advice::LinuxWipeOnFork) };
        let word = NonNull::new(page.cast::<AtomicU32>())
            .ok_or_else(|| ShmError::from_errno("map a page for the fork guard", Errno::NOMEM))?;
        let guard = Self { word, page_bytes, pid: std::process::id() };
        let value = if wiped.is_ok() { ORIGINAL } else { ASK_PID };
        guard.word().store(value, Ordering::Relaxed);
        Ok(guard)
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: the page is mapped, aligned, zeroed by the kernel and ours until drop; all accesses to it are atomic.
        unsafe { self.word.as_ref() }
    }

    /// Whether the caller runs in the process that made the guard. One relaxed load.
    #[inline]
    #[must_use]
    pub fn is_original_process(&self) -> bool {
        // Relaxed: the value changes only by the creation of a process, which orders everything.
        match self.word().load(Ordering::Relaxed) {
            ORIGINAL => true,
            0 => false,
            _ => self.has_same_pid(),
        }
    }

    /// As [`Self::is_original_process`] where that is known without asking the operating system; false otherwise.
    #[inline(always)]
    #[must_use]
    pub fn is_surely_original_process(&self) -> bool {
        // Relaxed: as above.
        self.word().load(Ordering::Relaxed) == ORIGINAL
    }

    #[cold]
    fn has_same_pid(&self) -> bool {
        std::process::id() == self.pid
    }
}

impl Drop for ForkGuard {
    fn drop(&mut self) {
        // SAFETY: our own page; no reference to it outlives `self`.
        let _ = unsafe { munmap(self.word.as_ptr().cast(), self.page_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `answer` in a forked child and hands back what it said.
    fn in_forked_child(answer: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child only loads atomics and leaves by `_exit`; it touches no lock that another thread might hold.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            let code = i32::from(answer());
            // SAFETY: ends the child without running the test harness's exit handlers.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: `status` is writable.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status));
        libc::WEXITSTATUS(status) == 1
    }

    #[test]
    fn a_forked_child_knows_that_it_is_not_the_original() {
        let guard = ForkGuard::new().unwrap();
        assert!(guard.is_original_process());
        assert!(!in_forked_child(|| guard.is_original_process()));
        assert!(guard.is_original_process());
    }

    #[test]
    fn a_guard_made_in_the_child_guards_the_child() {
        assert!(in_forked_child(|| ForkGuard::new().is_ok_and(|guard| guard.is_original_process())));
    }

    #[test]
    fn without_the_kernels_help_the_process_id_decides() {
        let guard = ForkGuard::new().unwrap();
        // SAFETY: the guard's own page; MADV_KEEPONFORK undoes WIPEONFORK as on a kernel that lacks it.
        let kept = unsafe { madvise(guard.word.as_ptr().cast(), guard.page_bytes, Advice::LinuxKeepOnFork) };
        kept.unwrap();
        guard.word().store(ASK_PID, Ordering::Relaxed);
        assert!(guard.is_original_process());
        assert!(!in_forked_child(|| guard.is_original_process()));
    }
}
