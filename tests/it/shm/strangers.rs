//! Files and directories of other users, and writers in other pid namespaces. The tests need root to act as other
//! users.

use crate::fixtures::*;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use eventring::internal::shm::{
    CreateOptions, Liveness, LockState, OpenOptions, OwnedRingFile, ProcessIdentity, RingDirectories, RingFile,
    RingName, ShmError, ShmErrorKind, create, lock_state, writer_liveness,
};
use eventring_stress::users::become_user;

const STRANGER: u32 = 54_321;

fn ring_directory() -> (tempfile::TempDir, PathBuf) {
    let (directory, [path]) = places(["rings"]);
    fs::create_dir(&path).unwrap();
    (directory, path)
}

/// Gives a file to another user. Returns false, after printing why, if this process may not do that.
fn give_away(path: &Path, user: u32, group: u32) -> bool {
    match chown(path, Some(user), Some(group)) {
        Ok(()) => true,
        Err(error) => {
            eventring_stress::missing(format_args!("cannot give files away: {error}"));
            false
        }
    }
}

fn make(directory: &Path, options: &CreateOptions) -> Result<OwnedRingFile, ShmError> {
    let place = RingDirectories::only(directory).location_for_writing(&RingName::new("ring")?);
    create(&place, 4096, options, |_| Ok(())).map(|(file, ())| file)
}

fn open(directory: &Path, options: &OpenOptions) -> Result<RingFile, ShmError> {
    RingFile::open(&RingName::new("ring")?, &RingDirectories::only(directory), options)
}

#[test]
fn a_strangers_file_is_refused_by_bare_name_unless_it_is_allowed_or_shared_with_our_group() {
    let (_directory, rings) = ring_directory();
    let path = rings.join("ring");
    fs::write(&path, "RING").unwrap();
    if !give_away(&path, STRANGER, STRANGER) {
        return;
    }
    let error = open(&rings, &OpenOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ShmErrorKind::PermissionDenied);
    assert!(error.to_string().contains("belongs to user 54321, we are user 0"), "{error}");
    let allow = OpenOptions { allow_foreign_owner: true, ..OpenOptions::default() };
    assert_eq!(open(&rings, &allow).unwrap().owner(), STRANGER);
    // A path names the file explicitly.
    RingFile::open_path(&path, &OpenOptions::default()).unwrap();
    assert!(give_away(&path, STRANGER, rustix::process::getegid().as_raw()));
    assert_eq!(open(&rings, &OpenOptions::default()).unwrap().owner(), STRANGER);

    let error = make(&rings, &CreateOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ShmErrorKind::PermissionDenied, "shared for reading is not ours to replace");
    assert!(path.exists());
    let ring = make(&rings, &CreateOptions { allow_foreign_owner: true, ..CreateOptions::default() }).unwrap();
    assert_ne!(fs::metadata(&path).map(|file| std::os::unix::fs::MetadataExt::uid(&file)).unwrap(), STRANGER);
    drop(ring);
}

#[test]
fn a_directory_that_strangers_control_is_not_used() {
    let (directory, rings) = ring_directory();
    let set_mode = |mode| fs::set_permissions(&rings, fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o777);
    let error = make(&rings, &CreateOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ShmErrorKind::PermissionDenied);
    assert!(error.to_string().contains("everybody may replace files in it"), "{error}");
    set_mode(0o1777);
    drop(make(&rings, &CreateOptions::default()).unwrap());
    // Here a member of the directory's group could replace a live ring by another file.
    set_mode(0o770);
    let error = make(&rings, &CreateOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ShmErrorKind::PermissionDenied);
    assert!(error.to_string().contains("its group may replace files in it"), "{error}");
    set_mode(0o1770);
    drop(make(&rings, &CreateOptions::default()).unwrap());
    set_mode(0o750);

    let link = directory.path().join("link");
    symlink(&rings, &link).unwrap();
    let error = make(&link, &CreateOptions::default()).unwrap_err();
    assert!(error.to_string().contains("it is a link or a file"), "{error}");

    if give_away(&rings, STRANGER, STRANGER) {
        let error = make(&rings, &CreateOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ShmErrorKind::PermissionDenied);
        assert!(error.to_string().contains("EVENTRING_DIR"), "{error}");
        let allow = CreateOptions { allow_foreign_owner: true, ..CreateOptions::default() };
        drop(make(&rings, &allow).unwrap());
    }
}

