//! Files of the published system: both headers, archives, and blocks that a ring has lost and an archive has.

use crate::streams::{chain, node};
use crate::{Event, events, kept};
use eventring::reader::Reader;
use eventring::schema::EventType as _;
use eventring::schema::exec::ExecEvent;
use eventring_exec::{
    Archiver, Block, BlockArchive, BlockUpdate, Blocks, CommitState, Dialect, EventcapFile, EventcapHeader, ExecEvents,
    NextEvent, NextUpdate, Problem, Replay, Start, Wanted, stored_events, write_bundle,
};
use eventring_stress::chain::Made;
use eventring_stress::real_data;
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Archives the final blocks of these events. Returns their numbers.
fn archive(directory: &Path, events: &[Event]) -> Vec<u64> {
    let archive = BlockArchive::open(directory).unwrap();
    let mut archiver = Archiver::new(archive, Dialect::TODAY, ExecEvent::schema_hash());
    let written = events.iter().filter_map(|(event, payload)| archiver.push(event, Some(payload)).unwrap());
    written.map(|written| written.number).collect()
}

/// Returns the blocks of these news with the last state of each, in the order in which they came.
fn last_states(blocks: Blocks) -> Vec<(Arc<Block>, CommitState)> {
    let mut all: Vec<(Arc<Block>, CommitState)> = Vec::new();
    for update in blocks {
        let BlockUpdate::Changed(update) = update else { panic!("{update:?}") };
        let Some(block) = update.block else { continue };
        match all.iter_mut().find(|(known, _)| known.tag() == block.tag()) {
            Some((_, state)) => *state = update.state,
            None => all.push((block, update.state)),
        }
    }
    all
}

#[test]
fn an_archive_has_the_blocks_of_the_recording_that_are_final() {
    let recording = real_data::path("emn-30b-15m.snapshot.zst").map_or_else(kept, |path| Reader::open(path).unwrap());
    let directory = tempfile::tempdir().unwrap();
    let numbers = archive(directory.path(), &events(&recording));
    let archive = BlockArchive::open(directory.path()).unwrap();
    assert_eq!(archive.numbers().unwrap(), numbers);
    let recorded = last_states(Blocks::of_ring(&recording, Wanted::ALL).unwrap());
    let finals: Vec<_> = recorded.into_iter().filter(|(_, state)| *state >= CommitState::Finalized).collect();
    let stored = stored_events(directory.path()).unwrap().unwrap();
    assert!(stored.is_archive());
    let stored = last_states(Blocks::of_events(stored, Wanted::ALL));
    assert_eq!((stored.len(), numbers.len()), (finals.len(), finals.len()));
    for ((ours, state), (theirs, _)) in stored.iter().zip(&finals) {
        assert_eq!((ours, *state), (theirs, CommitState::Finalized));
        assert_eq!(archive.block(ours.number(), Wanted::ALL).unwrap().as_ref(), Some(ours));
        let file = EventcapFile::open(archive.path_of(ours.number())).unwrap();
        assert_eq!(file.header(), EventcapHeader::Archive);
        let bundle = *file.bundles().next().unwrap();
        assert_eq!((bundle.block_number, bundle.start_seqno), (Some(ours.number()), ours.start_seqno));
    }
    assert_eq!(archive.block(1, Wanted::ALL).unwrap(), None);
}

