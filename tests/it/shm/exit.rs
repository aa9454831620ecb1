//! The fate of a ring file when its process ends, forks, or is killed.

use crate::fixtures::*;
use std::io::Write;

use eventring::internal::shm::{
    CreateOptions, ForkGuard, Liveness, LockState, OpenOptions, OwnedRingFile, ProcessIdentity, RingDirectories,
    RingFile, RingName, ShmError, ShmErrorKind, create, lock_state, writer_liveness,
};
use rustix::process::{WaitId, WaitIdOptions, waitid};

/// The place of a ring file that is never dropped.
static RING: OnceLock<OwnedRingFile> = OnceLock::new();

fn make(path: &Path, keep: bool) -> Result<OwnedRingFile, ShmError> {
    let place = RingDirectories::from_environment().location_for_writing(&RingName::new(path)?);
    let options = CreateOptions { keep, ..CreateOptions::default() };
    create(&place, 4096, &options, |_| Ok(())).map(|(file, ())| file)
}

fn open(path: &Path) -> RingFile {
    RingFile::open_path(path, &OpenOptions::default()).unwrap()
}

/// Forks. The child runs `child` and ends without returning to the test harness. Returns the child's process id.
fn fork(child: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the tests call this in a child process whose other threads (the harness's main thread) only wait.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        child();
        // SAFETY: the call ends the child.
        unsafe { libc::_exit(0) };
    }
    pid
}

fn wait_for(pid: libc::pid_t) {
    let mut status = 0;
    // SAFETY: `status` is writable.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0);
}

#[test]
fn a_ring_in_a_static_goes_with_the_process_unless_it_is_kept() {
    let test = plays!(|part| {
        RING.set(make(&place(), part == "keep").unwrap()).unwrap();
        say("made");
        wait_for_parent();
        if part == "abort" {
            std::process::abort();
        }
        std::process::exit(0);
    });
    let (_directory, [path]) = places(["ring"]);
    for (part, stays) in [("exit", false), ("keep", true), ("abort", true)] {
        let mut owner = Talk::told(test, part, &path, "made");
        assert!(path.exists());
        let pid = owner.child.id();
        let error = make(&path, false).unwrap_err();
        assert_eq!(error.kind(), ShmErrorKind::AlreadyOwned { pid: Some(pid) });
        owner.end();
        assert_eq!(path.exists(), stays, "{part}");
        drop(make(&path, false).unwrap());
    }
}

#[test]
fn a_forked_child_neither_removes_the_file_nor_keeps_the_lock() {
    let test = plays!({
        RING.set(make(&place(), true).unwrap()).unwrap();
        let dropped = make(&place().with_extension("dropped"), false).unwrap();
        let guard = ForkGuard::new().unwrap();
        let mut dropped = Some(dropped);
        // The first child drops a ring of its parent, and then exits through the exit handlers. The ring files must
        // stay.
        let pid = fork(|| {
            assert!(!guard.is_original_process());
            drop(dropped.take());
            // SAFETY: this is the call that `std::process::exit` makes, and this process has no other thread.
            unsafe { libc::exit(0) };
        });
        wait_for(pid);
        assert!(place().exists() && place().with_extension("dropped").exists());
        assert_eq!(lock_state(RING.get().unwrap()), LockState::Held { pid: Some(std::process::id()) });
        // The second child outlives its parent, as a daemon does. Then it makes a ring of the same name.
        let path = place();
        fork(|| {
            // The child prints this, not the parent: `fork` may return in the parent before the child's fork handlers
            // have released the lock.
            say("forked");
            wait_for_parent();
            let taken_over = make(&path, false);
            say(if taken_over.is_ok() { "taken over" } else { "refused" });
            wait_for_parent();
        });
        drop(dropped);
        // SAFETY: the call ends this process at once. The forked child lives on.
        unsafe { libc::_exit(0) };
    });
    let (_directory, [path]) = places(["ring"]);
    let mut owner = Talk::told(test, "owner", &path, "forked");
    // The test waits for the end of the owner only. It cannot use `Talk::end`, which waits for the end of the pipe:
    // the owner's child has inherited the pipe and lives on.
    let pid = i32::try_from(owner.child.id()).ok().and_then(Pid::from_raw).unwrap();
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    assert!(!path.with_extension("dropped").exists());
    assert_eq!(lock_state(open(&path)), LockState::Free, "the forked child holds the lock");
    assert_eq!(writer_liveness(open(&path), None), Liveness::Dead);
    owner.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    assert_eq!(owner.hear(), "taken over");
    assert!(owner.end().success());
}

