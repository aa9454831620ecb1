//! Recorder and reader over one ring, in one process.

use crate::fixtures::*;
use proptest::prelude::*;

const EXT: [u64; 4] = [1, 2, 3, 4];
const RECORD_ERROR: u16 = 1;

fn recorder() -> Recorder {
    let description = ContentDescription::new(300, "THINGS");
    Recorder::builder(description).anonymous().prefault(false).build().unwrap()
}

fn compact_recorder() -> Recorder {
    let description = ContentDescription::new(300, "THINGS");
    Recorder::builder(description).anonymous().compact(true).shifts(15, 21).build().unwrap()
}

fn oldest(recorder: &Recorder) -> Cursor {
    let mut cursor = Reader::options().open_fd(recorder.as_fd()).unwrap().cursor();
    cursor.seek(Seek::Seqno(1));
    cursor
}

fn next_payload(cursor: &mut Cursor) -> (u16, [u64; 4], Vec<u8>) {
    let Next::Event(event) = cursor.next() else { panic!("no event at {}", cursor.next_seqno()) };
    let mut buffer = Vec::new();
    let bytes = cursor.payload(&event, &mut buffer).valid().expect("expired").to_vec();
    assert_eq!(bytes.len(), event.payload_size as usize);
    (event.event_type, event.content_ext, bytes)
}

fn error_fields(payload: &[u8]) -> (u16, u16, u32, u64) {
    (
        u16::from_le_bytes(payload[0..2].try_into().unwrap()),
        u16::from_le_bytes(payload[2..4].try_into().unwrap()),
        u32::from_le_bytes(payload[4..8].try_into().unwrap()),
        u64::from_le_bytes(payload[8..16].try_into().unwrap()),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_sequence_of_payloads_comes_back(
        payloads in prop::collection::vec(prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..5), 1..60),
    ) {
        let recorder = compact_recorder();
        let mut cursor = oldest(&recorder);
        for (index, parts) in payloads.iter().enumerate() {
            let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let seqno = recorder.recordv(index as u16 + 2, EXT, &slices);
            prop_assert_eq!(seqno, index as u64 + 1);
        }
        for (index, parts) in payloads.iter().enumerate() {
            prop_assert_eq!(next_payload(&mut cursor), (index as u16 + 2, EXT, parts.concat()));
        }
        prop_assert_eq!(cursor.next(), Next::NotReady);
    }
}

#[test]
fn payloads_of_0_1_and_16_mib_bytes_and_around_the_limit_come_back() {
    let recorder = recorder();
    let mut cursor = oldest(&recorder);
    let limit = recorder.geometry().overflow_expire_bytes() as usize;
    for size in [0, 1, 15, 16, 17, 4096, (64 << 10) - 1, 16 << 20, limit - 16] {
        let payload: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
        recorder.record(7, EXT, &payload);
        assert_eq!(next_payload(&mut cursor), (7, EXT, payload), "{size}");
    }
}

#[test]
fn a_payload_that_could_expire_becomes_an_error_of_8192_bytes_with_its_start() {
    let recorder = recorder();
    let mut cursor = oldest(&recorder);
    let limit = recorder.geometry().overflow_expire_bytes() as usize;
    assert_eq!(limit, (1 << 27) - (2 << 24));
    let payload: Vec<u8> = (0..limit).map(|i| (i % 251) as u8).collect();
    for size in [limit - 15, limit] {
        recorder.recordv(9, EXT, &[&payload[..100], &payload[100..size]]);
        let (event_type, ext, found) = next_payload(&mut cursor);
        assert_eq!((event_type, ext, found.len()), (RECORD_ERROR, EXT, 8192));
        assert_eq!(error_fields(&found), (2, 9, 8176, size as u64));
        assert_eq!(found[16..], payload[..8176]);
    }
}

