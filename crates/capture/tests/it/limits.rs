//! A capture's files never exceed their size limits, not even by a byte, and full files come close to the limit.

use eventring::internal::layout::descriptor::{WORD_PAYLOAD_OFFSET, WORD_TYPE_AND_SIZE, pack_type_and_size};
use eventring::internal::layout::limits::{DESCRIPTOR_BYTES, HEADER_SECTION_BYTES};
use eventring::reader::{GapCause, Reader};
use eventring::recorder::{ContentDescription, Recorder};
use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use eventring_capture::{
    CaptureFile, CaptureOptions, CaptureSummary, CapturedContent, CapturedPayload, EndReason, NextRing, capture,
    capture_rings,
};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Returns bytes that do not compress.
fn noise(seed: &mut u64, bytes: usize) -> Vec<u8> {
    let mut next = || {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed
    };
    (0..bytes).map(|_| next() as u8).collect()
}

/// Records events on this thread and then on a second one, so that the recorder has two shards. One call site records
/// only in the second half of each thread's events.
fn record(recorder: &PerfRecorder, events: u64, noise_bytes: usize) {
    let body = || {
        let mut seed = 0x9e37_79b9_7f4a_7c15;
        tracing::subscriber::with_default(RecorderSubscriber::new(recorder.clone()), || {
            for n in 0..events {
                match n % 3 {
                    0 => tracing::info!(n, "something"),
                    1 if n > events / 2 => tracing::info!(n, late = true, "something that comes late"),
                    _ => tracing::info!(n, noise = &noise(&mut seed, noise_bytes)[..], "noise"),
                }
            }
        });
    };
    body();
    // Without the explicit `join`, the scope would not wait for the last event of the thread.
    std::thread::scope(|scope| scope.spawn(body).join().unwrap());
}

struct Ring {
    place: PathBuf,
    recorder: PerfRecorder,
    directory: tempfile::TempDir,
}

impl Ring {
    fn new(events: u64, noise_bytes: usize) -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let place = directory.path().join("ring");
        let builder = PerfRecorder::builder().config(&place).shifts(17, 24).tables_shift(16).shards(2);
        let recorder = builder.prefault(false).build().unwrap();
        record(&recorder, events, noise_bytes);
        Self { place, recorder, directory }
    }

    fn handed_out(&self) -> u64 {
        self.recorder.stats().shards.iter().map(|shard| shard.last_seqno).sum()
    }

    fn capture(&self, options: &CaptureOptions) -> CaptureSummary {
        let output = self.directory.path().join("t.evc");
        let options = options.clone().overwrite(true).duration(std::time::Duration::ZERO);
        capture(std::slice::from_ref(&self.place), &output, &options, &mut |_| ControlFlow::Continue(())).unwrap()
    }
}

fn bytes_of(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

/// Checks that each file says how many events it holds, and that the number is right. Returns the number of events in
/// all files together.
fn check_account(files: &[PathBuf]) -> u64 {
    let mut events = 0;
    for file in files {
        let capture = CaptureFile::open(file).unwrap();
        assert!(!capture.is_truncated() && capture.problems().is_empty(), "{:?}", capture.problems());
        assert_eq!(capture.events().count() as u64, capture.end().unwrap().stats.events());
        events += capture.end().unwrap().stats.events();
    }
    events
}

#[test]
fn a_file_stays_below_its_limit_and_makes_use_of_it() {
    for (events, noise_bytes) in [(30_000, 8), (3000, 700)] {
        let ring = Ring::new(events, noise_bytes);
        for limit in [8_000, 20_000, 50_001, 123_456, 250_000] {
            let summary = ring.capture(&CaptureOptions::new().max_bytes(limit));
            assert_eq!(summary.reason, EndReason::Size, "{limit}");
            let bytes = bytes_of(&summary.files[0]);
            assert!(bytes <= limit && bytes + 4_096 > limit, "{bytes} of {limit}");
            assert_eq!((summary.bytes, summary.stats.lost()), (bytes, 0));
            let unread: u64 = summary.stats.rings.iter().map(|ring| ring.unread).sum();
            assert_eq!(check_account(&summary.files) + unread, ring.handed_out());
        }
    }
}

#[test]
fn a_capture_is_readable_by_its_owner_and_group_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let ring = Ring::new(100, 8);
    let summary = ring.capture(&CaptureOptions::new());
    let mode = std::fs::metadata(&summary.files[0]).unwrap().permissions().mode();
    assert_eq!(mode & 0o137, 0, "{mode:o}");
}

