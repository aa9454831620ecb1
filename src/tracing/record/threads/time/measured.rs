//! The state of a thread whose times are measured.

use super::budget::Budget;
use crate::global::current_span_id;
use crate::recorder::Recorder;
use crate::schema::EventPayload as _;
use crate::schema::perf::{PerfEvent, PerfExt, ThreadTime, flags};
use crate::shm::{SchedstatFile, ThreadUsage, thread_cpu_nanos};
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::threads::thread::{self, ThreadState};
use std::cell::RefCell;
use std::sync::{Arc, Weak};

/// How often the thread's counts are read again, because the thread has left its processor while it read them.
const TRIES: u32 = 4;
/// What a THREAD_SWITCHED costs, in nanoseconds. The thread has just come back, so little is in the processor's caches.
const SWITCHED_NANOS: u64 = 100;
/// The most that a THREAD_TIME is taken to cost, in nanoseconds. If it takes longer, the thread has left its processor
/// meanwhile.
const COST_NANOS_MAX: u64 = 20_000;

thread_local! {
    static TIMES: OfThread = const { OfThread(RefCell::new(None)) };
}

struct OfThread(RefCell<Option<Measured>>);

/// A thread whose times are measured.
struct Measured {
    /// The recorder that gets the times: the first one to which the thread has recorded.
    recorder: Weak<PerfCore>,
    recorder_id: u64,
    /// The index of the thread's ring in this recorder.
    shard: usize,
    schedstat: SchedstatFile,
    last: Reading,
    budget: Budget,
    /// THREAD_SWITCHED events since the last THREAD_TIME.
    merged: u32,
}

/// The counts of a thread at one time.
#[derive(Clone, Copy)]
struct Reading {
    epoch_nanos: u64,
    cpu_nanos: u64,
    /// `None` if the kernel does not tell.
    queue_nanos: Option<u64>,
    slices: u64,
    usage: ThreadUsage,
}

impl PerfCore {
    /// Begins to measure the times of the calling thread, unless another recorder does. `shard` is the thread's ring.
    /// Returns whether the thread is measured: its first THREAD_TIME is recorded.
    pub(in crate::tracing::record) fn begin_times(self: &Arc<Self>, thread: &ThreadState, shard: usize) -> bool {
        let Some(ring) = self.shards.get(shard).filter(|_| self.thread_times.offset.is_some()) else { return false };
        let begin = |times: &OfThread| {
            // A thread that is interrupted here goes on afterwards.
            let Ok(mut times) = times.0.try_borrow_mut() else { return false };
            let is_measured = |it: &Measured| it.recorder_id != self.id && it.owner().is_some();
            if times.as_ref().is_some_and(is_measured) || !thread.switches.tell(self.thread_times.offset) {
                return false;
            }
            let schedstat = SchedstatFile::open();
            let Some(last) = Reading::take(thread, ring, &schedstat) else { return false };
            let mut measured = Measured {
                recorder: Arc::downgrade(self),
                recorder_id: self.id,
                shard,
                schedstat,
                last,
                budget: Budget::new(self.thread_times.millionths, last.epoch_nanos),
                merged: 0,
            };
            measured.record(thread, ring, last);
            *times = Some(measured);
            true
        };
        // Otherwise the thread is ending.
        TIMES.try_with(begin).unwrap_or(false)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn measure_slow(&self, thread: &ThreadState, ring: &Recorder) {
        let measure = |times: &OfThread| {
            // What interrupts the measurement, or records inside of it, measures nothing: the measurement notices it.
            let Ok(mut times) = times.0.try_borrow_mut() else { return };
            let Some(measured) = &mut *times else { return };
            if measured.recorder_id == self.id {
                return measured.measure(thread, self, ring);
            }
            // The next event of the recorder that gets the times finds the same switch. If it is gone, another one gets
            // the times of threads that are new to it.
            if measured.recorder.strong_count() == 0 {
                thread.switches.tell(None);
            }
        };
        if TIMES.try_with(measure).is_err() {
            thread.switches.tell(None);
        }
    }
}

impl Measured {
    /// Returns the recorder that gets the times, if it still can.
    fn owner(&self) -> Option<Arc<PerfCore>> {
        self.recorder.upgrade().filter(|owner| owner.belongs_to_this_process())
    }

