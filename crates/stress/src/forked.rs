//! Running a function in a forked child.

use rustix::process::{Pid, WaitOptions, waitpid};

/// Forks. The child runs `body` and exits without any clean-up. Its exit code is what `body` returns, or 101 if
/// `body` panics. The parent waits for the child and returns this exit code.
///
/// The test that calls this function must be the only test in its process. Then no other thread exists that could
/// hold a lock at the moment of the fork.
pub fn in_child(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child only runs `body` and `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(101);
        // SAFETY: `_exit` has no preconditions. It ends the child immediately: no destructor runs and no buffer is
        // flushed.
        unsafe { libc::_exit(code) };
    }
    let (_, status) = waitpid(Pid::from_raw(pid), WaitOptions::empty()).unwrap().unwrap();
    status.exit_status().unwrap_or_else(|| panic!("the child was killed: {status:?}"))
}
