//! Tests of the files of receivers. Batches arrive in any order, or not at all. Each seqno must be in the file once, or
//! in a gap.

use super::{Added, ReceivedCapture, ReceivedOptions};
use crate::engine::summary::NextRing;
use crate::format::header::{BlockKind, RINGS_MAX};
use crate::select::batch_filter::BatchFilter;
use crate::sinks::batches::{Batch, BatchOptions, BatchStart, BatchesInMemory, capture_batches, read_batch};
use crate::{CaptureFile, CapturedContent, CapturedPayload, CapturedRing, EndReason, RingStats, RotationOptions};
use eventring::reader::Reader;
use eventring::recorder::{ContentDescription, Recorder};
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

const EVENTS: u64 = 100;

fn of_50_000_bytes() -> RotationOptions {
    RotationOptions { rotate_bytes: Some(50_000), ..RotationOptions::default() }
}

/// Returns payload that cannot be compressed, another one for each number.
fn payload(number: u64) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..1500).map(|_| next()).collect()
}

/// Returns the same events as batches of two sizes, so that batches of one row begin within those of the other.
pub(super) fn rows() -> &'static [Vec<Vec<u8>>; 2] {
    static ROWS: OnceLock<[Vec<Vec<u8>>; 2]> = OnceLock::new();
    ROWS.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ring");
        let builder = Recorder::builder(ContentDescription::new(300, "RECEIVED")).config(&path).compact(true);
        let recorder = builder.shifts(15, 21).prefault(false).keep(true).build().unwrap();
        (1..=EVENTS).for_each(|number| _ = recorder.record(7, [number, 0, 0, 0], &payload(number)));
        drop(recorder);
        [14_000, 23_000].map(|bytes_max| {
            let mut reader = Some(Reader::open(&path).unwrap());
            let mut next_ring = || reader.take().map_or(NextRing::NoMore, NextRing::Ring);
            let mut batches = Vec::new();
            let mut send = |bytes: &[u8], _: &Batch<'_>| {
                batches.push(bytes.to_vec());
                Ok(())
            };
            let (start, filter) = (BatchStart::of_host("h"), BatchFilter::new());
            let every = Duration::from_secs(1);
            let options = BatchOptions {
                bytes_max,
                payload_bytes_max: bytes_max / 2,
                every,
                level: 1,
                start,
                filter,
                only_new: false,
            };
            let mut sink = BatchesInMemory::new(&mut send);
            capture_batches(&mut next_ring, &mut sink, &options, &mut |_| ControlFlow::Continue(())).unwrap();
            assert!(batches.len() > 5, "{} batches", batches.len());
            batches
        })
    })
}

/// Returns the last seqno of a file, each of whose seqnos is there once or in a gap, and how many are in gaps.
fn account(path: &Path) -> (u64, u64) {
    account_of(&[path.to_path_buf()], 1)
}

