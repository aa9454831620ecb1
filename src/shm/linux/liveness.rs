//! The check whether the writer of a ring file lives.

use std::os::fd::AsFd;

use super::answers::{Liveness, LockState, ProcessIdentity};
use super::lock::lock_state;

/// Returns whether the writer of `file` lives and still owns the file.
///
/// `identity` is the identity of the writer that the file's header states, or `None` if the header has none, as in
/// files of other implementations. If the identified process is dead, the writer is dead: a lock that is still held may
/// have been inherited by a forked child. If the process lives, it must hold the lock, too; otherwise it has closed the
/// ring. If the identity is missing, or is from another pid namespace, the lock decides.
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

#[cfg(test)]
mod tests {
    use super::*;

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