#[test]
fn a_payload_above_4_gib_becomes_an_error_without_being_allocated() {
    let recorder = recorder();
    let mut cursor = oldest(&recorder);
    let gib = vec![3; 1 << 30];
    recorder.recordv(9, EXT, &[&gib, &gib, &gib, &gib]);
    let (event_type, _, found) = next_payload(&mut cursor);
    assert_eq!((event_type, error_fields(&found)), (RECORD_ERROR, (1, 9, 8176, 4 << 30)));
    let reservation = recorder.reserve(9, EXT, u64::MAX).unwrap();
    assert_eq!(reservation.payload_bytes(), 8176);
    reservation.commit();
    let (_, _, found) = next_payload(&mut cursor);
    assert_eq!(error_fields(&found), (1, 9, 8176, u64::MAX));
}

#[test]
fn a_reservation_is_filled_in_place_and_what_is_not_written_is_zero() {
    let recorder = recorder();
    let mut cursor = oldest(&recorder);
    // This payload leaves bytes other than zero in the memory that the next reservation takes.
    recorder.record(2, EXT, &[0xff; 4096]);
    let mut reservation = recorder.reserve(5, EXT, 600).unwrap();
    assert_eq!(reservation.seqno(), 2);
    reservation.set_content_ext(3, 99);
    assert_eq!(reservation.append(b"head"), 4);
    assert_eq!(reservation.write_at(500, b"tail"), 4);
    assert_eq!(reservation.write_at(598, b"cut off"), 2);
    assert_eq!(reservation.commit(), 2);
    next_payload(&mut cursor);
    let (event_type, ext, found) = next_payload(&mut cursor);
    assert_eq!((event_type, ext), (5, [1, 2, 3, 99]));
    let mut expected = vec![0; 600];
    expected[..4].copy_from_slice(b"head");
    expected[500..504].copy_from_slice(b"tail");
    expected[598..].copy_from_slice(b"cu");
    assert_eq!(found, expected);
}

#[test]
fn a_dropped_reservation_records_an_error_in_its_place_also_in_a_panic() {
    let recorder = recorder();
    let mut cursor = oldest(&recorder);
    for size in [0, 5, 100_000] {
        drop(recorder.reserve(5, EXT, size));
        let (event_type, ext, found) = next_payload(&mut cursor);
        assert_eq!((event_type, ext, found.len()), (RECORD_ERROR, EXT, 16));
        assert_eq!(error_fields(&found), (3, 5, 0, size));
    }
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _reservation = recorder.reserve(6, EXT, 40).unwrap();
        panic!("in the middle");
    }));
    assert!(panicked.is_err());
    assert_eq!(error_fields(&next_payload(&mut cursor).2), (3, 6, 0, 40));
    assert_eq!(recorder.stats().record_errors, 4);
}

#[test]
fn recording_inside_a_reservation_nests() {
    let recorder = recorder();
    let mut cursor = oldest(&recorder);
    let mut outer = recorder.reserve(5, EXT, 8).unwrap();
    // These payloads do not fit one chunk of payload memory. So the thread takes new chunks while its reservation is
    // open.
    for i in 0..100u8 {
        assert_eq!(recorder.record(6, EXT, &[i; 1000]), 2 + u64::from(i));
    }
    outer.append(b"12345678");
    outer.commit();
    assert_eq!(next_payload(&mut cursor), (5, EXT, b"12345678".to_vec()));
    for i in 0..100u8 {
        assert_eq!(next_payload(&mut cursor).2, [i; 1000]);
    }
}

#[test]
fn a_slow_reader_gets_an_exact_gap() {
    let recorder = compact_recorder();
    let mut cursor = oldest(&recorder);
    let capacity = recorder.geometry().descriptor_capacity();
    let total = 10 * capacity + 17;
    let (mut read, mut lost, mut expected) = (0, 0, 1);
    for i in 1..=total {
        recorder.record(2, [i, 0, 0, 0], &i.to_le_bytes());
        if i % (3 * capacity) == 0 || i == total {
            loop {
                match cursor.next() {
                    Next::Event(event) => {
                        assert_eq!((event.seqno, event.content_ext[0]), (expected, expected));
                        expected += 1;
                        read += 1;
                    }
                    Next::Gap(gap) => {
                        assert_eq!((gap.first_seqno, gap.cause), (expected, GapCause::Overwritten));
                        expected += gap.count;
                        lost += gap.count;
                    }
                    Next::NotReady => break,
                }
            }
        }
    }
    assert!(lost > 0);
    assert_eq!(read + lost, total);
    assert_eq!((cursor.read_count(), cursor.lost_count(), cursor.lag()), (read, lost, 0));
}

