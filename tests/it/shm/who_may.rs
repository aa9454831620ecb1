//! The users that may read and write a ring.

use crate::fixtures::*;
use eventring::internal::shm::{MapOptions, Mapping, Sections};
use eventring::recorder::RecorderErrorKind;
use eventring_stress::users::become_user;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;

fn recorder(path: &Path) -> Recorder {
    let description = ContentDescription::new(300, "MODES");
    Recorder::builder(description).config(path).compact(true).shifts(15, 21).build().unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn by_default_the_owner_writes_the_group_reads_and_nobody_else_does_anything() {
    let (_directory, [path]) = places(["ring"]);
    let recorder = recorder(&path);
    assert_eq!(mode(&path), 0o640);
    drop(recorder);
    let description = ContentDescription::new(300, "MODES");
    let builder = Recorder::builder(description).config(&path).compact(true).shifts(15, 21);
    let _private = builder.file_mode(0o600).build().unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_store_through_a_readers_mapping_is_a_fault() {
    let test = plays!(|part| {
        let core = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::setrlimit(rustix::process::Resource::Core, core).unwrap();
        let file = std::fs::OpenOptions::new().read(true).write(true).open(place()).unwrap();
        let sections =
            Sections { header_bytes: 2 << 20, descriptor_bytes: 2 << 20, payload_bytes: 2 << 20, context_bytes: 0 };
        let options = if part.contains("writer's") { MapOptions::writer() } else { MapOptions::reader() };
        let map = Mapping::map(&file, sections, options).unwrap();
        let section = match part.split(' ').next_back().unwrap() {
            "header" => map.header(),
            "descriptors" => map.descriptors(),
            _ => map.payload(),
        };
        // SAFETY: the address is mapped. In a reader's mapping this store causes the fault that the test expects.
        unsafe { section.write_volatile(1) };
        std::process::exit(7);
    });
    let (_directory, [path]) = places(["ring"]);
    let _recorder = recorder(&path);
    for part in ["header", "descriptors", "payload"] {
        let status = play(test, part, &path).status().unwrap();
        assert_eq!(status.signal(), Some(libc::SIGSEGV), "{part}: {status}");
        // This is the control: a store through a writer's mapping succeeds.
        let status = play(test, &format!("writer's {part}"), &path).status().unwrap();
        assert_eq!(status.code(), Some(7), "{part}: {status}");
    }
}

/// Returns each part of the file that this process has mapped: its start, its length in bytes and its permissions.
fn mapped(path: &Path) -> Vec<(usize, usize, String)> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let ours = maps.lines().filter(|line| line.ends_with(path.to_str().unwrap()));
    let range = |line: &str| {
        let mut words = line.split_whitespace();
        let (start, end) = words.next().unwrap().split_once('-').unwrap();
        let [start, end] = [start, end].map(|number| usize::from_str_radix(number, 16).unwrap());
        (start, end - start, words.next().unwrap().to_owned())
    };
    ours.map(range).collect()
}

/// Returns true if the kernel would let this process write to one of its mappings of the file.
fn could_write(path: &Path) -> bool {
    let mapped = mapped(path);
    assert!(!mapped.is_empty());
    let both = libc::PROT_READ | libc::PROT_WRITE;
    mapped.iter().any(|(start, bytes, permissions)| {
        let place = std::ptr::with_exposed_provenance_mut(*start);
        // SAFETY: the range is a mapping of this process. The call keeps its contents, and nothing is written.
        permissions.contains('w') || unsafe { libc::mprotect(place, *bytes, both) } == 0
    })
}

#[test]
fn what_a_reader_has_mapped_cannot_be_made_writable() {
    let test = test_name!();
    let could = |path: &Path| child::say(could_write(path));
    match part().as_deref() {
        Some("reader") => {
            let reader = Reader::open(place()).unwrap();
            could(&place());
            return drop(reader);
        }
        Some(_) => {
            let recorder = recorder(&place());
            could(&place());
            return drop(recorder);
        }
        None => {}
    }
    let directory = directory();
    let [path, other] = ["ring", "other"].map(|name| directory.path().join(name));
    let _recorder = recorder(&path);
    assert_eq!(Talk::start(test, "reader", &path).hear(), "false");
    // This is the control: the same question to a writer.
    assert_eq!(Talk::start(test, "writer", &other).hear(), "true");
}

const STRANGER: u32 = 54_321;

/// Returns two bools for an unprivileged user who is in this group and in no other: whether the user may read the
/// file, and whether the user may write it.
fn may(path: &Path, group: u32) -> (bool, bool) {
    let path = path.to_owned();
    let asked = std::thread::spawn(move || {
        assert!(become_user(STRANGER, group));
        let reads = Reader::open(&path).is_ok();
        (reads, std::fs::OpenOptions::new().write(true).open(&path).is_ok())
    });
    asked.join().unwrap()
}

#[test]
fn the_kernel_lets_the_group_read_and_nobody_write() {
    if !users::can_be_played() {
        return;
    }
    let directory = directory();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = directory.path().join("ring");
    let ring = recorder(&path);
    let group = rustix::process::getegid().as_raw();
    assert_eq!(may(&path, group), (true, false));
    assert_eq!(may(&path, STRANGER), (false, false));
    drop(ring);
    // This is the control: everybody may read and write this file.
    let description = ContentDescription::new(300, "MODES");
    let builder = Recorder::builder(description).config(&path).compact(true).shifts(15, 21);
    let _open = builder.file_mode(0o666).build().unwrap();
    assert_eq!(may(&path, STRANGER), (true, true));
}

#[test]
fn a_directory_of_another_user_is_named_with_its_owner_and_the_remedy() {
    let test = plays!({
        assert!(become_user(STRANGER, STRANGER));
        let refused = Recorder::builder(ContentDescription::new(300, "MODES")).config("x:16:27").build();
        child::say(refused.unwrap_err());
    });
    if !rustix::process::geteuid().is_root() {
        return eprintln!("SKIPPED: only root can play other users");
    }
    let directory = directory();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut stranger = play(test, "stranger", directory.path());
    stranger.env("EVENTRING_DIR", directory.path());
    let expected = format!(
        "cannot use ring directory {}: it belongs to user 0, and we, user {STRANGER}, may not make files in it; set \
         EVENTRING_DIR to a directory of your own, or give the ring's full path",
        directory.path().display()
    );
    assert_eq!(child::Talk::with(stranger).hear(), expected);
}

#[test]
fn without_the_lock_nobody_records_into_a_live_ring() {
    let test = plays!({
        let description = ContentDescription::new(300, "MODES");
        let second = Recorder::builder(description).config(place()).compact(true).shifts(15, 21).build();
        match second {
            Ok(recorder) => child::say(format!("recorded {}", recorder.record(2, [0; 4], b"of the second"))),
            Err(error) => child::say(format!("{:?}", error.kind())),
        }
    });
    let (_directory, [path]) = places(["ring"]);
    let first = recorder(&path);
    assert_eq!(first.record(2, [0; 4], b"of the first"), 1);
    let reader = Reader::open(&path).unwrap();
    let owned = format!("{:?}", RecorderErrorKind::AlreadyOwned { pid: Some(std::process::id()) });
    assert_eq!(Talk::start(test, "second", &path).hear(), owned);
    assert!(!reader.was_replaced() && reader.info().last_seqno == 1);
    // This is the control: when nobody has the lock any more, the second writer succeeds.
    drop(first);
    assert_eq!(Talk::start(test, "second", &path).hear(), "recorded 1");
}

#[test]
fn reading_needs_no_permission_to_write() {
    let (_directory, [path]) = places(["ring"]);
    let recorder = recorder(&path);
    recorder.record(2, [0; 4], b"event");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o440)).unwrap();
    let read_only = std::fs::File::open(&path).unwrap();
    assert_eq!(Reader::options().open_fd(&read_only).unwrap().info().last_seqno, 1);
    assert_eq!(Reader::open(&path).unwrap().info().last_seqno, 1);
}
