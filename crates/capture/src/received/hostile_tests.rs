//! Tests of batches with false accounts (counts of events) in a good stream. The receiver rejects only the false
//! batches.

use super::tests::{open, rows};
use super::{Added, ReceivedCapture};
use crate::fixtures::CaptureFixture;
use crate::format::block;
use crate::format::header::{BlockHeader, BlockKind};
use crate::format::tables::{BLOCK, CALL_SITE, THREAD, put_entry};
use crate::sinks::batches::read_batch;
use crate::{CaptureFile, CapturedContent, CapturedRecord, RingRole, RingStats};
use eventring::files::CONTENT_TYPE_PERF;
use eventring::internal::layout::start_table::START_BYTES;
use eventring::schema::perf::{CallSiteKind, CallSiteLevel, CallSiteView, ThreadView};
use proptest::prelude::*;
use std::path::Path;

/// The ways in which a batch lies. All of them must be refused.
const LIES: [fn(&mut CaptureFile, u64); 18] = [
    |batch, some| stated(batch).events += some,
    |batch, some| stated(batch).last_seqno += some,
    |batch, some| stated(batch).last_seqno -= some.min(3),
    |batch, _| stated(batch).last_seqno = u64::MAX,
    |batch, some| stated(batch).missing_by_cause[0] += some,
    |batch, some| stated(batch).expired_payloads += some,
    |batch, some| stated(batch).table_losses[0] = u64::MAX - some,
    |batch, some| stated(batch).table_losses[2] = u64::MAX - some,
    |batch, some| (stated(batch).events, stated(batch).last_seqno) = (1_000_000 + some, 1_000_000 + some),
    |batch, some| batch.rings[0].first_seqno += some,
    |batch, _| batch.rings[0].name = "x".repeat(256),
    |batch, _| batch.rings[0].host = "x".repeat(70_000),
    |batch, _| batch.rings[0].host = String::new(),
    |batch, _| batch.rings[0].name = "a\u{1b}[2J\nb".into(),
    |batch, _| batch.rings[0].content_type = CONTENT_TYPE_PERF,
    |batch, _| batch.blocks.retain(|block| block.header.kind != BlockKind::Events),
    |batch, some| in_header(batch, |header| header.ring = some as u32),
    |batch, some| in_header(batch, |header| header.first_seqno += some),
];

fn stated(batch: &mut CaptureFile) -> &mut RingStats {
    &mut batch.end.as_mut().unwrap().stats.rings[0]
}

/// Changes the header of the first block of events, and its checksum.
fn in_header(batch: &mut CaptureFile, change: impl Fn(&mut BlockHeader)) {
    let block = batch.blocks.iter_mut().find(|block| block.header.kind == BlockKind::Events).unwrap();
    let stored = block::stored(&batch.file, block).unwrap();
    change(&mut block.header);
    block.header.checksum = block.header.checksum_with(&[&stored]);
}

/// Returns the content of a block of tables, with an entry of each kind.
fn tables() -> Vec<u8> {
    let call_site = CallSiteView {
        kind: CallSiteKind::Span,
        level: CallSiteLevel::Info,
        name: "query".into(),
        target: "shop::db".into(),
        module: "shop::db".into(),
        file: "src/db.rs".into(),
        line: 3,
        field_names: vec!["table".into(), "rows".into()],
    };
    // Flow tag, seqno and time of BLOCK_START, and its payload.
    let words = [1_u64, 1, 1000].map(u64::to_le_bytes).concat();
    let mut out = Vec::new();
    put_entry(&mut out, 0, CALL_SITE, 5, &call_site.encode());
    put_entry(&mut out, 0, THREAD, 6, &ThreadView::encode(1, 4711, "worker"));
    put_entry(&mut out, 1, BLOCK, 0, &[&words[..], &[7; START_BYTES]].concat());
    out
}

/// Makes a batch of spans and execution events that has these tables.
fn with_tables(tables: &[u8]) -> CaptureFile {
    let mut made = CaptureFixture::new();
    made.tables(tables, 3);
    made.call_site(1000, 5, CallSiteKind::Span, "query", &["table", "rows"]);
    made.event(1, 20, 1060, [1, 0, 0, 0], b"");
    let mut batch = made.open();
    batch.rings.iter_mut().for_each(|ring| ring.host = "h".into());
    batch
}

/// Adds a batch to a file of its own. Returns what readers find damaged in the file, or `None` if the batch is refused.
fn damage_after(batch: &CaptureFile) -> Option<Vec<String>> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("all.evc");
    let mut file = open(&path);
    let added = file.add(batch, (1, 1), true).unwrap();
    file.finish().unwrap();
    let capture = CaptureFile::open(&path).unwrap();
    let mut events = capture.events();
    let count = events.by_ref().count();
    match added {
        Added::Refused(why) => {
            assert_eq!((capture.rings().len(), count), (0, 0), "{why}");
            None
        }
        _ => Some([capture.problems(), events.problems()].concat()),
    }
}

/// Returns what a file has of the host `h`.
fn of_good(path: &Path) -> (Vec<CapturedRecord>, RingStats) {
    let capture = CaptureFile::open(path).unwrap();
    assert_eq!(capture.problems(), [""; 0]);
    let good = capture.rings().iter().position(|ring| ring.host == "h").unwrap();
    let records = capture.events().filter(|record| record.ring as usize == good);
    let records = records.map(|record| CapturedRecord { ring: 0, ..record }).collect();
    (records, capture.end().unwrap().stats.rings[good].clone())
}

