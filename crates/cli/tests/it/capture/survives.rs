//! Captures that were killed, or whose disk was full: the files that they have written are readable. And a capture
//! takes little memory, whatever the size of the ring.

use crate::fixtures::*;
use crate::program::memory_of;
use eventring_capture::CapturedContent;
use eventring_stress::mounted;

fn recorder_at(ring: &Path, payload_shift: u32) -> Recorder {
    let builder = Recorder::builder(ContentDescription::new(300, "THINGS"));
    let sizes = format!("{}:16:{payload_shift}", ring.display());
    builder.config(sizes).prefault(false).build().unwrap()
}

/// Returns bytes that do not compress.
fn noise(seed: &mut u64) -> [u8; 200] {
    std::array::from_fn(|_| {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed as u8
    })
}

/// Checks that the events of the capture have the seqnos from 1 on, without a gap, and returns their number.
fn check_events(capture: &CaptureFile) -> u64 {
    let mut events = 0;
    for record in capture.events() {
        let CapturedContent::Event { descriptor, payload } = record.content else { panic!("{record:?}") };
        events += 1;
        assert_eq!((descriptor.seqno, payload.as_read().valid().map(<[u8]>::len)), (events, Some(200)));
    }
    events
}

#[test]
fn what_a_capture_had_written_before_it_was_killed_is_read() {
    let (_directory, [ring, file]) = places(["ring", "t.evc"]);
    let recorder = recorder_at(&ring, 27);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut seed = 7;
            while !is_over.load(Ordering::Relaxed) {
                for _ in 0..20 {
                    recorder.record(2, [0; 4], &noise(&mut seed));
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        let mut live = live!("capture", ring.to_str().unwrap(), "-o", file.to_str().unwrap());
        // A block has some 2 MB, so one block at least was written as a whole.
        wait_while(|| fs::metadata(&file).map_or(0, |metadata| metadata.len()) < 5_000_000);
        live.kill();
        is_over.store(true, Ordering::Relaxed);
    });
    let capture = CaptureFile::open(&file).unwrap();
    assert!(capture.is_truncated() && capture.end().is_none());
    let events = check_events(&capture);
    assert!(events > 100, "{events}");
}

#[test]
fn what_a_capture_had_written_before_the_disk_was_full_is_read() {
    let (_directory, [ring, disk]) = places(["ring", "disk"]);
    fs::create_dir(&disk).unwrap();
    let recorder = recorder_at(&ring, 27);
    let mut seed = 7;
    (0..60_000).for_each(|_| assert_ne!(recorder.record(2, [0; 4], &noise(&mut seed)), 0));
    let Some(_mounted) = mounted::mount_or_skip(&disk, "tmpfs", "size=5m") else { return };
    let file = disk.join("t.evc");
    finish(program!("capture", ring.to_str().unwrap(), "--now", "-o", file.to_str().unwrap()))
        .fails(12, "No space left on device")
        .warns("t.evc");
    let capture = CaptureFile::open(&file).unwrap();
    assert!(capture.is_truncated());
    let events = check_events(&capture);
    assert!(events > 5_000 && events < 60_000, "{events}");
}

#[test]
fn a_capture_that_can_write_nothing_starts_no_program_and_leaves_no_file() {
    let directory = directory();
    let [ring, disk, started] = ["ring", "disk", "started"].map(|name| directory.path().join(name));
    fs::create_dir(&disk).unwrap();
    let recorder = recorder_at(&ring, 27);
    let mut seed = 7;
    (0..1000).for_each(|_| assert_ne!(recorder.record(2, [0; 4], &noise(&mut seed)), 0));
    let file = disk.join("t.evc");
    let [ring, output, touched] = [&ring, &file, &started].map(|path| path.to_str().unwrap());
    let refused = |program_after: &[&str], code: i32| {
        let run = finish(program!("capture", ring, "-o", output, program_after));
        assert_eq!((run.code, run.err.lines().count()), (Some(code), 1), "{run:?}");
        assert!(run.err.contains(output), "{run:?}");
        assert!(!started.exists() && !file.exists(), "{run:?}");
    };
    // The disk has room for the beginning of the file, and not for the first events.
    let Some(_mounted) = mounted::mount_or_skip(&disk, "tmpfs", "size=8k") else { return };
    refused(&["--now"], 12);
    refused(&["--now"], 12);
    fs::write(disk.join("other"), [0; 8192]).unwrap();
    refused(&["--now"], 12);
    refused(&["--", "touch", touched], 12);
    refused(&["--rotate-size", "8k", "--", "touch", touched], 12);
    let _read_only = mounted::mount(&disk, "tmpfs", "ro").unwrap();
    refused(&["--", "touch", touched], 11);
}

#[test]
fn a_capture_of_a_large_ring_takes_little_memory() {
    const PAYLOADS_MIB: usize = 256;
    const MEMORY_KIB_MAX: u64 = 64 << 10;
    let (directory, disk) = (directory(), tempfile::tempdir().unwrap());
    let (ring, file) = (place(&directory, "ring"), disk.path().join("t.evc"));
    let recorder = Recorder::builder(ContentDescription::new(300, "THINGS"))
        .config(format!("{}:18:29", ring.display()))
        .prefault(false)
        .build()
        .unwrap();
    let payload: Vec<u8> = (0..2000_u32).map(|n| ((n * n) >> 7) as u8).collect();
    let events = (PAYLOADS_MIB << 20) / payload.len();
    for _ in 0..events {
        assert_ne!(recorder.record(2, [0; 4], &payload), 0);
    }
    let arguments = ["capture", ring.to_str().unwrap(), "--now", "-o", file.to_str().unwrap()];
    let (has_succeeded, memory_kib) = memory_of(program(&arguments));
    assert!(has_succeeded);
    assert!(memory_kib > 0 && memory_kib <= MEMORY_KIB_MAX, "{memory_kib} KiB");
    assert_eq!(CaptureFile::open(&file).unwrap().end().unwrap().stats.events(), events as u64);
}
