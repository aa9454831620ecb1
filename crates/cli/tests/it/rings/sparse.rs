//! Rings in sparse files, which have holes. A reader allocates no memory for the holes and spends no time on them. It
//! still finds every event that a writer writes into a hole while the reader reads.

use crate::fixtures::*;
use eventring::internal::layout::descriptor::{
    WORD_PAYLOAD_OFFSET, WORD_SEQNO, WORD_TYPE_AND_SIZE, pack_type_and_size,
};
use eventring::internal::layout::header::{FixedHeader, LAST_SEQNO};
use eventring::internal::layout::limits::{DESCRIPTOR_BYTES, HEADER_SECTION_BYTES};
use eventring::reader::{LostPages, Next, ReaderErrorKind, RingState, Seek, SnapshotOptions};
use eventring_capture::{CaptureOptions, EndReason, NextRing, capture_rings_to};
use eventring_stress::mounted::mount_or_skip;
use rustix::fs::{FallocateFlags, FlockOperation};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;

const PAYLOAD_BUF_BYTES: u64 = 1 << 27;

/// Creates a file for a ring of 2^`shift` descriptors. Only the file's first page is written; the rest is a hole.
fn sparse_ring(path: &Path, shift: u32, last_seqno: u64) -> File {
    let header = FixedHeader {
        content_type: ExecEvent::CONTENT_TYPE,
        schema_hash: ExecEvent::schema_hash(),
        descriptor_capacity: 1 << shift,
        payload_buf_bytes: PAYLOAD_BUF_BYTES,
        context_area_bytes: 0,
    };
    let file = File::options().read(true).write(true).create_new(true).open(path).unwrap();
    file.write_all_at(&header.encode(), 0).unwrap();
    file.write_all_at(&last_seqno.to_le_bytes(), LAST_SEQNO as u64).unwrap();
    file.set_len(HEADER_SECTION_BYTES + (DESCRIPTOR_BYTES << shift) + PAYLOAD_BUF_BYTES).unwrap();
    file
}

/// Writes an event as any writer does: first the payload, then the descriptor, then the seqno in the descriptor, and
/// last the header.
fn write_event(file: &File, shift: u32, seqno: u64, payload_at: u64, payload: &[u8]) {
    let payloads = HEADER_SECTION_BYTES + (DESCRIPTOR_BYTES << shift);
    let slot = HEADER_SECTION_BYTES + ((seqno - 1) % (1 << shift)) * DESCRIPTOR_BYTES;
    let word = |word: usize, value: u64| file.write_all_at(&value.to_le_bytes(), slot + 8 * word as u64).unwrap();
    let first = payload_at % PAYLOAD_BUF_BYTES;
    let (head, tail) = payload.split_at(payload.len().min((PAYLOAD_BUF_BYTES - first) as usize));
    file.write_all_at(head, payloads + first).unwrap();
    file.write_all_at(tail, payloads).unwrap();
    word(WORD_TYPE_AND_SIZE, pack_type_and_size(ExecEvent::TxnEnd as u16, payload.len() as u32));
    word(WORD_PAYLOAD_OFFSET, payload_at);
    word(WORD_SEQNO, seqno);
    file.write_all_at(&seqno.to_le_bytes(), LAST_SEQNO as u64).unwrap();
}

/// Runs the program like [`run`], but ends it with code 124 if it hangs.
fn run_to_its_end(arguments: &[&str]) -> Run {
    let mut command = Command::new("timeout");
    command.args(["120", program::PROGRAM]).args(arguments).env("NO_COLOR", "1").stdin(Stdio::null());
    finish(command)
}

