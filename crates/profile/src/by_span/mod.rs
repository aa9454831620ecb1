//! The kernel's data by span. The time of each thread is divided by the thread's state and span. Each sample gets the
//! span that its thread was in.
//!
//! | file | idea |
//! |---|---|
//! | `part` | the part of a replay that consumers ask for |
//! | `join` | the time of threads, divided by state and span |
//! | `owners` | the threads that had the same thread id, one after the other |
//! | `code` | stacks of the program: their files, and the names of their functions |

mod code;
mod join;
mod owners;
mod part;

pub use code::{CodeStacks, StackKey};
pub use join::{Did, ThreadShare, TimeJoin};
pub use owners::{ThreadOwner, ThreadOwners};
pub use part::{KernelNames, KernelPart, KernelWanted, SpanPlace};

use crate::schema::{Sched, Stacks};
use eventring::schema::EventType as _;
use eventring_capture::recording::{EntryContent, RecordedRings, RecordingEntry};
use std::sync::Arc;

/// The samples a second of a recording that does not say it.
const SAMPLE_HZ: u64 = 997;

/// A kind of rings in which the kernel has its say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelRing {
    /// Switches and wake-ups.
    Sched,
    /// Samples and stacks.
    Stacks,
}

impl KernelRing {
    /// Returns the kind of a ring of a recording, if it is one of these.
    #[must_use]
    pub fn from_ring(rings: &RecordedRings, ring: u32) -> Option<Self> {
        let model = rings.model(ring)?;
        match (model.content_type(), model.name()) {
            (Sched::CONTENT_TYPE, Sched::CONTENT_NAME) => Some(Self::Sched),
            (Stacks::CONTENT_TYPE, Stacks::CONTENT_NAME) => Some(Self::Stacks),
            _ => None,
        }
    }

    /// Returns true if a recording has such a ring.
    #[must_use]
    pub fn are_in(rings: &RecordedRings) -> bool {
        (0..rings.count() as u32).any(|ring| Self::from_ring(rings, ring).is_some())
    }
}

/// A thread was at a stack: while it ran, or where it left its processor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadSample {
    /// The thread, as the system numbers it.
    pub thread_id: u32,
    /// Its process, as the system numbers it; 0 if it is not known.
    pub process_id: u32,
    /// True if it ran.
    pub is_running: bool,
    /// The processor.
    pub cpu: u16,
    /// When, in nanoseconds since the epoch.
    pub nanos: u64,
    /// The stack.
    pub stack: StackKey,
    /// The span that the thread was in.
    pub place: Option<Arc<SpanPlace>>,
    /// The time between two samples of a thread that runs, in nanoseconds.
    pub period_nanos: u64,
}

/// What the kernel says.
#[derive(Debug)]
pub enum Said {
    /// A thread did one thing for a time.
    Share(ThreadShare),
    /// A thread was at a stack.
    Sample(ThreadSample),
}

/// Joins what the kernel says with the spans of threads.
#[derive(Debug)]
pub struct KernelView {
    /// The times.
    pub times: TimeJoin,
    /// The stacks; `None` if nobody asks for them.
    pub code: Option<CodeStacks>,
    /// The threads.
    pub owners: ThreadOwners,
}

impl KernelView {
    /// Makes a view of threads that are in no span yet. With `has_code`, keeps the stacks of the program.
    #[must_use]
    pub fn new(has_code: bool) -> Self {
        Self { times: TimeJoin::default(), code: has_code.then(CodeStacks::default), owners: ThreadOwners::default() }
    }

    /// Takes an event or a loss, and says what follows from it: what a thread did from the last change until this one.
    /// `now_nanos` is the time that the recording has reached. Returns the kind of the ring, if it is the kernel's.
    pub fn entry(
        &mut self,
        entry: &RecordingEntry<'_>,
        now_nanos: u64,
        each: &mut dyn FnMut(Said),
    ) -> Option<KernelRing> {
        if let EntryContent::Perf { .. } = entry.content {
            return None;
        }
        let ring = KernelRing::from_ring(&entry.tables.rings, entry.ring)?;
        match (&entry.content, ring) {
            (EntryContent::Typed { descriptor, payload }, KernelRing::Sched) => {
                if let Some(payload) = payload.valid() {
                    self.owners.event(descriptor, payload);
                    self.times.event(entry.process_index, descriptor, payload, &mut |share| each(Said::Share(share)));
                }
            }
            (EntryContent::Typed { descriptor, payload }, KernelRing::Stacks) => {
                if let Some(payload) = payload.valid()
                    && let Some(sample) = code::sample(descriptor, payload)
                {
                    let stack = StackKey { process_index: entry.process_index, stack_id: sample.stack_id };
                    let thread_id = sample.thread_id;
                    let process_id = self.times.process_of(thread_id).unwrap_or(0);
                    if let Some(code) = &mut self.code {
                        code.place(stack, process_id);
                    }
                    let (cpu, nanos, is_running) =
                        (sample.cpu, descriptor.record_epoch_nanos, sample.is_on_processor());
                    let place = self.times.place_at(thread_id, nanos);
                    let hz = self.times.sample_hz().filter(|hz| *hz > 0).map_or(SAMPLE_HZ, u64::from);
                    let period_nanos = (1_000_000_000 / hz).max(1);
                    each(Said::Sample(ThreadSample {
                        thread_id,
                        process_id,
                        is_running,
                        cpu,
                        nanos,
                        stack,
                        place,
                        period_nanos,
                    }));
                } else if let (Some(code), Some(payload)) = (&mut self.code, payload.valid()) {
                    code.event(entry.process_index, descriptor, payload);
                }
            }
            (EntryContent::Gap(gap), KernelRing::Sched) if gap.is_loss() => {
                self.times.lose(now_nanos, &mut |share| each(Said::Share(share)));
            }
            _ => {}
        }
        Some(ring)
    }

    /// Returns an estimate of the bytes that are kept.
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        let more = [self.code.as_ref().map_or(0, CodeStacks::kept_bytes), self.owners.kept_bytes()];
        more.into_iter().fold(self.times.kept_bytes(), u64::saturating_add)
    }
}
