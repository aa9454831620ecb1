//! The block table: a reader that comes after a block's BLOCK_START was overwritten still names the block of every
//! event.

use crate::fixtures::*;
use crate::read_back::reader_of;
use crate::record_again;
use eventring::exec::BlockScope;
use eventring::exec::{BlockInfo, KnownBlocks};
use eventring::global::EXEC;
use eventring::reader::Descriptor;
use eventring::recorder::RecorderErrorKind;
use eventring::schema::exec::{BlockEnd, BlockStart, Bytes32, ExecPayload};
use eventring::schema::{EventPayload as _, EventType as _};

/// The number of blocks that a table holds.
const ENTRIES: u64 = 4096;
/// The number of events that the rings of these tests hold.
const CAPACITY: u64 = 1 << 15;

fn recorder() -> Recorder {
    let builder = Recorder::builder(ContentDescription::from_event_type::<ExecEvent>()).anonymous();
    builder.compact(true).shifts(15, 24).block_table(true).prefault(false).build().unwrap()
}

/// Makes a start whose fields all follow from `number`.
pub(super) fn start(number: u64) -> BlockStart {
    let mut start = BlockStart::default();
    start.block_tag.block_number = number;
    start.block_tag.id = Bytes32(std::array::from_fn(|index| number.wrapping_mul(31).wrapping_add(index as u64) as u8));
    (start.round, start.epoch) = (number.wrapping_mul(3), !number);
    start.eth_block_input.number = number;
    start.eth_block_input.txn_count = number ^ 0x5555;
    start.monad_block_input.base_fee_moment = (number ^ 0x55).into();
    start
}

/// Asserts that all parts of the block belong to one BLOCK_START of [`start`].
pub(super) fn assert_whole(block: &BlockInfo) -> u64 {
    let decoded = ExecPayload::decode(ExecEvent::BlockStart.code(), block.start_payload()).unwrap();
    let ExecPayload::BlockStart(decoded) = decoded else { panic!("{decoded:?}") };
    assert_eq!(decoded, start(block.number()));
    assert_eq!(block.id(), start(block.number()).block_tag.id.0);
    block.number()
}

/// Records events that belong to no block until everything older is overwritten.
fn overwrite(recorder: &Recorder) {
    (0..CAPACITY).for_each(|_| assert_ne!(recorder.record(ExecEvent::BlockPerfEvmExit.code(), [0; 4], &[]), 0));
}

/// Reads an event that is there.
fn event(reader: &Reader, seqno: u64) -> Descriptor {
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Seqno(seqno));
    match cursor.next() {
        Next::Event(event) => event,
        other => panic!("{other:?}"),
    }
}

/// Reads all events that a ring still has.
fn events(reader: &Reader) -> Vec<(Descriptor, Vec<u8>)> {
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Oldest);
    let (mut events, mut buffer) = (Vec::new(), Vec::new());
    loop {
        match cursor.next() {
            Next::Event(event) => {
                let payload = cursor.payload(&event, &mut buffer).valid().unwrap_or_default().to_vec();
                events.push((event, payload));
            }
            Next::Gap(_) => {}
            Next::NotReady => return events,
        }
    }
}

/// Number, id, header's time in seconds, and parent's hash of a block.
type Identity = (u64, String, u64, String);

fn identity(start: &BlockStart) -> Identity {
    let (tag, input) = (&start.block_tag, &start.eth_block_input);
    (tag.block_number, tag.id.to_string(), input.timestamp, start.parent_eth_hash.to_string())
}