#[test]
fn holes_of_the_file_take_neither_memory_nor_time() {
    let (directory, [ring, output]) = places(["ring", "output"]);
    for (shift, is_locked) in [(24, false), (24, true), (32, false), (32, true)] {
        let last_seqno = 1 << shift;
        let file = sparse_ring(&ring, shift, last_seqno);
        // A single event lies between two holes of the file.
        write_event(&file, shift, last_seqno / 2, 1 << 26, b"here");
        file.write_all_at(&last_seqno.to_le_bytes(), LAST_SEQNO as u64).unwrap();
        // If the file is locked, the ring looks live, and readers must expect that more events come.
        rustix::fs::flock(&file, if is_locked { FlockOperation::LockExclusive } else { FlockOperation::Unlock })
            .unwrap();
        let blocks = file.metadata().unwrap().blocks();
        assert_eq!(blocks, 3 * 8, "three pages");
        let name = argument(&ring);
        let info = run_to_its_end(&["info", name, "--json"]).json();
        let events = &info["events"];
        assert_eq!(events["count"], 1, "{info}");
        let number = |name: &str| events[name].number();
        assert_eq!(number("count") + number("lost") + number("being_written"), last_seqno);
        assert_eq!(info["state"] == "live", is_locked, "{info}");
        let to_output = ["--force", "-o", argument(&output)];
        let mut verbs = vec![
            vec!["list", argument(directory.path())],
            vec!["snapshot", name],
            vec!["capture", name, "--now"],
            vec!["export", name, "--format", "jsonl"],
        ];
        if !is_locked {
            verbs.push(vec!["watch", name, "--quiet"]);
        }
        for verb in verbs {
            let writes = ["snapshot", "capture", "export"].contains(&verb[0]);
            run_to_its_end(&[&verb[..], if writes { &to_output } else { &[] }].concat()).ends(0);
            assert_eq!(file.metadata().unwrap().blocks(), blocks, "{verb:?} has filled the file");
        }
        fs::remove_file(&ring).unwrap();
    }
}

#[test]
fn as_a_control_an_ordinary_mapping_fills_what_it_reads() {
    use eventring::internal::shm::{MapOptions, Mapping, Sections};
    let directory = directory();
    let file = sparse_ring(&place(&directory, "ring"), 16, 1);
    let sections = Sections {
        header_bytes: HEADER_SECTION_BYTES,
        descriptor_bytes: DESCRIPTOR_BYTES << 16,
        payload_bytes: PAYLOAD_BUF_BYTES,
        context_bytes: 0,
    };
    let reads = |options| {
        let before = file.metadata().unwrap().blocks();
        let mapping = Mapping::map(&file, sections, options).unwrap();
        // SAFETY: the offset is within the descriptors, which are mapped.
        let place = unsafe { mapping.descriptors().add(1 << 20) };
        // SAFETY: the argument is the one above.
        assert_eq!(unsafe { place.read_volatile() }, 0);
        file.metadata().unwrap().blocks() > before
    };
    assert!(!reads(MapOptions::reader()));
    assert!(reads(MapOptions { map_holes: true, ..MapOptions::reader() }));
}

#[test]
fn what_is_written_into_holes_while_they_are_read_is_read() {
    const SHIFT: u32 = 16;
    const EVENTS: u64 = 3000;
    let (_directory, [path]) = places(["ring"]);
    let file = sparse_ring(&path, SHIFT, 0);
    let reader = Reader::open(&path).unwrap();
    let mut cursor = reader.cursor();
    let mut buffer = Vec::new();
    // The loop writes every seqno, because a reader would report a missing one as a gap. The last events are written
    // into parts of the file that were holes until then.
    for seqno in 1..=EVENTS {
        // Each payload begins in a page that holds no other payload, and the page before it is a hole. Some payloads
        // reach into the next page, and the last one crosses the end of the payload buffer.
        let payload = vec![seqno as u8 | 1; 3000 + (seqno % 3) as usize * 1000];
        let payload_at =
            if seqno == EVENTS { PAYLOAD_BUF_BYTES - 100 } else { (1 << 20) + (seqno - 1) * 3 * 4096 + 64 };
        if seqno % 500 == 0 {
            // The cursor looks for this event before it is written. It must find the event later.
            assert_eq!(cursor.next(), Next::NotReady);
        }
        write_event(&file, SHIFT, seqno, payload_at, &payload);
        let event = loop {
            match cursor.next() {
                Next::Event(event) => break event,
                Next::NotReady => thread::yield_now(),
                Next::Gap(gap) => panic!("{gap:?}"),
            }
        };
        assert_eq!(event.seqno, seqno);
        assert!(cursor.payload(&event, &mut buffer).valid() == Some(&payload[..]), "seqno {seqno}");
    }
    // Two cursors read all events again from the oldest one: the cursor that was made before the events, and a new
    // one.
    for mut cursor in [cursor, Reader::open(&path).unwrap().cursor()] {
        cursor.seek(Seek::Oldest);
        for seqno in 1..=EVENTS {
            let Next::Event(event) = cursor.next() else { panic!("{seqno}") };
            assert!(cursor.payload(&event, &mut buffer).valid().unwrap().iter().all(|byte| *byte == seqno as u8 | 1));
        }
    }
}

