//! A span, put together from its records.

use super::call_site::{CallSite, Thread};
use super::record::Fields;
use super::slice::{OpenSlice, SpanInstructions, TakenSlice, ThreadKey};
use super::time_spent::TimeSpent;
use crate::schema::perf::{Allocated, flags};
use crate::span_slab::RemoteTrace;
use crate::tracing::span_id::SpanId;
use crate::tracing::trace_context::remote::RemoteContext;
use std::sync::Arc;

/// A span, as far as its records were seen.
///
/// The wall time of a span is the time from `created` to `closed`. The busy time is the time that threads spent in
/// the span; its `slices` show it. A field is `None` if no record has shown its value. For example, `closed` is
/// `None` if the span was open when the recording ended, or if its close was lost ([`Self::is_end_lost`]).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Span {
    /// The id of the span.
    pub id: SpanId,
    /// The parent of the span; `None` for a root, and for a span whose creation was not seen.
    pub parent: Option<SpanId>,
    /// The place in the program's source that created the span; `None` if no record named the place.
    pub call_site: Option<Arc<CallSite>>,
    /// The fields, with the last value of each.
    pub fields: Fields,
    /// The time and thread of the creation.
    pub created: Option<TimeOnThread>,
    /// The time and thread at which the last handle went away.
    pub closed: Option<TimeOnThread>,
    /// The first time at which the span is known to have existed, in nanoseconds since the epoch.
    pub first_seen_epoch_nanos: u64,
    /// The last time at which the span is known to have existed, in nanoseconds since the epoch. A record named the
    /// span then, or something happened in the span.
    pub last_seen_epoch_nanos: u64,
    /// The slices of the span, in the order of entering.
    pub slices: Vec<SpanSlice>,
    /// The spans from which this span follows: the first 128.
    pub follows_from: Vec<SpanId>,
    /// The number of further spans from which it follows.
    pub follows_from_dropped: u64,
    /// The flags of the creation and of the end of the span, see [`flags`](crate::schema::perf::flags).
    pub flags: u16,
    /// True if records of this span may be missing. There are three reasons: events were lost while the span was open,
    /// an event of the span could not be recorded, or the creation of the span was not seen. The value is final when
    /// the replay returns the span.
    pub may_have_losses: bool,
    /// True if the close of the span was not seen and may have been lost. Set when the replay returns the span
    /// ([`SpanReplay::finish`](super::SpanReplay::finish), [`SpanReplay::take_lost`](super::SpanReplay::take_lost)).
    pub is_end_lost: bool,
    /// False if the busy time of an open span is not known, because some of its enters and exits may have been lost.
    pub is_busy_known: bool,
    /// The number of the span in its replay, counted from 1 in the order in which the spans were first seen.
    pub number: u64,
    /// The instructions that the program executed in the span. `None` if they were not counted in one of its slices, or
    /// if the count of a slice was lost.
    pub instructions: Option<SpanInstructions>,
    /// What threads have allocated and freed while this was their innermost span, as the program's allocator has counted
    /// it (`eventring::alloc`). `None` if nothing was counted. If [`Self::may_have_losses`] is true, it may be more.
    pub allocated: Option<Allocated>,
    /// How threads spent the time in the span. [`Self::times`] returns it if it was measured.
    pub(super) times: TimeSpent,
    /// The number of losses that the replay had seen when the span was created.
    pub(super) gaps_before: u64,
    /// True if the instructions of a slice that has ended are not known.
    pub(super) has_uncounted_slice: bool,
    /// The number of slices that have not ended.
    pub(super) open_slices: u32,
    /// The sum of the times of ended slices, counted by the replay. It is there even if the replay drops slices.
    pub(super) counted_busy_nanos: u64,
    /// The time in which a thread was in the span, as far as it has ended: that of several threads counts once.
    pub(super) entered_nanos: u64,
    /// Since when threads are in the span, if they are.
    pub(super) entered_since_epoch_nanos: u64,
    /// Until when threads were in the span, as far as it is known.
    pub(super) entered_until_epoch_nanos: u64,
    /// The last of the exits that came after the close.
    pub(super) late_exit_epoch_nanos: u64,
    /// The slices that ended with the close of the span because their exits had not come.
    pub(super) cut_slices: Vec<TakenSlice>,
    /// The number of spans that were created in this one and are still in the replay.
    pub(super) spans_inside: u32,
    /// An estimate of the bytes that the span takes in addition to itself.
    pub(super) more_bytes: u64,
    /// The fields as they lie in the ring, if the replay keeps them undecoded. `fields` then has no values.
    pub(super) raw_fields: Vec<u8>,
    /// The root of the tree that the span is part of, as far as the replay knew the span's ancestors when it was
    /// created. A span with a remote parent is the root of its process's part of the trace.
    pub root: SpanId,
    /// The trace of a remote caller that the span is part of: its own caller, or that of an ancestor.
    pub remote_trace: Option<RemoteTrace>,
    /// The id of the caller's span, if the program stored a context with this span.
    pub remote_parent: Option<u64>,
}

