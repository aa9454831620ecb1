//! A live ring whose file somebody overwrites with random bytes, truncates, or replaces while readers use it.

use crate::fixtures::*;
use crate::hostile::bytes as hostile;
use eventring::reader::{Next, Seek};

const RING_BYTES: u64 = (2 << 20) + (64 << 15) + (2 << 20);

fn recorder(path: &Path) -> Recorder {
    let description = ContentDescription::new(3, "PERF").schema_text("schema-text 1\ncontent 3 PERF 1\n");
    let builder = Recorder::builder(description).config(path).compact(true).shifts(15, 21);
    builder.context_shift(16).build().unwrap()
}

/// Writes random bytes to random places without end, mostly to words of the header and of descriptors. Now and then it
/// restores the fixed header, so that the ring can be opened.
fn scribble(path: &Path) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut fixed = [0; 64];
    file.read_exact_at(&mut fixed, 0).unwrap();
    let mut state = u64::from(std::process::id()) | 1;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    say("scribbling");
    for turn in 0u64.. {
        if turn.is_multiple_of(50) {
            file.write_all_at(&fixed, 0).unwrap();
        }
        let place = match random() % 8 {
            0 => 0x40 + random() % 3 * 0x40,
            1 => (random() % 0x400) & !7,
            2 => 0x1000 + random() % 0x1000,
            3 => 0x1_0000 + random() % 100,
            4 | 5 => ((2 << 20) + random() % (64 << 15)) & !7,
            6 => RING_BYTES + random() % 0x100,
            _ => random() % RING_BYTES,
        };
        let word = match random() % 4 {
            0 => u64::MAX,
            1 => random() % 70_000,
            2 => 1 << (random() % 64),
            _ => random(),
        };
        file.write_all_at(&word.to_le_bytes(), place).unwrap();
    }
}

/// Returns the peak of the resident memory of this process, in KiB.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn readers_of_a_ring_that_is_scribbled_over_get_errors_and_losses_in_bounded_time_and_memory() {
    let test = test_name!();
    match part().as_deref() {
        Some("scribbler") => return scribble(&child::place()),
        // The reader runs in a child process of its own, so that the measured memory peak is only the reader's.
        Some(_) => {
            let end = Instant::now() + Duration::from_secs(5);
            let (mut opened, mut refused, mut slowest) = (0, 0, Duration::ZERO);
            let attached = Reader::open(child::place()).unwrap();
            say("attached");
            while Instant::now() < end {
                let start = Instant::now();
                match Reader::open(child::place()) {
                    Ok(reader) => {
                        hostile::exercise(&reader, 2000);
                        opened += 1;
                    }
                    Err(error) => {
                        assert!(error.to_string().len() < 2000);
                        refused += 1;
                    }
                }
                hostile::exercise(&attached, 2000);
                slowest = slowest.max(start.elapsed());
            }
            println!("opened={opened} refused={refused} slowest={slowest:?} peak={} KiB", peak_kib());
            say(format!("{opened} {} {}", slowest.as_millis(), peak_kib()));
            return;
        }
        None => {}
    }
    let (_directory, [path]) = places(["ring"]);
    let recorder = recorder(&path);
    for i in 0..40_000u64 {
        recorder.record((2 + i % 20) as u16, [i; 4], &i.to_le_bytes()[..(i % 9) as usize]);
    }
    let mut reader = Talk::told(test, "reader", &path, "attached");
    let _scribbler = Talk::told(test, "scribbler", &path, "scribbling");
    let printed = reader.hear();
    assert!(reader.end().success());
    println!("scribbled: opened, slowest ms, peak KiB: {printed}");
    let numbers: Vec<u64> = printed.split(' ').map(|number| number.parse().unwrap()).collect();
    assert!(numbers[0] > 0, "{printed}");
    // A round takes seconds. The limit is far above this, because other programs may use the machine, too.
    assert!(numbers[1] < 300_000, "a round took {} ms", numbers[1]);
    assert!(numbers[2] < 512 << 10, "{} KiB", numbers[2]);
}

#[test]
fn a_ring_that_is_cut_under_its_reader_gives_no_events_and_says_so() {
    let (_directory, [path]) = places(["ring"]);
    let recorder = recorder(&path);
    for i in 0..1000u64 {
        recorder.record(2, [i; 4], b"payload");
    }
    for length in [RING_BYTES / 2, 3 << 20, 4096, 0] {
        let reader = Reader::open(&path);
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
        if let Ok(reader) = reader {
            hostile::exercise(&reader, 2000);
            assert!(length > 3 << 20 || reader.was_truncated(), "{length}");
        }
        let error = Reader::open(&path).unwrap_err();
        assert!(error.to_string().contains("bytes"), "{error}");
    }
    // The writer goes on recording without an error, even though somebody has truncated its file.
    assert_ne!(recorder.record(2, [0; 4], b"payload"), 0);
    assert!(recorder.was_truncated());
}

#[test]
fn a_ring_file_that_is_swapped_under_a_reader_is_noticed_and_the_old_one_stays_whole() {
    let (directory, [path]) = places(["ring"]);
    let recorder = recorder(&path);
    recorder.record(2, [7; 4], b"of the old ring");
    let reader = Reader::open(&path).unwrap();
    let other = program::place(&directory, "other");
    fs::write(&other, b"not a ring").unwrap();
    assert!(!reader.was_replaced());
    fs::rename(&other, &path).unwrap();
    assert!(reader.was_replaced());
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Seqno(1));
    let Next::Event(event) = cursor.next() else { panic!() };
    assert_eq!(cursor.payload(&event, &mut Vec::new()).valid(), Some(&b"of the old ring"[..]));
    assert!(Reader::open(&path).is_err());
}
