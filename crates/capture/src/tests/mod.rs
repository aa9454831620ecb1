//! Tests that read whole, truncated, damaged and hostile files.

mod batch_filter;
mod looks;
mod parts;
mod selection;

use crate::fixtures::{CaptureFixture, SHARD_1};
use crate::format::header::BlockKind;
use crate::*;
use eventring::reader::{Gap, GapCause};
use eventring::schema::perf::PerfEvent;
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

pub(crate) fn bytes_of(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

pub(crate) fn file_of(bytes: &[u8]) -> File {
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

/// Returns where the blocks of a file begin.
fn block_starts(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"EVRB")).collect()
}

/// Returns the place of a byte in the content of a block, which comes after the header of 120 bytes.
fn in_content(block_start: usize) -> usize {
    block_start + 120 + 20
}

fn gaps(capture: &CaptureFile) -> Vec<(u32, Gap)> {
    let gap = |record: CapturedRecord| match record.content {
        CapturedContent::Event { .. } => None,
        CapturedContent::Gap { first_seqno, count, cause } => Some((record.ring, Gap { first_seqno, count, cause })),
    };
    capture.events().filter_map(gap).collect()
}

#[test]
fn a_damaged_block_becomes_a_loss_and_is_said() {
    let mut damaged = bytes_of(&five_blocks().file());
    // Blocks 0 and 1 describe the rings. Block 4 is the second block of events of ring 0, with the seqnos 2 to 7.
    let at = in_content(block_starts(&damaged)[4]);
    damaged[at] ^= 0x55;
    let capture = CaptureFile::from_file(file_of(&damaged)).unwrap();
    let mut events = capture.events();
    assert_eq!(events.by_ref().count(), 5);
    assert!(events.problems()[0].contains("2 events and gaps are left out"), "{:?}", events.problems());
    assert_eq!(gaps(&capture), [(0, Gap { first_seqno: 2, count: 6, cause: GapCause::Damaged })]);
    // The gap comes where its first record would be.
    assert_eq!(stamps(&capture), [(0, 1000), (0, 6), (0, 1300), (1, 1500), (1, 1100)]);
}

/// Makes a capture of two shards with four blocks each. Some events of the first shard were overwritten.
fn two_shards() -> CaptureFixture {
    let mut made = CaptureFixture::sharded();
    for block in 0..4 {
        for (shard, events) in [(0, 3), (SHARD_1, 2)] {
            made.in_shard(shard);
            for event in 0..events {
                made.span(PerfEvent::SpanEnter, 1000 + 100 * block + 10 * event, 1, 1, 9);
            }
        }
        if block == 2 {
            made.gap(0, 5, GapCause::Overwritten);
        }
        made.end_block();
    }
    made
}

/// Returns the events and gaps of a ring as ranges of seqnos: the first seqno, the number, and the cause of a gap.
fn account(capture: &CaptureFile, ring: u32) -> Vec<(u64, u64, Option<GapCause>)> {
    let range = |record: CapturedRecord| match record.content {
        CapturedContent::Event { descriptor, .. } => (descriptor.seqno, 1, None),
        CapturedContent::Gap { first_seqno, count, cause } => (first_seqno, count, Some(cause)),
    };
    capture.events().filter(|record| record.ring == ring).map(range).collect()
}

#[test]
fn each_seqno_of_a_damaged_capture_is_an_event_or_a_loss_once() {
    let whole = bytes_of(&two_shards().file());
    let capture = CaptureFile::from_file(file_of(&whole)).unwrap();
    assert!(gaps(&capture).iter().all(|(_, gap)| gap.cause == GapCause::Overwritten));
    let expected = [account(&capture, 0), account(&capture, SHARD_1 as u32)];
    assert_eq!((expected[0].len(), expected[1].len()), (13, 8));
    let blocks: Vec<_> =
        capture.blocks.iter().filter(|block| block.header.kind == BlockKind::Events).copied().collect();
    assert_eq!(blocks.len(), 8);
    // The first byte is in the content of the block. The others are in its header, where its first and its last seqno
    // and its first sort time are. Only a file without its index is read by these headers.
    for (place, has_index) in [(130, true), (130, false), (40 + 6, false), (48 + 6, false), (24 + 6, false)] {
        for (number, block) in blocks.iter().enumerate() {
            let is_end = !(2..6).contains(&number);
            if is_end && place < 120 {
                // No block of the ring is before the first, or after the last, to say what its header does not.
                continue;
            }
            let mut damaged = whole.clone();
            damaged[block.offset as usize + place] ^= 0x55;
            damaged.truncate(if has_index { whole.len() } else { whole.len() - 1 });
            let capture = CaptureFile::from_file(file_of(&damaged)).unwrap();
            assert_eq!(capture.is_truncated(), !has_index);
            let (first, last) = (block.header.first_seqno, block.header.last_seqno);
            for (ring, expected) in [0, SHARD_1 as u32].into_iter().zip(&expected) {
                let is_it = |(seqno, ..): &(u64, u64, _)| ring == block.header.ring && (first..=last).contains(seqno);
                let at = expected.iter().position(is_it);
                let mut expected: Vec<_> = expected.iter().filter(|range| !is_it(range)).copied().collect();
                if let Some(at) = at {
                    expected.insert(at, (first, last + 1 - first, Some(GapCause::Damaged)));
                }
                assert_eq!(account(&capture, ring), expected, "byte {place} of block {number}, ring {ring}");
            }
        }
    }
}

