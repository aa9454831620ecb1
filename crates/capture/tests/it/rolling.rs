//! Captures that keep only the last seconds, and files that are cut out of them.

use eventring::reader::Reader;
use eventring::recorder::{Clock, ContentDescription, Recorder};
use eventring_capture::{
    CaptureFile, CaptureOptions, CapturedContent, NextRing, RollingCapture, RollingOptions, Shortfall, capture,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

type Events = BTreeMap<String, Vec<(u64, u64, u64)>>;

const END: u64 = u64::MAX - 1;

fn recorder(path: &Path) -> Recorder {
    Recorder::builder(ContentDescription::new(300, "THINGS")).config(path).shifts(16, 27).build().unwrap()
}

fn begin(paths: &[PathBuf], options: &RollingOptions) -> RollingCapture {
    let mut rings: Vec<Reader> = paths.iter().rev().map(|path| Reader::open(path).unwrap()).collect();
    RollingCapture::begin(move || rings.pop().map_or(NextRing::NoMore, NextRing::Ring), options).unwrap()
}

/// The events of a file by ring: seqno, time and a digest of the payload.
fn events(path: &Path) -> Events {
    let file = CaptureFile::open(path).unwrap();
    assert!(file.problems().is_empty(), "{:?}", file.problems());
    let names: Vec<String> = file.rings().iter().map(|ring| ring.name.clone()).collect();
    let mut events: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for record in file.events() {
        if let CapturedContent::Event { descriptor, payload } = record.content {
            let bytes = payload.as_read().valid().unwrap().to_vec();
            let digest =
                bytes.iter().fold(bytes.len() as u64, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()));
            let of_ring = events.entry(names[record.ring as usize].clone()).or_default();
            of_ring.push((descriptor.seqno, descriptor.record_epoch_nanos, digest));
        }
    }
    events
}

/// The number of events of each ring, and the first and the last seqno: found and expected.
fn summary_of(found: &Events, expected: &Events) -> Vec<(String, usize, Option<u64>, Option<u64>)> {
    let summary = |(ring, events): (&String, &Vec<(u64, u64, u64)>)| {
        (ring.clone(), events.len(), events.first().map(|it| it.0), events.last().map(|it| it.0))
    };
    found.iter().map(summary).chain(expected.iter().map(summary)).collect()
}

/// Checks that the counts of a file account for each seqno from the first one of the file to the last one.
fn check_account(path: &Path) {
    let file = CaptureFile::open(path).unwrap();
    for (ring, stats) in file.rings().iter().zip(&file.end().unwrap().stats.rings) {
        let all = stats.events + stats.lost() + stats.skipped();
        assert_eq!(all, (stats.last_seqno + 1).saturating_sub(ring.first_seqno), "{}: {stats:?}", ring.name);
    }
}

#[test]
fn a_cut_has_exactly_the_events_of_its_time_while_writers_go_on() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let paths = ["a", "b"].map(|name| directory.path().join(name));
    // They hold everything, so a plain capture at the end is the oracle.
    let large = |path: &PathBuf| {
        let builder = Recorder::builder(ContentDescription::new(300, "THINGS")).config(path);
        builder.shifts(20, 27).prefault(false).build().unwrap()
    };
    let recorders = [large(&paths[0]), large(&paths[1])];
    let is_over = AtomicBool::new(false);
    let whole = directory.path().join("whole.evc");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0_u64;
            while !is_over.load(Ordering::Relaxed) {
                for recorder in &recorders {
                    number += 1;
                    assert_ne!(recorder.record(2, [number, 0, 0, 0], &number.to_le_bytes()), 0);
                }
                if number.is_multiple_of(64) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        });
        let rolling = begin(&paths, &RollingOptions::new().keep(Duration::from_secs(60)));
        let mut asked = Vec::new();
        for number in 0..4 {
            std::thread::sleep(Duration::from_millis(300));
            let now = eventring::recorder::Clock::global().now_epoch_nanos();
            let (from, to) = (now - 150_000_000, now - number * 10_000_000);
            let path = directory.path().join(format!("{number}.evc"));
            let cut = rolling.cut(from..=to, &path, false).unwrap();
            assert_eq!((cut.shortfall, cut.from_epoch_nanos, cut.to_epoch_nanos), (None, from, to));
            asked.push((path, from, to, cut.events));
        }
        is_over.store(true, Ordering::Relaxed);
        let summary = rolling.finish().unwrap();
        assert_eq!(summary.stats.lost(), 0);
        capture(&paths, &whole, &CaptureOptions::new().duration(Duration::ZERO), &mut |_| ControlFlow::Continue(()))
            .unwrap();
        let all = events(&whole);
        for (path, from, to, count) in asked {
            let found = events(&path);
            let expected: BTreeMap<_, Vec<_>> = all
                .iter()
                .map(|(ring, events)| {
                    let in_time = events.iter().filter(|(_, nanos, _)| (from..=to).contains(nanos));
                    (ring.clone(), in_time.cloned().collect())
                })
                .collect();
            assert!(found == expected, "{:?}", summary_of(&found, &expected));
            assert_eq!(found.values().map(Vec::len).sum::<usize>() as u64, count);
            assert!(count > 100, "{count}");
            check_account(&path);
        }
    });
}