    fn measure(&mut self, thread: &ThreadState, core: &PerfCore, ring: &Recorder) {
        if !ring.core.may_record() {
            // The recorder is switched off, or this is a forked child, whose recorder never records again. The thread
            // is not asked until the next event that is recorded.
            return;
        }
        let begun = ring.clock().now_epoch_nanos();
        if !self.budget.allows(begun) {
            thread.switches.arm();
            let words = PerfExt::of_span(current_span_id(), 0).to_words();
            ring.core.record(PerfEvent::ThreadSwitched as u16, with_thread(words, thread), &[]);
            self.merged = self.merged.saturating_add(1);
            return self.budget.spend(SWITCHED_NANOS);
        }
        let Some(now) = Reading::take(thread, ring, &self.schedstat) else { return };
        if self.merged > 0 || !self.last.is_same_slice(&now) {
            self.record(thread, ring, now);
        }
        let cost = ring.clock().now_epoch_nanos().saturating_sub(begun).min(COST_NANOS_MAX);
        self.budget.spend(cost);
        if let Some(shard0) = core.shards.get(0) {
            core.thread_times.count(shard0, cost, self.merged.into());
        }
        self.merged = 0;
    }

    /// Records what the thread has done since the last reading.
    fn record(&mut self, thread: &ThreadState, ring: &Recorder, now: Reading) {
        let last = std::mem::replace(&mut self.last, now);
        let queue_nanos = last.queue_nanos.zip(now.queue_nanos).map(|(last, now)| now.saturating_sub(last));
        let (usage, before) = (now.usage, last.usage);
        let times = ThreadTime {
            since_epoch_nanos: last.epoch_nanos,
            cpu_nanos: now.cpu_nanos.saturating_sub(last.cpu_nanos),
            queue_nanos: queue_nanos.unwrap_or(0),
            slices: now.slices.saturating_sub(last.slices) as u32,
            merged: self.merged,
            voluntary_switches: usage.voluntary_switches.wrapping_sub(before.voluntary_switches),
            involuntary_switches: usage.involuntary_switches.wrapping_sub(before.involuntary_switches),
            minor_faults: usage.minor_faults.wrapping_sub(before.minor_faults),
            major_faults: usage.major_faults.wrapping_sub(before.major_faults),
        };
        let flags = if queue_nanos.is_none() { flags::NO_QUEUE } else { 0 };
        let words = PerfExt { flags, ..PerfExt::of_span(current_span_id(), 0) }.to_words();
        times.with_bytes(|payload| {
            let event = PerfEvent::ThreadTime as u16;
            ring.core.record_stamped(now.epoch_nanos, event, with_thread(words, thread), payload);
        });
    }
}

impl Reading {
    /// Reads the counts of the calling thread, and the time at which they hold. If the thread may not ask for them,
    /// returns `None`, and the thread is not measured any more.
    fn take(thread: &ThreadState, ring: &Recorder, schedstat: &SchedstatFile) -> Option<Self> {
        let mut tries = 1;
        loop {
            thread.switches.arm();
            let Some(cpu_nanos) = thread_cpu_nanos() else {
                thread.switches.tell(None);
                return None;
            };
            let epoch_nanos = ring.clock().now_epoch_nanos();
            let usage = ThreadUsage::of_this_thread();
            let scheduled = schedstat.read();
            if thread.switches.is_armed() || tries == TRIES {
                let (queue_nanos, slices) = scheduled.map_or((None, 0), |it| (Some(it.queue_nanos), it.slices));
                return Some(Self { epoch_nanos, cpu_nanos, queue_nanos, slices, usage });
            }
            tries += 1;
        }
    }

    /// Returns true if the thread has kept its processor from this reading to another one.
    fn is_same_slice(&self, other: &Self) -> bool {
        let switches = |it: &Self| (it.usage.voluntary_switches, it.usage.involuntary_switches);
        let are_counted = other.slices > 0 || switches(other) != (0, 0);
        are_counted && self.slices == other.slices && switches(self) == switches(other)
    }
}

fn with_thread(words: [u64; 4], thread: &ThreadState) -> [u64; 4] {
    let [span_id, related, ids, flags] = words;
    [span_id, related, ids | thread.id_word(), flags]
}

impl Drop for OfThread {
    fn drop(&mut self) {
        let Some(mut measured) = self.0.get_mut().take() else { return };
        thread::with(|thread| {
            // What the thread has done until here. The end of the thread follows.
            if let Some(owner) = measured.owner().filter(|_| !thread.switches.is_armed() || measured.merged > 0)
                && let Some(ring) = owner.shards.get(measured.shard)
            {
                measured.measure(thread, &owner, ring);
            }
            thread.switches.tell(None);
        });
    }
}
