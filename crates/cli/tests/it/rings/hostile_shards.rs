//! An attacker has put ring files beside each other, exchanged them, or truncated one while a program reads it. Each
//! case is an error, a warning or a counted loss. No ring is ever taken for another one.

use crate::fixtures::*;
use eventring::internal::layout::extension as ext;
use eventring::internal::layout::header;
use eventring::internal::layout::header::FixedHeader;
use eventring::reader::{ReaderErrorKind, RingSet};
use eventring::schema::perf::PerfExt;
use eventring_capture::EndReason;

const CAPACITY: u64 = 64;
const PAYLOAD_BYTES: u64 = 4096;

/// Makes a perf ring that holds `events` events and whose state is "ended". Each pair in `words` is an offset in the
/// header and a value that is then stored there.
fn ring(path: &Path, events: u64, words: &[(usize, u64)]) -> File {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap();
    file.set_len((2 << 20) + CAPACITY * 64 + PAYLOAD_BYTES).unwrap();
    let fixed = FixedHeader {
        content_type: PerfEvent::CONTENT_TYPE,
        schema_hash: PerfEvent::schema_hash(),
        descriptor_capacity: CAPACITY,
        payload_buf_bytes: PAYLOAD_BYTES,
        context_area_bytes: 0,
    };
    file.write_all_at(&fixed.encode(), 0).unwrap();
    let usual = [
        (header::LAST_SEQNO, events),
        (ext::MAGIC_OFFSET, ext::MAGIC),
        (ext::VERSION_OFFSET, ext::VERSION),
        (ext::STATE, ext::STATE_ENDED),
    ];
    for (offset, word) in usual.iter().chain(words) {
        file.write_all_at(&word.to_le_bytes(), *offset as u64).unwrap();
    }
    (1..=events.min(CAPACITY)).for_each(|seqno| event(&file, seqno, 1_000_000_000));
    file
}

/// Writes a SPAN_NEW into the slot of its seqno.
fn event(file: &File, seqno: u64, epoch_nanos: u64) {
    file.write_all_at(&descriptor(seqno, epoch_nanos), (2 << 20) + (seqno - 1) % CAPACITY * 64).unwrap();
}

fn descriptor(seqno: u64, epoch_nanos: u64) -> Vec<u8> {
    let words = PerfExt { span_id: seqno, thread_id: 1, ..PerfExt::default() }.to_words();
    let words = [seqno, PerfEvent::SpanNew as u64, epoch_nanos, 0].into_iter().chain(words);
    words.flat_map(u64::to_le_bytes).collect()
}

fn shards(index: u64, count: u64) -> [(usize, u64); 3] {
    [(ext::SHARD_INDEX, index), (ext::SHARD_COUNT, count), (ext::SHARD_LIMIT, count)]
}

/// Returns the error with which a ring set refuses shard 1 of the ring at `path`.
fn refused(path: &Path) -> (ReaderErrorKind, String) {
    let set = RingSet::open([path]).unwrap();
    let [refused] = set.shard_errors() else { panic!("{set:?}") };
    assert_eq!((refused.recorder, refused.shard), (0, 1));
    (refused.error.kind(), refused.error.to_string())
}

#[test]
fn only_a_file_that_declares_itself_the_shard_is_read_as_the_shard() {
    let (directory, [path]) = places(["r"]);
    ring(&path, 5, &shards(0, 2));
    let shard = place(&directory, "r.1");
    // This file is shard 0 under the name of shard 1. If readers took it for shard 1, they would count its events
    // twice.
    fs::hard_link(&path, &shard).unwrap();
    let other_file = "is not shard 1 of the recorder that is read";
    assert!(refused(&path).1.contains(other_file), "{:?}", refused(&path));
    let watched = run!("watch", &path, "--json");
    let events = watched.json_lines().into_iter().filter(|line| line.get("seqno").is_some()).count();
    assert_eq!((watched.code, events), (Some(0), 5), "{watched:?}");
    assert!(watched.err.contains("shard 1 is left out"), "{watched:?}");
    // The verbs `summary` and `export` report the refused shard, too.
    run!("summary", &path, "--json").warns("shard 1 is left out");
    run!("export", &path, "--format", "jsonl", "-o", "-").warns("shard 1 is left out");

    fs::remove_file(&shard).unwrap();
    let other = ring(&shard, 5, &shards(1, 0));
    let set = RingSet::open([&path]).unwrap();
    let found: Vec<_> =
        set.rings().iter().map(|ring| (ring.shard(), ring.reader().unwrap().info().last_seqno)).collect();
    assert_eq!(found, [(0, 5), (1, 5)]);
    // Readers refuse a file as a shard if its header names another writer process, or another content type.
    other.write_all_at(&4711u64.to_le_bytes(), ext::WRITER_PID as u64).unwrap();
    assert!(refused(&path).1.contains(other_file), "{:?}", refused(&path));
    other.write_all_at(&0u64.to_le_bytes(), ext::WRITER_PID as u64).unwrap();
    other.write_all_at(&2u16.to_le_bytes(), header::CONTENT_TYPE as u64).unwrap();
    assert!(refused(&path).1.contains(other_file), "{:?}", refused(&path));

    fs::remove_file(&shard).unwrap();
    std::os::unix::fs::symlink("/dev/null", &shard).unwrap();
    assert_eq!(refused(&path).0, ReaderErrorKind::NotARing);
}