#[test]
fn a_cut_of_a_capture_that_is_behind_says_so_however_long_ago_its_time_was() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let paths = ["held-up", "live"].map(|name| directory.path().join(name));
    let [held_up, live] = paths.each_ref().map(|path| recorder(path));
    let rolling = begin(&paths, &RollingOptions::new().keep(Duration::from_secs(8)));
    // Nothing after an open reservation is copied: the writer may still commit it.
    let open = held_up.reserve(2, [0; 4], 0).unwrap();
    held_up.record(2, [0; 4], b"recorded in the time of the cut");
    let now = || eventring::recorder::Clock::global().now_epoch_nanos();
    let to = now();
    rolling.hold(Some(to - 1_000_000_000));
    // Meanwhile, files end and begin.
    for _ in 0..450 {
        live.record(2, [0; 4], b"later");
        std::thread::sleep(Duration::from_millis(10));
    }
    let path = directory.path().join("cut.evc");
    let cut = rolling.cut(to - 1_000_000_000..=to, &path, false).unwrap();
    assert_eq!((cut.events, cut.shortfall), (0, Some(Shortfall::Late)));
    open.commit();
    let cut = rolling.cut(to - 1_000_000_000..=to, &path, true).unwrap();
    assert_eq!((cut.events, cut.shortfall), (2, None));
}

#[test]
fn a_cut_says_that_events_were_forgotten_for_want_of_memory() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("a");
    let recorder = recorder(&path);
    let rolling = begin(std::slice::from_ref(&path), &RollingOptions::new().memory(1 << 20));
    let mut noise = 1_u64;
    for _ in 0..40 {
        for _ in 0..500 {
            let bytes: Vec<u8> = std::iter::repeat_with(|| {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (noise >> 56) as u8
            })
            .take(200)
            .collect();
            assert_ne!(recorder.record(2, [0; 4], &bytes), 0);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let file = directory.path().join("cut.evc");
    let cut = rolling.cut(0..=END, &file, false).unwrap();
    assert_eq!(cut.shortfall, Some(Shortfall::Memory));
    assert!(cut.events > 0 && cut.events < 20_000 && cut.bytes < 1 << 20, "{cut:?}");
    assert!(cut.from_epoch_nanos > 0);
    assert!(rolling.state().bytes <= 1 << 20, "{:?}", rolling.state());
    check_account(&file);
    let first = CaptureFile::open(&file).unwrap().rings()[0].first_seqno;
    assert_eq!(first - 1 + cut.events, 20_000);
}

#[test]
fn a_cut_says_that_the_ring_was_too_short_for_it() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("a");
    let recorder = recorder(&path);
    (0..100_000_u64).for_each(|number| assert_ne!(recorder.record(2, [number; 4], b""), 0));
    let rolling = begin(std::slice::from_ref(&path), &RollingOptions::new());
    let file = directory.path().join("cut.evc");
    let cut = rolling.cut(0..=END, &file, false).unwrap();
    assert_eq!((cut.shortfall, cut.events), (Some(Shortfall::Overwritten), 1 << 16));
    check_account(&file);
    // Later, nothing is missing.
    let again = directory.path().join("again.evc");
    let cut = rolling.cut(cut.from_epoch_nanos + 1..=END, &again, false).unwrap();
    assert_eq!((cut.shortfall, cut.lost), (None, 0));
    check_account(&again);
}

#[test]
fn a_ring_that_has_ended_can_still_be_cut_and_old_events_are_forgotten() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("a");
    let recorder = recorder(&path);
    let rolling = begin(std::slice::from_ref(&path), &RollingOptions::new().keep(Duration::from_secs(1)));
    let mut begun_nanos = Vec::new();
    for _ in 0..30 {
        begun_nanos.push(Clock::global().now_epoch_nanos());
        assert_ne!(recorder.record(2, [0; 4], b"x"), 0);
        std::thread::sleep(Duration::from_millis(100));
    }
    let file = directory.path().join("cut.evc");
    let cut = rolling.cut(0..=END, &file, false).unwrap();
    assert_eq!(cut.shortfall, Some(Shortfall::Forgotten));
    assert!((1..30).contains(&cut.events), "{cut:?}");
    drop(recorder);
    while !rolling.state().has_ended {
        std::thread::sleep(Duration::from_millis(10));
    }
    // More was forgotten until the capture knew of the end, and nothing is forgotten after it.
    std::thread::sleep(Duration::from_millis(1500));
    let kept_from = rolling.state().kept_from_epoch_nanos;
    let kept = begun_nanos.iter().filter(|begun| **begun >= kept_from).count() as u64;
    let after = directory.path().join("after.evc");
    let cut = rolling.cut(kept_from..=END, &after, false).unwrap();
    // One event may have been begun just before, and recorded after.
    assert!(kept > 0 && (kept..=kept + 1).contains(&cut.events) && cut.shortfall.is_none(), "{kept} of {cut:?}");
    assert!(rolling.cut(0..=END, &after, false).is_err(), "the file was replaced");
    assert!(!CaptureFile::open(&after).unwrap().end().unwrap().stats.rings[0].was_live);
}

