//! A user who may only read a ring can take some locks on its file. None of these locks may affect the ring's owner.
//! The tests play two users, so they need root.

use crate::fixtures::*;
use eventring::internal::layout::extension as ext;
use eventring::recorder::{RecorderError, RecorderErrorKind};
use rustix::fs::{FlockOperation, flock};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, chown};

const OWNER: u32 = 54_321;
const READER: u32 = 54_322;
/// The group of both users.
const GROUP: u32 = 54_300;

/// Makes a directory for a ring of two users: the owner writes the ring, the reader reads it. Only root can become
/// these users. If this process is not root, the function prints a message and returns `None`.
fn two_users() -> Option<(tempfile::TempDir, PathBuf)> {
    if !users::can_be_played() {
        return None;
    }
    let directory = directory();
    chown(directory.path(), Some(OWNER), Some(GROUP)).unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o750)).unwrap();
    let path = directory.path().join("ring");
    Some((directory, path))
}

/// Changes the user of all threads of this process. The process is then in `GROUP` and in no other group.
fn become_user(user: u32) {
    // SAFETY: the call changes the credentials of the process and reads no list of groups.
    assert_eq!(unsafe { libc::setgroups(0, std::ptr::null()) }, 0);
    // SAFETY: the argument is the one above.
    assert_eq!(unsafe { libc::setresgid(GROUP, GROUP, GROUP) }, 0);
    // SAFETY: the argument is the one above.
    assert_eq!(unsafe { libc::setresuid(user, user, user) }, 0);
}

fn recorder(path: &Path) -> Result<Recorder, RecorderError> {
    let description = ContentDescription::new(300, "LOCKS");
    Recorder::builder(description).config(path).compact(true).shifts(15, 21).prefault(false).build()
}

/// Plays the owner: makes the ring, prints the result, and waits until the parent ends it.
fn own() {
    become_user(OWNER);
    match recorder(&place()) {
        Ok(recorder) => {
            say(format!("recorded {}", recorder.record(2, [0; 4], b"event")));
            wait_for_parent();
        }
        Err(error) => say(match error.kind() {
            RecorderErrorKind::AlreadyOwned { .. } => "already owned".to_owned(),
            _ => error.to_string(),
        }),
    }
}

/// Tries to take a lock of this kind on all bytes that a file can have. Returns true if the lock was granted.
fn lock_bytes(file: &File, kind: i32) -> bool {
    // In `l_start` and `l_len`, zeros stand for all bytes of a file.
    // SAFETY: the structure has only integers, for which 0 is a valid value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    // SAFETY: the descriptor is open, and the structure outlives the call.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) == 0 }
}

