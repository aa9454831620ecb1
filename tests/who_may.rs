//! Who may read and write a ring.

#![cfg(not(any(loom, shuttle)))]

mod child;

use child::{part, place, play};
use eventring::reader::Reader;
use eventring::recorder::{ContentDescription, Recorder, RecorderErrorKind};
use eventring::shm::{MapOptions, Mapping, Sections};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

fn recorder(path: &Path) -> Recorder {
    let description = ContentDescription::new(300, "MODES");
    Recorder::builder(description).config(path).compact(true).shifts(15, 21).build().unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn by_default_the_owner_writes_the_group_reads_and_nobody_else_does_anything() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("ring");
    let recorder = recorder(&path);
    assert_eq!(mode(&path), 0o640);
    drop(recorder);
    let description = ContentDescription::new(300, "MODES");
    let builder = Recorder::builder(description).config(&path).compact(true).shifts(15, 21);
    let _private = builder.file_mode(0o600).build().unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_second_writer_is_told_who_owns_the_ring() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("ring");
    let first = recorder(&path);
    let description = ContentDescription::new(300, "MODES");
    let second = Recorder::builder(description).config(&path).compact(true).shifts(15, 21).build();
    assert_eq!(second.unwrap_err().kind(), RecorderErrorKind::AlreadyOwned { pid: Some(std::process::id()) });
    assert_eq!(first.record(2, [0; 4], b"unharmed"), 1);
}

#[test]
fn a_store_through_a_readers_mapping_is_a_fault() {
    const TEST: &str = "a_store_through_a_readers_mapping_is_a_fault";
    if let Some(part) = part() {
        let core = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::setrlimit(rustix::process::Resource::Core, core).unwrap();
        let file = std::fs::OpenOptions::new().read(true).write(true).open(place()).unwrap();
        let sections =
            Sections { header_bytes: 2 << 20, descriptor_bytes: 2 << 20, payload_bytes: 2 << 20, context_bytes: 0 };
        let map = Mapping::map(&file, sections, MapOptions::reader()).unwrap();
        let section = match part.as_str() {
            "header" => map.header(),
            "descriptors" => map.descriptors(),
            _ => map.payload(),
        };
        // SAFETY: mapped; that the store faults is what the test is about.
        unsafe { section.write_volatile(1) };
        std::process::exit(7);
    }
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("ring");
    let _recorder = recorder(&path);
    for part in ["header", "descriptors", "payload"] {
        let status = play(TEST, part, &path).status().unwrap();
        assert_eq!(status.signal(), Some(libc::SIGSEGV), "{part}: {status}");
    }
}

#[test]
fn reading_needs_no_permission_to_write() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("ring");
    let recorder = recorder(&path);
    recorder.record(2, [0; 4], b"event");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o440)).unwrap();
    let read_only = std::fs::File::open(&path).unwrap();
    assert_eq!(Reader::options().open_fd(&read_only).unwrap().info().last_seqno, 1);
    assert_eq!(Reader::open(&path).unwrap().info().last_seqno, 1);
}