/// A time on a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimeOnThread {
    /// Nanoseconds since the epoch.
    pub epoch_nanos: u64,
    /// The thread.
    pub thread: Arc<Thread>,
}

/// The time from one enter of a span to its exit, on one thread.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SpanSlice {
    /// The id of the slice in its replay; `None` if the enter of the slice was not seen.
    pub id: Option<u64>,
    /// The number of the recorder, as the caller passed it to [`SpanReplay::push`](super::SpanReplay::push).
    pub recorder: u32,
    /// The thread.
    pub thread: Arc<Thread>,
    /// The time of the enter in nanoseconds since the epoch; `None` if the enter was not seen.
    pub entered_epoch_nanos: Option<u64>,
    /// The time of the exit in nanoseconds since the epoch, but at most that of the span's close; `None` if the thread
    /// was still in the span, or if the exit was not seen.
    pub exited_epoch_nanos: Option<u64>,
    /// False if the thread left this slice before it left a slice that it had entered later. Such slices overlap, and
    /// neither contains the other.
    pub nests: bool,
    /// True if the span was closed while the thread still seemed to be in it, so that the slice ends with the close.
    /// The exit was lost, came later than the close, or never came: the program left the span on another thread.
    pub is_cut: bool,
}

impl SpanSlice {
    pub(super) fn begun(slice: OpenSlice, thread: Arc<Thread>) -> Self {
        Self {
            id: Some(slice.id),
            recorder: slice.thread.recorder,
            thread,
            entered_epoch_nanos: Some(slice.entered_epoch_nanos),
            exited_epoch_nanos: None,
            nests: true,
            is_cut: false,
        }
    }

    /// Returns the key of the thread in the replay.
    #[must_use]
    pub fn thread_key(&self) -> ThreadKey {
        ThreadKey { recorder: self.recorder, thread_id: self.thread.id }
    }

    /// Returns the length of the slice in nanoseconds. Returns `None` if its enter or its exit was not seen.
    #[must_use]
    pub fn nanos(&self) -> Option<u64> {
        Some(self.exited_epoch_nanos?.saturating_sub(self.entered_epoch_nanos?))
    }
}

impl Span {
    pub(super) fn unseen(id: SpanId, number: u64, epoch_nanos: u64) -> Self {
        Self {
            id,
            parent: None,
            call_site: None,
            fields: Fields::default(),
            created: None,
            closed: None,
            first_seen_epoch_nanos: epoch_nanos,
            last_seen_epoch_nanos: epoch_nanos,
            slices: Vec::new(),
            follows_from: Vec::new(),
            follows_from_dropped: 0,
            flags: 0,
            may_have_losses: true,
            is_end_lost: false,
            is_busy_known: true,
            number,
            instructions: None,
            allocated: None,
            times: TimeSpent::NONE,
            gaps_before: 0,
            has_uncounted_slice: false,
            open_slices: 0,
            counted_busy_nanos: 0,
            entered_nanos: 0,
            entered_since_epoch_nanos: 0,
            entered_until_epoch_nanos: 0,
            late_exit_epoch_nanos: 0,
            cut_slices: Vec::new(),
            spans_inside: 0,
            more_bytes: 0,
            raw_fields: Vec::new(),
            root: id,
            remote_trace: None,
            remote_parent: None,
        }
    }