/// A file with the header of the SDK 1.1, as the layout says: a schema, an index or none, and a bundle.
fn sdk_file(events: &[Event], has_index: bool, is_packed: bool) -> Vec<u8> {
    let (mut content, mut index) = (Vec::new(), Vec::new());
    for (event, payload) in events {
        content.resize(usize::next_multiple_of(content.len(), 64), 0);
        index.extend((content.len() as u64).to_le_bytes());
        content.extend(event.to_words().into_iter().flat_map(u64::to_le_bytes));
        content.extend(payload);
    }
    let stored = if is_packed { zstd::encode_all(&content[..], 1).unwrap() } else { content.clone() };
    let index_at = 32 + 3 * 128;
    let content_at = index_at + index.len();
    let mut file = vec![0; index_at];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    let mut words = |at: usize, words: &[u64]| {
        words.iter().enumerate().for_each(|(i, word)| put(at + 8 * i, &word.to_le_bytes()));
    };
    words(8, &[32, 3 * 128, 3]);
    let (schema, bundle, of_index) = (32, 32 + 128, 32 + 256);
    words(bundle + 8, &[bundle as u64, content_at as u64, content.len() as u64, stored.len() as u64]);
    let first = events.first().map_or(0, |(event, _)| event.seqno);
    words(bundle + 40, &[events.len() as u64, first, 0, if has_index { of_index as u64 } else { 0 }]);
    words(of_index + 8, &[of_index as u64, index_at as u64, index.len() as u64, index.len() as u64]);
    put(0, b"EVCAP_01");
    put(schema, &2_u16.to_le_bytes());
    put(schema + 40, b"RING01");
    put(schema + 46, &2_u16.to_le_bytes());
    put(schema + 48, &ExecEvent::schema_hash());
    put(bundle, &3_u16.to_le_bytes());
    put(bundle + 2, &[if is_packed { 2 } else { 0 }]);
    put(of_index, &[if has_index { 4 } else { 0 }, 0]);
    [file, index, stored].concat()
}

#[test]
fn files_with_the_earlier_header_are_told_apart_and_read_with_an_index_and_without() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.evcap");
    let (recorded, all) = (last_states(Blocks::of_ring(&kept(), Wanted::ALL).unwrap()), events(&kept()));
    for (has_index, is_packed) in [(false, false), (false, true), (true, false), (true, true)] {
        std::fs::write(&path, sdk_file(&all, has_index, is_packed)).unwrap();
        let file = EventcapFile::open(&path).unwrap();
        assert_eq!((file.header(), file.bundles().len()), (EventcapHeader::Sdk11, 1));
        let read: Vec<Event> = file.read(0).unwrap().iter().map(|(event, payload)| (event, payload.to_vec())).collect();
        assert_eq!(read, all);
        // Consensus events are in it, so it is no archive.
        let stored = ExecEvents::of_eventcap(file).unwrap();
        assert!(!stored.is_archive());
        let found = last_states_and_problems(Blocks::of_events(stored, Wanted::ALL));
        assert_eq!(found.0, recorded);
    }
}

fn last_states_and_problems(
    blocks: impl IntoIterator<Item = BlockUpdate>,
) -> (Vec<(Arc<Block>, CommitState)>, Vec<Problem>) {
    let (mut all, mut problems): (Vec<(Arc<Block>, CommitState)>, _) = (Vec::new(), Vec::new());
    for update in blocks {
        match update {
            BlockUpdate::Changed(update) => {
                let Some(block) = update.block else { continue };
                match all.iter_mut().find(|(known, _)| known.tag() == block.tag()) {
                    Some((_, state)) => *state = update.state,
                    None => all.push((block, update.state)),
                }
            }
            BlockUpdate::Problem(problem) => problems.push(problem),
            _ => {}
        }
    }
    (all, problems)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever bytes a file has, nothing panics, and what is read of it is no more than it holds.
    #[test]
    fn damaged_files_are_errors(
        is_sdk: bool,
        is_packed: bool,
        changes in prop::collection::vec((0_usize..1 << 14, any::<u8>()), 1..6),
        cut in 0_usize..1 << 17,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("7.bcap");
        let all = events(&kept());
        if is_sdk {
            std::fs::write(&path, sdk_file(&all, is_packed, is_packed)).unwrap();
        } else {
            write_bundle(&path, ExecEvent::schema_hash(), 7, &all).unwrap();
        }
        let mut bytes = std::fs::read(&path).unwrap();
        for (at, to) in changes {
            // Most of what can be wrong is in the descriptors.
            let at = if at % 3 == 0 { 4096 + at % 512 } else { at };
            if let Some(byte) = bytes.get_mut(at) {
                *byte = to;
            }
        }
        bytes.truncate(cut.max(64));
        std::fs::write(&path, &bytes).unwrap();
        let Ok(file) = EventcapFile::open(&path) else { return Ok(()) };
        for index in 0..file.bundles().len().min(8) {
            if let Ok(read) = file.read(index) {
                prop_assert!(read.iter().len() as u64 == file.bundles().nth(index).unwrap().event_count);
            }
        }
        if let Ok(events) = ExecEvents::of_eventcap(file) {
            let (blocks, _) = last_states_and_problems(Blocks::of_events(events, Wanted::ALL));
            prop_assert!(blocks.len() <= all.len());
        }
    }
}

