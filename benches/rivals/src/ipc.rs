//! The latency between processes: the time from an event's time stamp until a forked process, which polls without
//! pause, has copied the event's payload.

use crate::Medians;
use crate::reference::{ReferenceRing, realtime_nanos};
use eventring::reader::{Next, Reader, Seek};
use eventring::recorder::Clock;
use eventring::recorder::{ContentDescription, Recorder};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::time::{Duration, Instant};

pub fn measure(events: u64) -> Medians {
    let reference = ReferenceRing::new(16, 27);
    let recorder = Recorder::builder(ContentDescription::new(300, "IPC")).anonymous().build().unwrap();
    Clock::global().now_epoch_nanos();
    let mut medians = Medians::new();
    // The two recorders are measured in turn. If the processes move to cores that are nearer or further apart, this
    // affects both recorders.
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let rounds = 5;
    for round in 0..rounds {
        let first = round * events / rounds;
        let last = (round + 1) * events / rounds;
        ours.extend(latencies(
            || read_ours(&recorder, first + 1, last),
            |_| {
                recorder.record(2, [0; 4], &[7; 82]);
            },
            last - first,
        ));
        theirs.extend(latencies(
            || read_theirs(&reference, first + 1, last),
            |_| {
                reference.record(2, [0; 4], &[7; 82]);
            },
            last - first,
        ));
    }
    for (name, samples) in [("ipc", &mut ours), ("reference_ipc", &mut theirs)] {
        samples.sort_unstable();
        medians.insert(format!("{name}_p50"), samples[samples.len() / 2] as f64);
        medians.insert(format!("{name}_p99"), samples[samples.len() * 99 / 100] as f64);
    }
    medians
}

fn read_ours(recorder: &Recorder, first: u64, last: u64) -> Vec<u64> {
    let mut cursor = Reader::options().open_fd(recorder.as_fd()).unwrap().cursor();
    cursor.seek(Seek::Seqno(first));
    let clock = Clock::global();
    let mut buffer = Vec::with_capacity(128);
    let mut samples = Vec::new();
    while cursor.next_seqno() <= last {
        if let Next::Event(event) = cursor.next() {
            assert!(cursor.payload(&event, &mut buffer).valid().is_some());
            samples.push(clock.now_epoch_nanos().saturating_sub(event.record_epoch_nanos));
        }
    }
    samples
}

fn read_theirs(reference: &ReferenceRing, first: u64, last: u64) -> Vec<u64> {
    let mut buffer = [0; 128];
    let mut samples = Vec::new();
    for seqno in first..=last {
        let stamp = loop {
            if let Some(stamp) = reference.try_read(seqno, &mut buffer) {
                break stamp;
            }
        };
        samples.push(realtime_nanos().saturating_sub(stamp));
    }
    samples
}

/// Forks a reader, and records `events` events about 5 µs apart. Returns the latencies that the reader measured.
fn latencies(read: impl FnOnce() -> Vec<u64>, mut write: impl FnMut(u64), events: u64) -> Vec<u64> {
    let mut pipe = [0; 2];
    // SAFETY: `pipe` has room for the two descriptors that the call stores.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    // SAFETY: the process has only one thread. So no lock is held at the fork, and the child may call any function.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    // SAFETY: `pipe` has just made both descriptors. After the fork, each process closes each of them once.
    let [from, to] = pipe.map(|fd| unsafe { File::from_raw_fd(fd) });
    if child == 0 {
        drop(from);
        let mut to = to;
        to.write_all(&[0; 8]).expect("say ready");
        for sample in read() {
            to.write_all(&sample.to_le_bytes()).expect("tell the parent");
        }
        drop(to);
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(0) };
    }
    drop(to);
    let mut from = from;
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes).expect("the reader's first word");
    std::thread::sleep(Duration::from_millis(20));
    for i in 0..events {
        write(i);
        let start = Instant::now();
        while start.elapsed() < Duration::from_micros(5) {
            std::hint::spin_loop();
        }
    }
    let mut samples = Vec::new();
    while from.read_exact(&mut bytes).is_ok() {
        samples.push(u64::from_le_bytes(bytes));
    }
    // SAFETY: our own child.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    samples
}
