//! The time of threads, divided by their state and by the span that they were in.

use super::{SpanPlace, StackKey};
use crate::line::syscalls;
use crate::line::thread::{Doing, ThreadLine, name_of};
use crate::line::{Changed, Lines};
use eventring::reader::Descriptor;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The largest number of times in spans that wait for a word about their thread.
const WAITING_MAX: usize = 1 << 16;
/// The number of times in spans that are kept for samples that come late: what a recording has to say about its
/// beginning comes after it, on a busy machine by some hundred milliseconds.
const LATE_MAX: usize = 1 << 12;

/// What a thread did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Did {
    /// Nothing says it.
    Unknown,
    /// It ran.
    Ran,
    /// It could have run, and another thread did.
    Runnable,
    /// It waited in the kernel.
    Blocked,
}

/// A thread did one thing for a time, in one span.
#[derive(Clone, Debug)]
pub struct ThreadShare {
    /// The thread, as the system numbers it.
    pub thread_id: u32,
    /// Its process, as the system numbers it; 0 if it is not known.
    pub process_id: u32,
    /// From when on, in nanoseconds since the epoch.
    pub from_nanos: u64,
    /// Until when.
    pub to_nanos: u64,
    /// The span that the thread was in; `None` if it was in none.
    pub place: Option<Arc<SpanPlace>>,
    doing: Doing,
    recorded_by: usize,
}

impl ThreadShare {
    /// Returns the length, in nanoseconds.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        self.to_nanos.saturating_sub(self.from_nanos)
    }

    /// Returns what the thread did.
    #[must_use]
    pub fn did(&self) -> Did {
        match &self.doing {
            Doing::Unknown => Did::Unknown,
            Doing::Runs => Did::Ran,
            Doing::Ready { .. } => Did::Runnable,
            Doing::Waits { .. } => Did::Blocked,
        }
    }

    /// Returns the stack at which the thread left its processor; that with the number 0 if it ran, or if it is not
    /// known.
    #[must_use]
    pub fn stack(&self) -> StackKey {
        let stack_id = match &self.doing {
            Doing::Unknown | Doing::Runs => 0,
            Doing::Ready { stack_id, .. } | Doing::Waits { stack_id, .. } => *stack_id,
        };
        StackKey { process_index: self.recorded_by, stack_id }
    }

    /// Returns the name of the system call in which the thread was blocked, if it is known.
    #[must_use]
    pub fn syscall(&self) -> Option<String> {
        match &self.doing {
            Doing::Waits { syscall: Some(number), .. } => Some(syscalls::name_of(*number)),
            _ => None,
        }
    }

    /// Returns the name of the other thread: of the one that ran instead, or that has woken this one.
    #[must_use]
    pub fn other(&self) -> Option<&str> {
        match &self.doing {
            Doing::Ready { other, .. } => other.as_deref(),
            Doing::Waits { waker, .. } => waker.as_ref().map(|(name, _)| &**name),
            Doing::Unknown | Doing::Runs => None,
        }
    }
}

/// Joins what threads did with the spans that they were in.
///
/// Spans come in the order of time, and so do the events of the scheduler, which may come later than the spans. What is
/// known is given away at once, so little is kept.
#[derive(Debug, Default)]
pub struct TimeJoin {
    lines: Lines,
    threads: BTreeMap<u32, JoinedThread>,
}

#[derive(Debug)]
struct JoinedThread {
    process_id: u32,
    /// The index of the process that has recorded what it did.
    recorded_by: usize,
    place: Option<Arc<SpanPlace>>,
    /// The time from which on the thread is in this span.
    since_nanos: u64,
    /// Earlier times in spans, in order. Some of them were given away, and are kept for samples that come late.
    spans: VecDeque<(Option<Arc<SpanPlace>>, u64, u64)>,
    /// The time until which everything was given away.
    settled_nanos: u64,
    /// When the thread was first seen.
    seen_nanos: u64,
    /// The time before which nothing is known; `None` until something is.
    known_nanos: Option<u64>,
}

impl TimeJoin {
    /// Notes that a thread is in this span from now on, or in none.
    pub fn enter(
        &mut self,
        thread_id: u32,
        nanos: u64,
        place: Option<Arc<SpanPlace>>,
        each: &mut dyn FnMut(ThreadShare),
    ) {
        let thread = self.threads.entry(thread_id).or_insert_with(|| JoinedThread::new(nanos));
        if nanos > thread.since_nanos {
            thread.spans.push_back((thread.place.clone(), thread.since_nanos, nanos));
            thread.since_nanos = nanos;
        }
        if thread.spans.len() > WAITING_MAX {
            let line = self.lines.of_threads.entry(thread_id).or_default();
            thread.settle(thread_id, line, nanos, each);
        }
        thread.place = place;
    }

    /// Takes an event of the scheduler, which the process with this index has recorded.
    pub fn event(
        &mut self,
        recorded_by: usize,
        descriptor: &Descriptor,
        payload: &[u8],
        each: &mut dyn FnMut(ThreadShare),
    ) {
        let nanos = descriptor.record_epoch_nanos;
        match self.lines.event(descriptor, payload) {
            Changed::Nobody => {}
            Changed::Thread(thread_id) => {
                let Some(line) = self.lines.of_threads.get_mut(&thread_id) else { return };
                let thread = self.threads.entry(thread_id).or_insert_with(|| JoinedThread::new(nanos));
                thread.recorded_by = recorded_by;
                thread.process_id = self.lines.seen.get(&thread_id).map_or(0, |(process, _)| *process);
                thread.begin_at(nanos);
                if line.is_empty() {
                    thread.seen_nanos = nanos.min(thread.seen_nanos);
                } else {
                    _ = thread.known_nanos.get_or_insert(nanos.min(thread.seen_nanos));
                    thread.settle(thread_id, line, nanos, each);
                }
            }
            Changed::All => self.settle_all(nanos, each),
        }
    }

