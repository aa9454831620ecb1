//! Snapshots that an attacker has made or that a broken disk has damaged. Reading one fails with an error that names
//! the fault, and uses a limited amount of memory.

use crate::fixtures::*;
use eventring::internal::layout::header;
use eventring::internal::layout::header::FixedHeader;
use eventring::reader::{ReaderError, ReaderErrorKind};

const FIXED: FixedHeader = FixedHeader {
    content_type: 300,
    schema_hash: [0; 32],
    descriptor_capacity: 1 << 16,
    payload_buf_bytes: 1 << 27,
    context_area_bytes: 0,
};
const IMAGE_BYTES: u64 = (2 << 20) + (64 << 16) + (1 << 27);

/// Makes a frame of a header and zeros.
fn frame(fixed: FixedHeader, image_bytes: u64) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.write_all(&fixed.encode()).unwrap();
    std::io::copy(&mut std::io::Read::take(std::io::repeat(0), image_bytes - 64), &mut encoder).unwrap();
    encoder.finish().unwrap()
}

fn open(bytes: &[u8]) -> Result<Reader, ReaderError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    Reader::open(file.path())
}

fn refused(bytes: &[u8]) -> (ReaderErrorKind, String) {
    let error = open(bytes).unwrap_err();
    let text = error.to_string();
    let (_, reason) = text.split_once(": ").unwrap();
    assert!(text.starts_with("cannot open event ring /"), "{text}");
    (error.kind(), reason.to_owned())
}

fn good() -> Vec<u8> {
    let recorder = Recorder::builder(ContentDescription::new(300, "X")).anonymous().prefault(false).build().unwrap();
    recorder.record(2, [0; 4], b"hello");
    let mut bytes = Vec::new();
    let reader = Reader::options().open_fd(recorder.as_fd()).unwrap();
    reader.write_snapshot(&mut bytes, &SnapshotOptions::new()).unwrap();
    bytes
}

#[test]
fn an_image_that_lacks_up_to_15_bytes_opens_and_one_that_lacks_more_does_not() {
    for missing in [0, 8, 15] {
        assert_eq!(open(&frame(FIXED, IMAGE_BYTES - missing)).unwrap().info().content_type, 300);
    }
    let (kind, reason) = refused(&frame(FIXED, IMAGE_BYTES - 16));
    assert_eq!(kind, ReaderErrorKind::Truncated);
    assert_eq!(reason, "the snapshot decompresses to 140509168 bytes, its header says 140509184");
}

#[test]
fn a_bomb_is_refused_as_soon_as_it_exceeds_its_header() {
    // The second frame, `bomb`, holds 1 GiB of zeros in about 30 kB. Its header claims 140 MB.
    let small = frame(FIXED, IMAGE_BYTES + 1);
    assert_eq!(
        refused(&small),
        (
            ReaderErrorKind::BadSnapshot,
            "the snapshot is damaged: it decompresses to more than the 140509184 bytes of its header".into()
        )
    );
    let bomb = frame(FIXED, 1 << 30);
    assert!(bomb.len() < 1 << 17);
    assert_eq!(refused(&bomb), refused(&small));
}

#[test]
fn a_header_that_promises_more_than_is_allowed_is_refused_at_once() {
    let huge = FixedHeader { payload_buf_bytes: 1 << 40, ..FIXED };
    let (kind, reason) = refused(&frame(huge, 64));
    assert_eq!(kind, ReaderErrorKind::BadSnapshot);
    assert_eq!(
        reason,
        "the snapshot would decompress to 1099517919232 bytes, allowed are 8589934592; allow more with `snapshot_bytes_max`"
    );
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&good()).unwrap();
    let options = Reader::options().snapshot_bytes_max(IMAGE_BYTES - 1);
    assert_eq!(options.open(file.path()).unwrap_err().kind(), ReaderErrorKind::BadSnapshot);
    Reader::options().snapshot_bytes_max(IMAGE_BYTES).open(file.path()).unwrap();
}

#[test]
fn sizes_that_no_ring_can_have_are_refused() {
    let odd = FixedHeader { descriptor_capacity: 65_537, ..FIXED };
    let (kind, reason) = refused(&frame(odd, 1 << 20));
    assert_eq!(kind, ReaderErrorKind::BadHeader);
    assert_eq!(
        reason,
        "the header is damaged: descriptor_capacity is 65537, expected a power of two from 2 to 4294967296"
    );
}