/// Records the events of a recording again, into a ring in which each BLOCK_START is overwritten before the block's
/// other events come. Then a reader attaches, and names the block of every event. Returns the blocks by the number of
/// their events.
fn replay(recording: &Path) -> BTreeMap<Identity, u64> {
    let originals = events(&Reader::open_typed::<ExecEvent>(recording).unwrap());
    let recorder = recorder();
    // For each flow tag of the recording: the flow tag in the new ring, what a full replay says of the block, and the
    // time of the new BLOCK_START.
    let mut blocks: BTreeMap<u64, (u64, Identity, u64)> = BTreeMap::new();
    let mut of_new_tag: BTreeMap<u64, (Identity, u64)> = BTreeMap::new();
    let mut counts = BTreeMap::new();
    let mut pending: Vec<(u64, u64)> = Vec::new();
    let check =
        |pending: &mut Vec<(u64, u64)>, of_new_tag: &BTreeMap<u64, (Identity, u64)>, counts: &mut BTreeMap<_, _>| {
            let reader = reader_of(&recorder);
            let oldest = recorder.stats().last_seqno.saturating_sub(CAPACITY - 1);
            let mut known = KnownBlocks::of_ring(&reader);
            for (seqno, tag) in pending.drain(..) {
                let event = event(&reader, seqno);
                let block = reader.block_of(&event);
                let again = known.block_of(&event, || PayloadRead::Expired);
                assert_eq!(block.as_ref(), again.as_deref());
                let Some(block) = block else {
                    assert_eq!(tag, 0, "{event:?}");
                    continue;
                };
                assert!(tag < oldest, "the BLOCK_START of {event:?} is still there");
                let ExecPayload::BlockStart(decoded) =
                    ExecPayload::decode(ExecEvent::BlockStart.code(), block.start_payload()).unwrap()
                else {
                    panic!()
                };
                let (expected, epoch_nanos) = &of_new_tag[&tag];
                assert_eq!(identity(&decoded), *expected);
                assert_eq!(
                    (block.number(), format!("0x{}", eventring::schema::Hex(&block.id()))),
                    (expected.0, expected.1.clone())
                );
                assert_eq!((block.start_seqno(), block.start_epoch_nanos()), (Some(tag), *epoch_nanos));
                *counts.entry(expected.clone()).or_default() += 1;
            }
        };
    for (original, payload) in &originals {
        if let ExecPayload::BlockStart(start) = ExecPayload::decode(original.event_type, payload).unwrap() {
            check(&mut pending, &of_new_tag, &mut counts);
            let seqno = record_again::pass_on(&recorder, original, payload);
            let reader = reader_of(&recorder);
            // The reader still finds BLOCK_START, and the table agrees with it.
            let started = event(&reader, seqno);
            let (block, last) = (block_with(&reader, seqno), reader.last_block());
            assert_eq!((block.as_ref(), last), (BlockInfo::of_start(&started, payload).as_ref(), block.clone()));
            let block = identity(&start);
            of_new_tag.insert(seqno, (block.clone(), started.record_epoch_nanos));
            blocks.insert(original.seqno, (seqno, block, started.record_epoch_nanos));
            overwrite(&recorder);
            *counts.entry(identity(&start)).or_default() += 1;
            continue;
        }
        let [block, txn, account, span] = original.content_ext;
        let tag = blocks.get(&block).map_or(0, |(tag, ..)| *tag);
        assert_eq!(tag == 0, block == 0, "{original:?}");
        let event = Descriptor { content_ext: [tag, txn, account, span], ..*original };
        pending.push((record_again::pass_on(&recorder, &event, payload), tag));
    }
    check(&mut pending, &of_new_tag, &mut counts);
    counts
}

/// Returns the block of an event that carries this flow tag.
fn block_with(reader: &Reader, tag: u64) -> Option<BlockInfo> {
    reader.block_of(&Descriptor { seqno: u64::MAX >> 1, content_ext: [tag, 0, 0, 0], ..Descriptor::default() })
}

#[test]
fn a_late_reader_names_the_block_of_every_event_of_thirty_real_blocks_as_the_oracle_does() {
    let (Some(recording), Some(oracle)) =
        (real_data::path("emn-30b-15m.snapshot.zst"), real_data::path("emn-30b-15m.expected.json.zst"))
    else {
        return;
    };
    let counts = replay(&recording);
    let oracle: serde_json::Value =
        serde_json::from_reader(zstd::Decoder::new(std::fs::File::open(oracle).unwrap()).unwrap()).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let expected: Vec<Identity> = oracle
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|update| {
            let (tag, header) = (&update.get("Executed")?["block_tag"], &update["Executed"]["eth_header"]);
            let number = tag["block_number"].as_u64()?;
            Some((number, text(&tag["id"]), header["timestamp"].as_u64()?, text(&header["parentHash"])))
        })
        .collect();
    // The oracle has one block more than the recording.
    assert_eq!(counts.keys().cloned().collect::<Vec<_>>(), expected[..30]);
    // 89 events are about finality and belong to no block.
    assert_eq!(counts.values().sum::<u64>(), 136_891 - 89);
}

#[test]
fn a_late_reader_names_the_blocks_of_the_recording_that_is_kept_with_the_project() {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/data/all-exec-events.snapshot.zst");
    assert_eq!(replay(kept.as_ref()).len(), 2);
}

