//! The span stack of each thread: the spans that the thread is in, innermost last.

use crate::schema::perf::ThreadTime;
use crate::tracing::read::id_map::IdMap;
use crate::tracing::read::replay::thread_clock::ThreadClock;
use crate::tracing::read::slice::{InnerSlices, InnerTimes, OpenSlice, TakenSlice, ThreadKey};
use crate::tracing::read::time_spent::TimeSpent;
use crate::tracing::span_id::SpanId;
use std::collections::{HashMap, HashSet};

/// The number of slices for which an empty stack may keep memory.
const SPARE_SLICES: usize = 64;

/// The span stacks of all threads of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct SpanStacks {
    threads: IdMap<ThreadKey, ThreadStack>,
    next_id: u64,
    /// The number of slices on all stacks.
    open: usize,
    /// The number of threads for which there was no room.
    refused: u64,
    /// The id of the next slice and this number, when the threads without slices were last removed.
    cleared_at: u64,
}

/// The span stack of one thread, innermost last.
#[derive(Clone, Debug, Default)]
struct ThreadStack {
    clock: ThreadClock,
    slices: Vec<OpenSlice>,
    /// For each slice, what is known of the slices inside it.
    inside: Vec<InnerSlices>,
    /// For each slice, the times that concern it.
    times: Vec<InnerTimes>,
}

impl SpanStacks {
    /// Puts a slice on the stack of its thread. `instructions` is the thread's count of instructions.
    pub(super) fn enter(
        &mut self,
        thread: ThreadKey,
        span: SpanId,
        epoch_nanos: u64,
        instructions: Option<u64>,
        measures_times: impl FnOnce() -> bool,
    ) -> OpenSlice {
        let (entered_epoch_nanos, last_seen_epoch_nanos) = (epoch_nanos, epoch_nanos);
        let slice = OpenSlice { id: self.next_id, span, thread, entered_epoch_nanos, last_seen_epoch_nanos };
        self.next_id += 1;
        self.open += 1;
        let stack = self.threads.entry(thread).or_insert_with(|| ThreadStack::new(measures_times()));
        stack.clock.see(epoch_nanos);
        stack.slices.push(slice);
        stack.inside.push(InnerSlices { entered_at: instructions, instructions: Some(0), ..InnerSlices::default() });
        stack.times.push(InnerTimes { off_at_enter: stack.clock.off(), ..InnerTimes::default() });
        slice
    }

    pub(super) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Returns true if the thread may enter a span: at most `threads_max` threads have stacks. Stacks without slices
    /// make room for others.
    pub(super) fn has_room(&mut self, thread: ThreadKey, threads_max: usize) -> bool {
        let is_full = |stacks: &Self| stacks.threads.len() >= threads_max && !stacks.threads.contains_key(&thread);
        if !is_full(self) {
            return true;
        }
        self.refused += 1;
        if self.next_id + self.refused - self.cleared_at >= threads_max as u64 / 2 {
            // The work is little for each enter, even if no stack can be removed.
            self.cleared_at = self.next_id + self.refused;
            self.threads.retain(|_, stack| !stack.slices.is_empty());
        }
        !is_full(self)
    }

    /// Takes the innermost slice of `span` from the stack of the thread. Returns `None` if the stack has no slice of
    /// this span. `is_entered_twice` is false if the stacks have no other slice of this span.
    pub(super) fn exit(
        &mut self,
        thread: ThreadKey,
        span: SpanId,
        epoch_nanos: u64,
        instructions: Option<u64>,
        is_entered_twice: bool,
        (lost_until_nanos, is_cut): (u64, bool),
    ) -> Option<TakenSlice> {
        let stack = self.threads.get_mut(&thread)?;
        let (at, mut taken, of_slice) = stack.take(span)?;
        self.open -= 1;
        let whole = taken.exit_at(instructions);
        let entered = taken.slice.entered_epoch_nanos;
        // Another thread may have closed the span. Then nobody knows what this one did since its last event.
        let times = match is_cut {
            true => stack.clock.open_times(&of_slice, entered, (epoch_nanos, lost_until_nanos)),
            false => {
                stack.clock.see(epoch_nanos);
                stack.clock.times(&of_slice, entered, epoch_nanos, lost_until_nanos)
            }
        };
        taken.times = times.without(of_slice.covered_times);
        taken.own_times = times.without(of_slice.times);
        if let Some(outer) = at.checked_sub(1).and_then(|below| stack.inside.get_mut(below)) {
            outer.instructions = outer.instructions.zip(whole).and_then(|(inner, whole)| inner.checked_add(whole));
            let outer = &mut stack.times[at - 1];
            outer.times = outer.times.plus(times);
        }
        if is_entered_twice && let Some(outer) = stack.slices.iter().rposition(|slice| slice.span == span) {
            let nanos = epoch_nanos.saturating_sub(taken.slice.entered_epoch_nanos);
            stack.times[outer].covered_times = stack.times[outer].covered_times.plus(times);
            let outer = &mut stack.inside[outer];
            outer.covered_nanos = outer.covered_nanos.saturating_add(nanos);
            outer.covered_instructions = outer.covered_instructions.saturating_add(whole.unwrap_or(0));
        }
        Some(taken)
    }