/// Returns the numbers and ids of the blocks that became final, as they are told.
fn finals(blocks: &mut Blocks, last: u64) -> Vec<(u64, u8)> {
    let mut finals = Vec::new();
    while finals.last().is_none_or(|(number, _)| *number < last) {
        match blocks.next_timeout(Duration::from_secs(20)) {
            NextUpdate::Update(BlockUpdate::Changed(update)) if update.state == CommitState::Finalized => {
                if let Some(block) = update.block {
                    assert!(block.is_complete, "{:?}", block.problems);
                    finals.push((block.number(), block.tag().id.0[0]));
                }
            }
            NextUpdate::Update(BlockUpdate::Problem(problem)) => {
                assert!(
                    matches!(problem, Problem::Gap { .. } | Problem::NoStart { .. } | Problem::Expired { .. }),
                    "{problem}"
                );
            }
            NextUpdate::Update(_) => {}
            NextUpdate::TimedOut | NextUpdate::Ended => panic!("nothing after {:?}", finals.last()),
        }
    }
    finals
}

#[test]
fn with_an_archive_a_reader_misses_nothing_wherever_it_begins_and_however_often_the_ring_laps_it() {
    const BLOCKS: u64 = 400;
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let (path, archived) = (directory.path().join("node"), directory.path().join("archive"));
    std::fs::create_dir(&archived).unwrap();
    let recorder = node(&path);
    let numbers: Vec<(u64, u8)> = (1..=BLOCKS).map(|number| (number, number as u8)).collect();
    // Some numbers have a second proposal, which is abandoned.
    let mut made = Made::default();
    for (number, id) in &numbers {
        if number % 7 == 0 {
            made.block(*number, !*id, 2);
        }
        let tag = made.block(*number, *id, 9);
        made.vote(tag);
        made.finalize(tag);
    }
    let all = made.0;
    let capacity = recorder_capacity(&path);
    assert!(all.len() as u64 > 2 * capacity, "{} events go round a ring of {capacity}", all.len());
    let archive_of = |directory: &Path| BlockArchive::open(directory).unwrap();
    std::thread::scope(|scope| {
        // The node goes on, and the archiver is behind it by some blocks.
        scope.spawn(|| {
            let mut replay = Replay::new(&recorder);
            let mut archiver = Archiver::new(archive_of(&archived), Dialect::TODAY, ExecEvent::schema_hash());
            let behind = 500;
            for at in 0..all.len() + behind {
                if let Some((event, payload)) = all.get(at) {
                    replay.record(event, payload);
                }
                if let Some((event, payload)) = at.checked_sub(behind).and_then(|at| all.get(at)) {
                    archiver.push(event, Some(payload)).unwrap();
                }
                if at % 500 == 0 {
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        });
        // A slow reader, from the first block on.
        let ring = Reader::open(&path).unwrap();
        let timeout = Duration::from_secs(30);
        let mut slow = Blocks::of_ring(&ring, Wanted::ALL).unwrap().with_archive(archive_of(&archived), timeout);
        let mut found = Vec::new();
        while found.last() != numbers.last() {
            let next = found.last().map_or(1, |(number, _): &(u64, u8)| number + 1);
            found.extend(finals(&mut slow, next));
            std::thread::sleep(Duration::from_micros(300));
        }
        assert_eq!(found, numbers);
        // Readers that begin anywhere.
        let starts = std::env::var("EVENTRING_STARTS").ok().and_then(|starts| starts.parse().ok()).unwrap_or(20);
        for begin in 0..starts {
            let first = 1 + begin * 37 % BLOCKS;
            let mut blocks = Blocks::of_ring(&ring, Wanted::ALL).unwrap().with_archive(archive_of(&archived), timeout);
            let start = if begin % 2 == 0 { Start::Number(first) } else { Start::AfterFinalized(first - 1) };
            if first > 1 || begin % 2 == 0 {
                assert!(blocks.seek(start), "{start:?}");
                assert_eq!(finals(&mut blocks, BLOCKS), numbers[first as usize - 1..], "{start:?}");
            }
        }
    });
    // Control: without the archive the ring alone does not have them.
    let ring = Reader::open(&path).unwrap();
    assert!(!Blocks::of_ring(&ring, Wanted::ALL).unwrap().seek(Start::Number(1)));
}

fn recorder_capacity(path: &Path) -> u64 {
    Reader::open(path).unwrap().info().geometry.descriptor_capacity()
}

#[test]
fn what_the_archive_does_not_get_in_time_is_told_and_the_rest_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.evcap");
    let mut all = chain(&[(1, 1), (2, 2), (3, 3), (4, 4)]);
    archive(directory.path(), &all);
    // Events of block 2 are lost, and of what is between 3 and 4.
    let at = |kind: ExecEvent, nth: usize| {
        all.iter().enumerate().filter(|(_, (event, _))| event.event_type == kind as u16).nth(nth).unwrap().0
    };
    let (in_second, third_finalized) = (at(ExecEvent::BlockStart, 1) + 5, at(ExecEvent::BlockFinalized, 2));
    all.remove(third_finalized);
    all.remove(in_second);
    std::fs::write(&path, sdk_file(&all, true, true)).unwrap();
    let read = |timeout| {
        let events = ExecEvents::of_eventcap(EventcapFile::open(&path).unwrap()).unwrap();
        let archive = BlockArchive::open(directory.path()).unwrap();
        let (found, problems) =
            last_states_and_problems(Blocks::of_events(events, Wanted::ALL).with_archive(archive, timeout));
        let all: Vec<_> = found.iter().map(|(block, state)| (block.number(), block.is_complete, *state)).collect();
        (all, problems)
    };
    use CommitState as S;
    let whole = [(1, true, S::Verified), (2, true, S::Verified), (3, true, S::Verified), (4, true, S::Finalized)];
    let (found, problems) = read(Duration::ZERO);
    assert_eq!(found, whole, "{problems:?}");
    assert!(problems.iter().all(|problem| matches!(problem, Problem::Gap { count: 1, .. })), "{problems:?}");
    // Without its file, block 2 is what the ring has of it.
    std::fs::remove_file(BlockArchive::open(directory.path()).unwrap().path_of(2)).unwrap();
    let (found, problems) = read(Duration::from_millis(50));
    assert_eq!(found[1], (2, false, S::Verified));
    assert_eq!((found[0], &found[2..]), (whole[0], &whole[2..]), "{problems:?}");
    assert!(problems.contains(&Problem::Unfilled { first_number: 2, last_number: 2 }), "{problems:?}");
}

#[test]
fn a_file_that_is_missing_or_damaged_costs_its_own_block_and_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.evcap");
    let mut all = chain(&[1, 2, 3, 4, 5, 6, 7, 8].map(|number| (number, number as u8)));
    archive(directory.path(), &all);
    let archived = BlockArchive::open(directory.path()).unwrap();
    std::fs::remove_file(archived.path_of(3)).unwrap();
    let whole = std::fs::read(archived.path_of(5)).unwrap();
    std::fs::write(archived.path_of(5), &whole[..whole.len() / 2]).unwrap();
    // The ring has lost everything of 2 to 6, and says so several times.
    let is_start = |(event, _): &Event| event.event_type == ExecEvent::BlockStart as u16;
    let starts: Vec<usize> = (0..all.len()).filter(|at| is_start(&all[*at])).collect();
    let kept: Vec<usize> = [2, 3, 4, 5].map(|block| starts[block] - 2).into();
    let mut at = 0..;
    all.retain(|_| at.next().is_some_and(|at| at < starts[1] || at >= starts[6] || kept.contains(&at)));
    std::fs::write(&path, sdk_file(&all, true, true)).unwrap();
    let events = ExecEvents::of_eventcap(EventcapFile::open(&path).unwrap()).unwrap();
    let timeout = Duration::from_millis(100);
    let mut blocks = Blocks::of_events(events, Wanted::ALL).with_archive(archived, timeout);
    let (begin, mut numbers, mut unfilled) = (Instant::now(), Vec::new(), Vec::new());
    let mut files = Vec::new();
    while let NextUpdate::Update(update) = blocks.next_timeout(Duration::from_secs(20)) {
        match update {
            BlockUpdate::Changed(update) if update.is_new => numbers.push(update.tag.block_number),
            BlockUpdate::Problem(problem @ Problem::Unfilled { .. }) => unfilled.push(problem),
            _ => {}
        }
        files = blocks.file_problems();
    }
    assert_eq!(numbers, [1, 2, 4, 6, 7, 8]);
    let alone = |number| Problem::Unfilled { first_number: number, last_number: number };
    assert_eq!(unfilled, [alone(3), alone(5)]);
    assert!(files.len() == 1 && files[0].contains("5.bcap"), "{files:?}");
    // Each of the two was waited for once.
    assert!(begin.elapsed() >= 2 * timeout && begin.elapsed() < 20 * timeout, "{:?}", begin.elapsed());
}