#[test]
fn a_copy_with_holes_is_read_as_its_original() {
    let (_directory, [ring, copy]) = places(["ring", "copy"]);
    let recorder = typed_in::<ExecEvent>(&ring).shifts(16, 27).prefault(false).keep(true).build().unwrap();
    for n in 0..5000_u64 {
        // `cp --sparse=always` turns these zeros into holes in the middle of payloads.
        let payload = if n % 50 == 0 { vec![0; 20_000] } else { n.to_le_bytes().to_vec() };
        assert_ne!(recorder.record(ExecEvent::TxnEnd as u16, [n; 4], &payload), 0);
    }
    drop(recorder);
    assert!(Command::new("cp").arg("--sparse=always").args([&ring, &copy]).status().unwrap().success());
    let blocks = fs::metadata(&copy).unwrap().blocks();
    assert!(blocks * 512 < fs::metadata(&copy).unwrap().len() / 2, "it has holes");
    let events = |ring: &Path| run!("watch", ring, "--json", "--quiet", "--from", "oldest").ends(0).out;
    let of_original = events(&ring);
    assert_eq!(of_original.lines().count(), 5000);
    assert!(events(&copy) == of_original);
    assert_eq!(fs::metadata(&copy).unwrap().blocks(), blocks);
}

#[test]
fn a_page_for_which_there_is_no_memory_is_no_cut() {
    let directory = tempfile::tempdir().unwrap();
    let Some(_mounted) = mount_or_skip(directory.path(), "tmpfs", "size=12M") else { return };
    let path = program::place(&directory, "ring");
    let recorder = typed_in::<ExecEvent>(&path).compact(true).shifts(15, 21).keep(true).build().unwrap();
    (0..2000).for_each(|n| assert_ne!(recorder.record(ExecEvent::TxnEnd as u16, [n; 4], b"payload"), 0));
    drop(recorder);
    for (lost, state, kind, reason) in [
        (LostPages::NoMemory, RingState::NoMemory, ReaderErrorKind::NoSpace, EndReason::Unreadable),
        (LostPages::Truncated, RingState::Truncated, ReaderErrorKind::Truncated, EndReason::Truncated),
    ] {
        let file = File::options().read(true).write(true).open(&path).unwrap();
        // The file has no holes yet, so the reader maps it as a whole. Below, the test makes some of its pages
        // unreadable: it punches a hole and fills the file system, or it truncates the file.
        let reader = Reader::open(&path).unwrap();
        let full = program::place(&directory, "full");
        if lost == LostPages::NoMemory {
            let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            rustix::fs::fallocate(&file, punch, HEADER_SECTION_BYTES + (1 << 16), 1 << 20).unwrap();
            assert!(fs::write(&full, vec![1; 12 << 20]).is_err());
        } else {
            file.set_len(HEADER_SECTION_BYTES + (1 << 16)).unwrap();
        }
        assert_eq!(reader.lost_pages(), None, "nobody has met it");
        let mut rings = vec![NextRing::NoMore, NextRing::Ring(reader.clone())];
        let mut next_ring = || rings.pop().unwrap_or(NextRing::NoMore);
        let options = CaptureOptions::new();
        let captured = capture_rings_to(&mut next_ring, std::io::sink(), &options, &mut |_| ControlFlow::Continue(()));
        let captured = captured.unwrap();
        assert_eq!((captured.reason, captured.lost_pages[0].1), (reason, lost), "{captured:?}");
        assert_eq!((reader.lost_pages(), reader.state()), (Some(lost), state));
        assert_eq!(reader.was_truncated(), lost == LostPages::Truncated);
        let saved = reader.write_snapshot(std::io::sink(), &SnapshotOptions::new()).unwrap_err();
        assert_eq!(saved.kind(), kind, "{saved}");
        let _ = fs::remove_file(&full);
    }
}
