//! Blocks of live rings: while they are recorded, from places in the middle, and across restarts of the node.

use crate::Event;
use eventring::reader::Reader;
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::exec::{BlockTag, Bytes32, ExecEvent};
use eventring_capture::capture_now;
use eventring_exec::{BlockUpdate, Blocks, CommitState, NextUpdate, Replay, Start, Wanted};
use eventring_stress::chain::Made;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The longest wait for something that must happen.
const TIMEOUT: Duration = Duration::from_secs(60);

pub fn node(path: &Path) -> Recorder {
    let builder = Recorder::builder(ContentDescription::from_event_type::<ExecEvent>()).config(path).compact(true);
    builder.shifts(15, 24).prefault(false).build().unwrap()
}

/// Returns the events of blocks with these numbers and ids. Each is final, and verified one block later.
pub fn chain(blocks: &[(u64, u8)]) -> Vec<Event> {
    let mut made = Made::default();
    for (at, (number, id)) in blocks.iter().enumerate() {
        let tag = made.block(*number, *id, 3);
        made.vote(tag);
        made.finalize(tag);
        if at > 0 {
            made.verify(blocks[at - 1].0);
        }
    }
    made.0
}

/// Returns the news up to the last one, as number, first byte of the id, state, and whether the block is complete.
fn news(blocks: &mut Blocks, wait: Duration) -> Vec<(u64, u8, &'static str, bool)> {
    let mut news = Vec::new();
    loop {
        match blocks.next_timeout(wait) {
            NextUpdate::Update(BlockUpdate::Changed(update)) => {
                let is_complete = update.block.as_ref().is_some_and(|block| block.is_complete);
                news.push((update.tag.block_number, update.tag.id.0[0], update.state.name(), is_complete));
            }
            NextUpdate::Update(BlockUpdate::Reexecuted(block)) => {
                news.push((block.number(), block.tag().id.0[0], "again", block.is_complete));
            }
            NextUpdate::Update(other) => panic!("{other:?}"),
            NextUpdate::TimedOut | NextUpdate::Ended => return news,
        }
    }
}

#[test]
fn each_block_of_a_live_ring_comes_once_with_each_of_its_states() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("node");
    let recorder = node(&path);
    let blocks: Vec<(u64, u8)> = (1..=200).map(|number| (number, number as u8)).collect();
    let events = chain(&blocks);
    let mut reader = Blocks::of_ring(&Reader::open(&path).unwrap(), Wanted::ALL).unwrap();
    let found = std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut all = Vec::new();
            while all.len() < 200 * 4 - 1 {
                let NextUpdate::Update(BlockUpdate::Changed(update)) = reader.next_timeout(TIMEOUT) else { break };
                assert!(update.block.as_ref().is_some_and(|block| block.is_complete), "{update:?}");
                all.push((update.tag.block_number, update.state));
            }
            all
        });
        let mut replay = Replay::new(&recorder);
        for (event, payload) in &events {
            assert_eq!(replay.record(event, payload), event.seqno);
        }
        reading.join().unwrap()
    });
    for (number, _) in blocks {
        let states: Vec<CommitState> = found.iter().filter(|(of, _)| *of == number).map(|(_, state)| *state).collect();
        use CommitState as S;
        let all = [S::Proposed, S::Voted, S::Finalized, S::Verified];
        assert_eq!(states, all[..if number == 200 { 3 } else { 4 }], "block {number}");
    }
}