#[test]
fn without_permission_the_error_says_so_and_our_own_user_needs_none() {
    let (directory, rings) = ring_directory();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let own = directory.path().join("own");
    fs::create_dir(&own).unwrap();
    if !give_away(&own, STRANGER, STRANGER) {
        return;
    }
    let ring = make(&rings, &CreateOptions::default()).unwrap();
    fs::set_permissions(&rings, fs::Permissions::from_mode(0o755)).unwrap();
    let path = rings.join("ring");
    let stranger = std::thread::spawn(move || {
        assert!(become_user(STRANGER, STRANGER));
        for error in [
            open(&rings, &OpenOptions::default()).unwrap_err(),
            RingFile::open_path(&path, &OpenOptions::default()).unwrap_err(),
            make(&rings, &CreateOptions::default()).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ShmErrorKind::PermissionDenied, "{error}");
        }
        let file = make(&own, &CreateOptions::default()).unwrap();
        assert_eq!(open(&own, &OpenOptions::default()).unwrap().id(), file.id());
    });
    stranger.join().unwrap();
    drop(ring);
}

#[test]
fn a_writer_in_another_pid_namespace_is_judged_by_its_lock() {
    let test = plays!({
        let directory = place();
        let _ring = make(&directory, &CreateOptions::default()).unwrap();
        let me = ProcessIdentity::current();
        say(format!("{} {} {}", me.pid, me.start_ticks, me.pid_namespace));
        // The writer outside has no process id in this namespace.
        let outside = RingFile::open_path(directory.join("outside"), &OpenOptions::default()).unwrap();
        say(format!("{:?}", lock_state(&outside)));
        wait_for_parent();
    });
    let namespace = ["--pid", "--fork", "--kill-child", "--mount-proc"];
    match std::process::Command::new("unshare").args(namespace).arg("true").status() {
        Ok(status) if status.success() => {}
        failed => return eventring_stress::missing(format_args!("cannot make a pid namespace: {failed:?}")),
    }
    let (_directory, rings) = ring_directory();
    let place = RingDirectories::only(&rings).location_for_writing(&RingName::new("outside").unwrap());
    let _outside = create(&place, 4096, &CreateOptions::default(), |_| Ok::<_, ShmError>(())).unwrap();
    let play = play(test, "inside", &rings);
    let mut command = std::process::Command::new("unshare");
    command.args(namespace).arg(play.get_program()).args(play.get_args());
    command.envs(play.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut inside = Talk::with(command);
    let printed = inside.hear();
    let words: Vec<u64> = printed.split(' ').map(|word| word.parse().unwrap()).collect();
    let identity = ProcessIdentity {
        pid: u32::try_from(words[0]).unwrap(),
        start_ticks: words[1],
        pid_namespace: words[2],
        ..ProcessIdentity::current()
    };
    assert_eq!(inside.hear(), "Held { pid: None }");
    assert_eq!(identity.liveness(), Liveness::Unknown);
    let file = open(&rings, &OpenOptions::default()).unwrap();
    assert_eq!(writer_liveness(&file, Some(&identity)), Liveness::Alive);
    assert!(matches!(lock_state(&file), LockState::Held { pid: Some(pid) } if pid != identity.pid));
    assert!(inside.end().success());
    assert_eq!(writer_liveness(&file, Some(&identity)), Liveness::Dead);
}
