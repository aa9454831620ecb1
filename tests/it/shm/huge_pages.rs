//! Rings on real huge pages. The test needs root. It adds a few pages to the pool, mounts hugetlbfs where only the
//! test sees it, and restores everything afterwards.

use crate::fixtures::*;
use std::io::Error;

use crate::mapped::{load, store};
use eventring::internal::shm::{
    CreateOptions, HugePagePool, HugePageWarning, MapOptions, Mapping, MemfdOptions, OpenOptions, OwnedRingFile,
    RingDirectories, RingFile, RingName, Sections, ShmError, ShmErrorKind, WRITE_LOCK_OFFSET, create, create_memfd,
};
use eventring_stress::huge_pages::{HugePages, POOL};

const PAGE: usize = 2 << 20;
const PAGES: u64 = 10;
/// Ten pages, with the context area in the last one.
const SECTIONS: Sections =
    Sections { header_bytes: 2 << 20, descriptor_bytes: 4 << 20, payload_bytes: 12 << 20, context_bytes: 4096 };

/// Runs `body` in a child process. The pool then has exactly `pages` huge pages, and only the child sees the
/// hugetlbfs mount. One such test runs at a time, and only if nothing else on the machine uses huge pages. The pool
/// is emptied again even if the child fails.
fn with_free_pages(test: &str, pages: u64, body: impl FnOnce(&Path)) {
    if part().is_some() {
        body(&place());
        return say("done");
    }
    // Mounting changes what the mounting thread sees of the file system. So a new thread mounts and starts the child,
    // which inherits the view of its thread.
    let test = test.to_owned();
    let played = std::thread::spawn(move || {
        let mount = tempfile::tempdir()?;
        let _pages = HugePages::with_pages(pages, mount.path())?;
        let mut command = play(&test, "body", mount.path());
        // The directories of a machine, of which the child sees others than the user.
        command.env_remove("EVENTRING_DIR");
        let mut child = Talk::with(command);
        // The child prints nothing if it fails, or if no test has this name.
        assert_eq!(child.hear(), "done");
        assert!(child.end().success());
        Ok::<_, Error>(())
    });
    if let Err(error) = played.join().unwrap() {
        eventring_stress::missing(format_args!("cannot set up huge pages: {error}"));
    }
}

fn make(name: &str, sections: Sections, options: &CreateOptions) -> Result<(OwnedRingFile, Mapping), ShmError> {
    let place = RingDirectories::from_environment().location_for_writing(&RingName::new(name)?);
    create(&place, sections.file_bytes().unwrap(), options, |file| Mapping::map(file, sections, MapOptions::writer()))
}

#[test]
fn a_bare_name_goes_to_huge_pages_and_needs_no_page_more_than_the_file_has() {
    with_free_pages(test_name!(), PAGES, |mount| {
        let (ring, map) = make("x", SECTIONS, &CreateOptions::default()).unwrap();
        assert_eq!(ring.path(), Some(&*mount.join("event-rings").join("x")));
        assert_eq!(ring.warning(), None);
        assert_eq!(ring.bytes(), PAGES * PAGE as u64);
        assert_eq!(HugePagePool::of_this_machine().available, 0);

        let reader =
            RingFile::open(&RingName::new("x").unwrap(), &RingDirectories::from_environment(), &OpenOptions::default())
                .unwrap();
        assert_eq!(reader.id(), ring.id());
        // No page of the pool is free any more. Mapping the payload buffer a second time, or mapping the ring in a
        // reader, needs none.
        let read_map = Mapping::map(&reader, SECTIONS, MapOptions { prefault: true, ..MapOptions::reader() }).unwrap();
        let end = map.payload_bytes();
        store(map.payload(), end + 7, 5);
        store(map.context(), 4095, 6);
        store(map.descriptors(), 0, 7);
        for map in [&map, &read_map] {
            assert_eq!(map.page_bytes(), PAGE);
            assert_eq!(load(map.payload(), 7), 5);
            assert_eq!(load(map.payload(), end + 7), 5);
            assert_eq!(load(map.context(), 4095), 6);
            assert_eq!(load(map.descriptors(), 0), 7);
        }
        let mut byte = [0];
        reader.read_at(&mut byte, SECTIONS.payload_offset().unwrap() + 7).unwrap();
        assert_eq!(byte, [5]);
        drop((ring, map, read_map, reader));
        assert_eq!(HugePagePool::of_this_machine().available, PAGES, "pages leak");
        assert_eq!(fs::read_dir(mount.join("event-rings")).unwrap().count(), 0);
    });
}

