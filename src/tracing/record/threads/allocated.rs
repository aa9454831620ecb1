//! What a thread has allocated and freed, counted by the program's allocator (`eventring::alloc::Counted`).
//!
//! The allocator adds to cells of the thread. When the thread enters or leaves a span, it records what has been added
//! since, as one ALLOCATED event before the event of the enter or exit. So each count belongs to the span that was the
//! innermost one.
//!
//! The allocations of recording itself do not count: each slow path [pauses](Allocations::pause) the counts. So does the
//! formatting of a value, on all paths: the same program has the same counts.

use crate::global::current_span_id;
use crate::recorder::Recorder;
use crate::schema::EventPayload as _;
use crate::schema::perf::{Allocated, PerfEvent, PerfExt};
use crate::tracing::record::rings::core::PerfCore;
#[cfg(feature = "allocations")]
use crate::tracing::record::threads::thread;
use crate::tracing::record::threads::thread::ThreadState;
use std::cell::Cell;

/// The counts of a thread since its last ALLOCATED event.
pub(in crate::tracing::record) struct Allocations {
    allocations: Cell<u64>,
    bytes: Cell<u64>,
    frees: Cell<u64>,
    freed_bytes: Cell<u64>,
    /// The counts at the outermost pause, to which the thread returns after it.
    before_pause: Cell<Allocated>,
    /// The number of pauses that the thread is in: slow paths nest.
    pauses: Cell<u32>,
}

impl Allocations {
    pub(super) const fn new() -> Self {
        let [allocations, bytes, frees, freed_bytes] = [const { Cell::new(0) }; 4];
        let before_pause = Cell::new(Allocated { allocations: 0, bytes: 0, frees: 0, freed_bytes: 0 });
        Self { allocations, bytes, frees, freed_bytes, before_pause, pauses: Cell::new(0) }
    }

    /// Returns true if nothing was allocated or freed. The counts must not be paused.
    #[inline(always)]
    pub(in crate::tracing::record) fn is_none(&self) -> bool {
        !cfg!(feature = "allocations") || self.allocations.get() | self.frees.get() == 0
    }

    /// Returns true if nothing was allocated or freed, whether the counts are paused or not.
    #[inline(always)]
    fn is_none_before(&self) -> bool {
        !cfg!(feature = "allocations")
            || if self.is_paused() { self.before_pause.get().is_none() } else { self.is_none() }
    }

    /// Pauses the counts until the drop.
    #[inline(always)]
    pub(in crate::tracing::record) fn pause(&self) {
        if !cfg!(feature = "allocations") {
            return;
        }
        let pauses = self.pauses.get();
        if pauses == 0 {
            self.before_pause.set(self.replace(Allocated::default()));
        }
        self.pauses.set(pauses + 1);
    }

    /// Ends a pause.
    #[inline(always)]
    pub(in crate::tracing::record) fn resume(&self) {
        if !cfg!(feature = "allocations") {
            return;
        }
        let pauses = self.pauses.get().saturating_sub(1);
        if pauses == 0 {
            self.replace(self.before_pause.take());
        }
        self.pauses.set(pauses);
    }

    /// Returns true if recording itself allocates.
    #[inline(always)]
    pub(super) fn is_paused(&self) -> bool {
        self.pauses.get() > 0
    }

    /// Takes the counts, whether they are paused or not.
    fn take(&self) -> Allocated {
        if self.is_paused() { self.before_pause.take() } else { self.replace(Allocated::default()) }
    }

    fn replace(&self, counts: Allocated) -> Allocated {
        Allocated {
            allocations: self.allocations.replace(counts.allocations),
            bytes: self.bytes.replace(counts.bytes),
            frees: self.frees.replace(counts.frees),
            freed_bytes: self.freed_bytes.replace(counts.freed_bytes),
        }
    }
}

/// Counts an allocation of the calling thread.
#[cfg(feature = "allocations")]
#[inline(always)]
pub(crate) fn count_allocation(bytes: usize) {
    thread::with(|thread| {
        let counts = &thread.allocations;
        counts.allocations.set(counts.allocations.get().wrapping_add(1));
        counts.bytes.set(counts.bytes.get().wrapping_add(bytes as u64));
    });
}

/// Counts a free of the calling thread.
#[cfg(feature = "allocations")]
#[inline(always)]
pub(crate) fn count_free(bytes: usize) {
    thread::with(|thread| {
        let counts = &thread.allocations;
        counts.frees.set(counts.frees.get().wrapping_add(1));
        counts.freed_bytes.set(counts.freed_bytes.get().wrapping_add(bytes as u64));
    });
}

/// Returns true if recording itself allocates now.
#[cfg(feature = "allocations")]
pub(super) fn is_paused() -> bool {
    thread::with(|thread| thread.allocations.is_paused())
}

impl PerfCore {
    /// Records what the thread has allocated and freed, if it has.
    #[inline(always)]
    pub(super) fn report_allocations(&self, thread: &ThreadState, ring: &Recorder) {
        if !thread.allocations.is_none_before() {
            report_slow(thread, ring);
        }
    }
}

#[inline(never)]
fn report_slow(thread: &ThreadState, ring: &Recorder) {
    // Otherwise the counts wait for an event that is recorded.
    if !ring.core.may_record() {
        return;
    }
    let counts = thread.allocations.take();
    let [span_id, related, ids, flags] = PerfExt::of_span(current_span_id(), 0).to_words();
    let words = [span_id, related, ids | thread.id_word(), flags];
    counts.with_bytes(|payload| ring.core.record(PerfEvent::Allocated as u16, words, payload));
    #[cfg(feature = "allocations")]
    super::live_bytes::sample(thread, ring);
}