/// Returns the same of files that follow each other, of which the first begins with this seqno.
fn account_of(paths: &[PathBuf], first_seqno: u64) -> (u64, u64) {
    let capture = CaptureFile::open_all(paths).unwrap();
    let (mut next, mut missing) = (first_seqno, 0);
    for record in capture.events() {
        match record.content {
            CapturedContent::Gap { first_seqno, count, .. } => {
                assert_eq!(first_seqno, next);
                (next, missing) = (next + count, missing + count);
            }
            CapturedContent::Event { descriptor, payload: CapturedPayload::Valid(bytes) } => {
                assert_eq!((descriptor.seqno, &bytes), (next, &payload(next)));
                next += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    (next - 1, missing)
}

pub(super) fn open(path: &Path) -> ReceivedCapture {
    ReceivedCapture::open(path, "S", ReceivedOptions::default()).unwrap()
}

/// Opens a rotation set, in each of which is room for two batches or three.
fn open_row(path: &Path) -> ReceivedCapture {
    let options = ReceivedOptions { rotation: of_50_000_bytes(), ..ReceivedOptions::default() };
    ReceivedCapture::open(path, "S", options).unwrap()
}

/// Returns the files that a receiver with this output has written, the oldest first.
fn files_beside(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.collect();
    files.sort();
    files
}

proptest! {
    #![proptest_config(ProptestConfig { ..ProptestConfig::with_cases(60) })]

    /// Batches of two rows come in any order, into one file or several; the receiver is killed and leaves a torn end.
    #[test]
    fn each_seqno_is_there_once_or_in_a_gap(
        steps in prop::collection::vec((0..2_usize, any::<prop::sample::Index>(), any::<bool>(), 0..5_u8), 1..40),
        rotates in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("all.evc");
        let open = |path: &Path| if rotates { open_row(path) } else { open(path) };
        let mut file = open(&path);
        let (mut last, mut gaps) = (0, 0);
        for (place, (row, batch, states_gaps, fate)) in (1..).zip(steps) {
            let bytes: &Vec<u8> = batch.get(&rows()[row]);
            let batch = read_batch(bytes).unwrap();
            let ring = (batch.rings()[0].first_seqno, batch.end().unwrap().stats.rings[0].last_seqno);
            let added = file.add(&batch, (place, place), states_gaps).unwrap();
            let expected = match ring {
                (first, _) if first > last + 1 && !states_gaps => Added::Lacks,
                (_, its_last) if its_last <= last => Added::Nothing,
                (first, its_last) => {
                    gaps += first.saturating_sub(last + 1);
                    last = its_last;
                    Added::All
                }
            };
            prop_assert_eq!(added, expected);
            if fate == 0 {
                drop(file);
                // A part of a further batch was written when the receiver was killed.
                let torn = &rows()[row][0];
                let newest = files_beside(&path).pop().unwrap();
                let mut bytes = std::fs::read(&newest).unwrap();
                bytes.extend_from_slice(&torn[48..torn.len() / 2]);
                std::fs::write(&newest, bytes).unwrap();
                file = open(&path);
            } else if fate == 1 && rotates {
                drop(file);
                // The receiver was killed when it had begun the next file, with some or all of the descriptions.
                let files = files_beside(&path);
                let newest = std::fs::read(files.last().unwrap()).unwrap();
                let begun = &newest[..place.min(newest.len() as u64) as usize];
                std::fs::write(dir.path().join(format!("all.{:04}.evc", files.len() + 1)), begun).unwrap();
                file = open(&path);
                prop_assert_eq!(files_beside(&path), files);
            }
        }
        let paths = file.paths();
        let (stats, bytes) = file.finish().unwrap();
        prop_assert_eq!(&paths, &files_beside(&path));
        prop_assert_eq!((account_of(&paths, 1), stats.lost()), ((last, gaps), gaps));
        prop_assert_eq!(paths.iter().map(|path| std::fs::metadata(path).unwrap().len()).sum::<u64>(), bytes);
        let whole = CaptureFile::open_all(&paths).unwrap();
        prop_assert_eq!((whole.problems(), whole.end().map(|end| end.stats.clone())), (&[][..], Some(stats)));
        // A finished file is gone on with, too.
        let mut file = open(&path);
        for batch in &rows()[0] {
            file.add(&read_batch(batch).unwrap(), (1000, 1000), false).unwrap();
        }
        file.finish().unwrap();
        prop_assert_eq!(account_of(&files_beside(&path), 1), (EVENTS, gaps));
    }

    #[test]
    fn a_damaged_batch_never_panics_and_leaves_a_file_that_can_be_read(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("all.evc");
        let mut file = open(&path);
        let mut bytes = rows()[0][0].clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let before = file.bytes();
        if let Ok(batch) = read_batch(&bytes)
            && matches!(file.add(&batch, (1, 1), true).unwrap(), Added::Refused(_))
        {
            prop_assert_eq!(file.bytes(), before);
        }
        drop(file);
        prop_assert!(CaptureFile::open(&path).is_ok());
        // What is whole still comes after it.
        let mut file = open(&path);
        prop_assert!(file.add(&read_batch(&rows()[0][0]).unwrap(), (2, 2), true).is_ok());
    }
}

#[test]
fn a_row_of_files_keeps_the_last_ones_and_counts_those_that_are_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("all.evc");
    let options = ReceivedOptions {
        rotation: RotationOptions { keep_files: Some(2), ..of_50_000_bytes() },
        ..ReceivedOptions::default()
    };
    let receive = |batches: &[Vec<u8>], first_place: u64| {
        let mut file = ReceivedCapture::open(&path, "S", options.clone()).unwrap();
        for (place, batch) in (first_place..).zip(batches) {
            assert_eq!(file.add(&read_batch(batch).unwrap(), (place, place), false).unwrap(), Added::All);
        }
        file.finish().unwrap()
    };
    let (first, rest) = rows()[0].split_at(3);
    receive(first, 1);
    let before = files_beside(&path);
    let (stats, bytes) = receive(rest, 4);
    let files = files_beside(&path);
    assert_eq!(files.len(), 2);
    assert!(files.iter().all(|file| !before.contains(file)), "{before:?}, {files:?}");
    let first_seqno = CaptureFile::open(&files[0]).unwrap().rings()[0].first_seqno;
    assert!(first_seqno > 1);
    assert_eq!((account_of(&files, first_seqno), stats.events()), ((EVENTS, 0), EVENTS + 1 - first_seqno));
    let whole = CaptureFile::open_all(&files).unwrap();
    assert_eq!((stats.removed(), whole.end().unwrap().stats.removed()), (first_seqno - 1, first_seqno - 1));
    assert_eq!(files.iter().map(|file| std::fs::metadata(file).unwrap().len()).sum::<u64>(), bytes);
    assert!(files.iter().all(|file| std::fs::metadata(file).unwrap().len() <= 50_000));
    // Files of the rotation set are replaced if that is wanted, and those of others stay.
    std::fs::write(dir.path().join("all.1.evc"), "another").unwrap();
    let replaced = ReceivedCapture::open(&path, "S", ReceivedOptions { overwrite: true, ..options }).unwrap();
    assert_eq!((replaced.place(), replaced.paths()), (0, vec![dir.path().join("all.0001.evc")]));
    assert_eq!(files_beside(&path), ["all.0001.evc", "all.1.evc"].map(|name| dir.path().join(name)));
}

#[test]
fn a_row_is_not_gone_on_with_if_it_is_no_receivers_or_another_receiver_writes_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("all.evc");
    // A rotated capture, whose last file was just begun.
    std::fs::write(dir.path().join("all.0001.evc"), &rows()[0][0]).unwrap();
    std::fs::write(dir.path().join("all.0002.evc"), &rows()[0][1][..100]).unwrap();
    let open = || {
        let options = ReceivedOptions { rotation: of_50_000_bytes(), ..ReceivedOptions::default() };
        ReceivedCapture::open(&path, "S", options).map(drop).map_err(|error| error.to_string())
    };
    assert!(open().unwrap_err().contains("no receiver has written it"), "{:?}", open());
    assert_eq!(files_beside(&path).len(), 2);
    files_beside(&path).iter().for_each(|file| std::fs::remove_file(file).unwrap());
    let mut first = open_row(&path);
    for (place, batch) in (1..).zip(&rows()[0]) {
        first.add(&read_batch(batch).unwrap(), (place, place), false).unwrap();
        assert!(open().unwrap_err().contains("another process writes it"), "{:?}", open());
    }
    assert!(files_beside(&path).len() > 2);
    drop(first);
    std::fs::remove_file(dir.path().join("all.0002.evc")).unwrap();
    let error = open().unwrap_err();
    assert!(error.contains("all.0002.evc: this file of the rotation set is missing"), "{error}");
}

#[test]
fn a_file_gets_no_more_descriptions_than_its_readers_take() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("all.evc");
    let mut file = open(&path);
    // Each batch can be read, and has some megabytes of descriptions that are small when they are compressed.
    let mut refused = 0;
    for host in 0..6 {
        let mut batch = read_batch(&rows()[0][0]).unwrap();
        batch.rings[0].host = format!("host-{host}");
        let ring = batch.blocks.iter_mut().find(|block| block.header.kind == BlockKind::Ring).unwrap();
        batch.rings[0].schema_text = "a".repeat(3 << 20);
        ring.header.plain_bytes = 3 << 20;
        match file.add(&batch, (1, 1), true).unwrap() {
            Added::Refused(why) => {
                assert!(why.contains("more descriptions than"), "{why}");
                refused += 1;
            }
            added => assert_eq!(added, Added::All),
        }
        assert!(CaptureFile::open(&path).is_ok(), "host {host}");
    }
    assert!((1..6).contains(&refused), "{refused}");
    file.finish().unwrap();
    assert_eq!(CaptureFile::open(&path).unwrap().problems(), [""; 0]);
}

