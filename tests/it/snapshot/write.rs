//! The snapshots that `write_snapshot` writes: they are small, renumbered and complete, and have the same bytes each
//! time.

use crate::fixtures::*;
use crate::read_back::{events, reader_of};
use eventring::internal::layout::{extension, header};
use eventring::reader::SnapshotSummary;
use eventring::schema::EventType as _;

const BLOCK_START: u16 = ExecEvent::BlockStart as u16;
const TXN_LOG: u16 = ExecEvent::TxnLog as u16;
const DESCRIPTORS: usize = 2 << 20;

fn compact_exec_recorder() -> Recorder {
    let description = ContentDescription::from_event_type::<ExecEvent>();
    Recorder::builder(description).anonymous().compact(true).shifts(15, 21).build().unwrap()
}

fn snapshot(reader: &Reader, options: &SnapshotOptions) -> (SnapshotSummary, Vec<u8>) {
    let mut bytes = Vec::new();
    let summary = reader.write_snapshot(&mut bytes, options).unwrap();
    assert_eq!(summary.snapshot_bytes, bytes.len() as u64);
    (summary, bytes)
}

fn opened(snapshot: &[u8]) -> Reader {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(snapshot).unwrap();
    Reader::open(file.path()).unwrap()
}

fn word(image: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(image[offset..offset + 8].try_into().unwrap())
}

#[test]
fn an_image_is_minimal_renumbered_aligned_and_says_what_the_ring_said() {
    let recorder = compact_exec_recorder();
    let capacity = recorder.geometry().descriptor_capacity();
    for i in 0..capacity + 1000 {
        recorder.record(TXN_LOG, [0, 1, 2, 3], &vec![i as u8; i as usize % 40]);
    }
    let reader = reader_of(&recorder);
    let (summary, bytes) = snapshot(&reader, &SnapshotOptions::new());
    assert_eq!((summary.events + summary.lost, summary.last_seqno), (capacity + 1000, capacity + 1000));
    assert!(summary.lost >= 1000, "{summary:?}");

    let image = zstd::decode_all(&bytes[..]).unwrap();
    assert_eq!(image.len() as u64, summary.image_bytes);
    assert_eq!(image.len(), DESCRIPTORS + (64 << 16) + (1 << 27));
    assert_eq!((&image[..6], word(&image, header::DESCRIPTOR_CAPACITY)), (&b"RING01"[..], 1 << 16));
    assert_eq!((word(&image, header::PAYLOAD_BUF_SIZE), word(&image, header::CONTEXT_AREA_SIZE)), (1 << 27, 0));
    assert_eq!(word(&image, header::LAST_SEQNO), summary.events);
    assert_eq!(word(&image, header::NEXT_PAYLOAD_BYTE), summary.payload_bytes);
    assert_eq!(word(&image, header::BUFFER_WINDOW_START), 0);
    assert_eq!(word(&image, extension::COUNT_SNAPSHOT_LOST), summary.lost);
    let mut next_payload = 0;
    for (index, descriptor) in image[DESCRIPTORS..].chunks(64).take(summary.events as usize).enumerate() {
        assert_eq!(word(descriptor, 0), index as u64 + 1);
        assert_eq!(word(descriptor, 24), next_payload);
        let payload_size = u32::from_le_bytes(descriptor[12..16].try_into().unwrap());
        next_payload += u64::from(payload_size.next_multiple_of(16));
    }
    assert_eq!(next_payload, summary.payload_bytes);

    let copy = opened(&bytes);
    let (info, original) = (copy.info(), reader.info());
    assert_eq!((info.content_type, info.schema_hash), (2, ExecEvent::schema_hash()));
    assert_eq!((info.content_name, copy.state()), (original.content_name, RingState::Saved));
    assert_eq!(copy.schema_text(), reader.schema_text());
    let (info, original) = (info.extension.unwrap(), original.extension.unwrap());
    assert_eq!((info.writer, info.created_epoch_nanos), (original.writer, original.created_epoch_nanos));
    assert_eq!((info.clock, info.shard_limit, info.snapshot_lost), (original.clock, 0, summary.lost));
    assert!(info.snapshot_epoch_nanos > info.created_epoch_nanos && original.snapshot_epoch_nanos == 0);
}

