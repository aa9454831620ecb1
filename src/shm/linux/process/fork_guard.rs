//! The check whether the calling process is the process that made a value, and not a forked child of it.
//!
//! A forked child inherits a writable mapping of its parent's ring, and must not write to the ring. So each call that
//! records checks whether the process has forked. The check takes one load from a page with the mark `MADV_WIPEONFORK`,
//! which holds zeros in a child.
//!
//! Kernels before 4.14 do not know this mark. There the guard has a page with the mark `MADV_DONTFORK`, which a child
//! does not have. A system call checks whether the page exists.
//!
//! A Linux emulator may accept `MADV_WIPEONFORK` and `MADV_DONTFORK` without effect, as QEMU 7.2 does. So the guard
//! tries a mark that does not exist. If the system accepts this mark, too, the guard compares process ids.
//!
//! Process ids are not enough in general. A child in its own pid namespace can have its parent's id, and a grandchild
//! the id of a grandparent that has ended.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use super::super::system::errno::keeping_errno;
use crate::shm::error::ShmError;

/// The value of the word in the process that made the guard.
const ORIGINAL: u32 = 1;
/// The value of the word if the kernel cannot wipe the page. In this case the *witness* decides, a page that no child
/// inherits: only the original process has it.
const ASK_WITNESS: u32 = 2;
/// The value of the word if the system does not keep its promises about pages. In this case the process id decides.
const ASK_PROCESS_ID: u32 = 3;
/// Advice that no kernel knows.
const NO_ADVICE: libc::c_int = 0x5eed;

/// The content of the guard's page. In a forked child the page holds zeros if the kernel can wipe pages, otherwise a
/// copy of the content.
#[repr(C)]
struct Page {
    word: AtomicU32,
    /// A page that no child inherits. It begins with the guard's cookie. Null if there is no witness.
    witness: AtomicPtr<u32>,
    /// The process id of the process that made the guard.
    process_id: AtomicU32,
}

/// A word that is non-zero only in the process that made it.
///
/// On kernels before 4.14, and under QEMU 7.2, every check makes a system call. A `vfork` child shares its parent's
/// memory until it calls `exec`, so it counts as the original process.
#[derive(Debug)]
#[repr(C)]
pub struct ForkGuard {
    page: NonNull<Page>,
    page_bytes: usize,
    /// A random number at the start of the witness. A child may have another page at the address of the witness, and
    /// this page does not begin with the number.
    cookie: u32,
}

// SAFETY: the guard owns its pages, and any thread may unmap them. They hold atomics and a number that does not
// change.
unsafe impl Send for ForkGuard {}
// SAFETY: through `&self`, the guard's page is only read, by atomic loads. The witness is only read by the kernel.
unsafe impl Sync for ForkGuard {}

impl ForkGuard {
    /// Makes a guard for the calling process.
    ///
    /// # Errors
    /// If the process can map no more memory.
    pub fn new() -> Result<Self, ShmError> {
        Self::make(true).map_err(|errno| ShmError::from_errno("map a page for the fork guard", errno))
    }

    /// Makes a guard. If `may_wipe` is false, the guard works as on a kernel that cannot wipe a page.
    pub(in crate::shm::linux) fn make(may_wipe: bool) -> Result<Self, Errno> {
        let page_bytes = rustix::param::page_size();
        let page = map_page(page_bytes)?;
        let cookie = RandomState::new().build_hasher().finish() as u32;
        let guard = Self { page: page.cast(), page_bytes, cookie };
        // SAFETY: the range is exactly the page that was mapped above. Nothing is stored in it yet.
        let is_wiped = may_wipe && unsafe { madvise(page.as_ptr(), page_bytes, Advice::LinuxWipeOnFork) }.is_ok();
        // SAFETY: the range is the same. A kernel refuses the advice, and an emulator ignores it.
        let takes_any_advice = keeping_errno(|| unsafe { libc::madvise(page.as_ptr(), page_bytes, NO_ADVICE) }) == 0;
        if takes_any_advice {
            guard.ask_process_id();
            return Ok(guard);
        }
        if is_wiped {
            guard.page().word.store(ORIGINAL, Ordering::Relaxed);
            return Ok(guard);
        }
        let witness = map_page(page_bytes)?.cast::<u32>();
        // SAFETY: the page is mapped and aligned, and no other code knows its address yet.
        unsafe { witness.write(cookie) };
        // From now on the drop of the guard unmaps the witness.
        guard.page().witness.store(witness.as_ptr(), Ordering::Relaxed);
        // SAFETY: exactly the page just mapped.
        unsafe { madvise(witness.as_ptr().cast(), page_bytes, Advice::LinuxDontFork) }?;
        guard.page().word.store(ASK_WITNESS, Ordering::Relaxed);
        Ok(guard)
    }

    /// Makes the process id decide.
    fn ask_process_id(&self) {
        self.page().process_id.store(std::process::id(), Ordering::Relaxed);
        self.page().word.store(ASK_PROCESS_ID, Ordering::Relaxed);
    }

    fn page(&self) -> &Page {
        // SAFETY: the page is mapped and aligned, the kernel has zeroed it, and it is ours until drop. All accesses to
        // it are atomic.
        unsafe { self.page.as_ref() }
    }

