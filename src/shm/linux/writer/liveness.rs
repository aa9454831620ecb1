//! The check whether the writer of a ring file lives.

use std::os::fd::AsFd;

use super::lock::lock_state;
use crate::shm::answers::{Liveness, LockState, ProcessIdentity};

/// Returns whether the writer of `file` is alive and still owns the file.
///
/// `identity` is the writer's identity, which is stored in the file's header. It is `None` if the header has none, as
/// in files of other implementations.
///
/// - If the process with this identity is dead, the writer is dead, even if the lock is held: a forked child may have
///   inherited the lock.
/// - If the process lives, it must also hold the lock. Otherwise it has closed the ring, and the writer counts as dead.
/// - If the identity is missing, or is from another pid namespace, the lock alone decides. If the system does not show
///   the state of the lock, the identity alone decides.
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