#[test]
fn a_shard_of_another_user_is_refused() {
    let (directory, [path]) = places(["r"]);
    ring(&path, 5, &shards(0, 2));
    let shard = place(&directory, "r.1");
    ring(&shard, 5, &shards(1, 0));
    if let Err(error) = std::os::unix::fs::chown(&shard, Some(4711), None) {
        return eventring_stress::missing(format_args!("only root can give files away: {error}"));
    }
    let (kind, message) = refused(&path);
    assert_eq!(kind, ReaderErrorKind::PermissionDenied);
    assert!(message.contains("belongs to user 4711"), "{message}");
}

#[test]
fn a_header_that_claims_any_number_of_shards_does_not_cost_much() {
    let (directory, [path]) = places(["r"]);
    ring(&path, 5, &shards(0, u64::MAX));
    let count = Reader::open(&path).unwrap().shard_count();
    assert_eq!(count, ext::SHARDS_MAX as u64);
    let watched = run!("watch", &path, "--json");
    let events = watched.json_lines().into_iter().filter(|line| line.get("seqno").is_some()).count();
    assert_eq!((watched.code, events), (Some(0), 5), "{}", watched.err.len());
    // All `count` names lead to one file, whose header claims many shards. If the work of `list` grew with the square
    // of `count`, `list` would take minutes.
    for index in 1..count {
        fs::hard_link(&path, place(&directory, &format!("r.{index}"))).unwrap();
    }
    let listed = run!("list", "--json", directory.path()).json();
    assert_eq!(listed["rings"].list().len() as u64, count);
}

#[test]
fn counts_that_add_up_to_too_much_are_listed_all_the_same() {
    let directory = directory();
    for index in 0..3 {
        let name = if index == 0 { "r".to_owned() } else { format!("r.{index}") };
        ring(&place(&directory, &name), u64::MAX, &shards(index, 3));
    }
    let listed = run!("list", "--json", directory.path()).json();
    assert_eq!(listed["rings"][0]["recorded"], u64::MAX);
    assert_eq!(listed["rings"][0]["shards"], 3);
}

#[test]
fn events_beyond_the_end_of_a_truncated_file_are_reported_as_missing() {
    let (directory, [path]) = places(["r"]);
    // The header says that the ring is live, and this test holds the file's lock. So readers take the ring for a live
    // one.
    let file = ring(&path, 40, &[(ext::STATE, ext::STATE_LIVE)]);
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let reader = Reader::open(&path).unwrap();
    let output = place(&directory, "r.evc");
    let capture = live!("capture", &path, "-o", &output);
    wait_while(|| !output.exists());
    thread::sleep(Duration::from_millis(200));
    file.set_len(2 << 20).unwrap();
    let capture = capture.end().fails(6, "was truncated while it was read");
    // The capture reports the truncation as its reason to end. It does not claim that the ring's program has ended.
    assert!(capture.err.contains(" (the file of a ring was truncated)\n"), "{capture:?}");
    let saved = CaptureFile::open(&output).unwrap();
    let end = saved.end().unwrap();
    assert_eq!((end.reason, end.stats.rings[0].was_live), (EndReason::Truncated, true));
    let error = reader.write_snapshot(std::io::sink(), &eventring::reader::SnapshotOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ReaderErrorKind::Truncated);
    assert!(error.to_string().contains("was truncated while it was read"), "{error}");
}

#[test]
fn a_pipe_in_the_place_of_a_capture_is_not_waited_for() {
    let (_directory, [path]) = places(["pipe"]);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600), 0)
        .unwrap();
    let (say, hear) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let opened = eventring_capture::CaptureFile::open(&path).map(drop);
        let _ = say.send((opened, eventring_capture::CaptureFile::is_capture(&path)));
    });
    let (opened, is_capture) = hear.recv_timeout(Duration::from_secs(30)).unwrap();
    let error = opened.unwrap_err();
    assert_eq!(error.kind(), eventring_capture::CaptureErrorKind::NotACapture);
    assert!(error.to_string().contains("it is a pipe, expected a regular file"), "{error}");
    assert!(!is_capture.unwrap());
}