#[test]
fn a_snapshot_of_something_else_is_refused_before_it_is_decompressed() {
    let text = zstd::encode_all(&b"just some text that somebody has compressed, long enough to hold a header"[..], 1);
    assert_eq!(
        refused(&text.unwrap()),
        (
            ReaderErrorKind::NotARing,
            "the file is not an event ring: it does not begin with \"RING01\"; name the file that a recorder or `eventring snapshot` has made".into()
        )
    );
    let short = zstd::encode_all(&b"RING01"[..], 1).unwrap();
    assert_eq!(
        refused(&short),
        (ReaderErrorKind::NotARing, "the snapshot decompresses to 6 bytes only, which is no event ring".into())
    );
    let mut newer = FIXED.encode().to_vec();
    newer[5] = b'2';
    let (kind, reason) = refused(&zstd::encode_all(&newer[..], 1).unwrap());
    assert_eq!(kind, ReaderErrorKind::WrongVersion);
    assert_eq!(reason, "the ring has version RING02, expected RING01; use a reader of that version");
}

#[test]
fn a_frame_cut_at_any_place_is_truncated_and_one_with_a_flipped_bit_is_damaged() {
    let good = good();
    for cut in [4, 5, 12, 40, good.len() / 2, good.len() - 1] {
        assert_eq!(
            refused(&good[..cut]),
            (ReaderErrorKind::Truncated, "the snapshot ends in the middle of its zstd frame".into()),
            "{cut}"
        );
    }
    // The last four bytes are the checksum.
    for at in [good.len() - 1, good.len() - 40] {
        let mut bad = good.clone();
        bad[at] ^= 4;
        let (kind, reason) = refused(&bad);
        assert_eq!(kind, ReaderErrorKind::BadSnapshot, "{at}: {reason}");
        assert!(reason.starts_with("the snapshot is damaged: "), "{reason}");
    }
}

#[test]
fn consecutive_frames_are_one_image_and_garbage_after_a_frame_is_damage() {
    let image = zstd::decode_all(&good()[..]).unwrap();
    let (first, second) = image.split_at(3 << 20);
    let frames = [zstd::encode_all(first, 1).unwrap(), zstd::encode_all(second, 1).unwrap()].concat();
    let reader = open(&frames).unwrap();
    assert_eq!(reader.info().last_seqno, 1);
    let mut garbage = good();
    garbage.extend(b"garbage");
    assert_eq!(refused(&garbage).0, ReaderErrorKind::BadSnapshot);
}

#[test]
fn a_damaged_last_seqno_costs_a_gap_and_not_an_endless_loop() {
    let mut image = zstd::decode_all(&good()[..]).unwrap();
    image[header::LAST_SEQNO..header::LAST_SEQNO + 8].fill(0xff);
    let reader = open(&zstd::encode_all(&image[..], 1).unwrap()).unwrap();
    let mut bytes = Vec::new();
    let summary = reader.write_snapshot(&mut bytes, &SnapshotOptions::new()).unwrap();
    // A cursor reaches the end, too.
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Oldest);
    assert!((0..1 << 20).any(|_| cursor.next() == Next::NotReady && cursor.lag() == 0));
    // The header claims a last seqno of 2^64 - 1. The reader reads every value above 2^63 - 1 as 2^63 - 1.
    let last = i64::MAX as u64;
    // The first slot's event is there, whatever the header says.
    assert_eq!((summary.events, summary.lost, summary.last_seqno), (1, last - 1, last));
}

#[test]
fn descriptors_that_share_one_payload_cannot_make_a_snapshot_larger_than_twice_the_ring() {
    let mut image = zstd::decode_all(&good()[..]).unwrap();
    let descriptors = image[2 << 20..].len().min(64 << 16) / 64;
    for index in 0..descriptors {
        let at = (2 << 20) + index * 64;
        image[at..at + 8].copy_from_slice(&(index as u64 + 1).to_le_bytes());
        image[at + 12..at + 16].copy_from_slice(&(100u32 << 20).to_le_bytes());
    }
    image[header::LAST_SEQNO..header::LAST_SEQNO + 8].copy_from_slice(&(descriptors as u64).to_le_bytes());
    let reader = open(&zstd::encode_all(&image[..], 1).unwrap()).unwrap();
    let error = reader.write_snapshot(std::io::sink(), &SnapshotOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ReaderErrorKind::BadHeader);
    insta::assert_snapshot!(error, @"the ring is damaged: its payloads add up to more than 268435456 bytes, twice its payload buffer");
}

#[test]
fn a_range_after_every_seqno_is_empty() {
    let recorder = Recorder::builder(ContentDescription::new(300, "X")).anonymous().prefault(false).build().unwrap();
    recorder.record(2, [0; 4], b"hello");
    let reader = Reader::options().open_fd(recorder.as_fd()).unwrap();
    for first_seqno in [2, 1 << 63, (1 << 63) + 1, u64::MAX] {
        let options = SnapshotOptions::new().first_seqno(first_seqno);
        let summary = reader.write_snapshot(std::io::sink(), &options).unwrap();
        assert_eq!((summary.events, summary.lost, summary.last_seqno), (0, 0, 0), "{first_seqno}");
    }
}