/// Plays the reader: opens the ring, and takes those of `locks` that are granted. Tries this once while the ring's
/// writer lives, and again when the parent asks for it.
fn read(locks: &str) {
    become_user(READER);
    let error = File::options().read(true).write(true).open(place()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    let files = [(); 2].map(|()| File::open(place()).unwrap());
    let lock = || {
        let whole = locks.contains("flock") && flock(&files[0], FlockOperation::NonBlockingLockExclusive).is_ok();
        let bytes = locks.contains("bytes") && lock_bytes(&files[1], libc::F_RDLCK);
        assert!(!lock_bytes(&files[1], libc::F_WRLCK), "a reader locks for writing");
        [("flock", whole), ("bytes", bytes)].map(|(name, has)| if has { name } else { "" }).concat()
    };
    say(format!("while it lives: [{}]", lock()));
    wait_for_parent();
    say(format!("when it is dead: [{}]", lock()));
    wait_for_parent();
}

fn plays() -> bool {
    let part = part();
    match part.as_deref() {
        Some("owner") => own(),
        Some(locks) => read(locks),
        None => {}
    }
    part.is_some()
}

fn go_on(talk: &mut Talk) {
    talk.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
}

/// Makes a ring, starts a reader, and kills the ring's owner. After that the reader holds `locks` on the dead ring.
/// Returns the reader.
fn dead_and_locked(test: &str, path: &Path, locks: &str) -> Talk {
    let mut owner = Talk::told(test, "owner", path, "recorded 1");
    let mut reader = Talk::told(test, locks, path, "while it lives: []");
    // This is the control: while the ring's owner lives, nobody can replace the ring.
    assert_eq!(Talk::start(test, "owner", path).hear(), "already owned");
    owner.kill();
    go_on(&mut reader);
    assert_eq!(reader.hear(), format!("when it is dead: [{locks}]"));
    reader
}

fn names(directory: &Path) -> Vec<String> {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_reader_cannot_keep_the_owner_from_replacing_a_dead_ring() {
    let test = test_name!();
    if plays() {
        return;
    }
    for locks in ["flock", "bytes", "flockbytes"] {
        let Some((directory, path)) = two_users() else { return };
        let mut reader = dead_and_locked(test, &path, locks);
        let mut next = Talk::start(test, "owner", &path);
        assert_eq!(next.hear(), "recorded 1", "{locks}");
        assert_eq!(names(directory.path()), ["ring"]);
        // Programs that use the original C implementation see only the lock that covers the whole file. The new owner
        // holds this lock, too, and readers find the owner's process id.
        let pid = Some(next.child.id());
        assert_eq!(
            eventring::internal::shm::lock_state(File::open(&path).unwrap()),
            eventring::internal::shm::LockState::Held { pid }
        );
        assert!(flock(File::open(&path).unwrap(), FlockOperation::NonBlockingLockShared).is_err());
        assert!(reader.end().success() && next.end().success());
        assert!(names(directory.path()).is_empty());
    }
}

#[test]
fn a_ring_of_another_implementation_is_judged_by_the_lock_of_the_whole_file() {
    let test = test_name!();
    if plays() {
        return;
    }
    let Some((_directory, path)) = two_users() else { return };
    let mut holder = dead_and_locked(test, &path, "flock");
    let ring = File::options().read(true).write(true).open(&path).unwrap();
    ring.write_all_at(&[0; 8], ext::WRITER_LOCK as u64).unwrap();
    assert_eq!(Talk::start(test, "owner", &path).hear(), "already owned");
    assert!(holder.end().success());
    assert_eq!(Talk::start(test, "owner", &path).hear(), "recorded 1");
}

#[test]
fn a_readers_lock_does_not_make_a_dead_ring_live() {
    let test = test_name!();
    if plays() {
        return;
    }
    // This closure clears the writer's identity in the header. After that, only the locks tell readers whether the
    // writer lives.
    let forget_writer = |path: &Path| {
        let ring = File::options().read(true).write(true).open(path).unwrap();
        ring.write_all_at(&[0; ext::CREATED_EPOCH_NANOS - ext::WRITER_START_TICKS], ext::WRITER_START_TICKS as u64)
            .unwrap();
    };
    let Some((_directory, path)) = two_users() else { return };
    let mut reader = dead_and_locked(test, &path, "flockbytes");
    forget_writer(&path);
    assert_eq!(Reader::open(&path).unwrap().state(), RingState::WriterDied);
    // This is the control: a ring whose writer lives still counts as live, although its header names no writer.
    let mut next = Talk::told(test, "owner", &path, "recorded 1");
    forget_writer(&path);
    assert_eq!(Reader::open(&path).unwrap().state(), RingState::Live);
    assert!(reader.end().success() && next.end().success());
}

#[test]
fn both_locks_last_until_the_owner_ends_and_no_child_has_them() {
    let test = plays!(|part| {
        if part == "next" {
            say(if recorder(&place()).is_ok() { "recorded" } else { "already owned" });
            return;
        }
        let _recorder = recorder(&place()).unwrap();
        // SAFETY: the child only waits for its end.
        if unsafe { libc::fork() } == 0 {
            say(format!("child {}", std::process::id()));
            loop {
                std::thread::park();
            }
        }
        // SAFETY: only the ring uses the descriptors that this call closes. The test closes them on purpose.
        assert_eq!(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) }, 0);
        say("closed");
        wait_for_parent();
        // SAFETY: the call ends this process at once. The forked child lives on.
        unsafe { libc::_exit(0) };
    });
    let (_directory, [path]) = places(["ring"]);
    let mut owner = Talk::start(test, "owner", &path);
    let mut printed = [owner.hear(), owner.hear()];
    printed.sort();
    let child: i32 = printed[0].strip_prefix("child ").unwrap().parse().unwrap();
    assert_eq!(printed[1], "closed");
    assert_eq!(Talk::start(test, "next", &path).hear(), "already owned");
    go_on(&mut owner);
    owner.child.wait().unwrap();
    assert_eq!(Talk::start(test, "next", &path).hear(), "recorded");
    // SAFETY: `child` is the process that the owner forked. It never ends by itself, so the id still belongs to it.
    assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
}
