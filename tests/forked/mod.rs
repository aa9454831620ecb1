//! Running a function in a forked child.

use rustix::process::{Pid, WaitOptions, waitpid};

/// Forks. The child runs `body` and exits without any clean-up: with the code that `body` returns, or with 101 if
/// `body` panics. Returns the child's exit code.
///
/// The caller's test must be alone in its process, so that no other thread holds a lock at the moment of the fork.
pub fn in_child(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child only runs `body` and `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(101);
        // SAFETY: the call ends the process; nothing is run or flushed.
        unsafe { libc::_exit(code) };
    }
    let (_, status) = waitpid(Pid::from_raw(pid), WaitOptions::empty()).unwrap().unwrap();
    status.exit_status().unwrap_or_else(|| panic!("the child was killed: {status:?}"))
}