#[test]
fn a_block_that_a_selection_skips_is_no_loss() {
    let mut damaged = bytes_of(&two_shards().file());
    let mut capture = CaptureFile::from_file(file_of(&damaged)).unwrap();
    let last = Selection::new().from_epoch_nanos(1300);
    capture.select(&last).unwrap();
    assert_eq!((capture.events().count(), gaps(&capture)), (5, Vec::new()));
    // Blocks 0 to 2 describe the rings. Block 3 ends before the window.
    let at = in_content(block_starts(&damaged)[3]);
    damaged[at] ^= 0x55;
    let mut capture = CaptureFile::from_file(file_of(&damaged)).unwrap();
    capture.select(&last).unwrap();
    assert_eq!((capture.events().count(), gaps(&capture)), (5, Vec::new()));
    capture.select(&Selection::new().to_epoch_nanos(1100)).unwrap();
    assert_eq!(gaps(&capture), [(0, Gap { first_seqno: 1, count: 3, cause: GapCause::Damaged })]);
}

#[test]
fn files_of_another_kind_or_version_are_refused() {
    let bytes = bytes_of(&five_blocks().file());
    let open = |bytes: &[u8]| CaptureFile::from_file(file_of(bytes)).unwrap_err().kind();
    assert_eq!(open(&[0; 100]), CaptureErrorKind::NotACapture);
    let mut later = bytes;
    later[8] = 6;
    assert_eq!(open(&later), CaptureErrorKind::WrongVersion);
}

proptest! {
    #![proptest_config(ProptestConfig { ..ProptestConfig::with_cases(200) })]

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
    for (version, which) in [(4, "an earlier eventring"), (6, "a later eventring")] {
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
    let blocks = block_starts(&bytes);
    // The number of records is at byte 16 of a block's header, and the index of the ring at byte 20. The index at the
    // end of the file has the headers, too, but is compressed: so the file is cut before it.
    for (place, problem, lost) in [(16, "holds 1 events and gaps, expected 2", 1), (20, "it is of ring 7", 0)] {
        let mut wrong = bytes[..blocks[3]].to_vec();
        wrong[blocks[2] + place] = if place == 16 { 2 } else { 7 };
        let header = crate::format::header::BlockHeader::decode(&wrong[blocks[2]..]).unwrap();
        let checksum = header.checksum_with(&[&wrong[blocks[2] + 120..]]);
        wrong[blocks[2] + 56..][..8].copy_from_slice(&checksum.to_le_bytes());
        let capture = CaptureFile::from_file(file_of(&wrong)).unwrap();
        let mut events = capture.events();
        // A block of no ring is the loss of no ring.
        assert_eq!((events.by_ref().count(), gaps(&capture).len()), (lost, lost));
        assert!(events.problems()[0].contains(problem), "{:?}", events.problems());
    }
}

#[test]
fn a_program_whose_later_events_were_not_read_is_known_until_the_last_one_that_was() {
    use eventring::recorder::{ContentDescription, Recorder};
    let recorder = Recorder::builder(ContentDescription::new(300, "SHOP")).anonymous().shifts(20, 21).build().unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let capture = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                recorder.record(2, [0; 4], b"");
            }
        });
        while recorder.stats().last_seqno < 200_000 {
            std::thread::yield_now();
        }
        let reader = eventring::reader::Reader::options().open_fd(recorder.as_fd()).unwrap();
        let capture = capture_now(vec![reader], || true);
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        capture.unwrap().0
    });
    let end = capture.end().unwrap();
    let last_nanos = stamps(&capture).iter().map(|(_, nanos)| *nanos).max().unwrap();
    assert!(end.stats.rings[0].was_live && end.stats.rings[0].unread > 0 && last_nanos < end.ended_epoch_nanos);
    // Later, what was open at the last event may have been closed.
    assert_eq!(capture.life_of(capture.rings()[0].process), CapturedLife::Lived(last_nanos));
}
