//! Waiting for an owner that is about to end. A killed process holds its locks until the kernel has freed its memory.
//! Freeing hundreds of MiB takes tens of milliseconds.

use std::path::Path;
use std::time::{Duration, Instant};

use super::super::system::paths;

/// The pause between two looks at an owner that is about to end.
const PAUSE: Duration = Duration::from_millis(2);

/// The bit of SIGKILL in the sets of pending signals that `/proc` shows.
const SIGKILL_BIT: u64 = 1 << 8;
/// The flag of a thread that the kernel is taking apart (`PF_EXITING`).
const EXITING: u64 = 0x4;

/// Waits a moment and returns true if the owner may end before `deadline`. `owner` is the process that holds the lock,
/// if the system shows it. An owner that is not shown may be one that is nearly gone, so it is waited for, too.
pub(in crate::shm::linux) fn wait_for_end(owner: Option<u32>, deadline: Instant) -> bool {
    let is_awaited = Instant::now() < deadline && owner.is_none_or(is_ending);
    if is_awaited {
        std::thread::sleep(PAUSE);
    }
    is_awaited
}

/// Returns true if the process has ended, was killed, is dumping its memory, or has only threads that are ending.
fn is_ending(pid: u32) -> bool {
    if pid == std::process::id() {
        return false;
    }
    let process = format!("/proc/{pid}");
    // The text is not read as UTF-8, because a process may have any name.
    let Some(status) = paths::read(format!("{process}/status").as_ref()) else { return true };
    let status = String::from_utf8_lossy(&status);
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let is_killed =
        |name| field(name).and_then(|set| u64::from_str_radix(set, 16).ok()).is_some_and(|set| set & SIGKILL_BIT != 0);
    if is_killed("SigPnd:") || is_killed("ShdPnd:") || field("CoreDumping:") == Some("1") {
        return true;
    }
    let Ok(mut threads) = std::fs::read_dir(format!("{process}/task")) else { return true };
    threads.all(|thread| thread.is_ok_and(|thread| is_thread_ending(&thread.path())))
}

fn is_thread_ending(thread: &Path) -> bool {
    // The name of the thread stands in parentheses and may contain anything. The flags are the seventh field after it.
    let stat = paths::read(&thread.join("stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let Some((_, fields)) = stat.rsplit_once(')') else { return true };
    let flags = paths::field(fields, 6).and_then(|flags| flags.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & EXITING != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_ending_from_its_kill_on_and_not_before() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        assert!(!is_ending(child.id()));
        let deadline = || Instant::now() + Duration::from_secs(1);
        assert!(!wait_for_end(Some(child.id()), deadline()), "a living owner is not waited for");
        child.kill().unwrap();
        assert!(is_ending(child.id()), "killed");
        assert!(wait_for_end(Some(child.id()), deadline()));
        child.wait().unwrap();
        assert!(is_ending(child.id()), "gone");
        assert!(!wait_for_end(Some(child.id()), Instant::now()), "the time is over");
    }

    #[test]
    fn an_owner_that_is_not_shown_is_waited_for_and_this_process_is_not() {
        let deadline = Instant::now() + Duration::from_secs(1);
        assert!(wait_for_end(None, deadline));
        assert!(!wait_for_end(Some(std::process::id()), deadline));
    }
}