#[test]
fn what_is_in_the_place_of_a_block_is_not_taken_for_it() {
    let all = chain(&[(1, 1), (2, 2), (3, 3), (4, 4)]);
    let push = |directory: &Path| {
        let archive = BlockArchive::open(directory).unwrap();
        let mut archiver = Archiver::new(archive, Dialect::TODAY, ExecEvent::schema_hash());
        all.iter().find_map(|(event, payload)| archiver.push(event, Some(payload)).err())
    };
    let in_its_place = |put: &dyn Fn(&Path)| {
        let directory = tempfile::tempdir().unwrap();
        assert!(!archive(directory.path(), &all).is_empty());
        assert!(push(directory.path()).is_none(), "what is there stays");
        let path = BlockArchive::open(directory.path()).unwrap().path_of(1);
        put(&path);
        push(directory.path()).map(|error| error.to_string())
    };
    let other = |path: &Path| path.with_file_name("2.bcap");
    for (put, words) in [
        (&(|path: &Path| std::fs::write(path, "").unwrap()) as &dyn Fn(&Path), "1.bcap"),
        (&|path| std::fs::write(path, "garbage").unwrap(), "1.bcap"),
        (
            &|path| {
                let whole = std::fs::read(path).unwrap();
                std::fs::write(path, &whole[..whole.len() - 7]).unwrap();
            },
            "a section ends after the file",
        ),
        (&|path| std::fs::copy(other(path), path).map(drop).unwrap(), "it does not hold block 1"),
        (
            &|path| {
                std::fs::remove_file(path).unwrap();
                std::os::unix::fs::symlink("2.bcap", path).unwrap();
            },
            "it does not hold block 1",
        ),
    ] {
        let said = in_its_place(put).expect(words);
        assert!(said.contains("0/1.bcap: ") && said.contains(words) && said.ends_with("another directory"), "{said}");
    }
    // Whoever reads the archive is told, too, and other names are no blocks.
    let directory = tempfile::tempdir().unwrap();
    let numbers = archive(directory.path(), &all);
    let archived = BlockArchive::open(directory.path()).unwrap();
    let place = |name: &str| directory.path().join("0").join(name);
    std::fs::copy(place("2.bcap"), place("02.bcap")).unwrap();
    assert_eq!(archived.numbers().unwrap(), numbers);
    std::fs::copy(place("2.bcap"), place("1.bcap")).unwrap();
    let mut blocks = Blocks::of_events(ExecEvents::of_archive(&archived).unwrap(), Wanted::ALL);
    let news = blocks.by_ref().filter(|update| matches!(update, BlockUpdate::Changed(update) if update.is_new));
    assert_eq!(news.count(), numbers.len() - 1);
    let problems = blocks.file_problems();
    assert!(problems.len() == 1 && problems[0].ends_with("1.bcap: it does not hold block 1"), "{problems:?}");
    // A link that leads nowhere is not replaced, and what is gone is written again.
    let put = |path: &Path| {
        std::fs::remove_file(path).unwrap();
        std::os::unix::fs::symlink("nowhere", path).unwrap();
    };
    assert!(in_its_place(&put).is_some_and(|said| said.contains("it is a symbolic link")));
    assert_eq!(in_its_place(&|path| std::fs::remove_file(path).unwrap()), None);
}

