//! Tests that encoded blocks decode to the same events.

use super::*;
use eventring::files::{CONTENT_TYPE_EXEC, CONTENT_TYPE_PERF};
use eventring::reader::{Descriptor, EventBatch, Gap, GapCause, PayloadRead};
use eventring::schema::EventType as _;
use eventring::schema::exec::ExecEvent;
use eventring::schema::perf::PerfEvent;
use proptest::prelude::*;

/// Encodes all records and returns the bytes of the block, and the size of its columns before compression.
fn encoded(records: &BlockRecords, part: &RecordRange, layout: &RingLayout, level: i32) -> (Vec<u8>, u64) {
    let mut encoder = BlockEncoder::new();
    encoder.set_level(level).unwrap();
    let mut block = EncodedBlock::default();
    encoder.encode(records, part, layout, &mut block).unwrap();
    assert_eq!(block.bytes(), block.head.len() + block.data.len());
    ([block.head, block.data].concat(), block.column_bytes)
}

/// Compares a decoded block with a part of the records of which it was made.
fn assert_same(back: &BlockRecords, records: &BlockRecords, part: &RecordRange) {
    assert_eq!(back.events.len(), part.events.len());
    for (index, original) in part.events.clone().enumerate() {
        let without_place = Descriptor { payload_buf_offset: 0, ..records.events.descriptors()[original] };
        assert_eq!(back.events.descriptors()[index], without_place);
        assert_eq!(back.events.payload(index), records.events.payload(original));
        assert_eq!(back.events.is_left_out(index), records.events.is_left_out(original));
    }
    let gaps = records.gaps[part.gaps.clone()].iter();
    let moved = gaps.map(|gap| PlacedGap { events_before: gap.events_before - part.events.start, ..*gap });
    assert_eq!(back.gaps, moved.collect::<Vec<_>>());
}

fn layouts() -> [RingLayout; 3] {
    [
        RingLayout::default(),
        RingLayout::of_ring(CONTENT_TYPE_PERF, PerfEvent::schema_hash(), ""),
        RingLayout::of_ring(CONTENT_TYPE_EXEC, ExecEvent::schema_hash(), ""),
    ]
}

fn batch() -> EventBatch {
    EventBatch::new(1 << 24, 200)
}

/// Records of a few types and payload states. Types up to 30 are those of the exec schema, too.
fn any_records() -> impl Strategy<Value = BlockRecords> {
    let id = prop_oneof![Just(0_u64), 1_u64..400, any::<u64>()];
    let event =
        (1_u16..30, any::<bool>(), [id.clone(), id.clone(), id.clone(), id], 0_u64..1 << 40, 0_usize..250, 0..6);
    let event = event.prop_map(|(event_type, is_rare, content_ext, nanos, bytes, state)| {
        let event_type = if is_rare { event_type * 1000 } else { event_type % 4 };
        (event_type, content_ext, nanos, bytes, state)
    });
    let gap = (0_usize..300, any::<u64>(), any::<u64>(), 0_usize..5);
    (prop::collection::vec(event, 0..300), prop::collection::vec(gap, 0..6)).prop_map(|(events, gaps)| {
        let mut records = BlockRecords { ring: 3, events: batch(), gaps: Vec::new() };
        for (seqno, (event_type, content_ext, record_epoch_nanos, bytes, state)) in events.into_iter().enumerate() {
            let payload: Vec<u8> = (0..bytes).map(|byte| (byte * 7 + seqno) as u8).collect();
            let descriptor = Descriptor {
                seqno: seqno as u64 + 1,
                event_type,
                payload_size: bytes as u32,
                record_epoch_nanos,
                payload_buf_offset: 16 * seqno as u64,
                content_ext,
            };
            let payload = match state {
                0 => PayloadRead::Expired,
                1 => PayloadRead::Malformed,
                _ => PayloadRead::Valid(&payload),
            };
            records.events.push(&descriptor, payload);
        }
        let count = records.events.len();
        records.gaps = gaps
            .into_iter()
            .map(|(before, first_seqno, count_of_gap, cause)| PlacedGap {
                events_before: before.min(count),
                gap: Gap { first_seqno, count: count_of_gap, cause: GapCause::OF_RINGS[cause] },
            })
            .collect();
        records.gaps.sort_by_key(|gap| gap.events_before);
        records
    })
}

