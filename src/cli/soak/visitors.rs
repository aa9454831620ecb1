//! Readers that come and go: some leave by themselves, some are killed.

use super::follow::Followed;
use eventring::reader::{Next, Reader, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What became of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Visited {
    pub(super) readers: u64,
    pub(super) kills: u64,
    pub(super) torn: u64,
    pub(super) hung: u64,
    pub(super) unaccounted: u64,
}

/// Visitors of one ring.
pub(super) struct Visitors {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Visited>>,
}

impl Visitors {
    /// Sends the first.
    pub(super) fn start(ring: &Path, life: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let start = |work: fn(&Path, &AtomicBool, u64) -> Visited| {
            let (ring, stop) = (PathBuf::from(ring), stop.clone());
            std::thread::spawn(move || work(&ring, &stop, life))
        };
        let threads = vec![start(short_visits), start(killed_visits)];
        Self { stop, threads }
    }

    /// Waits for the last.
    pub(super) fn end(self) -> Visited {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Visited::default();
        for thread in self.threads {
            // A reader that panicked did not come to an end.
            let visited = thread.join().unwrap_or(Visited { hung: 1, ..Visited::default() });
            all.readers += visited.readers;
            all.kills += visited.kills;
            all.torn += visited.torn;
            all.hung += visited.hung;
            all.unaccounted += visited.unaccounted;
        }
        all
    }
}

/// Opens the ring, reads for a moment from somewhere, closes it; and again.
fn short_visits(ring: &Path, stop: &AtomicBool, life: u64) -> Visited {
    let mut visited = Visited::default();
    let mut turn = life;
    while !stop.load(Ordering::Relaxed) {
        turn += 1;
        let Ok(reader) = Reader::open(ring) else {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        let mut cursor = reader.cursor();
        cursor.seek(if turn.is_multiple_of(2) { Seek::Oldest } else { Seek::NamedByWord(0) });
        let first = cursor.next_seqno();
        let (mut found, mut buffer) = (Followed::default(), Vec::new());
        let leave = Instant::now() + Duration::from_millis(turn * 13 % 50);
        while Instant::now() < leave {
            match cursor.next() {
                Next::Event(event) => found.event(&cursor, &event, &mut buffer),
                Next::Gap(gap) => found.lost += gap.count,
                Next::NotReady => std::thread::sleep(Duration::from_micros(50)),
            }
        }
        visited.readers += 1;
        visited.torn += found.torn;
        visited.unaccounted += (cursor.next_seqno() - first).abs_diff(found.read + found.lost);
        std::thread::sleep(Duration::from_millis(turn * 7 % 20));
    }
    visited
}

/// Starts reading processes, and kills them.
fn killed_visits(ring: &Path, stop: &AtomicBool, life: u64) -> Visited {
    let mut visited = Visited::default();
    let Ok(program) = std::env::current_exe() else { return visited };
    let mut turn = life;
    while !stop.load(Ordering::Relaxed) {
        turn += 1;
        let process = Command::new(&program)
            .arg("demo-reader")
            .arg(ring)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut process) = process else { continue };
        std::thread::sleep(Duration::from_millis(turn * 17 % 90));
        let _ = process.kill();
        let _ = process.wait();
        visited.readers += 1;
        visited.kills += 1;
    }
    visited
}