#[test]
fn a_pool_that_is_too_small_is_named_and_one_that_is_empty_only_warned_about() {
    with_free_pages(test_name!(), PAGES - 1, |mount| {
        let error = make("x", SECTIONS, &CreateOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ShmErrorKind::NoSpace);
        let message = error.to_string();
        for part in
            ["pool of huge pages", "needs 10 pages of 2 MiB", "9 of the pool's", "vm.nr_hugepages=", "event-rings/x"]
        {
            assert!(message.contains(part), "{part:?} is missing in: {message}");
        }
        assert_eq!(fs::read_dir(mount.join("event-rings")).unwrap().count(), 0);
        assert_eq!(HugePagePool::of_this_machine().available, PAGES - 1);

        fs::write(Path::new(POOL).join("nr_hugepages"), "0").unwrap();
        assert!(HugePagePool::of_this_machine().is_empty());
        let place = RingDirectories::from_environment().location_for_writing(&RingName::new("x").unwrap());
        assert_eq!(place.path, Path::new("/dev/shm/event-rings/x"));
        let mount = mount.to_path_buf();
        assert_eq!(place.warning, Some(HugePageWarning::EmptyHugePagePool { mount }));
        let options = MemfdOptions { huge_pages: true, ..MemfdOptions::default() };
        let error = create_memfd("x", 1, &options, |_| Ok::<_, ShmError>(())).unwrap_err();
        assert_eq!(error.kind(), ShmErrorKind::NoHugePages);
    });
}

#[test]
fn a_stale_ring_that_fills_the_pool_is_replaced() {
    with_free_pages(test_name!(), PAGES, |mount| {
        let keep = CreateOptions { keep: true, ..CreateOptions::default() };
        // As a recorder does, the owner notes in the header that it holds the lock that no reader can take.
        let (file, map) = make("x", SECTIONS, &keep).unwrap();
        store(map.header(), usize::try_from(WRITE_LOCK_OFFSET).unwrap(), 1);
        let owned = make("x", SECTIONS, &CreateOptions::default()).unwrap_err().kind();
        assert_eq!(owned, ShmErrorKind::AlreadyOwned { pid: Some(std::process::id()) });
        let stale = file.id();
        drop((file, map));
        assert_eq!(HugePagePool::of_this_machine().available, 0);
        let (ring, _map) = make("x", SECTIONS, &CreateOptions::default()).unwrap();
        assert_ne!(ring.id(), stale);
        assert_eq!(fs::read_dir(mount.join("event-rings")).unwrap().count(), 1);
    });
}

#[test]
fn with_room_for_both_the_stale_ring_is_exchanged() {
    with_free_pages(test_name!(), 2 * PAGES, |mount| {
        let keep = CreateOptions { keep: true, ..CreateOptions::default() };
        let stale = make("x", SECTIONS, &keep).unwrap().0.id();
        let (ring, map) = make("x", SECTIONS, &CreateOptions::default()).unwrap();
        assert_ne!(ring.id(), stale);
        assert_eq!(fs::read_dir(mount.join("event-rings")).unwrap().count(), 1);
        drop((ring, map));
        assert_eq!(HugePagePool::of_this_machine().available, 2 * PAGES);
    });
}

#[test]
fn a_file_of_huge_pages_that_is_cut_does_not_kill() {
    with_free_pages(test_name!(), PAGES, |_| {
        let (ring, map) = make("x", SECTIONS, &CreateOptions::default()).unwrap();
        store(map.header(), 0, 9);
        rustix::fs::ftruncate(&ring, PAGE as u64).unwrap();
        assert_eq!(load(map.header(), 0), 9);
        assert!(!map.was_truncated());
        assert_eq!(load(map.descriptors(), PAGE + 5), 0);
        assert_eq!(load(map.payload(), 13 * PAGE / 2), 0);
        store(map.context(), 0, 1);
        assert!(map.was_truncated());
    });
}

#[test]
fn an_anonymous_ring_can_stand_on_huge_pages() {
    with_free_pages(test_name!(), PAGES, |_| {
        let options = MemfdOptions { huge_pages: true, ..MemfdOptions::default() };
        let bytes = SECTIONS.file_bytes().unwrap();
        let make =
            |bytes| create_memfd("x", bytes, &options, |file| Mapping::map(file, SECTIONS, MapOptions::writer()));
        let (_ring, map) = make(bytes).unwrap();
        assert_eq!(map.page_bytes(), PAGE);
        store(map.payload(), map.payload_bytes(), 3);
        assert_eq!(load(map.payload(), 0), 3);
        assert_eq!(make(bytes).unwrap_err().kind(), ShmErrorKind::NoSpace);
    });
}