proptest! {
    #![proptest_config(ProptestConfig { ..ProptestConfig::with_cases(40) })]

    #[test]
    fn a_good_stream_is_received_as_if_hostile_batches_were_not_there(
        lies in prop::collection::vec((0..rows()[0].len(), 0..LIES.len(), any::<prop::sample::Index>(), 1..100_u64), 1..20),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (alone, beside) = (dir.path().join("alone.evc"), dir.path().join("beside.evc"));
        let (mut file_alone, mut file_beside) = (open(&alone), open(&beside));
        for (place, batch) in rows()[0].iter().enumerate() {
            let add = |file: &mut ReceivedCapture, batch: &CaptureFile| {
                file.add(batch, (place as u64 + 1, 1), true).unwrap()
            };
            for (_, lie, of, some) in lies.iter().filter(|(before, ..)| *before == place) {
                let mut hostile = read_batch(&rows()[1][of.index(rows()[1].len())]).unwrap();
                hostile.rings[0].host = "hostile".into();
                LIES[*lie](&mut hostile, *some);
                let added = add(&mut file_beside, &hostile);
                prop_assert!(matches!(added, Added::Refused(_)), "lie {}: {:?}", lie, added);
            }
            let batch = read_batch(batch).unwrap();
            prop_assert_eq!(add(&mut file_alone, &batch), Added::All);
            prop_assert_eq!(add(&mut file_beside, &batch), Added::All);
        }
        prop_assert_eq!(file_alone.stats(), file_beside.stats());
        file_alone.finish().unwrap();
        file_beside.finish().unwrap();
        prop_assert!(of_good(&alone) == of_good(&beside));
    }

    #[test]
    fn damaged_tables_are_refused_or_leave_a_file_that_all_readers_read_without_damage(
        writes in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 1..48)),
            1..4,
        ),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut tables = tables();
        for (at, bytes) in writes {
            let at = at.index(tables.len());
            let rest = &mut tables[at..];
            let count = bytes.len().min(rest.len());
            rest[..count].copy_from_slice(&bytes[..count]);
        }
        tables.truncate(cut.map_or(tables.len(), |cut| cut.index(tables.len())));
        let damage = damage_after(&with_tables(&tables));
        prop_assert!(damage.as_ref().is_none_or(Vec::is_empty), "{:?}", damage);
    }
}

#[test]
fn a_damaged_entry_of_any_kind_is_refused_with_its_whole_batch() {
    let whole = tables();
    assert_eq!(damage_after(&with_tables(&whole)), Some(Vec::new()));
    let (mut at, mut kinds) = (0, 0);
    for entry in crate::format::tables::entries(&whole) {
        let mut damaged = whole.clone();
        damaged[at + 16..at + entry.len()].fill(0xff);
        assert_eq!(damage_after(&with_tables(&damaged)), None, "the entry at {at}");
        (at, kinds) = (at + entry.len(), kinds + 1);
    }
    assert_eq!((at, kinds), (whole.len(), 3));
}

#[test]
fn a_look_that_is_damaged_or_there_twice_or_of_no_recorder_is_refused_with_its_batch() {
    let damage = |looks: &[(u32, usize)]| {
        let mut made = CaptureFixture::new();
        looks.iter().for_each(|(ring, bytes)| made.look(*ring, 2000, &vec![0; *bytes]));
        made.event(1, 20, 1060, [1, 0, 0, 0], b"");
        let mut batch = made.open();
        batch.rings.iter_mut().for_each(|ring| ring.host = "h".into());
        damage_after(&batch)
    };
    assert_eq!(damage(&[(0, 72)]), Some(Vec::new()));
    for refused in [&[(0, 71)][..], &[(0, 80)], &[(0, 72), (0, 72)], &[(1, 72)], &[(7, 72)]] {
        assert_eq!(damage(refused), None, "{refused:?}");
    }
}

/// Claims of a batch about its own rings, which nobody can know to be wrong.
#[test]
fn what_cannot_be_checked_changes_only_the_ring_of_the_batch_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (alone, beside) = (dir.path().join("alone.evc"), dir.path().join("beside.evc"));
    let (mut file_alone, mut file_beside) = (open(&alone), open(&beside));
    for (place, batch) in (1..).zip(&rows()[0]) {
        let mut strange = read_batch(batch).unwrap();
        strange.rings[0].host = "strange".into();
        strange.rings[0].process = u32::MAX;
        strange.rings[0].role = RingRole::Shard { recorder: 0, shard: u32::MAX };
        let stats = stated(&mut strange);
        (stats.unread, stats.record_errors, stats.removed) = (u64::MAX, u64::MAX, u64::MAX);
        (stats.table_losses[1], stats.table_losses[3]) = (u64::MAX, u64::MAX);
        in_header(&mut strange, |header| header.last_nanos = u64::MAX);
        assert_eq!(file_beside.add(&strange, (place, place), true).unwrap(), Added::All);
        let batch = read_batch(batch).unwrap();
        file_alone.add(&batch, (place, place), true).unwrap();
        file_beside.add(&batch, (place, place), true).unwrap();
    }
    file_alone.finish().unwrap();
    file_beside.finish().unwrap();
    assert!(of_good(&alone) == of_good(&beside));
    let good = of_good(&alone);
    assert!(good.0.iter().all(|record| matches!(record.content, CapturedContent::Event { .. })));
}