    /// Takes all slices of `span` from the stacks of all threads of one recorder, as if the threads had exited it at
    /// this time. Returns them in the order of their ids.
    pub(super) fn take_all(
        &mut self,
        recorder: u32,
        span: SpanId,
        epoch_nanos: u64,
        lost_until: impl Fn(ThreadKey) -> u64,
    ) -> Vec<TakenSlice> {
        let is_in = |stack: &ThreadStack| stack.slices.iter().any(|slice| slice.span == span);
        let of_recorder = self.threads.iter().filter(|(thread, stack)| thread.recorder == recorder && is_in(stack));
        let threads: Vec<ThreadKey> = of_recorder.map(|(thread, _)| *thread).collect();
        let mut taken = Vec::new();
        for thread in threads {
            taken.extend(std::iter::from_fn(|| {
                self.exit(thread, span, epoch_nanos, None, true, (lost_until(thread), true))
            }));
        }
        taken.sort_unstable_by_key(|taken| taken.slice.id);
        taken
    }

    /// Takes all slices of these spans from all stacks.
    pub(super) fn forget(&mut self, spans: &HashSet<SpanId>) {
        for stack in self.threads.values_mut() {
            let keeps: Vec<bool> = stack.slices.iter().map(|slice| !spans.contains(&slice.span)).collect();
            let mut keep = keeps.iter();
            stack.slices.retain(|_| *keep.next().unwrap_or(&true));
            let mut keep = keeps.iter();
            stack.inside.retain(|_| *keep.next().unwrap_or(&true));
            let mut keep = keeps.iter();
            stack.times.retain(|_| *keep.next().unwrap_or(&true));
        }
        self.open = self.threads.values().map(|stack| stack.slices.len()).sum();
    }

    /// Notes that the thread was in `span` at that time. Does nothing if `span` is not the innermost span on the
    /// thread's stack.
    /// `has_looked` says that the thread has recorded its times before, if it had any to record.
    pub(super) fn see(&mut self, thread: ThreadKey, span: SpanId, epoch_nanos: u64, has_looked: bool) {
        let Some(stack) = self.threads.get_mut(&thread) else { return };
        if let Some(slice) = stack.slices.last_mut().filter(|slice| slice.span == span) {
            slice.last_seen_epoch_nanos = slice.last_seen_epoch_nanos.max(epoch_nanos);
            if has_looked {
                stack.clock.look(epoch_nanos);
            }
        }
    }

    /// Notes that the thread was in `span` at that time, whatever it has entered since.
    pub(super) fn see_inside(&mut self, thread: ThreadKey, span: SpanId, epoch_nanos: u64) {
        let slices = self.threads.get_mut(&thread).map(|stack| stack.slices.iter_mut());
        slices.into_iter().flatten().filter(|slice| slice.span == span).for_each(|slice| {
            slice.last_seen_epoch_nanos = slice.last_seen_epoch_nanos.max(epoch_nanos);
        });
    }

    /// Takes a THREAD_SWITCHED of the thread.
    pub(super) fn switched(&mut self, thread: ThreadKey, epoch_nanos: u64, measures_times: impl FnOnce() -> bool) {
        let stack = self.threads.entry(thread).or_insert_with(|| ThreadStack::new(measures_times()));
        stack.clock.switched(epoch_nanos);
    }

