//! Modes of files and directories. These tests have a test program of their own, because the umask is the same for
//! all threads of a process.

use crate::fixtures::*;
use std::os::unix::fs::PermissionsExt;

use eventring::internal::shm::{CreateOptions, RingDirectories, RingName, ShmError, ShmErrorKind, create};

#[test]
fn modes_are_exact_whatever_the_umask_is() {
    alone!();
    // SAFETY: umask cannot fail and touches no memory.
    unsafe { libc::umask(0o077) };
    let (_directory, [ring_directory]) = places(["rings"]);
    let name = RingName::new("ring").unwrap();
    let place = RingDirectories::only(&ring_directory).location_for_writing(&name);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let make =
        |options: &CreateOptions| create(&place, 4096, options, |_| Ok::<_, ShmError>(())).map(|(file, ())| file);

    let file = make(&CreateOptions::default()).unwrap();
    assert_eq!(mode(&place.path), 0o640);
    assert_eq!(mode(&ring_directory), 0o750);
    drop(file);

    let wide = CreateOptions { file_mode: 0o664, directory_mode: 0o775, ..CreateOptions::default() };
    let file = make(&wide).unwrap();
    assert_eq!(mode(&place.path), 0o664);
    assert_eq!(mode(&ring_directory), 0o750, "a directory that exists keeps its mode");
    drop(file);
    // A directory that others may write to gets the sticky bit. Without it, they could replace our files.
    fs::remove_dir(&ring_directory).unwrap();
    let file = make(&wide).unwrap();
    assert_eq!(mode(&ring_directory), 0o1775);
    drop(file);

    for file_mode in [0o1644, 0o440, 0o100_644, 0] {
        let error = make(&CreateOptions { file_mode, ..wide }).unwrap_err();
        assert_eq!(error.kind(), ShmErrorKind::BadConfig, "{file_mode:o}");
    }
}