    /// Returns true if the caller runs in the process that made the guard. On kernels that can wipe a page, this takes
    /// one relaxed load.
    #[inline]
    #[must_use]
    pub fn is_original_process(&self) -> bool {
        // Relaxed: the word changes only by a fork, and everything before the fork happens before everything in the
        // child.
        match self.page().word.load(Ordering::Relaxed) {
            ORIGINAL => true,
            0 => false,
            ASK_PROCESS_ID => self.page().process_id.load(Ordering::Relaxed) == std::process::id(),
            _ => self.has_witness(),
        }
    }

    /// Returns true if the word alone shows that the caller runs in the process that made the guard. Never makes a
    /// system call. On kernels that cannot wipe a page, it returns false in every process.
    #[inline(always)]
    #[must_use]
    pub fn is_surely_original_process(&self) -> bool {
        // Relaxed, as in `is_original_process`.
        self.page().word.load(Ordering::Relaxed) == ORIGINAL
    }

    /// Returns true if the witness exists and begins with the guard's cookie. In a child, there is no page at this
    /// address, or a page with other content.
    #[cold]
    fn has_witness(&self) -> bool {
        let witness = self.page().witness.load(Ordering::Relaxed);
        // A load from a missing page would kill the process. So the kernel loads the word: this futex call compares the
        // word with the cookie. If the page is missing, or the word differs, the call fails. The call wakes no thread
        // and moves no waiter, because both of its counts are 0.
        // SAFETY: the kernel reads the word at the address if it can, otherwise the call fails. The call writes
        // nothing.
        let asked = unsafe {
            libc::syscall(
                libc::SYS_futex,
                witness,
                libc::FUTEX_CMP_REQUEUE | libc::FUTEX_PRIVATE_FLAG,
                0,
                0usize,
                witness,
                self.cookie,
            )
        };
        asked == 0
    }
}

/// Maps a page of private memory.
fn map_page(page_bytes: usize) -> Result<NonNull<std::ffi::c_void>, Errno> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh anonymous mapping at an address of the kernel's choice overlaps nothing.
    let page = unsafe { mmap_anonymous(ptr::null_mut(), page_bytes, protection, MapFlags::PRIVATE) }?;
    NonNull::new(page).ok_or(Errno::NOMEM)
}

impl Drop for ForkGuard {
    fn drop(&mut self) {
        let witness = self.page().witness.load(Ordering::Relaxed);
        if !witness.is_null() && self.has_witness() {
            // SAFETY: the page is our own, and only `self` knows its address. In a forked child the page does not
            // exist. There `has_witness` returns false, and this call is not made.
            let _ = unsafe { munmap(witness.cast(), self.page_bytes) };
        }
        // SAFETY: our own page; no reference to it outlives `self`.
        let _ = unsafe { munmap(self.page.as_ptr().cast(), self.page_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::this_process::same_pid;
    use super::*;

    #[test]
    fn a_forked_child_knows_that_it_is_not_the_original() {
        for may_wipe in [true, false] {
            let guard = ForkGuard::make(may_wipe).unwrap();
            assert_eq!(guard.is_surely_original_process(), may_wipe);
            assert!(guard.is_original_process());
            assert!(!same_pid::fork(|| u8::from(guard.is_original_process())).is_one());
            assert!(guard.is_original_process());
        }
    }

    #[test]
    fn under_an_emulator_the_process_id_decides() {
        let guard = ForkGuard::make(true).unwrap();
        guard.ask_process_id();
        // The page stays as it is in a child, as under QEMU 7.2.
        // SAFETY: exactly the page of the guard.
        unsafe { madvise(guard.page.as_ptr().cast(), guard.page_bytes, Advice::LinuxKeepOnFork) }.unwrap();
        assert!(guard.is_original_process() && !guard.is_surely_original_process());
        let forked = same_pid::fork(|| {
            let own = ForkGuard::make(true).unwrap();
            own.ask_process_id();
            u8::from(!guard.is_original_process() && own.is_original_process())
        });
        assert!(forked.is_one() && guard.is_original_process());
    }

    #[test]
    fn a_guard_made_in_the_child_guards_the_child() {
        for may_wipe in [true, false] {
            let made =
                same_pid::fork(|| u8::from(ForkGuard::make(may_wipe).is_ok_and(|guard| guard.is_original_process())));
            assert!(made.is_one());
        }
    }

    #[test]
    fn a_child_that_has_its_parents_pid_knows_that_it_is_not_the_original() {
        for may_wipe in [true, false] {
            let asked = same_pid::fork_with_parents_pid(
                || ForkGuard::make(may_wipe).unwrap(),
                |guard| {
                    // The child maps pages. One of them may lie at the address of the parent's witness. The guard must
                    // not mistake such a page for the witness.
                    let others = [(); 64].map(|()| map_page(guard.page_bytes));
                    u8::from(others.iter().all(Result::is_ok) && !guard.is_original_process())
                },
                // The parent must still be the original process.
                |guard| guard.is_original_process(),
            );
            if let Some(asked) = asked {
                assert!(asked.is_one(), "may wipe: {may_wipe}");
            }
        }
    }
}