/// Sizes of small, medium and large payloads, on both sides of the limits between these kinds. The reader copies each
/// kind in another way.
const SIZES_OF_ALL_KINDS: [usize; 14] =
    [0, 1, 7, 8, 31, 32, 33, 64, 82, 97, 5000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1];

#[test]
fn payloads_of_every_size_come_back_into_a_buffer_that_has_their_length_already() {
    let recorder = recorder();
    let mut cursor = oldest(&recorder);
    let mut buffer = Vec::new();
    for size in (0..300).chain(SIZES_OF_ALL_KINDS) {
        for turn in 1..=3usize {
            let payload: Vec<u8> = (0..size).map(|i| ((i + 1) * turn % 251) as u8).collect();
            recorder.record(7, EXT, &payload);
            let Next::Event(event) = cursor.next() else { panic!("{size}") };
            assert!(turn == 1 || buffer.len() == size);
            assert_eq!(cursor.payload(&event, &mut buffer), PayloadRead::Valid(&payload[..]), "{size}");
        }
    }
}

#[test]
fn an_overwritten_payload_is_expired_while_its_descriptor_is_still_there() {
    let recorder = recorder();
    let mut cursor = oldest(&recorder);
    for size in SIZES_OF_ALL_KINDS {
        recorder.record(2, EXT, &vec![1; size]);
    }
    for _ in 0..10 {
        recorder.record(3, EXT, &vec![2; 16 << 20]);
    }
    for size in SIZES_OF_ALL_KINDS {
        let Next::Event(event) = cursor.next() else { panic!("{size}") };
        assert_eq!((event.event_type, event.payload_size as usize), (2, size));
        let expected = if size == 0 { PayloadRead::Valid(&[]) } else { PayloadRead::Expired };
        assert_eq!(cursor.payload_is_valid(&event), size == 0, "{size}");
        for mut buffer in [vec![9; size], Vec::new()] {
            assert_eq!(cursor.payload(&event, &mut buffer), expected, "{size}");
        }
    }
}

#[test]
fn a_disabled_recorder_records_nothing_and_can_be_enabled_again() {
    let recorder = recorder();
    recorder.set_enabled(false);
    assert_eq!((recorder.record(2, EXT, b"x"), recorder.recordv(2, EXT, &[b"x"])), (0, 0));
    assert!(recorder.reserve(2, EXT, 1).is_none());
    recorder.set_enabled(true);
    assert_eq!(recorder.record(2, EXT, b"x"), 1);
}

#[test]
fn any_number_of_threads_record_at_once_and_nothing_is_lost_or_mixed() {
    let recorder = compact_recorder();
    let mut cursor = oldest(&recorder);
    let threads: u64 = 400;
    let each: u64 = 60;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let recorder = &recorder;
            scope.spawn(move || {
                for i in 0..each {
                    let size = 8 + (thread * 7 + i * 13) % 50;
                    let payload = vec![thread as u8 ^ i as u8; size as usize];
                    recorder.record(2, [thread, i, size, 0], &payload);
                }
            });
        }
    });
    let mut next_of_thread = vec![0; threads as usize];
    for _ in 0..threads * each {
        let (_, [thread, i, size, _], payload) = next_payload(&mut cursor);
        assert_eq!(i, std::mem::replace(&mut next_of_thread[thread as usize], i + 1));
        assert_eq!(payload, vec![thread as u8 ^ i as u8; size as usize]);
    }
    assert_eq!(cursor.next(), Next::NotReady);
}