    /// Makes the span the root of its process's part of a remote trace.
    pub(super) fn set_caller(&mut self, caller: &RemoteContext) {
        self.root = self.id;
        self.remote_trace = Some(RemoteTrace { trace_id: caller.trace_id(), flags: caller.flags() });
        self.remote_parent = Some(caller.span_id());
    }

    pub(super) fn see(&mut self, epoch_nanos: u64) {
        self.last_seen_epoch_nanos = self.last_seen_epoch_nanos.max(epoch_nanos);
    }

    /// Ends the slice that a thread leaves. `described` returns the thread. Returns true if the slice is a new one,
    /// because its enter was not seen.
    pub(super) fn end_slice(
        &mut self,
        thread: ThreadKey,
        taken: Option<&TakenSlice>,
        epoch_nanos: u64,
        described: impl FnOnce() -> Arc<Thread>,
    ) -> bool {
        let mut begun = self.slices.iter_mut().rev();
        let slice = match taken {
            Some(taken) => begun.find(|slice| slice.id == Some(taken.slice.id)),
            // The stack of the thread has no slice of this span. Perhaps the close of the span came first and ended the
            // slice. So the exit goes to a slice that has no exit: to the span's last such slice on this thread.
            None => begun.find(|slice| slice.exited_epoch_nanos.is_none() && slice.thread_key() == thread),
        };
        let exited_epoch_nanos = Some(epoch_nanos);
        if let Some(slice) = slice {
            slice.exited_epoch_nanos = exited_epoch_nanos;
            slice.nests &= taken.is_none_or(|taken| taken.nests);
            return false;
        }
        self.slices.push(SpanSlice {
            id: None,
            recorder: thread.recorder,
            thread: described(),
            entered_epoch_nanos: None,
            exited_epoch_nanos,
            nests: true,
            is_cut: false,
        });
        true
    }

    /// Returns true if other threads are in the span, or were until its close, and this one was not: the program has
    /// entered the span on another thread than it leaves it.
    pub(super) fn has_moved_to(&self, thread: ThreadKey) -> bool {
        let is_its = |cut: &TakenSlice| cut.slice.thread == thread;
        (self.open_slices > 0 || !self.cut_slices.is_empty()) && !self.cut_slices.iter().any(is_its)
    }

    /// Notes that a thread enters the span.
    pub(super) fn begin_slice(&mut self, epoch_nanos: u64) {
        if self.open_slices == 0 {
            // The clocks of two processors differ a little, so the last exit may be later than this enter.
            self.entered_since_epoch_nanos = epoch_nanos.max(self.entered_until_epoch_nanos);
        }
        self.open_slices += 1;
    }

    /// Notes that a slice ends. The last one ends the time in which threads are in the span.
    fn finish_slice(&mut self, epoch_nanos: u64) {
        self.open_slices = self.open_slices.saturating_sub(1);
        if self.open_slices == 0 {
            let nanos = epoch_nanos.saturating_sub(self.entered_since_epoch_nanos);
            self.entered_nanos = self.entered_nanos.saturating_add(nanos);
            self.entered_until_epoch_nanos = self.entered_until_epoch_nanos.max(epoch_nanos);
        }
    }