#[test]
fn rotated_files_keep_their_limit_and_hold_everything_together() {
    for (events, noise_bytes) in [(30_000, 8), (3000, 700)] {
        let ring = Ring::new(events, noise_bytes);
        for limit in [20_000, 77_777, 250_000] {
            let summary = ring.capture(&CaptureOptions::new().rotate_bytes(limit));
            assert!(summary.files.len() > 1, "{limit}");
            let (last, full) = summary.files.split_last().unwrap();
            assert!(bytes_of(last) <= limit);
            for file in full {
                let bytes = bytes_of(file);
                assert!(bytes <= limit && bytes + 8192 > limit, "{bytes} of {limit}");
            }
            assert_eq!(check_account(&summary.files), ring.handed_out());
            summary.files.iter().for_each(|file| std::fs::remove_file(file).unwrap());
        }
    }
}

#[test]
fn rotated_files_keep_a_limit_together() {
    let ring = Ring::new(30_000, 8);
    let summary = ring.capture(&CaptureOptions::new().rotate_bytes(30_000).max_bytes(100_000));
    assert_eq!(summary.reason, EndReason::Size);
    let bytes: u64 = summary.files.iter().map(|file| bytes_of(file)).sum();
    assert!(bytes <= 100_000 && bytes > 70_000 && summary.files.len() >= 3, "{bytes} in {:?}", summary.files);
    assert!(summary.files.iter().all(|file| bytes_of(file) <= 30_000));
    let unread: u64 = summary.stats.rings.iter().map(|ring| ring.unread).sum();
    assert_eq!(check_account(&summary.files) + unread, ring.handed_out());
}

#[test]
fn an_event_larger_than_the_files_has_a_file_of_its_own() {
    let ring = Ring::new(30, 6000);
    let summary = ring.capture(&CaptureOptions::new().rotate_bytes(1000));
    assert_eq!(check_account(&summary.files), ring.handed_out());
    // Each file holds one event, and the descriptions that a reader needs to understand this event.
    assert!(summary.files.iter().all(|file| bytes_of(file) < 16_000));
}

#[test]
fn a_limit_below_the_descriptions_gives_a_capture_without_events() {
    let ring = Ring::new(30, 8);
    let summary = ring.capture(&CaptureOptions::new().max_bytes(10));
    assert_eq!((summary.reason, check_account(&summary.files)), (EndReason::Size, 0));
    assert_eq!(summary.stats.missing_by(GapCause::Overwritten), 0);
}