    /// Notes that events of the scheduler were lost.
    pub fn lose(&mut self, nanos: u64, each: &mut dyn FnMut(ThreadShare)) {
        self.lines.lose(nanos);
        self.settle_all(nanos, each);
    }

    /// Gives away what threads did until the end of a recording.
    pub fn finish(&mut self, nanos: u64, each: &mut dyn FnMut(ThreadShare)) {
        self.settle_all(nanos, each);
    }

    /// Returns the span that a thread was in at a time.
    #[must_use]
    pub fn place_at(&self, thread_id: u32, nanos: u64) -> Option<Arc<SpanPlace>> {
        let thread = self.threads.get(&thread_id)?;
        if nanos >= thread.since_nanos {
            return thread.place.clone();
        }
        let at = thread.spans.partition_point(|(_, _, to)| *to <= nanos);
        thread.spans.get(at).filter(|(_, from, _)| *from <= nanos).and_then(|(place, ..)| place.clone())
    }

    /// Returns the process of a thread, as the system numbers it; `None` if the thread was not seen.
    #[must_use]
    pub fn process_of(&self, thread_id: u32) -> Option<u32> {
        self.lines.seen.get(&thread_id).map(|(process, _)| *process)
    }

    /// Returns the process that the recording is about; `None` if it does not say it.
    #[must_use]
    pub fn main_process(&self) -> Option<u32> {
        self.lines.session.as_ref().map(|session| session.process_id)
    }

    /// Returns the name of a thread.
    #[must_use]
    pub fn name_of(&self, thread_id: u32) -> Option<Arc<str>> {
        self.lines.seen.get(&thread_id).map(|(_, name)| name_of(name, thread_id))
    }

    /// Returns true if an event of this time has woken a thread, which could not go on before.
    #[must_use]
    pub fn was_woken_at(&self, thread_id: u32, nanos: u64) -> bool {
        self.lines.of_threads.get(&thread_id).is_some_and(|line| line.was_woken_at(nanos))
    }

    /// Returns the samples a second, if the recording says it.
    #[must_use]
    pub fn sample_hz(&self) -> Option<u32> {
        self.lines.session.as_ref().map(|session| session.sample_hz)
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        const THREAD_BYTES: u64 = 512;
        let spans = self.threads.values().map(|thread| thread.spans.capacity() as u64 * 32);
        spans.fold(self.lines.of_threads.len() as u64 * THREAD_BYTES, u64::saturating_add)
    }

    fn settle_all(&mut self, nanos: u64, each: &mut dyn FnMut(ThreadShare)) {
        for (thread_id, thread) in &mut self.threads {
            let line = self.lines.of_threads.entry(*thread_id).or_default();
            thread.settle(*thread_id, line, nanos, each);
        }
    }
}

impl JoinedThread {
    fn new(nanos: u64) -> Self {
        let (spans, known_nanos) = (VecDeque::new(), None);
        let (place, process_id, recorded_by) = (None, 0, 0);
        let (since_nanos, settled_nanos, seen_nanos) = (nanos, nanos, u64::MAX);
        Self { process_id, recorded_by, place, since_nanos, spans, settled_nanos, seen_nanos, known_nanos }
    }

    /// Begins at an earlier time, if nothing was said of the thread yet.
    fn begin_at(&mut self, nanos: u64) {
        if self.known_nanos.is_none() && self.spans.is_empty() && self.place.is_none() {
            self.since_nanos = nanos.min(self.since_nanos);
            self.settled_nanos = self.since_nanos;
        }
    }

    /// Gives away everything until this time.
    fn settle(&mut self, thread_id: u32, line: &mut ThreadLine, until: u64, each: &mut dyn FnMut(ThreadShare)) {
        let (process_id, recorded_by) = (self.process_id, self.recorded_by);
        let first = self.spans.partition_point(|(_, _, to)| *to <= self.settled_nanos);
        let open = (self.place.clone(), self.since_nanos, until);
        for (place, from, to) in
            self.spans.range(first..).cloned().chain([open]).take_while(|(_, from, _)| *from < until)
        {
            let (from, to) = (from.max(self.settled_nanos), to.min(until));
            let mut give = |from_nanos: u64, to_nanos: u64, doing: &Doing| {
                let (place, doing) = (place.clone(), doing.clone());
                each(ThreadShare { thread_id, process_id, from_nanos, to_nanos, place, doing, recorded_by });
            };
            let known = self.known_nanos.unwrap_or(u64::MAX).clamp(from, to.max(from));
            if from < known {
                give(from, known, &Doing::Unknown);
            }
            line.between(known, to, give);
        }
        self.settled_nanos = until.max(self.settled_nanos);
        while self.spans.len() > LATE_MAX && self.spans.front().is_some_and(|(_, _, to)| *to <= self.settled_nanos) {
            self.spans.pop_front();
        }
        line.keep_last();
    }
}
