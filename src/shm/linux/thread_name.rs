//! The name of the calling thread.
//!
//! The system's name of a thread ends after 15 bytes, and that of the main thread is the program's. The standard
//! library knows the rest, but may be asked only where it has set the thread up: if a signal handler, or the program's
//! allocator, asks on a thread that is just starting, the standard library aborts the process.

use std::mem::MaybeUninit;
use std::thread;

/// The largest number of bytes of a name that the system keeps.
const SYSTEM_BYTES_MAX: usize = 15;

/// Returns the calling thread's name: `main` for the thread with which the process began, and otherwise the present
/// name that the system has for the thread. If the system may have cut the name, asks the standard library for the
/// rest, unless the caller may be in a signal handler, or `is_ending` is true. An ending thread has lost its other
/// name.
pub(crate) fn current_thread_name(is_ending: bool) -> String {
    if rustix::thread::gettid() == rustix::process::getpid() {
        return "main".to_owned();
    }
    let Ok(name) = rustix::thread::name() else { return String::new() };
    if name.count_bytes() == SYSTEM_BYTES_MAX
        && !is_ending
        && !is_any_signal_blocked()
        && let Some(whole) = thread::current().name()
        && whole.as_bytes().starts_with(name.to_bytes())
    {
        return whole.to_owned();
    }
    name.to_string_lossy().into_owned()
}

/// Returns true if a signal is blocked on this thread. While a handler runs, its own signal is blocked, unless the
/// handler was installed with `SA_NODEFER`.
fn is_any_signal_blocked() -> bool {
    let mut blocked = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: without a new set, the call only stores the present set in `blocked`, which has room for it.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), blocked.as_mut_ptr()) };
    // SAFETY: a set consists of integers, which have no padding, and all of its bytes were zeroed above.
    let blocked =
        unsafe { std::mem::transmute::<MaybeUninit<libc::sigset_t>, [u8; size_of::<libc::sigset_t>()]>(blocked) };
    blocked.iter().any(|byte| *byte != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::Builder;

    const LONG: &str = "tokio-runtime-worker";

    fn name_on(name: &str, before: fn()) -> String {
        let named = move || {
            before();
            current_thread_name(false)
        };
        Builder::new().name(name.to_owned()).spawn(named).unwrap().join().unwrap()
    }

    #[test]
    fn a_long_name_is_whole_unless_a_signal_is_blocked() {
        assert_eq!(name_on(LONG, || ()), LONG);
        assert_eq!(name_on("fifteen-bytes-x", || ()), "fifteen-bytes-x");
        let block = || {
            let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
            // SAFETY: `set` has room for a set.
            unsafe { libc::sigemptyset(set.as_mut_ptr()) };
            // SAFETY: the call above has made an empty set.
            unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGUSR1) };
            // SAFETY: `set` is a set. The old one is not wanted.
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) };
        };
        assert_eq!(name_on(LONG, block), LONG[..SYSTEM_BYTES_MAX]);
    }

    #[test]
    fn a_thread_that_was_given_another_name_has_that() {
        assert_eq!(name_on(LONG, || rustix::thread::set_name(c"reaper").unwrap()), "reaper");
        assert_eq!(name_on(LONG, || rustix::thread::set_name(c"tokio-runtime-x").unwrap()), "tokio-runtime-x");
    }
}
