//! The span stack of each thread: the spans that the thread is in, innermost last.

use crate::tracing::SpanId;
use std::collections::{HashMap, HashSet};

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
pub(in crate::tracing::read) struct TakenSlice {
    pub(in crate::tracing::read) slice: OpenSlice,
    /// True if the slice was the innermost slice of its thread when it was taken. If it was not, it overlaps the
    /// slices that the thread entered later, and does not contain them.
    pub(in crate::tracing::read) nests: bool,
}

/// The span stacks of all threads of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct SpanStacks {
    threads: HashMap<ThreadKey, Vec<OpenSlice>>,
    next_id: u64,
}

impl SpanStacks {
    /// Puts a slice on the stack of its thread.
    pub(super) fn enter(&mut self, thread: ThreadKey, span: SpanId, epoch_nanos: u64) -> OpenSlice {
        let (entered_epoch_nanos, last_seen_epoch_nanos) = (epoch_nanos, epoch_nanos);
        let slice = OpenSlice { id: self.next_id, span, thread, entered_epoch_nanos, last_seen_epoch_nanos };
        self.next_id += 1;
        self.threads.entry(thread).or_default().push(slice);
        slice
    }

    /// Takes the innermost slice of `span` from the stack of the thread. Returns `None` if the stack has no slice of
    /// this span.
    pub(super) fn exit(&mut self, thread: ThreadKey, span: SpanId) -> Option<TakenSlice> {
        take(self.threads.get_mut(&thread)?, span)
    }

    /// Takes all slices of `span` from the stacks of all threads of one recorder. Returns them in the order of their
    /// ids.
    pub(super) fn take_all(&mut self, recorder: u32, span: SpanId) -> Vec<TakenSlice> {
        let mut taken = Vec::new();
        for (_, stack) in self.threads.iter_mut().filter(|(thread, _)| thread.recorder == recorder) {
            taken.extend(std::iter::from_fn(|| take(stack, span)));
        }
        taken.sort_unstable_by_key(|taken| taken.slice.id);
        taken
    }

    /// Takes all slices of these spans from all stacks.
    pub(super) fn forget(&mut self, spans: &HashSet<SpanId>) {
        self.threads.values_mut().for_each(|stack| stack.retain(|slice| !spans.contains(&slice.span)));
    }

    /// Notes that the thread was in `span` at that time. Does nothing if `span` is not the innermost span on the
    /// thread's stack.
    pub(super) fn see(&mut self, thread: ThreadKey, span: SpanId, epoch_nanos: u64) {
        let innermost = self.threads.get_mut(&thread).and_then(|stack| stack.last_mut());
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

    /// Returns the stack of the thread, innermost last.
    pub(super) fn of(&self, thread: ThreadKey) -> &[OpenSlice] {
        self.threads.get(&thread).map_or(&[], Vec::as_slice)
    }

    /// Returns the slices of all stacks. The slices of one thread follow one another, outermost first.
    pub(super) fn all(&self) -> impl Iterator<Item = &OpenSlice> {
        self.threads.values().flatten()
    }
}

fn take(stack: &mut Vec<OpenSlice>, span: SpanId) -> Option<TakenSlice> {
    let at = stack.iter().rposition(|slice| slice.span == span)?;
    let nests = at + 1 == stack.len();
    Some(TakenSlice { slice: stack.remove(at), nests })
}
