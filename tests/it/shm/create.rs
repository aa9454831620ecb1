//! Creating, owning, replacing and removing ring files.

use crate::fixtures::*;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use eventring::internal::shm::{
    CreateOptions, HugePageWarning, Liveness, LockState, MemfdOptions, OpenOptions, OwnedRingFile, RingDirectories,
    RingFile, RingLocation, RingName, ShmError, ShmErrorKind, create, create_memfd, lock_state, writer_liveness,
};
use rustix::fs::{FlockOperation, flock};

const BYTES: u64 = 64 << 10;

fn place(path: &Path) -> RingLocation {
    let name = RingName::new(path).unwrap();
    RingDirectories::from_environment().location_for_writing(&name)
}

fn make(path: &Path, options: &CreateOptions) -> Result<OwnedRingFile, ShmError> {
    create(&place(path), BYTES, options, |_| Ok(())).map(|(file, ())| file)
}

#[test]
fn a_file_appears_whole_and_goes_with_its_owner() {
    let (directory, [path]) = places(["ring"]);
    let (file, seen) = create(&place(&path), BYTES - 5, &CreateOptions::default(), |file| {
        assert!(!path.exists(), "published before it was filled");
        assert_eq!(rustix::fs::fstat(file).unwrap().st_size as u64, BYTES);
        rustix::io::pwrite(file, b"full", 0).map_err(std::io::Error::from)?;
        Ok::<_, Box<dyn std::error::Error>>(names_in(directory.path()))
    })
    .unwrap();
    assert_eq!(seen, [format!("ring.~{:010}", std::process::id())]);
    assert_eq!(names_in(directory.path()), ["ring"]);
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(metadata.len(), BYTES);
    assert_eq!(metadata.ino(), file.id().inode);
    assert!(metadata.blocks() * 512 >= BYTES, "not allocated");
    assert_eq!(&fs::read(&path).unwrap()[..4], b"full");
    assert_eq!(file.warning(), Some(&HugePageWarning::SmallPages { path: path.clone() }));
    drop(file);
    assert!(names_in(directory.path()).is_empty());
}

#[test]
fn a_kept_file_stays_and_is_replaced_by_the_next_owner() {
    let (directory, [path]) = places(["ring"]);
    let keep = CreateOptions { keep: true, ..CreateOptions::default() };
    let first = make(&path, &keep).unwrap().id();
    let reader = RingFile::open_path(&path, &OpenOptions::default()).unwrap();
    assert_eq!(reader.id(), first);
    assert_eq!(writer_liveness(&reader, None), Liveness::Dead);
    assert!(reader.is_still_at_its_path());

    let second = make(&path, &CreateOptions::default()).unwrap();
    assert_ne!(second.id(), first);
    assert_eq!(names_in(directory.path()), ["ring"]);
    assert!(!reader.is_still_at_its_path(), "the reader must learn that its file was replaced");
    let reader = RingFile::open_path(&path, &OpenOptions::default()).unwrap();
    assert_eq!(writer_liveness(&reader, None), Liveness::Alive);
    second.keep(true);
    drop(second);
    assert_eq!(names_in(directory.path()), ["ring"]);
}

#[test]
fn an_owned_file_is_not_replaced_and_the_error_names_the_owner() {
    let (directory, [path]) = places(["ring"]);
    let file = make(&path, &CreateOptions::default()).unwrap();
    let error = create(&place(&path), BYTES, &CreateOptions::default(), |_| -> Result<(), ShmError> {
        panic!("it is known before anything is allocated and filled")
    })
    .unwrap_err();
    let pid = std::process::id();
    assert_eq!(error.kind(), ShmErrorKind::AlreadyOwned { pid: Some(pid) });
    assert!(error.to_string().contains(&pid.to_string()), "{error}");
    assert_eq!(names_in(directory.path()), ["ring"]);
    assert_eq!(lock_state(&file), LockState::Held { pid: Some(pid) });
}

#[test]
fn a_failed_or_panicking_initialisation_leaves_nothing() {
    let (directory, [path]) = places(["ring"]);
    let place = place(&path);
    let options = CreateOptions::default();
    let result: Result<(OwnedRingFile, ()), Box<dyn std::error::Error>> =
        create(&place, BYTES, &options, |_| Err("no".into()));
    assert_eq!(result.unwrap_err().to_string(), "no");
    let panicked = std::panic::catch_unwind(|| {
        create(&place, BYTES, &options, |_| -> Result<(), ShmError> { panic!("on purpose") })
    });
    assert!(panicked.is_err());
    assert!(names_in(directory.path()).is_empty());
    // Nothing is locked, either.
    make(&path, &options).unwrap();
}

