//! A rolling capture takes no more memory and no more files after hundreds of files than after a few.

use eventring::reader::Reader;
use eventring::recorder::{ContentDescription, Recorder};
use eventring_capture::{NextRing, RollingCapture, RollingOptions};
use eventring_stress::child::{Talk, place, say};
use eventring_stress::plays;
use std::path::Path;
use std::time::{Duration, Instant};

const PAYLOAD_BYTES: usize = 16 << 10;
/// The number of events whose payloads fill a file of the small capture, which has an eighth of the memory.
const EVENTS_OF_FILE: u64 = 4;
const SMALL: u64 = 512 << 10;
/// By default, a watch makes a file each 2.75 seconds, so this is the number of files of forty minutes.
const FILES: u64 = 870;

/// Returns the resident memory of this process in KiB, without that of the ring, and the number of its open files.
fn taken() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let files = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    (line.trim().trim_end_matches(" kB").parse().unwrap(), files)
}

/// Records as many events as those files have, and says what the process takes after the first third and at the end.
fn measure(memory: u64) {
    let recorder =
        Recorder::builder(ContentDescription::new(300, "THINGS")).config(place()).shifts(16, 27).build().unwrap();
    let mut readers = vec![Reader::open(place()).unwrap()];
    let options = RollingOptions::new().memory(memory).keep(Duration::from_secs(3600));
    let next_ring = move || readers.pop().map_or(NextRing::NotYet, NextRing::Ring);
    let capture = RollingCapture::begin(next_ring, &options).unwrap();
    let mut state = 1_u64;
    let mut payload = vec![0; PAYLOAD_BYTES];
    let mut first = (0, 0);
    for number in 0..FILES * EVENTS_OF_FILE {
        for chunk in payload.chunks_exact_mut(8) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            chunk.copy_from_slice(&(state ^ state >> 29).to_le_bytes());
        }
        recorder.record(7, [0; 4], &payload);
        if number % 16 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        if number == FILES * EVENTS_OF_FILE / 3 {
            // The capture has written most of it by then.
            std::thread::sleep(Duration::from_secs(1));
            first = taken();
        }
    }
    // The capture copies what was recorded last.
    let since = Instant::now();
    let mut bytes = capture.state().bytes;
    while since.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(50));
        bytes = bytes.max(capture.state().bytes);
    }
    let end = taken();
    let stats = capture.finish().unwrap().stats;
    let events = stats.events() + stats.removed();
    say(format!("{} {} {} {} {bytes} {events}", first.0, first.1, end.0, end.1));
}

#[test]
fn a_rolling_capture_takes_no_more_after_the_files_of_forty_minutes() {
    let test = plays!(|part| measure(part.parse().unwrap()));
    let measured = |memory: u64| -> Vec<u64> {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let path: &Path = &directory.path().join("ring");
        let mut talk = Talk::start(test, &memory.to_string(), path);
        let heard = talk.hear();
        assert!(talk.end().success());
        println!("{memory}: {heard}");
        heard.split(' ').map(|number| number.parse().unwrap()).collect()
    };
    let small = measured(SMALL);
    assert_eq!(small[5], FILES * EVENTS_OF_FILE);
    // More than twice this was written in between. Less would fail on a busy machine, where the capture's queues are
    // filled for the first time after the first look.
    assert!(small[2] < small[0] + (16 << 10) && small[3] <= small[1] + 4, "{small:?}");
    assert!(small[4] <= SMALL + (64 << 10), "{small:?}");
    // Without a limit, all that was recorded is kept.
    let large = measured(4 << 30);
    assert!(large[4] > FILES * (60 << 10), "{large:?}");
}
