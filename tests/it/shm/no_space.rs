//! A ring that is larger than the free space. The test uses a small file system of its own, so that a failure cannot
//! use up the machine's memory.

use crate::fixtures::*;

use eventring::internal::shm::{
    CreateOptions, OwnedRingFile, RingDirectories, RingName, ShmError, ShmErrorKind, create,
};
use eventring_stress::mounted::mount_or_skip;

const MEBIBYTE: u64 = 1 << 20;

fn make(path: &Path, bytes: u64, options: &CreateOptions) -> Result<OwnedRingFile, ShmError> {
    let place = RingDirectories::from_environment().location_for_writing(&RingName::new(path)?);
    create(&place, bytes, options, |_| Ok(())).map(|(file, ())| file)
}

#[test]
fn a_ring_larger_than_its_file_system_is_refused_and_a_stale_one_gives_its_room() {
    // A child that another test starts has the lock of the stale ring for a moment.
    alone!();
    let directory = tempfile::tempdir().unwrap();
    let Some(_mounted) = mount_or_skip(directory.path(), "tmpfs", "size=4M") else { return };
    let path = directory.path().join("ring");
    let options = CreateOptions::default();
    let error = make(&path, 644 * MEBIBYTE, &options).unwrap_err();
    assert_eq!(error.kind(), ShmErrorKind::NoSpace);
    let message = error.to_string();
    assert!(message.contains("no space left on the file system: it needs 644 MiB, 4 MiB are free"), "{message}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);

    // This ring stands for the file of a dead process. It takes three of the file system's four MiB.
    let stale = make(&path, 3 * MEBIBYTE, &CreateOptions { keep: true, ..options }).unwrap().id();
    let error = make(&path, 5 * MEBIBYTE, &options).unwrap_err();
    assert_eq!(error.kind(), ShmErrorKind::NoSpace);
    assert!(path.exists(), "nothing is gained by removing the stale file, so it stays");
    let ring = make(&path, 3 * MEBIBYTE, &options).unwrap();
    assert_ne!(ring.id(), stale);
    let names: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["ring"]);
}