    /// Takes a THREAD_TIME of the thread.
    pub(super) fn measured(
        &mut self,
        thread: ThreadKey,
        epoch_nanos: u64,
        (times, has_queue): (&ThreadTime, bool),
        measures_times: impl FnOnce() -> bool,
    ) {
        let stack = self.threads.entry(thread).or_insert_with(|| ThreadStack::new(measures_times()));
        stack.clock.measured(epoch_nanos, times, has_queue, &mut stack.times);
    }

    /// Forgets a thread that has ended. If its stack still has slices, because their exits were lost or have not come
    /// yet, the thread is kept.
    pub(super) fn end_thread(&mut self, thread: ThreadKey) {
        if self.stack_of(thread).is_empty() {
            self.threads.remove(&thread);
        }
    }

    /// Returns the number of slices that were put on stacks.
    pub(super) fn begun(&self) -> u64 {
        self.next_id
    }

    /// Returns the number of slices that are on stacks.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// Returns the stack of the thread, innermost last.
    pub(super) fn stack_of(&self, thread: ThreadKey) -> &[OpenSlice] {
        self.threads.get(&thread).map_or(&[], |stack| &stack.slices)
    }

    /// Returns the slices of all stacks, in the order of the threads' keys. The slices of one thread follow one
    /// another, outermost first.
    pub(super) fn all(&self) -> impl Iterator<Item = &OpenSlice> {
        let mut stacks: Vec<(&ThreadKey, &ThreadStack)> = self.threads.iter().collect();
        stacks.sort_unstable_by_key(|(thread, _)| **thread);
        stacks.into_iter().flat_map(|(_, stack)| &stack.slices)
    }

    /// Calls `add` with each span on a stack, and with the time that the thread has spent in it until `epoch_nanos`
    /// and that no ended slice has counted. Looks only at the stacks that are wanted. `lost_until` returns until when events
    /// of a thread may have been lost.
    pub(super) fn open_times(
        &self,
        epoch_nanos: u64,
        is_wanted: impl Fn(&[OpenSlice]) -> bool,
        lost_until: impl Fn(ThreadKey) -> u64,
        mut add: impl FnMut(SpanId, u64, TimeSpent),
    ) {
        for (thread, stack) in &self.threads {
            if !is_wanted(&stack.slices) {
                continue;
            }
            let until = (epoch_nanos, lost_until(*thread));
            let mut nanos: HashMap<SpanId, (u64, TimeSpent)> = HashMap::new();
            for ((slice, inside), of_slice) in stack.slices.iter().zip(&stack.inside).zip(&stack.times) {
                let entered = slice.entered_epoch_nanos;
                let since = || {
                    let times = stack.clock.open_times(of_slice, entered, until);
                    (epoch_nanos.saturating_sub(entered), times)
                };
                let (rest, times) = nanos.entry(slice.span).or_insert_with(since);
                *rest = rest.saturating_sub(inside.covered_nanos);
                *times = times.without(of_slice.covered_times);
            }
            nanos.into_iter().for_each(|(span, (nanos, times))| add(span, nanos, times));
        }
    }
}

impl ThreadStack {
    fn new(measures_times: bool) -> Self {
        Self { clock: ThreadClock::new(measures_times), ..Self::default() }
    }

    /// Takes the innermost slice of `span`, and returns its place, too.
    fn take(&mut self, span: SpanId) -> Option<(usize, TakenSlice, InnerTimes)> {
        let at = self.slices.iter().rposition(|slice| slice.span == span)?;
        let nests = at + 1 == self.slices.len();
        let (slice, inside, of_slice) = (self.slices.remove(at), self.inside.remove(at), self.times.remove(at));
        if self.slices.capacity() > 4 * self.slices.len() + SPARE_SLICES {
            self.slices.shrink_to(2 * self.slices.len());
            self.inside.shrink_to(2 * self.slices.len());
            self.times.shrink_to(2 * self.slices.len());
        }
        let (times, own_times) = (TimeSpent::NONE, TimeSpent::NONE);
        Some((at, TakenSlice { slice, nests, inside, instructions: None, times, own_times }, of_slice))
    }
}