#[test]
fn a_ring_that_is_held_open_is_captured_though_its_file_is_gone() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let made = |name: &str| {
        let path = directory.path().join(name);
        let builder = Recorder::builder(ContentDescription::new(300, "THINGS")).config(&path).shifts(16, 27);
        let recorder = builder.prefault(false).build().unwrap();
        let reader = Reader::open(&path).unwrap();
        (0..50).for_each(|_| assert_ne!(recorder.record(2, [0; 4], b"thing"), 0));
        drop(recorder);
        assert!(!path.exists());
        reader
    };
    // Both rings have ended. The capture gets ring "a" at its start, and ring "b" later. With `only_new` it takes no
    // event of "a". It takes all events of "b", because a ring that comes after the capture's start is new as a
    // whole.
    let mut rings = vec![NextRing::NoMore, NextRing::Ring(made("b")), NextRing::NotYet, NextRing::NotYet];
    rings.push(NextRing::Ring(made("a")));
    let output = directory.path().join("t.evc");
    let options = CaptureOptions::new().only_new(true);
    let mut next_ring = || rings.pop().unwrap_or(NextRing::NoMore);
    let summary = capture_rings(&mut next_ring, &output, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((summary.reason, summary.rings), (EndReason::WritersEnded, vec!["a".to_owned(), "b".to_owned()]));
    let last_seqnos: Vec<u64> = summary.stats.rings.iter().map(|ring| ring.last_seqno).collect();
    assert_eq!((summary.first_seqnos, last_seqnos), (vec![51, 1], vec![50, 50]));
    let events: Vec<u64> = summary.stats.rings.iter().map(|ring| ring.events).collect();
    assert_eq!((events, check_account(&summary.files)), (vec![0, 50], 50));
}

#[test]
fn a_capture_of_no_ring_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("t.evc");
    for mut first in [Some(NextRing::NotYet), Some(NextRing::NoMore)] {
        let mut next_ring = || first.take().unwrap_or(NextRing::NoMore);
        let options = CaptureOptions::new();
        let refused = capture_rings(&mut next_ring, &output, &options, &mut |_| ControlFlow::Continue(()));
        assert_eq!(refused.unwrap_err().kind(), eventring_capture::CaptureErrorKind::BadOptions);
        assert!(!output.exists());
    }
}

#[test]
fn events_in_files_that_were_removed_are_counted_apart() {
    let ring = Ring::new(30_000, 8);
    let total: u64 =
        ring.capture(&CaptureOptions::new().rotate_bytes(50_000)).files.iter().map(|file| bytes_of(file)).sum();
    for keep in [1, 2, 3] {
        let summary = ring.capture(&CaptureOptions::new().rotate_bytes(50_000).keep_files(keep));
        assert_eq!(summary.files.len(), keep);
        assert!(summary.removed_files >= 3, "{summary:?}");
        let bytes: u64 = summary.files.iter().map(|file| bytes_of(file)).sum();
        assert_eq!(summary.bytes, bytes);
        assert!(summary.bytes + summary.removed_bytes > total / 2);
        let account = &summary.stats;
        assert_eq!(account.events(), check_account(&summary.files));
        assert!(account.removed() > 0 && account.lost() == 0);
        for ring in &account.rings {
            assert_eq!(ring.events + ring.removed + ring.skipped(), ring.last_seqno);
        }
        assert_eq!(account.events() + account.removed() + account.skipped(), ring.handed_out());
        // The end of the last file has the same counts as the summary.
        let files = CaptureFile::open_all(&summary.files).unwrap();
        let kept = &files.end().unwrap().stats;
        assert_eq!((kept.events(), kept.removed(), kept.lost()), (account.events(), account.removed(), 0));
    }
}