#[test]
fn neither_links_nor_directories_nor_pipes_are_replaced_or_opened() {
    let (directory, [victim]) = places(["victim"]);
    fs::write(&victim, "precious").unwrap();
    let link = directory.path().join("link");
    symlink(&victim, &link).unwrap();
    let dangling = directory.path().join("dangling");
    symlink(directory.path().join("nowhere"), &dangling).unwrap();
    let pipe = directory.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let folder = directory.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let before = names_in(directory.path());
    for path in [&link, &dangling, &pipe, &folder] {
        let error = make(path, &CreateOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ShmErrorKind::NotARegularFile, "{error}");
        let error = RingFile::open_path(path, &OpenOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ShmErrorKind::NotARegularFile, "{error}");
    }
    assert_eq!(names_in(directory.path()), before);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    let follow = OpenOptions { follow_symlinks: true, ..OpenOptions::default() };
    assert_eq!(RingFile::open_path(&link, &follow).unwrap().bytes(), 8);
}

#[test]
fn a_file_of_another_kind_is_not_replaced() {
    let (_directory, [path]) = places(["notes"]);
    let options = CreateOptions { replace_prefix: b"RING", ..CreateOptions::default() };
    fs::write(&path, "my notes").unwrap();
    let error = make(&path, &options).unwrap_err();
    assert_eq!(error.kind(), ShmErrorKind::Occupied, "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "my notes");
    for content in ["RING01 and so on", ""] {
        fs::write(&path, content).unwrap();
        make(&path, &options).unwrap();
    }
}

#[test]
fn only_files_of_killed_processes_are_removed() {
    let (directory, [path]) = places(["ring"]);
    let dead = {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    };
    let mut not_waited_for = std::process::Command::new("true").spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&not_waited_for);
    let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
    rustix::process::waitid(rustix::process::WaitId::Pid(pid), options).unwrap();
    let zombie = not_waited_for.id();
    let living = std::os::unix::process::parent_id();
    let file = |name: String, mode, content: &str| {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let mut leftovers = vec![
        file(format!("ring.~{dead}"), 0o1600, "x"),
        file(format!("ring.~{zombie}"), 0o1600, "x"),
        // The file's name has the process id of a living process. But nobody holds the lock of the file, so that
        // process did not make it.
        file(format!("ring.~{living}"), 0o1600, "x"),
        // This file is of an earlier process with our own id.
        file(format!("ring.~{:010}", std::process::id()), 0o1600, "x"),
    ];
    let of_another_ring = file(format!("rings.~{dead}"), 0o1600, "x");
    let finished = file("ring.~2147483647".into(), 0o640, "x");
    let locked = file("ring.~2147483646".into(), 0o1600, "x");
    let lock = File::open(&locked).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let made = make(&path, &CreateOptions::default()).unwrap();
    for gone in &leftovers {
        assert!(!gone.exists(), "{}", gone.display());
    }
    for stays in [&path, &of_another_ring, &finished, &locked] {
        assert!(stays.exists(), "{}", stays.display());
    }
    drop(made);

    // These files look as if they were made but not locked yet. The file of a living process stays for a minute,
    // because that process may be about to take the lock.
    leftovers = vec![file(format!("ring.~{dead}"), 0o600, ""), file(format!("ring.~{zombie}"), 0o600, "")];
    let of_a_living = file(format!("ring.~{living}"), 0o600, "");
    let made = make(&path, &CreateOptions::default()).unwrap();
    assert!(of_a_living.exists() && leftovers.iter().all(|gone| !gone.exists()));
    drop(made);
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(120);
    File::options().write(true).open(&of_a_living).unwrap().set_modified(long_ago).unwrap();
    let _made = make(&path, &CreateOptions::default()).unwrap();
    assert!(!of_a_living.exists());
    not_waited_for.wait().unwrap();
}

#[test]
fn a_missing_directory_is_named_for_a_path_and_made_for_a_bare_name() {
    let (_directory, [missing]) = places(["missing"]);
    let error = make(&missing.join("ring"), &CreateOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ShmErrorKind::NotFound);
    assert_eq!(error.path(), Some(&*missing));
    // This directory exists and takes no files.
    let path = Path::new("/proc/eventring-test");
    let message = make(path, &CreateOptions::default()).unwrap_err().to_string();
    assert!(message.starts_with("cannot create ring file /proc/eventring-test: "), "{message}");
    assert!(message.contains("choose another path") && !message.contains("try again"), "{message}");

    // A ring directory that exists and takes no files, and a ring directory that cannot be made.
    // (For a user other than root, `/proc` is a directory in which the user may not write.)
    for (directory, problem) in [
        ("/proc", " /proc"),
        ("/proc/x", "cannot make ring directory /proc/x: its parent takes no directories, as /proc does; "),
    ] {
        let place = RingDirectories::only(directory).location_for_writing(&RingName::new("ring").unwrap());
        let options = CreateOptions { allow_foreign_owner: true, ..CreateOptions::default() };
        let made = create(&place, BYTES, &options, |_| Ok::<_, ShmError>(()));
        let message = made.unwrap_err().to_string();
        assert!(message.contains(problem) && !message.contains("try again"), "{message}");
    }

    let directories = RingDirectories::only(&missing);
    let name = RingName::new("ring").unwrap();
    let error = RingFile::open(&name, &directories, &OpenOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ShmErrorKind::NotFound);
    let place = directories.location_for_writing(&name);
    let (file, ()) = create(&place, BYTES, &CreateOptions::default(), |_| Ok::<_, ShmError>(())).unwrap();
    let reader = RingFile::open(&name, &directories, &OpenOptions::default()).unwrap();
    assert_eq!(reader.id(), file.id());
    assert_eq!((reader.bytes(), reader.mode()), (BYTES, 0o640));
    drop(file);
    assert!(missing.is_dir(), "a directory that was named is not removed");
}

#[test]
fn a_fallback_directory_goes_with_its_last_ring() {
    let (_directory, [ring_directory]) = places(["event-rings"]);
    let made = |name: &str| {
        let place = RingLocation {
            path: ring_directory.join(name),
            in_ring_directory: true,
            remove_empty_directory: true,
            warning: None,
        };
        let options = CreateOptions::default();
        create(&place, BYTES, &options, |_| Ok::<_, ShmError>(())).unwrap().0
    };
    let (first, second) = (made("first"), made("second"));
    drop(first);
    assert_eq!(names_in(&ring_directory), ["second"]);
    drop(second);
    assert!(!ring_directory.exists());
}

#[test]
fn an_owner_does_not_remove_the_file_that_took_its_place() {
    let (_directory, [path]) = places(["ring"]);
    let file = make(&path, &CreateOptions::default()).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "somebody else's").unwrap();
    drop(file);
    assert_eq!(fs::read_to_string(&path).unwrap(), "somebody else's");
}

