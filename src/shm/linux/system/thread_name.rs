//! The name of the calling thread.
//!
//! This module asks the standard library for a name only if the system may have cut the name to 15 bytes. The standard
//! library has the whole name, but it aborts the process if a signal handler or the program's allocator asks while the
//! thread is starting.

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
        && !may_be_in_a_handler()
        && let Some(whole) = thread::current().name()
        && whole.as_bytes().starts_with(name.to_bytes())
    {
        return whole.to_owned();
    }
    name.to_string_lossy().into_owned()
}

/// Returns true if this thread may be running a signal handler. While a handler runs, its own signal is blocked, unless
/// the handler was installed with `SA_NODEFER`. A signal that is blocked and has no handler, because a thread of the
/// program waits for it, says nothing.
fn may_be_in_a_handler() -> bool {
    let mut blocked = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: without a new set, the call only stores the present set in `blocked`, which has room for it.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), blocked.as_mut_ptr()) };
    // SAFETY: `blocked` was zeroed, which is an empty set, and holds the present set if the call above has succeeded.
    let is_blocked = |signal: &i32| unsafe { libc::sigismember(blocked.as_ptr(), *signal) } == 1;
    (1..=libc::SIGRTMAX()).filter(is_blocked).any(has_handler)
}

fn has_handler(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action, the call only stores the present one in `action`, which has room for it.
    let refused = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) } != 0;
    // SAFETY: an action consists of integers and of pointers that may be null, so zero bytes are one, too.
    let handler = unsafe { action.assume_init() }.sa_sigaction;
    !refused && handler != libc::SIG_DFL && handler != libc::SIG_IGN
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

    fn block<const SIGNAL: i32>() {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: `set` has room for a set.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: the call above has made an empty set.
        unsafe { libc::sigaddset(set.as_mut_ptr(), SIGNAL) };
        // SAFETY: `set` is a set. The old one is not wanted.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) };
    }

    #[test]
    fn a_long_name_is_whole_unless_the_thread_may_be_in_a_handler() {
        assert_eq!(name_on(LONG, || ()), LONG);
        assert_eq!(name_on("fifteen-bytes-x", || ()), "fifteen-bytes-x");
        // This signal has no handler: a program blocks it on all threads, and one of them waits for it.
        assert_eq!(name_on(LONG, block::<{ libc::SIGHUP }>), LONG);
        // The standard library has a handler for this one.
        assert_eq!(name_on(LONG, block::<{ libc::SIGSEGV }>), LONG[..SYSTEM_BYTES_MAX]);
    }

    #[test]
    fn a_thread_that_was_given_another_name_has_that() {
        assert_eq!(name_on(LONG, || rustix::thread::set_name(c"reaper").unwrap()), "reaper");
        assert_eq!(name_on(LONG, || rustix::thread::set_name(c"tokio-runtime-x").unwrap()), "tokio-runtime-x");
    }
}
