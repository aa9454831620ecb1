//! The span stack of each thread: the spans that the thread is in, innermost last.

use crate::tracing::SpanId;
use crate::tracing::read::id_map::IdMap;
use std::collections::{HashMap, HashSet};

/// The number of slices for which an empty stack may keep memory.
const SPARE_SLICES: usize = 64;

/// Key of a thread: its recorder and its id there. A thread that records to two recorders has two keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ThreadKey {
    /// The number of the recorder, as the caller passed it to [`SpanReplay::push`](super::SpanReplay::push).
    pub recorder: u32,
    /// The id of the thread in the recorder's rings.
    pub thread_id: u32,
}

/// A span slice that has begun and has not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenSlice {
    /// The number of the slice in its replay, counted from 0 in the order in which the enters came.
    pub id: u64,
    /// The span.
    pub span: SpanId,
    /// The thread that is in the span.
    pub thread: ThreadKey,
    /// The time of the enter, nanoseconds since the epoch.
    pub entered_epoch_nanos: u64,
    /// The last time at which the thread is known to have been in the span, in nanoseconds since the epoch.
    pub last_seen_epoch_nanos: u64,
}

/// A slice that was taken from its stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TakenSlice {
    pub(crate) slice: OpenSlice,
    /// True if the slice was the innermost slice of its thread when it was taken. If it was not, it overlaps the
    /// slices that the thread entered later, and does not contain them.
    pub(crate) nests: bool,
    /// The part of the slice that counts for slices of the same span inside it: the thread had entered the span again.
    pub(super) covered_nanos: u64,
}

impl TakenSlice {
    /// Returns the time of the slice, without the time of slices of the same span inside it.
    pub(in crate::tracing::read) fn own_nanos(&self, exited_epoch_nanos: u64) -> u64 {
        exited_epoch_nanos.saturating_sub(self.slice.entered_epoch_nanos).saturating_sub(self.covered_nanos)
    }
}

/// The span stacks of all threads of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct SpanStacks {
    threads: IdMap<ThreadKey, ThreadStack>,
    next_id: u64,
    /// The number of slices on all stacks.
    open: usize,
    /// The id of the next slice when the threads without slices were last removed.
    #[cfg(feature = "live")]
    cleared_at: u64,
}

/// The span stack of one thread, innermost last.
#[derive(Clone, Debug, Default)]
struct ThreadStack {
    slices: Vec<OpenSlice>,
    /// For each slice, its [`TakenSlice::covered_nanos`] so far.
    covered_nanos: Vec<u64>,
}

impl SpanStacks {
    /// Puts a slice on the stack of its thread.
    pub(super) fn enter(&mut self, thread: ThreadKey, span: SpanId, epoch_nanos: u64) -> OpenSlice {
        let (entered_epoch_nanos, last_seen_epoch_nanos) = (epoch_nanos, epoch_nanos);
        let slice = OpenSlice { id: self.next_id, span, thread, entered_epoch_nanos, last_seen_epoch_nanos };
        self.next_id += 1;
        self.open += 1;
        let stack = self.threads.entry(thread).or_default();
        stack.slices.push(slice);
        stack.covered_nanos.push(0);
        slice
    }