#[test]
fn an_anonymous_ring_is_sealed_and_its_descriptor_does_not_carry_the_lock() {
    let options = MemfdOptions::default();
    let (file, ()) = create_memfd("x", 5000, &options, |_| Ok::<_, ShmError>(())).unwrap();
    assert_eq!(file.bytes(), 8192);
    assert_eq!(file.path(), None);
    let path = format!("/proc/self/fd/{}", file.descriptor().as_raw_fd());
    let refused = RingFile::open_path(&path, &OpenOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), ShmErrorKind::NotARegularFile, "it is a link");
    let follow = OpenOptions { follow_symlinks: true, ..OpenOptions::default() };
    let reader = RingFile::open_path(&path, &follow).unwrap();
    assert_eq!(writer_liveness(&reader, None), Liveness::Alive);
    assert_eq!(reader.mode(), 0o640);
    let handed_over = file.descriptor().try_clone_to_owned().unwrap();
    rustix::fs::ftruncate(&handed_over, 0).unwrap_err();
    rustix::fs::ftruncate(&handed_over, 1 << 20).unwrap_err();
    let handed_over = RingFile::from_descriptor(handed_over).unwrap();
    assert_eq!(handed_over.id(), reader.id());
    drop(file);
    assert_eq!(writer_liveness(&handed_over, None), Liveness::Dead);
}

#[test]
fn a_ring_directory_is_made_with_the_directories_above_it() {
    let (directory, [rings]) = places(["of/my/service"]);
    let place = RingDirectories::only(&rings).location_for_writing(&RingName::new("ring").unwrap());
    let (ring, ()) = create(&place, 4096, &CreateOptions::default(), |_| Ok::<(), ShmError>(())).unwrap();
    assert_eq!(ring.path(), Some(&*rings.join("ring")));
    drop(ring);

    std::fs::write(directory.path().join("file"), "in the way").unwrap();
    let rings = directory.path().join("file/rings");
    let place = RingDirectories::only(&rings).location_for_writing(&RingName::new("ring").unwrap());
    let error = create(&place, 4096, &CreateOptions::default(), |_| Ok::<(), ShmError>(())).unwrap_err();
    let printed = error.to_string().replace(directory.path().to_str().unwrap(), "DIR");
    assert!(printed.contains("DIR/file/rings") && printed.contains("set EVENTRING_DIR"), "{printed}");
}

#[test]
fn a_shard_whose_number_is_our_process_id_is_not_taken_for_an_unfinished_file() {
    let directory = directory();
    let shard = directory.path().join(format!("ring.{}", std::process::id()));
    fs::write(&shard, "a ring that a crash has left").unwrap();
    let _made = make(&directory.path().join("ring"), &CreateOptions::default()).unwrap();
    assert!(shard.exists());
}