    /// Counts the time and the instructions of a slice that a thread leaves. A slice that ended with the close has
    /// counted until then.
    pub(super) fn count_slice(
        &mut self,
        thread: ThreadKey,
        taken: Option<&TakenSlice>,
        epoch_nanos: u64,
        instructions: Option<u64>,
    ) {
        let cut = self.cut_slices.iter().rposition(|cut| cut.slice.thread == thread);
        match (taken, cut) {
            (Some(taken), _) => {
                let own_nanos = taken.own_nanos(epoch_nanos);
                self.counted_busy_nanos = self.counted_busy_nanos.saturating_add(own_nanos);
                self.finish_slice(epoch_nanos);
                let late_nanos = taken.times.total_nanos().saturating_sub(own_nanos);
                self.times = self.times.plus(taken.times.shortened(late_nanos));
                self.count_instructions(taken);
            }
            (None, Some(at)) => {
                let mut cut = self.cut_slices.remove(at);
                cut.exit_at(instructions);
                let closed_nanos = self.closed.as_ref().map_or(epoch_nanos, |closed| closed.epoch_nanos);
                // In a later batch, an exit may come that was long before the close.
                let rest = cut.own_nanos(closed_nanos).saturating_sub(cut.own_nanos(epoch_nanos));
                self.counted_busy_nanos = self.counted_busy_nanos.saturating_sub(rest);
                self.times = self.times.shortened(rest);
                self.late_exit_epoch_nanos = self.late_exit_epoch_nanos.max(epoch_nanos);
                if self.cut_slices.is_empty() {
                    // All threads had left the span before its close.
                    let rest = closed_nanos.saturating_sub(self.late_exit_epoch_nanos);
                    self.entered_nanos = self.entered_nanos.saturating_sub(rest);
                }
                self.count_instructions(&cut);
            }
            (None, None) => {
                self.may_have_losses = true;
                self.instructions = None;
                self.has_uncounted_slice = true;
            }
        }
    }

    fn count_instructions(&mut self, taken: &TakenSlice) {
        let sum = self.instructions.unwrap_or_default();
        match taken.instructions {
            Some(slice) if !self.has_uncounted_slice => {
                let (all, own) = (sum.all.saturating_add(slice.all), sum.own.saturating_add(slice.own));
                self.instructions = Some(SpanInstructions { all, own, slices: sum.slices + 1 });
            }
            _ => {
                self.instructions = None;
                self.has_uncounted_slice = true;
            }
        }
    }

    /// Returns what [`Self::counted_busy_nanos`] does. Returns `None` if an exit of the open span may have been lost,
    /// so that the time is not known.
    pub fn known_busy_nanos(&self) -> Option<u64> {
        (!self.is_open() || self.is_busy_known).then(|| self.counted_busy_nanos())
    }

    /// Returns how long threads were in the span, as [`Self::busy_nanos`] does, even if the replay drops slices: the
    /// times of several threads are added. If the span was open when the replay ended, the result is the time until
    /// then.
    pub fn counted_busy_nanos(&self) -> u64 {
        self.counted_busy_nanos
    }

    /// Returns how threads spent the time in the span, if any of it was measured. If the span was open when the replay
    /// ended, the result is that until then.
    #[must_use]
    pub fn times(&self) -> Option<TimeSpent> {
        Some(self.times).filter(TimeSpent::is_measured)
    }

    /// Returns how long no thread was in the span, in nanoseconds, from its creation to its close. Returns `None` if
    /// one of the two was not seen. Several threads may be in the span at the same time, so this time and
    /// [`Self::counted_busy_nanos`] may be more than [`Self::wall_nanos`] together.
    #[must_use]
    pub fn idle_nanos(&self) -> Option<u64> {
        Some(self.wall_nanos()?.saturating_sub(self.entered_nanos))
    }

    /// Returns the slices whose exit has not come, although the span was closed. They end with the close.
    pub fn missing_exits(&self) -> &[TakenSlice] {
        &self.cut_slices
    }

    /// Notes that a slice ends with the close of the span.
    pub(super) fn cut_slice(&mut self, taken: &TakenSlice, closed_epoch_nanos: u64) {
        self.finish_slice(closed_epoch_nanos);
        self.counted_busy_nanos = self.counted_busy_nanos.saturating_add(taken.own_nanos(closed_epoch_nanos));
        self.times = self.times.plus(taken.times);
        self.cut_slices.push(*taken);
        if let Some(slice) = self.slices.iter_mut().rev().find(|slice| slice.id == Some(taken.slice.id)) {
            slice.nests = taken.nests;
            slice.is_cut = true;
        }
    }

    /// Returns the name of the span. If no record named its call site, returns `span N`, where N is the id.
    #[must_use]
    pub fn name(&self) -> String {
        self.call_site.as_ref().map_or_else(|| format!("span {}", self.id), |call_site| call_site.name.clone())
    }

    /// Returns the fields as they lie in the ring, if the replay keeps them undecoded.
    pub fn raw_fields(&self) -> &[u8] {
        &self.raw_fields
    }

