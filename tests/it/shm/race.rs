//! Many processes try to make the same ring at the same time. One wins. The others get an error that names the
//! winner, or another process that takes part. Nobody sees half a file.

use crate::fixtures::*;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;

use eventring::internal::shm::{
    CreateOptions, MapOptions, Mapping, OpenOptions, OwnedRingFile, RingDirectories, RingFile, RingLocation, RingName,
    Sections, ShmError, ShmErrorKind, create,
};

const SECTIONS: Sections =
    Sections { header_bytes: 4096, descriptor_bytes: 4096, payload_bytes: 64 << 10, context_bytes: 0 };
const WORDS: usize = 9216;

/// Makes the ring file, and stores the same non-zero number in each word. This takes so long that other processes
/// could see the file before it is complete.
fn make(path: &Path) -> Result<(OwnedRingFile, Mapping), ShmError> {
    let place = RingDirectories::from_environment().location_for_writing(&RingName::new(path)?);
    let options = CreateOptions { replace_prefix: b"RING", ..CreateOptions::default() };
    create(&place, SECTIONS.file_bytes().unwrap(), &options, |file| {
        let map = Mapping::map(file, SECTIONS, MapOptions::writer())?;
        let words = map.header().cast::<u64>();
        for index in 0..WORDS {
            if index % 1024 == 0 {
                std::thread::yield_now();
            }
            // SAFETY: header, descriptors and payload are 9216 contiguous words.
            let word = unsafe { words.add(index) };
            // SAFETY: the argument is the one above, and no other process has the file yet.
            unsafe { word.write_volatile(u64::from_le_bytes(*b"RINGring")) };
        }
        Ok(map)
    })
}

/// Opens the file again and again and checks that it is whole.
fn read_until(stop: &AtomicBool, path: &Path) -> u32 {
    let mut seen = 0;
    while !stop.load(Ordering::Relaxed) {
        let Ok(file) = RingFile::open_path(path, &OpenOptions::default()) else { continue };
        let mut content = vec![0; WORDS * 8 + 1];
        let read = file.read_at(&mut content, 0).unwrap();
        assert_eq!(read, WORDS * 8, "a file of another length");
        assert!(content[..read].chunks(8).all(|word| word == b"RINGring"), "a file that is not filled");
        assert_eq!(file.mode(), 0o640);
        seen += 1;
    }
    seen
}

/// Returns the names, modes and lengths of the files in a directory.
fn left_in(directory: &Path) -> Vec<(OsString, String, u64)> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        (entry.file_name(), format!("{:o}", metadata.permissions().mode()), metadata.len())
    });
    entries.collect()
}

/// A guard that stops the reader thread even if the test fails. Without it, a failed test would wait for the reader
/// for ever.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn of_many_processes_exactly_one_owns_the_ring_and_readers_see_whole_files_only() {
    const PROCESSES: usize = 6;
    let test = plays!({
        say("ready");
        // All processes start when the parent has made this file.
        let start = place().with_extension("start");
        while !start.exists() {}
        match make(&place()) {
            Ok(ring) => {
                say("won");
                wait_for_parent();
                drop(ring);
            }
            Err(error) => match error.kind() {
                ShmErrorKind::AlreadyOwned { pid: Some(pid) } => say(format!("lost to {pid}")),
                _ => say(error),
            },
        }
    });
    let (directory, [path]) = places(["ring"]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read_until(&stop, &path));
        let stop = StopOnDrop(&stop);
        for round in 0..12 {
            let mut children: Vec<_> = (0..PROCESSES).map(|_| Talk::start(test, "writer", &path)).collect();
            for child in &mut children {
                assert_eq!(child.hear(), "ready");
            }
            let start = path.with_extension("start");
            fs::write(&start, "").unwrap();
            let printed: Vec<_> = children.iter_mut().map(Talk::hear).collect();
            let winners: Vec<_> = (0..PROCESSES).filter(|&index| printed[index] == "won").collect();
            assert_eq!(winners.len(), 1, "round {round}: {printed:?}");
            let pids: Vec<_> = children.iter().map(|child| child.child.id()).collect();
            for (index, printed) in printed.iter().enumerate().filter(|(index, _)| *index != winners[0]) {
                // A process that replaces a stale file holds that file's lock for an instant. So the error may name
                // another loser as the owner. It must not name a process that does not take part.
                let named = pids.iter().any(|pid| *printed == format!("lost to {pid}"));
                assert!(named, "round {round}, process {}: {printed}", pids[index]);
            }
            fs::remove_file(&start).unwrap();
            let winner = &mut children[winners[0]];
            if round % 3 < 2 {
                // The kill leaves a stale file for the next round.
                winner.child.kill().unwrap();
                assert_eq!(winner.end().signal(), Some(libc::SIGKILL));
                assert!(path.exists());
            } else {
                assert!(winner.end().success());
                assert!(!path.exists());
            }
            drop(children);
            let left = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
            let left: Vec<_> = left.filter(|name| name != "ring").collect();
            assert!(left.is_empty(), "round {round}: {left:?}");
        }
        drop(stop);
        assert!(reader.join().unwrap() > 0);
    });
}

