//! Slices: the times in which threads were in spans.

use super::replay::Off;
use super::time_spent::TimeSpent;
use crate::tracing::span_id::SpanId;

/// Key of a thread: its recorder and its id there. A thread that records to two recorders has two keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ThreadKey {
    /// The number of the recorder, as the caller passed it to [`SpanReplay::push`](super::replay::SpanReplay::push).
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
pub struct TakenSlice {
    /// The slice as it was on its stack.
    pub slice: OpenSlice,
    /// True if the slice was the innermost slice of its thread when it was taken. If it was not, it overlaps the
    /// slices that the thread entered later, and does not contain them.
    pub nests: bool,
    pub(super) inside: InnerSlices,
    /// The instructions that the program executed in the slice, without those that slices of the same span inside it
    /// have counted. `None` if they are not known.
    pub instructions: Option<SpanInstructions>,
    /// How the thread spent the time of the slice, without that of slices of the same span inside it.
    pub times: TimeSpent,
    /// The part of the times in which the thread was in no other span inside this one.
    pub own_times: TimeSpent,
}

impl TakenSlice {
    /// Returns the time of the slice, without the time of slices of the same span inside it.
    pub(super) fn own_nanos(&self, exited_epoch_nanos: u64) -> u64 {
        exited_epoch_nanos.saturating_sub(self.slice.entered_epoch_nanos).saturating_sub(self.inside.covered_nanos)
    }

    /// Notes the thread's count of instructions at the exit. Returns the instructions of the whole slice.
    pub(super) fn exit_at(&mut self, instructions: Option<u64>) -> Option<u64> {
        let inside = self.inside;
        let whole = inside.entered_at.zip(instructions).and_then(|(entered, exited)| exited.checked_sub(entered));
        self.instructions = whole.map(|whole| SpanInstructions {
            all: whole.saturating_sub(inside.covered_instructions),
            own: whole.saturating_sub(inside.instructions.unwrap_or(0)),
            slices: 1,
        });
        whole
    }
}

/// The instructions that a program executed in a span: the sum over all slices that have ended, on all threads. The
/// instructions of the recorder are not among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SpanInstructions {
    /// All instructions, also those of spans that the thread entered inside this one.
    pub all: u64,
    /// The instructions while the thread was in no other span inside this one.
    pub own: u64,
    /// The number of slices: how often a thread was in the span. The span of a future has one for each poll, and their
    /// number differs from run to run.
    pub slices: u64,
}

/// Sums over the slices inside a slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct InnerSlices {
    /// The part of the slice that counts for slices of the same span inside it: the thread had entered the span again.
    pub(super) covered_nanos: u64,
    /// The thread's count of instructions when the slice began.
    pub(super) entered_at: Option<u64>,
    /// The instructions of slices directly inside this slice. `None` if those of one slice are not known.
    pub(super) instructions: Option<u64>,
    /// The instructions of slices of the same span inside this slice.
    pub(super) covered_instructions: u64,
}

/// The times of a thread that concern one of its slices.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InnerTimes {
    /// How long the thread had been off when the slice began.
    pub(super) off_at_enter: Off,
    /// The times of slices directly inside this slice.
    pub(super) times: TimeSpent,
    /// The times of slices of the same span inside this slice.
    pub(super) covered_times: TimeSpent,
}