#[test]
fn an_archive_of_an_archive_has_the_same_files() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let numbers = archive(first.path(), &chain(&[(1, 1), (2, 2), (3, 3), (4, 4)]));
    let from = BlockArchive::open(first.path()).unwrap();
    let mut events = ExecEvents::of_archive(&from).unwrap();
    let to = BlockArchive::open(second.path()).unwrap();
    let archiver = Archiver::new(to.clone(), events.dialect().clone(), events.schema_hash());
    let mut archiver = archiver.all_final(events.is_archive());
    loop {
        match events.next_timeout(Duration::ZERO) {
            NextEvent::Event(event, payload) => {
                archiver.push(&event, Some(payload.read().valid().unwrap())).unwrap();
            }
            NextEvent::Gap(gap) => archiver.push_gap(gap),
            _ => break,
        }
    }
    assert_eq!(to.numbers().unwrap(), numbers);
    let bytes = |of: &BlockArchive, number| std::fs::read(of.path_of(number)).unwrap();
    assert!(numbers.iter().all(|number| bytes(&from, *number) == bytes(&to, *number)));
}

#[test]
fn blocks_are_not_written_through_a_link_of_another_user() {
    if !eventring_stress::users::can_be_played() {
        return;
    }
    let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let link = directory.path().join("0");
    std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
    let all = chain(&[(1, 1), (2, 2), (3, 3)]);
    assert!(!archive(directory.path(), &all).is_empty(), "one's own link is followed");
    std::os::unix::fs::lchown(&link, Some(65_534), None).unwrap();
    std::fs::remove_file(elsewhere.path().join("1.bcap")).unwrap();
    let archive = BlockArchive::open(directory.path()).unwrap();
    let mut archiver = Archiver::new(archive, Dialect::TODAY, ExecEvent::schema_hash());
    let error = all.iter().find_map(|(event, payload)| archiver.push(event, Some(payload)).err()).unwrap();
    assert!(error.to_string().contains("a symbolic link") && !elsewhere.path().join("1.bcap").exists(), "{error}");
}

