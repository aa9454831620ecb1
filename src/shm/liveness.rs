//! Is the writer of a ring file still there, and when does it end?

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::error::{ShmError, ShmErrorKind};
use super::identity::{Liveness, ProcessIdentity};
use super::lock::{LockState, lock_state};

/// Whether the writer of `file` lives and still owns the file.
///
/// `identity` is what the file says about its writer; a file that another implementation made says nothing. A known identity decides death alone: a
/// lock that is still held may be one that a forked child inherited. A living process must hold the lock too, else it has closed the ring. Where
/// the identity is missing, or from another pid namespace, the lock decides.
#[must_use]
pub fn writer_liveness(file: impl AsFd, identity: Option<&ProcessIdentity>) -> Liveness {
    let by_identity = identity.map_or(Liveness::Unknown, ProcessIdentity::liveness);
    if by_identity == Liveness::Dead {
        return Liveness::Dead;
    }
    match lock_state(file) {
        LockState::Held { .. } => Liveness::Alive,
        LockState::Free => Liveness::Dead,
        LockState::Unknown => by_identity,
    }
}

/// Waits for the end of a process without asking again and again, by a pidfd.
///
/// It can be put into `poll`, `epoll` or an async runtime: the descriptor becomes readable when the process ends.
#[derive(Debug)]
pub struct DeathWatch {
    /// `None`: it was dead already.
    pidfd: Option<OwnedFd>,
}

impl DeathWatch {
    /// Watches that process; one that is dead already is fine.
    ///
    /// # Errors
    /// [`Unsupported`](ShmErrorKind::Unsupported) if the process is not visible from here (another pid namespace), or on a kernel before 5.3.
    pub fn new(identity: &ProcessIdentity) -> Result<Self, ShmError> {
        const OPERATION: &str = "watch the writing process";
        let dead = Ok(Self { pidfd: None });
        let invisible = || {
            ShmError::new(
                ShmErrorKind::Unsupported,
                OPERATION,
                format_args!("process {} cannot be told apart from here", identity.pid),
            )
            .mend("watch from the pid namespace of the writer")
        };
        match identity.liveness() {
            Liveness::Alive => {}
            Liveness::Dead => return dead,
            Liveness::Unknown => return Err(invisible()),
        }
        let pid = i32::try_from(identity.pid).ok().and_then(Pid::from_raw).ok_or_else(invisible)?;
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(Errno::SRCH) => return dead,
            Err(errno) => return Err(ShmError::from_errno(OPERATION, errno)),
        };
        // Between the question and the opening the id may have passed to another process.
        match identity.liveness() {
            Liveness::Dead => dead,
            Liveness::Alive | Liveness::Unknown => Ok(Self { pidfd: Some(pidfd) }),
        }
    }

    /// Whether the process has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.wait(Duration::ZERO)
    }

    /// Waits until the process has ended, at most `timeout`; says whether it has.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let Some(pidfd) = &self.pidfd else {
            return true;
        };
        let end = Instant::now().checked_add(timeout);
        loop {
            // A timeout beyond the clock's range waits for ever.
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut [PollFd::new(pidfd, PollFlags::IN)], left.as_ref()) {
                Ok(0) => return false,
                Ok(_) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// The pidfd, unless the process was dead from the start.
    #[must_use]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_watch_wakes_when_the_process_ends_and_not_before() {
        let me = DeathWatch::new(&ProcessIdentity::current()).unwrap();
        assert!(!me.wait(Duration::from_millis(1)));
        assert!(me.descriptor().is_some());

        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let start_ticks = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap();
        let identity = ProcessIdentity {
            pid: child.id(),
            start_ticks: start_ticks.parse().unwrap(),
            ..ProcessIdentity::current()
        };
        let watch = DeathWatch::new(&identity).unwrap();
        assert!(!watch.has_ended());
        child.kill().unwrap();
        assert!(watch.wait(Duration::from_secs(60)));
        child.wait().unwrap();
        assert!(watch.has_ended());
        assert!(DeathWatch::new(&identity).unwrap().has_ended());
    }

    #[test]
    fn a_process_that_nobody_knows_cannot_be_watched() {
        let error = DeathWatch::new(&ProcessIdentity::default()).unwrap_err();
        assert_eq!(error.kind(), ShmErrorKind::Unsupported);
    }

    #[test]
    fn a_living_process_that_let_go_of_the_lock_is_no_writer() {
        let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        let me = ProcessIdentity::current();
        let dead = ProcessIdentity { start_ticks: me.start_ticks - 1, ..me };
        assert_eq!(writer_liveness(file.as_file(), Some(&me)), Liveness::Dead);
        assert_eq!(writer_liveness(file.as_file(), None), Liveness::Dead);

        let owner = file.reopen().unwrap();
        rustix::fs::flock(&owner, rustix::fs::FlockOperation::LockExclusive).unwrap();
        assert_eq!(writer_liveness(file.as_file(), Some(&me)), Liveness::Alive);
        assert_eq!(writer_liveness(file.as_file(), None), Liveness::Alive);
        // The lock is held by a child that the dead owner forked.
        assert_eq!(writer_liveness(file.as_file(), Some(&dead)), Liveness::Dead);
    }
}
