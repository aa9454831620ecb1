//! A ring that does not fit. It is on a small file system of its own, so that a failure of the test cannot use up the
//! machine's memory.

#![cfg(not(any(loom, shuttle)))]

use std::fs;
use std::path::Path;

use eventring::shm::{CreateOptions, OwnedRingFile, RingDirectories, RingName, ShmError, ShmErrorKind, create};

const MEBIBYTE: u64 = 1 << 20;

/// Mounts a tmpfs that only the calling thread sees and that goes away with the thread. Needs root.
fn mount_small_tmpfs(directory: &Path, size: &str) -> Result<(), std::io::Error> {
    let check = |result: i32| if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) };
    let path = std::ffi::CString::new(directory.to_str().unwrap()).unwrap();
    let options = std::ffi::CString::new(size).unwrap();
    // SAFETY: the call gives this thread a mount namespace of its own and touches no memory.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: all pointers are valid strings or null, as mount allows for a change of propagation.
    check(unsafe { libc::mount(c"none".as_ptr(), c"/".as_ptr(), std::ptr::null(), private, std::ptr::null()) })?;
    // SAFETY: all pointers are valid strings.
    check(unsafe { libc::mount(c"none".as_ptr(), path.as_ptr(), c"tmpfs".as_ptr(), 0, options.as_ptr().cast()) })
}

fn make(path: &Path, bytes: u64, options: &CreateOptions) -> Result<OwnedRingFile, ShmError> {
    let place = RingDirectories::from_environment().place_for_writing(&RingName::new(path)?);
    create(&place, bytes, options, |_| Ok(())).map(|(file, ())| file)
}

#[test]
fn a_ring_larger_than_its_file_system_is_refused_and_a_stale_one_gives_its_room() {
    let directory = tempfile::tempdir().unwrap();
    if let Err(error) = mount_small_tmpfs(directory.path(), "size=4M") {
        eprintln!("SKIPPED: cannot mount a tmpfs: {error}");
        return;
    }
    let path = directory.path().join("ring");
    let options = CreateOptions::default();
    let error = make(&path, 644 * MEBIBYTE, &options).unwrap_err();
    assert_eq!(error.kind(), ShmErrorKind::NoSpace);
    let message = error.to_string();
    assert!(message.contains("no space left on the file system: it needs 644 MiB, 4 MiB are free"), "{message}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);

    // A dead process's file holds three of four mebibytes.
    let stale = make(&path, 3 * MEBIBYTE, &CreateOptions { keep: true, ..options }).unwrap().id();
    let error = make(&path, 5 * MEBIBYTE, &options).unwrap_err();
    assert_eq!(error.kind(), ShmErrorKind::NoSpace);
    assert!(path.exists(), "nothing is gained by removing the stale file, so it stays");
    let ring = make(&path, 3 * MEBIBYTE, &options).unwrap();
    assert_ne!(ring.id(), stale);
    let names: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["ring"]);
}
