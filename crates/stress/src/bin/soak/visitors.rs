//! Visitors: readers that open the ring only for a short time. Some visitors close the ring, others are killed.

use crate::follow::FollowCounts;
use eventring::reader::{Next, Reader, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Counts of all visitors.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VisitCounts {
    pub(crate) readers: u64,
    pub(crate) kills: u64,
    pub(crate) torn: u64,
    pub(crate) hung: u64,
    pub(crate) unaccounted: u64,
}

/// Threads that send visitors to one ring.
pub(crate) struct Visitors {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<VisitCounts>>,
}

impl Visitors {
    /// Starts the threads.
    pub(crate) fn start(ring: &Path, round: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let start = |work: fn(&Path, &AtomicBool, u64) -> VisitCounts| {
            let (ring, stop) = (PathBuf::from(ring), stop.clone());
            std::thread::spawn(move || work(&ring, &stop, round))
        };
        let threads = vec![start(short_visits), start(killed_visits)];
        Self { stop, threads }
    }

    /// Stops the threads and returns their counts.
    pub(crate) fn end(self) -> VisitCounts {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = VisitCounts::default();
        for thread in self.threads {
            // A visitor that has panicked counts as hung.
            let visited = thread.join().unwrap_or(VisitCounts { hung: 1, ..VisitCounts::default() });
            all.readers += visited.readers;
            all.kills += visited.kills;
            all.torn += visited.torn;
            all.hung += visited.hung;
            all.unaccounted += visited.unaccounted;
        }
        all
    }
}

/// Opens the ring, reads for a few milliseconds and closes the ring, again and again.
fn short_visits(ring: &Path, stop: &AtomicBool, round: u64) -> VisitCounts {
    let mut visited = VisitCounts::default();
    let mut turn = round;
    while !stop.load(Ordering::Relaxed) {
        turn += 1;
        let Ok(reader) = Reader::open(ring) else {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        let mut cursor = reader.cursor();
        cursor.seek(if turn.is_multiple_of(2) { Seek::Oldest } else { Seek::NamedByWord(0) });
        let first = cursor.next_seqno();
        let (mut counts, mut buffer) = (FollowCounts::default(), Vec::new());
        let leave = Instant::now() + Duration::from_millis(turn * 13 % 50);
        while Instant::now() < leave {
            match cursor.next() {
                Next::Event(event) => counts.add(&cursor, &event, &mut buffer),
                Next::Gap(gap) => counts.lost += gap.count,
                Next::NotReady => std::thread::sleep(Duration::from_micros(50)),
            }
        }
        visited.readers += 1;
        visited.torn += counts.torn;
        visited.unaccounted += (cursor.next_seqno() - first).abs_diff(counts.read + counts.lost);
        std::thread::sleep(Duration::from_millis(turn * 7 % 20));
    }
    visited
}

/// Starts reading processes and kills them.
fn killed_visits(ring: &Path, stop: &AtomicBool, round: u64) -> VisitCounts {
    let mut visited = VisitCounts::default();
    let Ok(program) = std::env::current_exe() else { return visited };
    let mut turn = round;
    while !stop.load(Ordering::Relaxed) {
        turn += 1;
        let process = Command::new(&program)
            .arg("reader")
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
