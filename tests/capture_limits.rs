//! A capture's files keep their limits, to the byte, and use them.
#![cfg(feature = "capture")]

use eventring::capture::{CaptureFile, CaptureOptions, CaptureSummary, EndReason, LossCause, capture};
use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Bytes that do not compress.
fn noise(seed: &mut u64, bytes: usize) -> Vec<u8> {
    let mut next = || {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed
    };
    (0..bytes).map(|_| next() as u8).collect()
}

/// Records on this thread and on another, so that there are two shards and new call sites on the way.
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
    std::thread::scope(|scope| {
        scope.spawn(body);
    });
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

/// Every seqno of every ring is in one of the files, as an event or in a gap.
fn check_account(files: &[PathBuf]) -> u64 {
    let mut events = 0;
    for file in files {
        let capture = CaptureFile::open(file).unwrap();
        assert!(!capture.is_truncated() && capture.problems().is_empty(), "{:?}", capture.problems());
        assert_eq!(capture.events().count() as u64, capture.end().unwrap().account.events());
        events += capture.end().unwrap().account.events();
    }
    events
}

#[test]
fn a_file_ends_before_it_is_larger_than_asked_for_and_has_used_what_it_may() {
    for (events, noise_bytes) in [(30_000, 8), (3000, 700)] {
        let ring = Ring::new(events, noise_bytes);
        for limit in [20_000, 50_001, 123_456, 250_000] {
            let summary = ring.capture(&CaptureOptions::new().max_bytes(limit));
            assert_eq!(summary.reason, EndReason::Size, "{limit}");
            let bytes = bytes_of(&summary.files[0]);
            assert!(bytes <= limit && bytes + 8192 > limit, "{bytes} of {limit}");
            assert_eq!((summary.bytes, summary.account.lost()), (bytes, 0));
            let unread: u64 = summary.account.rings.iter().map(|ring| ring.unread).sum();
            assert_eq!(check_account(&summary.files) + unread, ring.handed_out());
        }
    }
}

#[test]
fn a_capture_is_nobodys_to_read_but_its_owners_and_its_groups() {
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
    let unread: u64 = summary.account.rings.iter().map(|ring| ring.unread).sum();
    assert_eq!(check_account(&summary.files) + unread, ring.handed_out());
}

#[test]
fn an_event_larger_than_the_files_has_a_file_of_its_own() {
    let ring = Ring::new(30, 6000);
    let summary = ring.capture(&CaptureOptions::new().rotate_bytes(1000));
    assert_eq!(check_account(&summary.files), ring.handed_out());
    // What must be in it, and one event.
    assert!(summary.files.iter().all(|file| bytes_of(file) < 16_000));
}

#[test]
fn a_limit_that_not_even_the_descriptions_keep_gives_a_capture_without_events() {
    let ring = Ring::new(30, 8);
    let summary = ring.capture(&CaptureOptions::new().max_bytes(10));
    assert_eq!((summary.reason, check_account(&summary.files)), (EndReason::Size, 0));
    assert_eq!(summary.account.missing_by(LossCause::Overwritten), 0);
}