#[test]
fn every_way_to_record_a_block_start_fills_the_table() {
    let recorder = recorder();
    let _guard = EXEC.override_with(recorder.clone());
    let mut expected = Vec::new();
    let scope = BlockScope::start(&start(10));
    expected.push((scope.seqno(), 10));
    expected.push((record!(ExecEvent::BlockStart, &start(11)), 11));
    expected.push((record!(recorder => ExecEvent::BlockStart, &start(12)), 12));
    expected.push((recordv!(recorder => ExecEvent::BlockStart, &start(13), []), 13));
    start(14).with_bytes(|bytes| expected.push((recorder.record(2, [0; 4], bytes), 14)));
    start(15).with_bytes(|bytes| expected.push((recorder.recordv(2, [0; 4], &[&bytes[..7], &bytes[7..]]), 15)));
    start(16).with_bytes(|bytes| expected.push((recordv!(recorder => raw(2), [bytes]), 16)));
    start(17).with_bytes(|bytes| {
        let mut reservation = recorder.reserve(2, [0; 4], 528).unwrap();
        reservation.append(bytes);
        expected.push((reservation.commit(), 17));
    });
    // These begin no block: an event that is not committed, one that is too short, and other events.
    drop(recorder.reserve(2, [0; 4], 528));
    recorder.record(2, [0; 4], &[1; 527]);
    record!(ExecEvent::BlockEnd, &BlockEnd::default());
    let reader = reader_of(&recorder);
    let blocks = reader.blocks().unwrap();
    let found: Vec<_> = blocks.iter().map(|block| (block.flow_tag(), assert_whole(block))).collect();
    assert_eq!(found, expected);
    for (event, _) in events(&reader) {
        let block = reader.block_of(&event).map(|block| block.number());
        let expected = match event.event_type {
            2 => expected.iter().find(|(seqno, _)| *seqno == event.seqno).map(|(_, number)| *number),
            6 => Some(10),
            _ => None,
        };
        assert_eq!(block, expected, "{event:?}");
    }
}

#[test]
fn the_last_4096_blocks_are_there_and_no_event_is_named_after_another_block() {
    let recorder = recorder();
    let reader = reader_of(&recorder);
    assert_eq!((reader.blocks(), reader.last_block()), (Some(Vec::new()), None));
    let tags: Vec<u64> = (0..5000).map(|number| record!(recorder => ExecEvent::BlockStart, &start(number))).collect();
    for (number, tag) in tags.iter().enumerate() {
        let block = block_with(&reader, *tag).map(|block| assert_whole(&block));
        assert_eq!(block, (number as u64 >= 5000 - ENTRIES).then_some(number as u64));
    }
    let numbers: Vec<u64> = reader.blocks().unwrap().iter().map(assert_whole).collect();
    assert_eq!(numbers, (5000 - ENTRIES..5000).collect::<Vec<_>>());
    assert_eq!(reader.last_block().unwrap().number(), 4999);
    // No event belongs to a block that starts later, and none to block 0.
    let of = |seqno, tag| reader.block_of(&Descriptor { seqno, content_ext: [tag, 0, 0, 0], ..Descriptor::default() });
    assert_eq!((of(tags[4000] - 1, tags[4000]), of(5000, 0)), (None, None));
    assert_eq!(of(tags[4000], tags[4000]).unwrap().number(), 4000);
}

#[test]
fn blocks_proposed_at_the_same_time_are_whole_while_readers_read_them() {
    const THREADS: u64 = 3;
    const EACH: u64 = 6000;
    let recorder = recorder();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let recorder = &recorder;
                scope.spawn(move || {
                    let number = |index| thread << 32 | index;
                    let tags = (0..EACH).map(|index| {
                        (record!(recorder => ExecEvent::BlockStart, &start(number(index))), number(index))
                    });
                    tags.collect::<BTreeMap<u64, u64>>()
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let reader = reader_of(&recorder);
            let mut seen = 0;
            while !ended.load(Ordering::Relaxed) {
                seen += reader.blocks().unwrap().iter().map(assert_whole).count();
                seen += reader.last_block().iter().map(assert_whole).count();
            }
            seen
        });
        let mut tags = BTreeMap::new();
        writers.into_iter().for_each(|writer| tags.append(&mut writer.join().unwrap()));
        ended.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
        let reader = reader_of(&recorder);
        let blocks = reader.blocks().unwrap();
        let missed = reader.info().extension.unwrap().table_overflows;
        assert!(blocks.len() as u64 + missed >= ENTRIES, "{} {missed}", blocks.len());
        for block in blocks {
            assert_eq!(tags[&block.flow_tag()], assert_whole(&block));
        }
    });
}