#[test]
fn of_many_threads_exactly_one_owns_the_ring() {
    let directory = directory();
    let path = Arc::new(directory.path().join("ring"));
    for _ in 0..50 {
        let barrier = Arc::new(Barrier::new(4));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (barrier, path) = (Arc::clone(&barrier), Arc::clone(&path));
                std::thread::spawn(move || {
                    barrier.wait();
                    let made = make(&path);
                    // No thread releases its ring before all threads have tried.
                    barrier.wait();
                    made.map(drop)
                })
            })
            .collect();
        let results: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let owned = ShmErrorKind::AlreadyOwned { pid: Some(std::process::id()) };
        let (won, lost): (Vec<_>, Vec<_>) = results.iter().partition(|result| result.is_ok());
        assert_eq!(won.len(), 1, "{results:?}");
        assert!(lost.iter().all(|result| result.as_ref().is_err_and(|error| error.kind() == owned)), "{results:?}");
        assert_eq!(left_in(directory.path()), []);
    }
}

#[test]
fn threads_that_fight_for_a_name_never_publish_each_others_unfinished_file() {
    let (directory, [path]) = places(["ring"]);
    let place = RingDirectories::from_environment().location_for_writing(&RingName::new(&path).unwrap());
    let won: u32 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut won = 0;
                    for _ in 0..1000 {
                        let made = create(&place, 4096, &CreateOptions::default(), |file| {
                            rustix::io::pwrite(file, b"whole", 0).unwrap();
                            Ok::<_, ShmError>(())
                        });
                        match made {
                            Ok((ring, ())) => {
                                let file = RingFile::open_path(&path, &OpenOptions::default()).unwrap();
                                assert_eq!(file.id(), ring.id(), "somebody else's file has our name");
                                let mut content = [0; 5];
                                file.read_at(&mut content, 0).unwrap();
                                assert_eq!((&content, file.mode()), (b"whole", 0o640));
                                won += 1;
                            }
                            Err(error) => {
                                let is_owned = matches!(error.kind(), ShmErrorKind::AlreadyOwned { .. });
                                assert!(is_owned, "{error}");
                            }
                        }
                    }
                    won
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(won > 0);
    assert_eq!(left_in(directory.path()), []);
}

#[test]
fn a_ring_directory_that_comes_and_goes_gets_in_nobodys_way() {
    let (_directory, [rings]) = places(["rings"]);
    std::thread::scope(|scope| {
        for name in ["a", "b", "c"] {
            let place = RingLocation {
                path: rings.join(name),
                in_ring_directory: true,
                remove_empty_directory: true,
                warning: None,
            };
            scope.spawn(move || {
                for _ in 0..500 {
                    drop(create(&place, 4096, &CreateOptions::default(), |_| Ok::<_, ShmError>(())).unwrap());
                }
            });
        }
    });
    assert!(!rings.exists());
}

#[test]
fn a_maker_that_is_killed_at_any_moment_leaves_nothing_in_the_way() {
    let test = plays!(|part| {
        say("ready");
        loop {
            let (ring, _map) = make(&place()).unwrap();
            // If the ring is kept, the next round of this loop finds a stale file. Otherwise it finds the name free.
            ring.keep(part == "replacer");
        }
    });
    let (directory, [path]) = places(["ring"]);
    let begin = Instant::now();
    for round in 0..40 {
        let part = if round % 2 == 0 { "maker" } else { "replacer" };
        let maker = Talk::told(test, part, &path, "ready");
        // The sleep has another length each time, so the maker is killed at another moment of its loop.
        std::thread::sleep(Duration::from_micros(u64::from(begin.elapsed().subsec_nanos()) % 997));
        drop(maker);
        drop(make(&path).unwrap());
        assert_eq!(left_in(directory.path()), []);
    }
}