proptest! {
    #![proptest_config(ProptestConfig { ..ProptestConfig::with_cases(60) })]

    #[test]
    fn any_records_come_back_in_any_layout_at_any_level(records in any_records(), at: prop::sample::Index) {
        let middle = at.index(records.events.len() + 1);
        let parts = [records.all(), records.part(0..middle), records.part(middle..records.events.len())];
        for (layout, level) in layouts().iter().zip([0, 1, 3]) {
            for part in &parts {
                let (bytes, column_bytes) = encoded(&records, part, layout, level);
                let back = decode(&bytes, 3, column_bytes, PayloadsWanted::All).unwrap();
                assert_same(&back, &records, part);
            }
        }
    }

    #[test]
    fn damaged_blocks_are_refused_or_give_some_records_but_never_panic(
        records in any_records(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut: prop::sample::Index,
    ) {
        for (layout, level) in layouts().iter().zip([0, 0, 1]) {
            let (mut bytes, column_bytes) = encoded(&records, &records.all(), layout, level);
            for (at, byte) in &changes {
                let at = at.index(bytes.len().min(80));
                bytes[at] = *byte;
            }
            let _ = decode(&bytes, 3, column_bytes, PayloadsWanted::All);
            prop_assert!(decode(&bytes[..cut.index(bytes.len())], 3, column_bytes, PayloadsWanted::All).is_none());
        }
    }
}

/// Makes the records of spans as a service makes them: new, enter, exit, close.
fn spans(count: u64) -> BlockRecords {
    let mut records = BlockRecords { events: batch(), ..BlockRecords::default() };
    let mut seqno = 0;
    for span in 0..count {
        for (step, event) in [PerfEvent::SpanNew, PerfEvent::SpanEnter, PerfEvent::SpanExit, PerfEvent::SpanClose]
            .into_iter()
            .enumerate()
        {
            seqno += 1;
            let id = (1 << 40) | (span * 977 % (1 << 20));
            let parent =
                if event == PerfEvent::SpanNew && span > 0 { (1 << 40) | ((span - 1) * 977 % (1 << 20)) } else { 0 };
            let descriptor = Descriptor {
                seqno,
                event_type: event.code(),
                payload_size: 0,
                record_epoch_nanos: 1 << 60 | (span * 4000 + step as u64 * 700 + span % 13),
                payload_buf_offset: 0,
                content_ext: [id, parent, 5 | 7 << 32, 0],
            };
            records.events.push(&descriptor, PayloadRead::Valid(&[]));
        }
    }
    records
}

#[test]
fn the_records_of_spans_take_a_few_bytes() {
    let records = spans(4000);
    let [plain, perf, _] = layouts();
    // In tenths of a byte.
    let bytes = |layout: &RingLayout, level| encoded(&records, &records.all(), layout, level).0.len() / 1600;
    let (level_0, level_1, without_ids) = (bytes(&perf, 0), bytes(&perf, 1), bytes(&plain, 0));
    assert!(level_0 < 60 && level_1 < 10 && without_ids > 50, "{level_0} {level_1} {without_ids}");
}

#[test]
fn payloads_that_are_not_wanted_are_not_decoded() {
    let mut records = BlockRecords { events: batch(), ..BlockRecords::default() };
    for event_type in [2, 3, 2] {
        let descriptor = Descriptor { event_type, payload_size: 5, ..Descriptor::default() };
        records.events.push(&descriptor, PayloadRead::Valid(b"hello"));
    }
    let (bytes, column_bytes) = encoded(&records, &records.all(), &RingLayout::default(), 1);
    let back = decode(&bytes, 0, column_bytes, PayloadsWanted::OfTypes(&[3])).unwrap();
    let payloads = [0, 1, 2].map(|index| back.events.payload(index).valid());
    assert_eq!(payloads, [None, Some(&b"hello"[..]), None]);
}

#[test]
fn a_block_that_states_another_size_of_its_columns_is_refused() {
    let records = spans(10);
    let (bytes, column_bytes) = encoded(&records, &records.all(), &RingLayout::default(), 0);
    assert!(decode(&bytes, 0, column_bytes, PayloadsWanted::All).is_some());
    assert!(decode(&bytes, 0, column_bytes + 1, PayloadsWanted::All).is_none());
}

#[test]
fn payloads_of_one_size_become_columns_of_the_bytes_that_change() {
    let mut records = BlockRecords { ring: 0, events: batch(), gaps: Vec::new() };
    for number in 0_u64..1000 {
        // As a log record has them: what describes a number is always the same.
        let numbers = [
            &[0, 12, 27, 0, 6][..],
            &number.to_le_bytes(),
            &[6, 17, 0, 0, 0, 0, 0, 0, 0, 6],
            &(number % 100).to_le_bytes(),
        ]
        .concat();
        let event_type = PerfEvent::Event.code();
        let payload_size = numbers.len() as u32;
        let descriptor = Descriptor { seqno: number + 1, event_type, payload_size, ..Descriptor::default() };
        records.events.push(&descriptor, PayloadRead::Valid(&numbers));
    }
    let part = RecordRange { events: 0..1000, gaps: 0..0 };
    for layout in &layouts()[..2] {
        let (block, column_bytes) = encoded(&records, &part, layout, 0);
        assert_same(&decode(&block, 0, column_bytes, PayloadsWanted::All).unwrap(), &records, &part);
        assert!(column_bytes < 2_000, "{column_bytes}");
    }
}
