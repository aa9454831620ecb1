//! The thread that reads the kernel's buffers and records events, until it is asked to stop.

use super::clock::TimeLine;
use super::follow::Follow;
use super::threads::ProfileSummary;
use crate::record::kernel::body::{Body, Record};
use crate::record::kernel::opening::Opened;
use crate::record::kernel::order::Ordered;
use crate::record::kernel::system::threads_of;
use crate::record::stacks::symbols;
use crate::schema::{Sched, Session};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The pause between two looks at the buffers, and that while one of them fills quickly.
const PAUSE: Duration = Duration::from_millis(10);
const SHORT_PAUSE: Duration = Duration::from_millis(1);
/// The number of records of one look that asks for the next one soon.
const MANY: usize = 2_000;
/// The largest number of records of one buffer in a look: more than a buffer has room for.
const RECORDS_MAX: usize = 1 << 20;
/// The pause between two looks for new threads.
const THREADS_PAUSE: Duration = Duration::from_millis(100);

/// What the thread and its owner tell each other.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) is_asked_to_stop: AtomicBool,
    pub(super) has_stopped: AtomicBool,
    pub(super) live_threads: AtomicUsize,
}

/// The thread's state.
pub(super) struct Worker {
    pub(super) opened: Opened,
    pub(super) follow: Follow,
    pub(super) line: TimeLine,
    pub(super) ordered: Ordered,
    pub(super) session: Session,
    pub(super) resolves: bool,
    pub(super) repeats: Option<Duration>,
    pub(super) shared: Arc<Shared>,
}

impl Worker {
    /// Records until it is asked to stop.
    pub(super) fn run(mut self) -> ProfileSummary {
        let mut next_threads = Instant::now() + THREADS_PAUSE;
        let mut next_repeat = Instant::now();
        while !self.shared.is_asked_to_stop.load(Ordering::Acquire) {
            let count = self.look(false);
            if !self.opened.looked_at.is_empty() && Instant::now() >= next_threads {
                self.look_for_threads();
                next_threads = Instant::now() + THREADS_PAUSE;
            }
            if let Some(pause) = self.repeats
                && Instant::now() >= next_repeat + pause
            {
                self.repeat();
                next_repeat = Instant::now();
            }
            std::thread::sleep(if count > MANY { SHORT_PAUSE } else { PAUSE });
        }
        for source in &self.opened.sources {
            let _ = source.counter.disable();
        }
        self.look(true);
        self.finish();
        let Self { follow, shared, .. } = self;
        let counts = follow.counts.clone();
        // The rings end here.
        drop(follow);
        shared.has_stopped.store(true, Ordering::Release);
        counts
    }

    /// Takes what the buffers have had when it began. Returns the number of records.
    fn look(&mut self, is_last: bool) -> usize {
        let begin = self.line.measure();
        let before = self.ordered.len();
        for source in &mut self.opened.sources {
            let Some(records) = source.sampler.iter() else { continue };
            let mut records = records.into_cow();
            // The look itself may make as many samples as it takes.
            for _ in 0..RECORDS_MAX {
                let Some(record) = records.lending_next() else { break };
                let Some(mut record) = Record::parse(&source.kind, record.as_raw().as_bytes()) else { continue };
                let is_younger = record.time > begin;
                if let Body::Lost(lost) = &mut record.body {
                    source.lost += lost.count;
                    *lost = source.kind.lost(source.number, lost.count);
                }
                self.ordered.add(record);
                if is_younger {
                    break;
                }
            }
        }
        let count = self.ordered.len() - before;
        if is_last {
            // Records that were taken since this look began are younger than its measurement.
            self.line.measure();
        }
        let (follow, line) = (&mut self.follow, &self.line);
        self.ordered.give_out(begin, is_last, |record, later| follow.take(record, later, line));
        self.shared.live_threads.store(self.follow.threads.live(), Ordering::Release);
        if self.line.error_nanos() > 2 * self.session.clock_error_nanos {
            self.state_session();
        }
        count
    }

    fn look_for_threads(&mut self) {
        let processes = self.opened.looked_at.clone();
        self.opened.look_for_threads(&processes);
        let epoch = self.epoch_nanos();
        for process in self.follow.threads.processes() {
            self.follow.see_all(process, &threads_of(process), epoch);
        }
    }

    /// Tells again what a capture may have forgotten.
    fn repeat(&mut self) {
        self.follow.tell_again(self.epoch_nanos());
        self.state_session();
    }

    /// Returns the time of what is recorded now beside the kernel's records, so that the rings are in the order of
    /// time.
    fn epoch_nanos(&self) -> u64 {
        self.line.epoch_nanos(self.ordered.given_until())
    }

    fn resolve(&mut self, epoch: u64) {
        if let Some(ring) = &self.follow.stack_ring {
            self.follow.counts.names = symbols::record(&self.follow.stacks, ring, epoch);
        }
    }

    fn finish(&mut self) {
        let epoch = self.epoch_nanos();
        // Losses after which no record came were not told yet.
        for source in &self.opened.sources {
            let all = source.counter.stat().ok().and_then(|stat| stat.lost_records).unwrap_or(0);
            if all > source.lost {
                self.follow.lose(source.kind.lost(source.number, all - source.lost), epoch);
            }
        }
        if self.resolves {
            self.resolve(epoch);
        }
        self.state_session();
        self.follow.counts.clock_error_nanos = self.line.error_nanos();
    }

    fn state_session(&mut self) {
        self.session.clock_error_nanos = self.line.error_nanos();
        self.follow.record(Sched::Session, self.epoch_nanos(), &self.session);
    }
}