    #[cfg(all(test, feature = "live"))]
    pub(super) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Returns true if the thread may enter a span: at most `threads_max` threads have stacks. Stacks without slices
    /// make room for others.
    #[cfg(feature = "live")]
    pub(super) fn has_room(&mut self, thread: ThreadKey, threads_max: usize) -> bool {
        let is_full = |stacks: &Self| stacks.threads.len() >= threads_max && !stacks.threads.contains_key(&thread);
        if is_full(self) && self.next_id - self.cleared_at >= threads_max as u64 / 2 {
            // The work is little for each enter, even if no stack can be removed.
            self.cleared_at = self.next_id;
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
        is_entered_twice: bool,
    ) -> Option<TakenSlice> {
        let stack = self.threads.get_mut(&thread)?;
        let taken = stack.take(span)?;
        self.open -= 1;
        if is_entered_twice && let Some(outer) = stack.slices.iter().rposition(|slice| slice.span == span) {
            let nanos = epoch_nanos.saturating_sub(taken.slice.entered_epoch_nanos);
            stack.covered_nanos[outer] = stack.covered_nanos[outer].saturating_add(nanos);
        }
        Some(taken)
    }

    /// Takes all slices of `span` from the stacks of all threads of one recorder. Returns them in the order of their
    /// ids.
    pub(super) fn take_all(&mut self, recorder: u32, span: SpanId) -> Vec<TakenSlice> {
        let mut taken = Vec::new();
        for (_, stack) in self.threads.iter_mut().filter(|(thread, _)| thread.recorder == recorder) {
            taken.extend(std::iter::from_fn(|| stack.take(span)));
        }
        self.open -= taken.len();
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
            stack.covered_nanos.retain(|_| *keep.next().unwrap_or(&true));
        }
        self.open = self.threads.values().map(|stack| stack.slices.len()).sum();
    }

    /// Notes that the thread was in `span` at that time. Does nothing if `span` is not the innermost span on the
    /// thread's stack.
    pub(super) fn see(&mut self, thread: ThreadKey, span: SpanId, epoch_nanos: u64) {
        let innermost = self.threads.get_mut(&thread).and_then(|stack| stack.slices.last_mut());
        if let Some(slice) = innermost.filter(|slice| slice.span == span) {
            slice.last_seen_epoch_nanos = slice.last_seen_epoch_nanos.max(epoch_nanos);
        }
    }

    /// Forgets a thread that has ended. If its stack still has slices, because their exits were lost or have not come
    /// yet, the thread is kept.
    pub(super) fn end_thread(&mut self, thread: ThreadKey) {
        if self.of(thread).is_empty() {
            self.threads.remove(&thread);
        }
    }

    /// Returns the number of slices that were put on stacks.
    pub(super) fn begun(&self) -> u64 {
        self.next_id
    }

    /// Returns the number of slices that are on stacks.
    #[cfg_attr(not(feature = "export"), allow(dead_code, reason = "only exports ask for it"))]
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// Returns the stack of the thread, innermost last.
    pub(super) fn of(&self, thread: ThreadKey) -> &[OpenSlice] {
        self.threads.get(&thread).map_or(&[], |stack| &stack.slices)
    }

    /// Returns the slices of all stacks. The slices of one thread follow one another, outermost first.
    pub(super) fn all(&self) -> impl Iterator<Item = &OpenSlice> {
        self.threads.values().flat_map(|stack| &stack.slices)
    }

    /// Calls `add` with each span on a stack, and with the time that the thread has spent in it until `epoch_nanos`
    /// and that no ended slice has counted.
    pub(super) fn open_times(&self, epoch_nanos: u64, mut add: impl FnMut(SpanId, u64)) {
        for stack in self.threads.values() {
            let mut nanos: HashMap<SpanId, u64> = HashMap::new();
            for (slice, covered_nanos) in stack.slices.iter().zip(&stack.covered_nanos) {
                let since = || epoch_nanos.saturating_sub(slice.entered_epoch_nanos);
                let rest = nanos.entry(slice.span).or_insert_with(since);
                *rest = rest.saturating_sub(*covered_nanos);
            }
            nanos.into_iter().for_each(|(span, nanos)| add(span, nanos));
        }
    }
}

impl ThreadStack {
    fn take(&mut self, span: SpanId) -> Option<TakenSlice> {
        let at = self.slices.iter().rposition(|slice| slice.span == span)?;
        let nests = at + 1 == self.slices.len();
        let taken = TakenSlice { slice: self.slices.remove(at), nests, covered_nanos: self.covered_nanos.remove(at) };
        if self.slices.capacity() > 4 * self.slices.len() + SPARE_SLICES {
            self.slices.shrink_to(2 * self.slices.len());
            self.covered_nanos.shrink_to(2 * self.slices.len());
        }
        Some(taken)
    }
}
