//! A file that is truncated while it is mapped.

use crate::fixtures::*;
use std::os::unix::process::ExitStatusExt;
use std::ptr::NonNull;

use crate::mapped::{load, store};
use eventring::internal::shm::{MapOptions, Mapping, Sections};

const MEBIBYTE: usize = 1 << 20;
const SECTIONS: Sections =
    Sections { header_bytes: 2 << 20, descriptor_bytes: 4 << 20, payload_bytes: 2 << 20, context_bytes: 2 << 20 };

/// Makes a file full of ones.
fn file() -> File {
    let file = tempfile::tempfile_in("/dev/shm").unwrap();
    let ones = vec![1; usize::try_from(SECTIONS.file_bytes().unwrap()).unwrap()];
    std::os::unix::fs::FileExt::write_all_at(&file, &ones, 0).unwrap();
    file
}

#[test]
fn a_reader_of_a_cut_file_reads_zeros_and_learns_of_it() {
    let file = file();
    let map = Mapping::map(&file, SECTIONS, MapOptions::reader()).unwrap();
    let neighbour_file = self::file();
    let neighbour = Mapping::map(&neighbour_file, SECTIONS, MapOptions::reader()).unwrap();
    assert_eq!(load(map.payload(), 0), 1);
    file.set_len(3 * MEBIBYTE as u64).unwrap();
    assert!(!map.was_truncated(), "nobody has met the missing part");
    // The part of the file that is left is still there.
    assert_eq!(load(map.header(), 0), 1);
    assert_eq!(load(map.descriptors(), MEBIBYTE - 1), 1);
    assert!(!map.was_truncated());
    for offset in [MEBIBYTE, 4 * MEBIBYTE - 1] {
        assert_eq!(load(map.descriptors(), offset), 0);
        assert!(map.was_truncated());
    }
    assert_eq!(load(map.descriptors(), MEBIBYTE - 1), 1, "the remaining part of the section stays");
    for offset in [0, 1, 2 * MEBIBYTE - 1, 2 * MEBIBYTE, 4 * MEBIBYTE - 1] {
        assert_eq!(load(map.payload(), offset), 0);
    }
    assert_eq!(load(map.context(), 5000), 0);
    assert_eq!(load(neighbour.payload(), 0), 1);
    assert!(!neighbour.was_truncated());
}

#[test]
fn a_writer_of_a_cut_file_goes_on_into_nothing() {
    let file = file();
    let map = Mapping::map(&file, SECTIONS, MapOptions::writer()).unwrap();
    file.set_len(0).unwrap();
    store(map.payload(), 5, 7);
    store(map.header(), 0, 7);
    store(map.context(), 0, 7);
    assert!(map.was_truncated());
    assert_eq!(load(map.payload(), 5), 7);
    assert_eq!(file.metadata().unwrap().len(), 0);
}

#[test]
fn many_mappings_survive_and_places_of_dropped_ones_are_used_again() {
    let file = file();
    let map = || Mapping::map(&file, SECTIONS, MapOptions::reader()).unwrap();
    let maps: Vec<_> = (0..200).map(|_| map()).collect();
    let (kept, dropped): (Vec<_>, Vec<_>) = maps.into_iter().enumerate().partition(|(index, _)| index % 3 == 0);
    drop(dropped);
    let maps: Vec<_> = kept.into_iter().map(|(_, map)| map).chain((0..100).map(|_| map())).collect();
    file.set_len(0).unwrap();
    for map in &maps {
        assert!(!map.was_truncated());
        assert_eq!(load(map.payload(), 3 * MEBIBYTE), 0);
        assert!(map.was_truncated());
    }
}

#[test]
fn threads_that_are_reading_survive_while_another_process_cuts_the_file() {
    let (_directory, [path]) = places(["ring"]);
    for _ in 0..20 {
        std::fs::write(&path, vec![1; usize::try_from(SECTIONS.file_bytes().unwrap()).unwrap()]).unwrap();
        let map = Mapping::map(File::open(&path).unwrap(), SECTIONS, MapOptions::reader()).unwrap();
        std::thread::scope(|scope| {
            for start in [0, 777, 2 * MEBIBYTE + 99] {
                let map = &map;
                scope.spawn(move || {
                    // The loop ends only when the thread sees the truncation. So the end of the loop is the check.
                    while (start..4 * MEBIBYTE).step_by(4096).all(|offset| load(map.payload(), offset) == 1) {}
                });
            }
            let cut = std::process::Command::new("truncate").args(["-s", "0"]).arg(&path).status().unwrap();
            assert!(cut.success());
        });
        assert!(map.was_truncated());
    }
}

/// Maps a file without the library, truncates it, and reads beyond its end.
fn fault_elsewhere() {
    let file = file();
    // SAFETY: the kernel chooses the address, so the call makes a new mapping and replaces none.
    let place = unsafe {
        rustix::mm::mmap(
            std::ptr::null_mut(),
            4096,
            rustix::mm::ProtFlags::READ,
            rustix::mm::MapFlags::SHARED,
            &file,
            0,
        )
    };
    file.set_len(0).unwrap();
    load(NonNull::new(place.unwrap().cast()).unwrap(), 0);
}

extern "C" fn leave_with_42(_: libc::c_int) {
    // SAFETY: the call is async-signal-safe and ends the process.
    unsafe { libc::_exit(42) };
}

#[test]
fn a_fault_elsewhere_and_a_signal_sent_by_hand_do_what_they_did_before() {
    let test = plays!(|part| {
        // Nobody needs a core dump of a test.
        rustix::process::setrlimit(
            rustix::process::Resource::Core,
            rustix::process::Rlimit { current: Some(0), maximum: Some(0) },
        )
        .unwrap();
        let file = file();
        let disposition = match part.split(", ").nth(1) {
            Some("own handler") => Some(leave_with_42 as extern "C" fn(libc::c_int) as *const () as libc::sighandler_t),
            Some("default") => Some(libc::SIG_DFL),
            Some("ignored") => Some(libc::SIG_IGN),
            _ => None,
        };
        if let Some(disposition) = disposition {
            // The program does this before it maps a ring.
            // SAFETY: the call only sets the disposition, and the handler only ends the process.
            unsafe { libc::signal(libc::SIGBUS, disposition) };
        }
        let survive_truncation = !part.contains("opted out");
        let options = MapOptions { survive_truncation, ..MapOptions::reader() };
        let map = Mapping::map(&file, SECTIONS, options).unwrap();
        if part.contains("opted out") {
            file.set_len(0).unwrap();
            load(map.payload(), 0);
        } else if part.contains("sent") {
            // SAFETY: the call raises a signal in this thread.
            unsafe { libc::raise(libc::SIGBUS) };
        } else {
            fault_elsewhere();
        }
        std::process::exit(7);
    });
    for (part, code, signal) in [
        ("fault", None, Some(libc::SIGBUS)),
        ("fault, default", None, Some(libc::SIGBUS)),
        ("fault, ignored", None, Some(libc::SIGBUS)),
        ("fault, own handler", Some(42), None),
        ("sent, default", None, Some(libc::SIGBUS)),
        ("sent, ignored", Some(7), None),
        ("sent, own handler", Some(42), None),
        ("opted out", None, Some(libc::SIGBUS)),
    ] {
        let status = Talk::start(test, part, "".as_ref()).end();
        assert_eq!((status.code(), status.signal()), (code, signal), "{part}");
    }
}