#[test]
fn rotation_tolerates_that_a_file_was_removed_already() {
    let ring = Ring::new(10, 8);
    let output = ring.directory.path().join("t.evc");
    let first = ring.directory.path().join("t.0001.evc");
    let mut ticks = 0;
    let mut progress = |progress: &eventring_capture::CaptureProgress| {
        let _ = std::fs::remove_file(&first);
        ticks += 1;
        if progress.files > 3 || ticks > 100 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = CaptureOptions::new().rotate_every(std::time::Duration::from_millis(1)).keep_files(1);
    let summary = capture(std::slice::from_ref(&ring.place), &output, &options, &mut progress).unwrap();
    assert_eq!((summary.files.len(), summary.stats.lost()), (1, 0));
    assert_eq!(summary.stats.events() + summary.stats.removed(), ring.handed_out());
}

#[test]
fn payloads_that_share_their_bytes_do_not_make_a_capture_larger_than_the_ring() {
    const EVENTS: u64 = 2000;
    const PAYLOAD_BYTES: u64 = 64 << 10;
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("ring");
    let builder = Recorder::builder(ContentDescription::new(300, "THINGS")).config(&path).shifts(16, 27);
    let recorder = builder.prefault(false).keep(true).build().unwrap();
    (0..EVENTS).for_each(|_| assert_ne!(recorder.record(2, [0; 4], &noise(&mut 7, 8)), 0));
    drop(recorder);
    // This loop makes all descriptors name the same payload bytes. In half of the descriptors the payload offset is
    // one or more laps of the payload buffer later, which leads to the same bytes.
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    for index in 0..EVENTS {
        let place = HEADER_SECTION_BYTES + index * DESCRIPTOR_BYTES;
        let word = |word: usize, value: u64| {
            std::os::unix::fs::FileExt::write_all_at(&file, &value.to_le_bytes(), place + 8 * word as u64).unwrap();
        };
        word(WORD_TYPE_AND_SIZE, pack_type_and_size(2, PAYLOAD_BYTES as u32));
        word(WORD_PAYLOAD_OFFSET, if index % 2 == 0 { 0 } else { index << 27 });
    }
    let output = directory.path().join("t.evc");
    let summary = capture(&[path], &output, &CaptureOptions::new(), &mut |_| ControlFlow::Continue(())).unwrap();
    let ring = &summary.stats.rings[0];
    // All events were captured; only the payloads are damaged.
    assert_eq!((ring.events, ring.malformed_payloads, ring.lost()), (EVENTS, EVENTS - 1, 0));
    assert!(summary.problems[0].contains("1999 of its payloads share bytes"), "{:?}", summary.problems);
    let capture = CaptureFile::open(&output).unwrap();
    let payload_bytes = capture.events().map(|item| match item.content {
        CapturedContent::Event { payload: CapturedPayload::Valid(bytes), .. } => bytes.len() as u64,
        _ => 0,
    });
    assert_eq!(payload_bytes.sum::<u64>(), PAYLOAD_BYTES);
}

#[test]
fn a_capture_of_now_cuts_all_rings_at_one_moment() {
    const BULK: u16 = 2;
    const PAIR: u16 = 3;
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let [bulky, small] = ["a", "b"].map(|name| directory.path().join(name));
    let made = |path: &PathBuf, payload_shift| {
        let builder = Recorder::builder(ContentDescription::new(300, "THINGS")).config(path).shifts(16, payload_shift);
        builder.prefault(false).build().unwrap()
    };
    let recorders = [made(&bulky, 28), made(&small, 27)];
    let mut seed = 0x9e37_79b9_7f4a_7c15;
    (0..1900).for_each(|_| assert_ne!(recorders[0].record(BULK, [0; 4], &noise(&mut seed, 32 << 10)), 0));
    let record_pair = || recorders.iter().for_each(|recorder| assert_ne!(recorder.record(PAIR, [0; 4], b""), 0));
    record_pair();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let output = directory.path().join("t.evc");
    let begun = std::time::Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                record_pair();
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
        });
        // Compressing the first ring takes long, so the second ring is copied much later.
        let options = CaptureOptions::new().duration(std::time::Duration::ZERO).compression_level(12);
        capture(&[bulky.clone(), small.clone()], &output, &options, &mut |_| ControlFlow::Continue(())).unwrap();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let took_millis = begun.elapsed().as_millis() as u64;
    let mut last_nanos = [0, 0];
    for record in CaptureFile::open(&output).unwrap().events() {
        if let CapturedContent::Event { descriptor, .. } = record.content {
            last_nanos[record.ring as usize] = descriptor.record_epoch_nanos;
        }
    }
    let apart_millis = last_nanos[0].abs_diff(last_nanos[1]) / 1_000_000;
    // A busy machine may stop the thread that records, but not for most of the time that copying takes.
    let may_be_millis = (took_millis / 4).max(40);
    assert!(apart_millis < may_be_millis, "the rings were cut {apart_millis} ms apart: {last_nanos:?}");
}
