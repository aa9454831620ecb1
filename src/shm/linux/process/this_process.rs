//! A number for each process, other than its process id. A forked child has another number than all its ancestors.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::fork_guard::ForkGuard;

/// Returns the number of this process, which is not 0. The parent, the grandparent, and all other processes whose
/// memory this process has inherited by forks, have other numbers.
#[must_use]
pub(crate) fn process_number() -> u64 {
    static THIS: Numbered = Numbered::new(true);
    THIS.number()
}

/// The process in which the value was made. A forked child counts as another process, even if it has the same process
/// id. A `vfork` child shares this memory, but also counts as another process, because it has another process id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::shm::linux) struct ThisProcess {
    number: u64,
    pid: u32,
}

impl ThisProcess {
    pub(in crate::shm::linux) fn now() -> Self {
        Self { number: process_number(), pid: std::process::id() }
    }

    /// Returns true if the caller runs in that process.
    pub(in crate::shm::linux) fn is_this(self) -> bool {
        self == Self::now()
    }
}

/// The source of the numbers.
struct Numbered {
    /// The guard and the number of the newest process, or null before the first call. The box is never freed, so any
    /// thread may read it at any time.
    newest: AtomicPtr<(ForkGuard, u64)>,
    /// The largest number so far. A forked child inherits this value, so the child gets a larger number.
    given: AtomicU64,
    may_wipe: bool,
}

impl Numbered {
    const fn new(may_wipe: bool) -> Self {
        Self { newest: AtomicPtr::new(ptr::null_mut()), given: AtomicU64::new(0), may_wipe }
    }

    fn number(&self) -> u64 {
        // Acquire, pairs with the release in `number_slow`: a thread that loads the pointer also sees the complete
        // guard.
        let newest = self.newest.load(Ordering::Acquire);
        // SAFETY: null, or a box that was leaked below.
        match unsafe { newest.as_ref() } {
            Some((guard, number)) if guard.is_original_process() => *number,
            _ => self.number_slow(newest),
        }
    }

    /// Makes the number of this process. This happens at the first call in each process.
    #[cold]
    fn number_slow(&self, old: *mut (ForkGuard, u64)) -> u64 {
        let Ok(guard) = ForkGuard::make(self.may_wipe) else {
            // There is no memory for a guard page. So the number is made from the process id. Bit 63 is set, which no
            // counted number has.
            return 1 << 63 | u64::from(std::process::id());
        };
        let number = self.given.fetch_add(1, Ordering::Relaxed) + 1;
        let made = Box::into_raw(Box::new((guard, number)));
        match self.newest.compare_exchange(old, made, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => number,
            Err(_) => {
                // SAFETY: the box was made above, and no other thread has got the pointer to it.
                drop(unsafe { Box::from_raw(made) });
                // Another thread of this process was faster.
                self.number()
            }
        }
    }
}

/// Forked children for tests. Some of these children have the same process id as their parent.
#[cfg(test)]
pub(crate) mod same_pid {
    /// The answer of a child, as its exit code.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct ChildExitCode(i32);

    impl ChildExitCode {
        pub(crate) fn is_one(self) -> bool {
            self.0 == 1
        }
    }

    const NOT_PERMITTED: u8 = 77;
    const FAILED: u8 = 78;

    /// Runs `answer` in a forked child.
    pub(crate) fn fork(answer: impl FnOnce() -> u8) -> ChildExitCode {
        // SAFETY: the child calls only functions that may be called in a forked child. It touches no lock that another
        // thread might hold, and it ends by `_exit`.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            let code = i32::from(answer());
            // SAFETY: `_exit` ends the child. It does not run the test harness's exit handlers.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: `status` is writable.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status), "{status}");
        ChildExitCode(libc::WEXITSTATUS(status))
    }

    /// Puts the next child into a new pid namespace, in which the child is process 1.
    fn begin_namespace() -> bool {
        // SAFETY: the call only changes the namespace of the next child.
        unsafe { libc::unshare(libc::CLONE_NEWPID) == 0 }
    }

    /// Runs `prepare` in a process. Then runs `answer`, with the result of `prepare`, in a child of this process that
    /// has the same process id. At the end, runs `is_well` in the parent. If the system does not permit such a child,
    /// prints a line and returns `None`.
    pub(crate) fn fork_with_parents_pid<T>(
        prepare: impl FnOnce() -> T,
        answer: impl FnOnce(&T) -> u8,
        is_well: impl FnOnce(&T) -> bool,
    ) -> Option<ChildExitCode> {
        let said = fork(|| {
            if !begin_namespace() {
                return NOT_PERMITTED;
            }
            let parent = || {
                let prepared = prepare();
                if std::process::id() != 1 || !begin_namespace() {
                    return FAILED;
                }
                let said = fork(|| if std::process::id() == 1 { answer(&prepared) } else { FAILED });
                if is_well(&prepared) { said.0 as u8 } else { FAILED }
            };
            fork(parent).0 as u8
        });
        if said.0 == i32::from(NOT_PERMITTED) {
            crate::missing::missing("a pid namespace may not be made here");
            return None;
        }
        Some(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_keeps_its_number_and_a_child_has_another_whatever_its_pid_is() {
        for may_wipe in [true, false] {
            let numbered = Numbered::new(may_wipe);
            let number = numbered.number();
            assert_eq!((number, numbered.number()), (1, 1));
            assert!(same_pid::fork(|| u8::from(numbered.number() == 2 && numbered.number() == 2)).is_one());
            let asked = same_pid::fork_with_parents_pid(
                || {
                    let numbered = Numbered::new(may_wipe);
                    numbered.number();
                    (numbered, ThisProcess::now())
                },
                |(numbered, process)| u8::from(numbered.number() == 2 && !process.is_this()),
                |(numbered, process)| numbered.number() == 1 && process.is_this(),
            );
            if let Some(asked) = asked {
                assert!(asked.is_one(), "may wipe: {may_wipe}");
            }
        }
    }
}