#[test]
fn two_receivers_do_not_write_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("all.evc");
    let first = open(&path);
    let error = ReceivedCapture::open(&path, "S", ReceivedOptions::default()).map(drop).unwrap_err();
    assert!(error.to_string().contains("another process writes it"), "{error}");
    let options = ReceivedOptions { overwrite: true, ..ReceivedOptions::default() };
    let error = ReceivedCapture::open(&path, "S", options).map(drop).unwrap_err();
    assert!(error.to_string().contains("another process writes it"), "{error}");
    drop(first);
    let error = ReceivedCapture::open(&path, "T", ReceivedOptions::default()).map(drop).unwrap_err();
    assert!(error.to_string().contains("received from the stream \"S\""), "{error}");
}

#[test]
fn nothing_is_written_of_a_batch_whose_last_block_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("all.evc");
    let mut file = open(&path);
    let whole = read_batch(&rows()[0][0]).unwrap();
    let last = whole.blocks.iter().rfind(|block| block.header.kind == BlockKind::Events).unwrap();
    let mut damaged = rows()[0][0].clone();
    damaged[last.end() as usize - 1] ^= 1;
    let before = file.bytes();
    assert!(matches!(file.add(&read_batch(&damaged).unwrap(), (1, 1), true).unwrap(), Added::Refused(_)));
    assert_eq!((file.bytes(), file.stats().rings.len()), (before, 0));
    for (place, batch) in (2..).zip(&rows()[0]) {
        assert_eq!(file.add(&read_batch(batch).unwrap(), (place, place), false).unwrap(), Added::All);
    }
    file.finish().unwrap();
    assert_eq!(account(&path), (EVENTS, 0));
}