#[test]
fn a_killed_owner_is_noticed_and_its_file_is_read_and_replaced() {
    let test = plays!({
        let _ring = make(&place(), false).unwrap();
        let me = ProcessIdentity::current();
        say(format!("{} {} {} {}", me.pid, me.start_ticks, me.pid_namespace, me.time_namespace));
        wait_for_parent();
    });
    let (_directory, [path]) = places(["ring"]);
    let mut owner = Talk::start(test, "owner", &path);
    let printed = owner.hear();
    let words: Vec<u64> = printed.split(' ').map(|word| word.parse().unwrap()).collect();
    let identity = ProcessIdentity {
        pid: u32::try_from(words[0]).unwrap(),
        start_ticks: words[1],
        pid_namespace: words[2],
        time_namespace: words[3],
        ..ProcessIdentity::current()
    };
    assert_eq!(identity.pid, owner.child.id());
    let file = open(&path);
    for identity in [Some(&identity), None] {
        assert_eq!(writer_liveness(&file, identity), Liveness::Alive);
    }
    owner.child.kill().unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    wait_while(|| identity.liveness() == Liveness::Alive && std::time::Instant::now() < deadline);
    // Nobody has waited for the killed owner yet, so it is a zombie. It must count as dead.
    for identity in [Some(&identity), None] {
        assert_eq!(writer_liveness(&file, identity), Liveness::Dead);
    }
    assert!(file.is_still_at_its_path());
    let next = make(&path, false).unwrap();
    assert!(!file.is_still_at_its_path());
    assert_ne!(next.id(), file.id());
}

#[test]
fn a_program_that_closes_every_descriptor_keeps_its_locks_and_ends_in_good_order() {
    let test = plays!({
        let dropped = make(&place(), false).unwrap();
        RING.set(make(&place().with_extension("static"), false).unwrap()).unwrap();
        let read = open(&place());
        // SAFETY: only rings use the descriptors that this call closes. The test closes them on purpose.
        assert_eq!(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) }, 0);
        // These files get the descriptor numbers of the closed rings. When the rings end, they must not close these
        // files.
        let others = [(); 16].map(|()| std::fs::File::open("/dev/null").unwrap());
        let (me, gone) =
            (ProcessIdentity::current(), ProcessIdentity { pid: u32::MAX >> 1, ..ProcessIdentity::current() });
        assert_eq!(read.writer_liveness(Some(&me)), Liveness::Alive);
        assert_eq!(
            (read.writer_liveness(Some(&gone)), read.writer_liveness(None)),
            (Liveness::Dead, Liveness::Unknown)
        );
        say("closed");
        wait_for_parent();
        drop((dropped, read));
        assert!(others.iter().all(|other| other.metadata().is_ok()));
        say("dropped");
        wait_for_parent();
        std::process::exit(0);
    });
    let (_directory, [path]) = places(["ring"]);
    let mut owner = Talk::told(test, "owner", &path, "closed");
    let pid = Some(owner.child.id());
    for path in [&path, &path.with_extension("static")] {
        assert_eq!(lock_state(open(path)), LockState::Held { pid });
        assert_eq!(make(path, false).unwrap_err().kind(), ShmErrorKind::AlreadyOwned { pid });
    }
    owner.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    assert_eq!(owner.hear(), "dropped");
    assert!(!path.exists() && path.with_extension("static").exists());
    assert!(owner.end().success());
    assert!(!path.with_extension("static").exists());
}