#[test]
fn events_that_are_held_are_kept_however_old_they_are() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("a");
    let recorder = recorder(&path);
    let rolling = begin(std::slice::from_ref(&path), &RollingOptions::new().keep(Duration::from_millis(500)));
    rolling.hold(Some(0));
    for _ in 0..25 {
        assert_ne!(recorder.record(2, [0; 4], b"x"), 0);
        std::thread::sleep(Duration::from_millis(100));
    }
    let cut = rolling.cut(0..=END, &directory.path().join("held.evc"), false).unwrap();
    assert_eq!((cut.events, cut.shortfall), (25, None));
    rolling.hold(None);
    for _ in 0..25 {
        assert_ne!(recorder.record(2, [0; 4], b"x"), 0);
        std::thread::sleep(Duration::from_millis(100));
    }
    let cut = rolling.cut(0..=END, &directory.path().join("cut.evc"), false).unwrap();
    assert!(cut.events < 40 && cut.shortfall == Some(Shortfall::Forgotten), "{cut:?}");
}

#[test]
fn a_capture_that_was_ended_can_still_be_cut_and_takes_no_further_events() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("ring");
    let recorder = recorder(&path);
    let capture = begin(std::slice::from_ref(&path), &RollingOptions::new());
    (0..100_u64).for_each(|n| assert_ne!(recorder.record(2, [0; 4], &n.to_le_bytes()), 0));
    capture.end();
    while !capture.state().has_ended {
        std::thread::sleep(Duration::from_millis(1));
    }
    (0..100_u64).for_each(|n| assert_ne!(recorder.record(2, [0; 4], &n.to_le_bytes()), 0));
    for name in ["first", "second"] {
        let cut = directory.path().join(name);
        assert_eq!(capture.cut(0..=END, &cut, false).unwrap().events, 100);
        assert_eq!(events(&cut)["ring"].len(), 100);
    }
    assert_eq!(capture.finish().unwrap().stats.events(), 100);
}

#[test]
fn a_spool_directory_holds_no_file_with_a_name() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let spool = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    let recorder = recorder(&path);
    let rolling = begin(std::slice::from_ref(&path), &RollingOptions::new().spool(spool.path()));
    assert_ne!(recorder.record(2, [0; 4], b"x"), 0);
    let file = directory.path().join("cut.evc");
    assert_eq!(rolling.cut(0..=END, &file, false).unwrap().events, 1);
    assert_eq!(std::fs::read_dir(spool.path()).unwrap().count(), 0);
    let missing = RollingOptions::new().spool(spool.path().join("missing"));
    let mut rings = vec![Reader::open(&path).unwrap()];
    let next_ring = move || rings.pop().map_or(NextRing::NoMore, NextRing::Ring);
    let error = RollingCapture::begin(next_ring, &missing).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn any_cut_equals_the_same_part_of_a_plain_capture(
        sizes in prop::collection::vec(0_usize..300, 1..400), rings in 1_usize..4, from in 0.0_f64..1.2, length in 0.0_f64..1.2,
    ) {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let paths: Vec<PathBuf> = (0..rings).map(|ring| directory.path().join(format!("r{ring}"))).collect();
        let recorders: Vec<Recorder> = paths.iter().map(|path| recorder(path)).collect();
        for (number, size) in sizes.iter().enumerate() {
            recorders[number * 7 % rings].record(2 + (number % 3) as u16, [number as u64; 4], &vec![number as u8; *size]);
        }
        let whole = directory.path().join("whole.evc");
        let now = CaptureOptions::new().duration(Duration::ZERO);
        capture(&paths, &whole, &now, &mut |_| ControlFlow::Continue(())).unwrap();
        let all = events(&whole);
        let times = || all.values().flatten().map(|(_, nanos, _)| *nanos);
        let (first, last) = (times().min().unwrap(), times().max().unwrap());
        let span = (last - first) as f64;
        let from = first + (span * from) as u64;
        let to = from + (span * length) as u64;
        let rolling = begin(&paths, &RollingOptions::new());
        let path = directory.path().join("cut.evc");
        rolling.cut(from..=to, &path, false).unwrap();
        check_account(&path);
        let mut expected: BTreeMap<String, Vec<_>> = all;
        expected.values_mut().for_each(|events| events.retain(|(_, nanos, _)| (from..=to).contains(nanos)));
        expected.retain(|_, events| !events.is_empty());
        let found = events(&path);
        prop_assert!(found == expected, "{:?}", summary_of(&found, &expected));
    }
}
