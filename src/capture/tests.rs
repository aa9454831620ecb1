//! Tests that read whole, truncated, damaged and hostile files.

use super::fixtures::CaptureFixture;
use super::*;
use crate::reader::GapCause;
use crate::schema::perf::PerfEvent;
use proptest::prelude::*;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// Makes a capture of five blocks whose times overlap.
fn five_blocks() -> CaptureFixture {
    let mut made = CaptureFixture::new();
    made.span_new(1000, 1, (1, 0), 9, &[]);
    made.event(1, 20, 1500, [0; 4], b"");
    made.end_block();
    made.event(1, 20, 1100, [0; 4], b"");
    made.gap(0, 5, GapCause::Overwritten);
    made.span(PerfEvent::SpanEnter, 1200, 1, 1, 9);
    made.end_block();
    made.span(PerfEvent::SpanExit, 1300, 1, 1, 9);
    made
}

fn stamps(capture: &CaptureFile) -> Vec<(u32, u64)> {
    let stamp = |record: CapturedRecord| match record.content {
        CapturedContent::Event { descriptor, .. } => (record.ring, descriptor.record_epoch_nanos),
        CapturedContent::Gap { count, .. } => (record.ring, count),
    };
    capture.events().map(stamp).collect()
}

pub(super) fn bytes_of(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

pub(super) fn file_of(bytes: &[u8]) -> File {
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file
}

#[test]
fn events_come_by_time_across_blocks_and_in_the_order_of_seqnos_within_a_ring() {
    let capture = five_blocks().open();
    // The second event of the exec ring (1100) has an earlier time stamp than the first (1500), and still comes after
    // it.
    assert_eq!(stamps(&capture), [(0, 1000), (0, 5), (0, 1200), (0, 1300), (1, 1500), (1, 1100)]);
    assert!(!capture.is_truncated() && capture.problems().is_empty());
    let end = capture.end().unwrap();
    assert_eq!((end.stats.events(), end.stats.lost()), (5, 5));
    assert_eq!(end.stats.rings[0].last_seqno, 8);
}

#[test]
fn a_capture_cut_anywhere_says_so_and_gives_every_whole_block() {
    let file = five_blocks().file();
    let bytes = bytes_of(&file);
    let whole = stamps(&CaptureFile::from_file(file).unwrap());
    let mut seen = Vec::new();
    for end in 48..bytes.len() {
        match CaptureFile::from_file(file_of(&bytes[..end])) {
            Ok(capture) => {
                assert!(capture.is_truncated() && capture.problems()[0].contains("truncated"), "{end}");
                let mut found = stamps(&capture);
                seen.push(found.len());
                found.retain(|record| !whole.contains(record));
                assert_eq!(found, [], "{end}");
            }
            Err(error) => panic!("{end}: {error}"),
        }
    }
    seen.dedup();
    assert_eq!(seen, [0, 1, 2, 4, 5, 6]);
    let error = CaptureFile::from_file(file_of(&bytes[..47])).unwrap_err();
    assert_eq!(error.kind(), CaptureErrorKind::NotACapture);
}

#[test]
fn what_a_killed_capture_has_written_is_read() {
    let capture = CaptureFile::from_file(five_blocks().truncated()).unwrap();
    assert!(capture.is_truncated() && capture.end().is_none());
    assert_eq!(stamps(&capture).len(), 6);
}

#[test]
fn a_damaged_block_is_left_out_and_said() {
    let bytes = bytes_of(&five_blocks().file());
    let magic = b"EVRB";
    let blocks: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(magic)).collect();
    let mut damaged = bytes.clone();
    // `blocks[0]` and `blocks[1]` describe the rings. `blocks[4]` is the second block of events of ring 0. The changed
    // byte is in its content, after the header of 120 bytes.
    damaged[blocks[4] + 120 + 20] ^= 0x55;
    let capture = CaptureFile::from_file(file_of(&damaged)).unwrap();
    let mut events = capture.events();
    assert_eq!(events.by_ref().count(), 4);
    assert!(events.problems()[0].contains("2 events and gaps are left out"), "{:?}", events.problems());
}

#[test]
fn files_of_another_kind_or_version_are_refused() {
    let bytes = bytes_of(&five_blocks().file());
    let open = |bytes: &[u8]| CaptureFile::from_file(file_of(bytes)).unwrap_err().kind();
    assert_eq!(open(&[0; 100]), CaptureErrorKind::NotACapture);
    let mut later = bytes;
    later[8] = 5;
    assert_eq!(open(&later), CaptureErrorKind::WrongVersion);
}

proptest! {
    #![proptest_config(ProptestConfig { fork: false, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn damaged_bytes_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = bytes_of(&five_blocks().file());
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(capture) = CaptureFile::from_file(file_of(&bytes)) {
            prop_assert!(capture.events().count() <= 6);
        }
    }
}

#[test]
fn versions_of_earlier_and_later_programs_are_refused_with_a_reason() {
    let mut bytes = bytes_of(&five_blocks().file());
    for (version, which) in [(3, "an earlier eventring"), (5, "a later eventring")] {
        bytes[8] = version;
        let error = CaptureFile::from_file(file_of(&bytes)).unwrap_err();
        assert_eq!(error.kind(), CaptureErrorKind::WrongVersion);
        assert!(error.to_string().contains(which), "{error}");
    }
}

#[test]
fn a_block_of_no_ring_and_a_block_with_another_count_are_left_out() {
    let mut made = CaptureFixture::new();
    made.span_new(1000, 1, (1, 0), 9, &[]);
    let bytes = bytes_of(&made.file());
    let blocks: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"EVRB")).collect();
    // The number of records is at byte 16 of a block's header, and the index of the ring at byte 20. The index at the
    // end of the file has the headers, too, but is compressed: so the file is cut before it.
    for (place, problem) in [(16, "holds 1 events and gaps, expected 2"), (20, "it is of ring 7")] {
        let mut wrong = bytes[..blocks[3]].to_vec();
        wrong[blocks[2] + place] = if place == 16 { 2 } else { 7 };
        let header = super::format::BlockHeader::decode(&wrong[blocks[2]..]).unwrap();
        let checksum = header.checksum_with(&[&wrong[blocks[2] + 120..]]);
        wrong[blocks[2] + 56..][..8].copy_from_slice(&checksum.to_le_bytes());
        let capture = CaptureFile::from_file(file_of(&wrong)).unwrap();
        let mut events = capture.events();
        assert_eq!(events.by_ref().count(), 0);
        assert!(events.problems()[0].contains(problem), "{:?}", events.problems());
    }
}