#[test]
fn block_tags_are_renumbered_and_zero_if_the_block_start_is_gone() {
    let recorder = compact_exec_recorder();
    let block = |payload: &[u8]| {
        let mut start = recorder.reserve(BLOCK_START, [0; 4], payload.len() as u64).unwrap();
        start.set_content_ext(0, start.seqno());
        start.append(payload);
        start.commit()
    };
    let gone = block(b"gone");
    for i in 0..recorder.geometry().descriptor_capacity() {
        recorder.record(TXN_LOG, [gone, i, 0, 0], b"");
    }
    let first = block(b"first");
    let second = block(b"second");
    recorder.record(TXN_LOG, [first, 1, 7, 8], b"of the first");
    recorder.record(TXN_LOG, [second, 2, 0, 0], b"of the second");
    recorder.record(TXN_LOG, [gone, 3, 0, 0], b"of the one that is gone");
    recorder.record(TXN_LOG, [u64::MAX, 4, 0, 0], b"of none that ever was");

    let from = SnapshotOptions::new().first_seqno(first - 1);
    let (summary, bytes) = snapshot(&reader_of(&recorder), &from);
    assert_eq!((summary.events, summary.lost, summary.first_seqno), (7, 0, first - 1));
    let expected: [(u64, u16, [u64; 4], &[u8]); 7] = [
        (1, TXN_LOG, [0, first - 3, 0, 0], b""),
        (2, BLOCK_START, [2, 0, 0, 0], b"first"),
        (3, BLOCK_START, [3, 0, 0, 0], b"second"),
        (4, TXN_LOG, [2, 1, 7, 8], b"of the first"),
        (5, TXN_LOG, [3, 2, 0, 0], b"of the second"),
        (6, TXN_LOG, [0, 3, 0, 0], b"of the one that is gone"),
        (7, TXN_LOG, [0, 4, 0, 0], b"of none that ever was"),
    ];
    assert_eq!(
        events(&opened(&bytes)),
        expected.map(|(seqno, code, ext, payload)| (seqno, code, ext, payload.to_vec()))
    );
}

#[test]
fn words_of_other_content_types_and_the_context_area_are_left_alone() {
    let description = ContentDescription::new(700, "OTHER").schema_hash([9; 32]);
    let recorder = Recorder::builder(description).anonymous().context_shift(14).prefault(false).build().unwrap();
    assert!(recorder.write_context(16_000, b"table"));
    recorder.record(5, [u64::MAX, 1, 2, 3], b"x");
    recorder.record(5, [1, 1, 2, 3], b"");
    let (_, bytes) = snapshot(&reader_of(&recorder), &SnapshotOptions::new().first_seqno(2));
    let copy = opened(&bytes);
    assert_eq!(events(&copy), [(1, 5, [1, 1, 2, 3], Vec::new())]);
    let mut context = [0; 7];
    assert!(copy.read_context(15_999, &mut context));
    assert_eq!(&context, b"\0table\0");
    assert_eq!((copy.info().content_type, copy.info().content_name), (700, Some("OTHER".into())));
}

#[test]
fn the_same_events_give_the_same_bytes_and_a_snapshot_of_a_snapshot_keeps_its_losses() {
    let recorder = compact_exec_recorder();
    (0..50_000u64).for_each(|i| assert_ne!(recorder.record(TXN_LOG, [0; 4], &i.to_le_bytes()), 0));
    let reader = reader_of(&recorder);
    let from = SnapshotOptions::new().first_seqno(30_000).last_seqno(49_000);
    let (summary, first) = snapshot(&reader, &from);
    assert_eq!((summary.events, summary.lost), (19_001, 0));
    // They differ in the time at which they were taken only.
    let untimed = |bytes: &[u8]| {
        let mut image = zstd::decode_all(bytes).unwrap();
        image[extension::SNAPSHOT_EPOCH_NANOS..][..8].fill(0);
        image
    };
    assert!(untimed(&snapshot(&reader, &from).1) == untimed(&first), "the bytes differ");

    let (summary, of_all) = snapshot(&reader, &SnapshotOptions::new());
    let (again, copy) = snapshot(&opened(&of_all), &SnapshotOptions::new());
    assert!(summary.lost > 0);
    assert_eq!((again.events, again.lost), (summary.events, 0));
    assert_eq!(copy, of_all);
}