#[test]
fn a_number_that_no_chain_has_reached_is_not_looked_for_in_each_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.evcap");
    let mut all = chain(&[(1, 1), (2, 2)]);
    archive(directory.path(), &all);
    let is_second = |(event, _): &Event| event.event_type == ExecEvent::BlockStart as u16 && event.seqno > 1;
    let second = all.iter().position(is_second).unwrap();
    // The ring has lost all from the second block on, and goes on with a number that it made up.
    let mut hostile = Made::default();
    hostile.block(1 << 58, 9, 1);
    all.truncate(second);
    let lost = 7;
    let from = all.len() as u64 + lost;
    all.extend(hostile.0.into_iter().map(|(mut event, payload)| {
        event.seqno += from;
        event.content_ext[0] += from;
        (event, payload)
    }));
    std::fs::write(&path, sdk_file(&all, true, true)).unwrap();
    let events = ExecEvents::of_eventcap(EventcapFile::open(&path).unwrap()).unwrap();
    let archived = BlockArchive::open(directory.path()).unwrap();
    let blocks = Blocks::of_events(events, Wanted::ALL).with_archive(archived, Duration::from_millis(50));
    let (found, problems) = last_states_and_problems(blocks);
    assert_eq!(found.iter().map(|(block, _)| block.number()).collect::<Vec<_>>(), [1, 2, 1 << 58]);
    let unfilled = Problem::Unfilled { first_number: 3, last_number: (1 << 58) - 1 };
    assert!(problems.contains(&unfilled), "{problems:?}");
}