#[test]
fn a_reader_begins_at_a_number_an_id_or_after_what_it_knows_to_be_final() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("node");
    let recorder = node(&path);
    let mut replay = Replay::new(&recorder);
    // Number 3 is proposed twice.
    for (event, payload) in chain(&[(1, 1), (2, 2), (3, 9), (3, 3), (4, 4)]) {
        replay.record(&event, &payload);
    }
    let ring = Reader::open(&path).unwrap();
    let first = |start: Start| {
        let mut blocks = Blocks::of_ring(&ring, Wanted::ALL).unwrap();
        blocks.seek(start).then(|| news(&mut blocks, Duration::ZERO)[0])
    };
    assert_eq!(first(Start::Oldest), Some((1, 1, "proposed", true)));
    assert_eq!(first(Start::Number(3)), Some((3, 3, "proposed", true)));
    assert_eq!(first(Start::Id(Bytes32([9; 32]))), Some((3, 9, "proposed", true)));
    // The first news after the start of block 2 is its own certificate; the block itself is known.
    assert_eq!(first(Start::AfterFinalized(2)), Some((2, 2, "voted", false)));
    assert_eq!((first(Start::Number(7)), first(Start::Id(Bytes32([7; 32])))), (None, None));
    let mut newest = Blocks::of_ring(&ring, Wanted::ALL).unwrap();
    assert!(newest.seek(Start::Newest) && news(&mut newest, Duration::ZERO).is_empty());
}

#[test]
fn a_node_that_is_started_again_executes_blocks_again_and_they_are_told_once() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("node");
    let first = node(&path);
    let before = chain(&[(1, 1), (2, 2), (3, 3)]);
    // The node ends in the middle of block 3.
    let end = before.iter().rposition(|(event, _)| event.event_type == ExecEvent::TxnEnd as u16).unwrap();
    let mut replay = Replay::new(&first);
    before[..end].iter().for_each(|(event, payload)| _ = replay.record(event, payload));
    let mut blocks = Blocks::of_ring(&Reader::open(&path).unwrap(), Wanted::ALL).unwrap().follow_restarts();
    let told = news(&mut blocks, Duration::from_millis(10));
    assert_eq!(told.iter().filter(|(.., state, _)| *state == "proposed").count(), 2, "{told:?}");
    drop(first);
    let second = node(&path);
    let mut replay = Replay::new(&second);
    chain(&[(2, 2), (3, 3), (4, 4)]).iter().for_each(|(event, payload)| _ = replay.record(event, payload));
    let mut told = Vec::new();
    while !told.iter().any(|(number, _, state, _)| (*number, *state) == (4, "finalized")) {
        told.extend(news(&mut blocks, Duration::from_millis(200)));
    }
    told.retain(|(.., state, _)| ["proposed", "again"].contains(state));
    // Block 3 was cut off, so its second execution is news.
    assert_eq!(
        told,
        [(3, 3, "proposed", false), (2, 2, "again", true), (3, 3, "proposed", true), (4, 4, "proposed", true),]
    );
    assert_eq!(blocks.commits().state(BlockTag { id: Bytes32([3; 32]), block_number: 3 }), Some(CommitState::Verified));
}

#[test]
fn a_capture_of_several_nodes_is_read_once() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let nodes = [1, 2, 3].map(|number| {
        let path = dir.path().join(format!("node{number}"));
        let recorder = node(&path);
        Made(chain(&[(number, number as u8)])).record(0, &recorder);
        (Reader::open(&path).unwrap(), recorder)
    });
    let (capture, _) = capture_now(nodes.iter().map(|(reader, _)| reader.clone()).collect(), || true).unwrap();
    let told = Arc::new(AtomicU64::new(0));
    let read = told.clone();
    let capture = capture.with_progress(move |bytes, of| {
        // The end of a reading.
        read.fetch_add(if bytes == of { bytes } else { 0 }, Ordering::Relaxed);
    });
    let mut blocks = Blocks::of_capture(&capture, Wanted::ALL).unwrap();
    let numbers: Vec<u64> = news(&mut blocks, TIMEOUT).iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, [1, 1, 1, 2, 2, 2, 3, 3, 3]);
    let read = told.swap(0, Ordering::Relaxed);
    // The control: all events of the capture, read by themselves.
    assert!(capture.events().count() > 0);
    assert_eq!(read, told.load(Ordering::Relaxed));
}