#[test]
fn an_empty_ring_gives_an_empty_snapshot() {
    let recorder = compact_exec_recorder();
    let (summary, bytes) = snapshot(&reader_of(&recorder), &SnapshotOptions::new());
    assert_eq!((summary.events, summary.lost, summary.first_seqno, summary.last_seqno), (0, 0, 0, 0));
    assert_eq!(events(&opened(&bytes)), []);
}

#[test]
fn an_event_that_nobody_commits_is_counted_as_lost_and_does_not_hold_up_the_snapshot() {
    let recorder = compact_exec_recorder();
    recorder.record(TXN_LOG, [0; 4], b"before");
    let open = recorder.reserve(TXN_LOG, [0; 4], 4).unwrap();
    recorder.record(TXN_LOG, [0; 4], b"behind");
    let (summary, bytes) = snapshot(&reader_of(&recorder), &SnapshotOptions::new());
    drop(open);
    assert_eq!((summary.events, summary.lost, summary.expired), (2, 1, 0));
    let payloads: Vec<Vec<u8>> = events(&opened(&bytes)).into_iter().map(|event| event.3).collect();
    assert_eq!(payloads, [b"before", b"behind"]);
}

#[test]
fn payloads_that_were_overwritten_are_counted_as_expired() {
    let recorder = compact_exec_recorder();
    (0..3000).for_each(|_| assert_ne!(recorder.record(TXN_LOG, [0; 4], &[1; 2000]), 0));
    let (summary, bytes) = snapshot(&reader_of(&recorder), &SnapshotOptions::new());
    assert!(summary.expired > 1000, "{summary:?}");
    assert_eq!((summary.events + summary.lost, summary.expired), (3000, summary.lost));
    assert!(events(&opened(&bytes)).iter().all(|event| event.3 == [1; 2000]));
}

#[test]
fn a_snapshot_of_a_ring_that_is_being_written_holds_whole_events_in_order_and_counts_the_rest() {
    let recorder = compact_exec_recorder();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2u64 {
            let (recorder, stop) = (&recorder, &stop);
            scope.spawn(move || {
                for i in 0u64.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let size = 8 + (i % 200) as usize;
                    let mut payload = vec![(thread + i) as u8; size];
                    payload[..8].copy_from_slice(&i.to_le_bytes());
                    recorder.record(TXN_LOG, [0, thread, i, size as u64], &payload);
                }
            });
        }
        let reader = reader_of(&recorder);
        for _ in 0..3 {
            let (summary, bytes) = snapshot(&reader, &SnapshotOptions::new().compression_level(1));
            assert_eq!(summary.events + summary.lost, summary.last_seqno, "{summary:?}");
            let mut next_of_thread = BTreeMap::new();
            for (_, _, [_, thread, i, size], payload) in events(&opened(&bytes)) {
                assert_eq!((payload.len() as u64, &payload[..8]), (size, &i.to_le_bytes()[..]));
                assert!(payload[8..].iter().all(|byte| *byte == (thread + i) as u8));
                assert!(next_of_thread.insert(thread, i).is_none_or(|before| before < i));
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn an_output_that_fails_is_an_error_with_its_reason() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let error = reader_of(&compact_exec_recorder()).write_snapshot(Full, &SnapshotOptions::new()).unwrap_err();
    assert_eq!(error.kind(), eventring::reader::ReaderErrorKind::NoSpace);
    insta::assert_snapshot!(error, @"cannot write the snapshot: no storage space");
}

#[test]
fn the_published_recordings_survive_being_written_again_byte_for_byte() {
    for file in ["emn-1b-15m.snapshot", "emn-30b-15m.snapshot.zst"] {
        let Some(path) = real_data::path(file) else { return };
        let reader = Reader::open_typed::<ExecEvent>(&path).unwrap();
        let (summary, bytes) = snapshot(&reader, &SnapshotOptions::new().compression_level(1));
        assert_eq!((summary.events, summary.lost), (reader.info().last_seqno, 0));
        let ours = zstd::decode_all(&bytes[..]).unwrap();
        let theirs = zstd::decode_all(std::fs::File::open(&path).unwrap()).unwrap();
        assert_eq!(ours.len(), theirs.len() + 8);
        assert!(ours[..theirs.len()] == theirs[..], "{file}: the images differ");
        assert_eq!(ours[theirs.len()..], [0; 8]);
    }
}
