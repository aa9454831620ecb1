//! Files of receivers: whatever comes, in whatever order, each seqno is there once or in a gap.

use super::batch_filter::BatchFilter;
use super::batches::{Batch, BatchOptions, BatchStart, BatchesInMemory, capture_batches, read_batch};
use super::format::{BlockKind, RINGS_MAX};
use super::received::{Added, ReceivedCapture};
use super::summary::NextRing;
use super::{CaptureFile, CapturedContent, CapturedPayload, CapturedRing, EndReason, RingStats};
use crate::reader::Reader;
use crate::recorder::{ContentDescription, Recorder};
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

const EVENTS: u64 = 100;

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
fn rows() -> &'static [Vec<Vec<u8>>; 2] {
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
            let options = BatchOptions { bytes_max, every, level: 1, start, filter, only_new: false };
            let mut sink = BatchesInMemory::new(&mut send);
            capture_batches(&mut next_ring, &mut sink, &options, &mut |_| ControlFlow::Continue(())).unwrap();
            assert!(batches.len() > 5, "{} batches", batches.len());
            batches
        })
    })
}

/// Returns the last seqno of a file, each of whose seqnos is there once or in a gap, and how many are in gaps.
fn account(path: &Path) -> (u64, u64) {
    let capture = CaptureFile::open(path).unwrap();
    let (mut next, mut missing) = (1, 0);
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

fn open(path: &Path) -> ReceivedCapture {
    ReceivedCapture::open(path, "S", false).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { fork: false, ..ProptestConfig::with_cases(60) })]

    /// Batches of two rows come in any order; the receiver is killed and leaves a torn end.
    #[test]
    fn each_seqno_is_there_once_or_in_a_gap(
        steps in prop::collection::vec((0..2_usize, any::<prop::sample::Index>(), any::<bool>(), 0..4_u8), 1..40),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("all.evc");
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
                let mut bytes = std::fs::read(&path).unwrap();
                bytes.extend_from_slice(&torn[48..torn.len() / 2]);
                std::fs::write(&path, bytes).unwrap();
                file = open(&path);
            }
        }
        let (stats, bytes) = file.finish().unwrap();
        prop_assert_eq!((account(&path), stats.lost()), ((last, gaps), gaps));
        prop_assert_eq!(std::fs::metadata(&path).unwrap().len(), bytes);
        // A finished file is gone on with, too.
        let mut file = open(&path);
        for batch in &rows()[0] {
            file.add(&read_batch(batch).unwrap(), (1000, 1000), false).unwrap();
        }
        file.finish().unwrap();
        prop_assert_eq!(account(&path), (EVENTS, gaps));
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
            && file.add(&batch, (1, 1), true).is_err()
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
fn two_receivers_do_not_write_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("all.evc");
    let first = open(&path);
    let error = ReceivedCapture::open(&path, "S", false).map(drop).unwrap_err();
    assert!(error.to_string().contains("another receiver writes it"), "{error}");
    drop(first);
    let error = ReceivedCapture::open(&path, "T", false).map(drop).unwrap_err();
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
    assert!(file.add(&read_batch(&damaged).unwrap(), (1, 1), true).is_err());
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
    let error = file.add(&read_batch(&rows()[0][0]).unwrap(), (2, 2), true).unwrap_err();
    assert!(error.to_string().contains("receive into a new file"), "{error}");
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