    /// Returns the time of the creation. If the creation was not seen, returns the first time at which the span is
    /// known to have existed.
    pub fn start_epoch_nanos(&self) -> u64 {
        self.created.as_ref().map_or(self.first_seen_epoch_nanos, |created| created.epoch_nanos)
    }

    /// Returns true if the span is a scope: a span of one thread.
    #[must_use]
    pub fn is_scope(&self) -> bool {
        self.flags & flags::SCOPE != 0
    }

    /// Returns true if the span is a scope whose guard was not dropped in time, so that it ended with the span around
    /// it, or with its thread.
    #[must_use]
    pub fn has_ended_with_parent(&self) -> bool {
        self.flags & flags::ENDED_WITH_PARENT != 0
    }

    /// Returns true if no close of the span was seen.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.closed.is_none()
    }

    /// Returns the time from the creation to the close in nanoseconds. For an async span this includes the time
    /// during which no thread was in the span. Returns `None` if the creation or the close was not seen.
    #[must_use]
    pub fn wall_nanos(&self) -> Option<u64> {
        let (created, closed) = (self.created.as_ref()?, self.closed.as_ref()?);
        Some(closed.epoch_nanos.saturating_sub(created.epoch_nanos))
    }

    /// Returns how long threads were in the span, in nanoseconds. The times of several threads are added. Two slices of
    /// one thread overlap if the thread entered a span that it was already in; their overlap counts once. A slice
    /// without an exit ends with the close of the span. Slices whose enter is not known, and those without an end in an
    /// open span, are left out.
    #[must_use]
    pub fn busy_nanos(&self) -> u64 {
        self.busy_nanos_with(None)
    }

    /// Returns the same as [`Self::busy_nanos`], but counts a slice without an end as if it ended at `epoch_nanos`
    /// (nanoseconds since the epoch). For an open span, the result is the time that threads spent in the span before
    /// `epoch_nanos`. The result is right only if no enter or exit was lost ([`Self::is_busy_known`]).
    #[must_use]
    pub fn busy_nanos_until(&self, epoch_nanos: u64) -> u64 {
        self.busy_nanos_with(Some(epoch_nanos))
    }

    fn busy_nanos_with(&self, end: Option<u64>) -> u64 {
        let end = self.closed.as_ref().map(|closed| closed.epoch_nanos).or(end);
        let times = |slice: &SpanSlice| {
            let entered = slice.entered_epoch_nanos?;
            Some((slice.thread.id, entered, slice.exited_epoch_nanos.or(end)?.max(entered)))
        };
        let mut ended: Vec<(u32, u64, u64)> = self.slices.iter().filter_map(times).collect();
        ended.sort_unstable();
        let (mut busy, mut covered) = (0, (0, 0));
        for (thread, entered, exited) in ended {
            let from = if covered.0 == thread { entered.max(covered.1) } else { entered };
            busy += exited.saturating_sub(from);
            covered = (thread, if covered.0 == thread { exited.max(covered.1) } else { exited });
        }
        busy
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalog::Catalog;
    use super::*;

    #[test]
    fn busy_time_counts_each_thread_once_and_leaves_open_slices_out() {
        let thread = |id| Catalog::new().thread(id);
        let slice = |id, entered_epoch_nanos, exited_epoch_nanos| SpanSlice {
            id: None,
            recorder: 0,
            thread: thread(id),
            entered_epoch_nanos,
            exited_epoch_nanos,
            nests: true,
            is_cut: false,
        };
        let mut span = Span::unseen(SpanId::new(1).unwrap(), 1, 10);
        span.slices = vec![
            slice(1, Some(10), Some(30)),
            slice(1, Some(15), Some(20)),
            slice(1, Some(40), Some(45)),
            slice(2, Some(10), Some(12)),
            slice(2, Some(50), None),
        ];
        assert_eq!(span.busy_nanos(), 20 + 5 + 2);
        assert_eq!(span.busy_nanos_until(60), 20 + 5 + 2 + 10);
        // At time 40, thread 2 has not entered the span.
        assert_eq!(span.busy_nanos_until(40), 20 + 5 + 2);
    }
}