#[test]
fn a_reader_that_begins_in_the_archive_or_right_before_the_ring_gets_each_block_once() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let (path, archived) = (directory.path().join("node"), directory.path().join("archive"));
    std::fs::create_dir(&archived).unwrap();
    let recorder = node(&path);
    let all = chain(&[1, 2, 3, 4, 5, 6].map(|number| (number, number as u8)));
    archive(&archived, &all);
    let mut made = Made::default();
    for number in 3..=6 {
        let tag = made.block(number, number as u8, 3);
        made.vote(tag);
        made.finalize(tag);
    }
    made.record(0, &recorder);
    let ring = Reader::open(&path).unwrap();
    let last = ring.info().last_seqno;
    let numbers = |start, has_archive: bool| {
        let mut blocks = Blocks::of_ring(&ring, Wanted::ALL).unwrap().until(last);
        if has_archive {
            blocks = blocks.with_archive(BlockArchive::open(&archived).unwrap(), Duration::from_millis(50));
        }
        let is_there = blocks.seek(start);
        let new = blocks.filter_map(|update| match update {
            BlockUpdate::Changed(update) => update.is_new.then_some(update.tag.block_number),
            _ => None,
        });
        is_there.then(|| new.collect::<Vec<u64>>())
    };
    for start in [Start::Number(1), Start::AfterFinalized(0)] {
        assert_eq!(numbers(start, true), Some(vec![1, 2, 3, 4, 5, 6]), "{start:?}");
    }
    assert_eq!(numbers(Start::AfterFinalized(2), true), Some(vec![3, 4, 5, 6]));
    assert_eq!(numbers(Start::AfterFinalized(2), false), Some(vec![3, 4, 5, 6]));
    assert_eq!(numbers(Start::AfterFinalized(1), false), None);
}

#[test]
fn a_loss_before_the_first_block_is_told_with_an_archive_too() {
    let empty = tempfile::tempdir().unwrap();
    let content = eventring::recorder::ContentDescription::from_event_type::<ExecEvent>();
    let recorder =
        eventring::recorder::Recorder::builder(content).anonymous().shifts(15, 21).compact(true).build().unwrap();
    let ring = Reader::options().open_fd(recorder.as_fd()).unwrap();
    let archive = BlockArchive::open(empty.path()).unwrap();
    let blocks = Blocks::of_ring(&ring, Wanted::HEADERS).unwrap();
    let mut blocks = blocks.with_archive(archive, Duration::from_millis(50));
    let mut made = Made::default();
    made.verify(1);
    let first = made.record(0, &recorder);
    while let NextUpdate::Update(_) = blocks.next_timeout(Duration::from_millis(50)) {}
    // The ring goes round, and no block has come yet.
    (0..50_000).for_each(|number| made.verify(number));
    made.record(first, &recorder);
    let next = blocks.next_timeout(Duration::from_secs(1));
    assert!(matches!(next, NextUpdate::Update(BlockUpdate::Problem(Problem::Gap { .. }))), "{next:?}");
}