#[test]
fn a_snapshot_keeps_the_blocks_whose_start_it_does_not_have() {
    let recorder = recorder();
    let _guard = EXEC.override_with(recorder.clone());
    let old = BlockScope::start(&start(20));
    overwrite(&recorder);
    record!(ExecEvent::BlockEnd, &BlockEnd::default());
    let new = BlockScope::start(&start(21));
    record!(ExecEvent::BlockEnd, &BlockEnd::default());
    drop((new, old));
    assert!(recorder.write_context(3 << 20, b"a table of the program"));
    let numbers = |reader: &Reader| -> Vec<Option<u64>> {
        let events = events(reader);
        let ends = events.iter().filter(|(event, _)| event.event_type == ExecEvent::BlockEnd.code());
        ends.map(|(event, _)| reader.block_of(event).map(|block| assert_whole(&block))).collect()
    };
    let reader = reader_of(&recorder);
    assert_eq!(numbers(&reader), [Some(20), Some(21)]);
    let time = reader.blocks().unwrap()[0].start_epoch_nanos();
    let mut snapshots = Vec::new();
    let mut reader = reader;
    // The second snapshot is one of the first.
    for _ in 0..2 {
        let mut bytes = Vec::new();
        reader.write_snapshot(&mut bytes, &SnapshotOptions::new()).unwrap();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        reader = Reader::open(file.path()).unwrap();
        assert_eq!(numbers(&reader), [Some(20), Some(21)]);
        let blocks = reader.blocks().unwrap();
        assert_eq!(blocks.len(), 2);
        assert_eq!((blocks[0].start_seqno(), blocks[0].start_epoch_nanos()), (None, time));
        assert!(blocks[0].flow_tag() > 1 << 63);
        let started = event(&reader, blocks[1].start_seqno().unwrap());
        assert_eq!(started.event_type, ExecEvent::BlockStart.code());
        let mut context = [0; 22];
        assert!(reader.read_context(3 << 20, &mut context) && &context == b"a table of the program");
        snapshots.push(events(&reader));
    }
    assert_eq!(snapshots[0], snapshots[1]);
}

#[test]
fn a_table_with_any_bytes_does_no_harm() {
    let recorder = recorder();
    let tag = record!(recorder => ExecEvent::BlockStart, &start(30));
    let reader = reader_of(&recorder);
    let mut numbers = Random(0x9e37_79b9_7f4a_7c15);
    let mut random = || numbers.below(u64::MAX);
    for round in 0..40 {
        let mut bytes = vec![0; 2_396_160 - 8];
        for word in bytes.as_chunks_mut::<8>().0 {
            // Small numbers are as likely as large ones, so that some tags name events and each other.
            *word = (random() >> (random() % 64)).to_le_bytes();
        }
        assert!(recorder.write_context(8, &bytes));
        if round % 2 == 0 {
            recorder.publish_context_word(8, u64::MAX - round);
        }
        for event in [event(&reader, tag)].into_iter().chain((0..64).map(|index| {
            let tag = if index % 2 == 0 { random() } else { random() % 64 };
            Descriptor { seqno: random(), content_ext: [tag, 0, 0, 0], ..Descriptor::default() }
        })) {
            if let Some(block) = reader.block_of(&event) {
                assert!(block.start_seqno().is_none_or(|start| start <= event.seqno));
            }
        }
        assert!(reader.blocks().unwrap().len() as u64 <= ENTRIES);
        let _ = format!("{:?}", reader.last_block());
        record!(recorder => ExecEvent::BlockStart, &start(round));
        if round == 0 {
            let mut bytes = Vec::new();
            reader.write_snapshot(&mut bytes, &SnapshotOptions::new().compression_level(1)).unwrap();
        }
    }
}

#[test]
fn only_rings_of_execution_events_have_a_table_and_only_if_it_was_asked_for() {
    let builder = || Recorder::builder(ContentDescription::new(300, "SHOP")).anonymous().compact(true).shifts(15, 21);
    let error = builder().block_table(true).build().unwrap_err();
    assert_eq!(error.kind(), RecorderErrorKind::BadConfig);
    assert!(error.to_string().contains("the content type is 300"), "{error}");
    let exec = || {
        Recorder::builder(ContentDescription::from_event_type::<ExecEvent>()).anonymous().compact(true).shifts(15, 21)
    };
    for builder in [exec(), exec().context_shift(22), builder().context_shift(22)] {
        let recorder = builder.prefault(false).build().unwrap();
        start(1).with_bytes(|bytes| recorder.record(2, [1, 0, 0, 0], bytes));
        let reader = reader_of(&recorder);
        assert_eq!((reader.blocks(), reader.last_block(), reader.block_of(&event(&reader, 1))), (None, None, None));
    }
    let large = exec().context_shift(23).block_table(true).prefault(false).build().unwrap();
    assert_eq!(large.geometry().context_area_bytes(), 8 << 20);
    assert_eq!(recorder().geometry().context_area_bytes(), 4 << 20);
    // The other content type has the same bytes in its context area, and still no blocks.
    let other = builder().context_shift(22).prefault(false).build().unwrap();
    other.publish_context_word(0, u64::from_le_bytes(*b"EVRBLOK1"));
    other.record(2, [0; 4], &[0; 528]);
    assert_eq!(reader_of(&other).blocks(), None);
}