#[test]
fn a_file_remembers_which_of_its_rings_have_ended() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("all.evc");
    let mut file = open(&path);
    for (place, batch) in (1..).zip(&rows()[0]) {
        file.add(&read_batch(batch).unwrap(), (place, place), false).unwrap();
    }
    let mut other = read_batch(&rows()[0][0]).unwrap();
    other.rings[0].host = "another".into();
    file.add(&other, (100, 100), false).unwrap();
    assert!(!file.have_all_ended());
    drop(file);
    let mut file = open(&path);
    assert!(!file.have_all_ended());
    // The reasons 5 and 6 are ends, too.
    for reason in [EndReason::Truncated, EndReason::Unreadable] {
        let mut last = read_batch(rows()[0].last().unwrap()).unwrap();
        last.rings[0].host = "another".into();
        last.end.as_mut().unwrap().reason = reason;
        file.add(&last, (101, 101), true).unwrap();
        assert!(file.have_all_ended(), "{reason:?}");
    }
}

#[test]
fn a_batch_for_which_a_file_has_no_room_is_refused_and_the_file_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("all.evc");
    let mut file = open(&path);
    let mut batch = read_batch(&rows()[0][0]).unwrap();
    // A batch of descriptions alone.
    batch.blocks.clear();
    let ring = batch.rings[0].clone();
    let stats = RingStats::default();
    batch.rings = (0..RINGS_MAX as u64)
        .map(|number| CapturedRing { created_epoch_nanos: number, first_seqno: 1, ..ring.clone() })
        .collect();
    batch.end.as_mut().unwrap().stats.rings = vec![stats; RINGS_MAX];
    assert_eq!(file.add(&batch, (1, 1), true).unwrap(), Added::All);
    match file.add(&read_batch(&rows()[0][0]).unwrap(), (2, 2), true).unwrap() {
        Added::Refused(why) => assert!(why.contains("receive into a new file"), "{why}"),
        added => panic!("{added:?}"),
    }
    file.finish().unwrap();
    assert_eq!(CaptureFile::open(&path).unwrap().rings().len(), RINGS_MAX);
}

#[test]
fn a_file_with_more_blocks_than_an_index_holds_is_whole_and_can_be_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("all.evc");
    let mut file = open(&path);
    file.set_indexed_blocks_max(10);
    for (place, batch) in (1..).zip(&rows()[0]) {
        assert_eq!(file.add(&read_batch(batch).unwrap(), (place, place), true).unwrap(), Added::All);
    }
    file.finish().unwrap();
    let whole = CaptureFile::open(&path).unwrap();
    assert!(!whole.is_truncated() && whole.end().is_some(), "{:?}", whole.problems());
    assert_eq!((whole.problems(), account(&path)), (&[][..], (EVENTS, 0)));
    // The control: without its footer the same file is truncated.
    let bytes = std::fs::read(&path).unwrap();
    let cut = dir.path().join("cut.evc");
    std::fs::write(&cut, &bytes[..bytes.len() - 1]).unwrap();
    assert!(CaptureFile::open(&cut).unwrap().is_truncated());
    let mut file = open(&path);
    assert_eq!(file.add(&read_batch(&rows()[0][0]).unwrap(), (1000, 1000), false).unwrap(), Added::Nothing);
    file.finish().unwrap();
    assert_eq!(account(&path), (EVENTS, 0));
}
