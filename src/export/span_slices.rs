//! The slices of one span, and the slice in which an event lies.

use crate::tracing::ThreadKey;

/// The value of [`Slice::end_nanos`] if the thread was still in the span at the end of the recording.
pub(super) const OPEN: u64 = u64::MAX;

/// A span slice, with an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slice {
    pub(super) thread: ThreadKey,
    /// The id of the slice in the replay of its process.
    pub(super) id: u64,
    pub(super) start_nanos: u64,
    /// The time of the exit from the span. If the exit was lost, this is the last time at which the thread is known to
    /// have been in the span. If the thread was still in the span at the end of the recording, this is [`OPEN`].
    pub(super) end_nanos: u64,
}

impl Slice {
    /// Returns the time at which to draw an event of this slice. The event happened at `nanos`, and the slice is drawn
    /// from `start_nanos` on. The returned time is before the end of the slice, because viewers do not count the end as
    /// a part of the slice. So an event at the time of the exit is drawn one nanosecond earlier.
    pub(super) fn drawn(&self, start_nanos: u64, nanos: u64) -> u64 {
        nanos.min(drawn_end(start_nanos, self.end_nanos) - 1).max(start_nanos)
    }
}

/// Returns the time at which to draw the end of a slice. A slice that took no time is drawn one nanosecond long, so
/// that events can lie in it.
pub(super) fn drawn_end(start_nanos: u64, end_nanos: u64) -> u64 {
    end_nanos.max(start_nanos.saturating_add(1))
}

/// The slices of one span, by their start.
#[derive(Debug)]
pub(super) struct Slices(Vec<Slice>);

impl Slices {
    pub(super) fn new(mut slices: Vec<Slice>) -> Self {
        slices.sort_unstable_by_key(|slice| (slice.start_nanos, slice.id));
        slices.shrink_to_fit();
        Self(slices)
    }

    /// Returns the first slice.
    pub(super) fn first(&self) -> Option<Slice> {
        self.0.first().copied()
    }

    /// Returns the last slice that began before `nanos`.
    pub(super) fn last_before(&self, nanos: u64) -> Option<Slice> {
        self.0[..self.0.partition_point(|slice| slice.start_nanos < nanos)].last().copied()
    }

    /// Returns the slice of the span in which an event lies, or `None` if there is none. The event happened at `nanos`.
    /// If its thread is known, only slices of that thread count. If several slices contain the time, a slice that goes
    /// on after `nanos` is preferred to a slice that ends at `nanos`. If several slices are still equal, the slice that
    /// began last is taken.
    pub(super) fn at(&self, thread: Option<ThreadKey>, nanos: u64) -> Option<Slice> {
        let begun = &self.0[..self.0.partition_point(|slice| slice.start_nanos <= nanos)];
        let can_hold = |slice: &&Slice| slice.end_nanos >= nanos && thread.is_none_or(|thread| thread == slice.thread);
        let mut around = begun.iter().rev().filter(can_hold);
        let last = around.next()?;
        if last.end_nanos > nanos {
            return Some(*last);
        }
        Some(*around.find(|slice| slice.end_nanos > nanos).unwrap_or(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(thread_id: u32) -> ThreadKey {
        ThreadKey { recorder: 0, thread_id }
    }

    fn slice(thread: u32, id: u64, start_nanos: u64, end_nanos: u64) -> Slice {
        Slice { thread: key(thread), id, start_nanos, end_nanos }
    }

    #[test]
    fn an_event_of_a_span_lies_in_the_slice_of_that_time() {
        let slices = Slices::new(vec![
            slice(1, 2, 30, 40),
            slice(1, 0, 10, 20),
            slice(2, 1, 15, 18),
            slice(1, 3, 40, 40),
            slice(1, 4, 60, 90),
        ]);
        let id = |thread: Option<u32>, nanos| slices.at(thread.map(key), nanos).map(|slice| slice.id);
        assert_eq!(
            [9, 10, 16, 18, 19, 20, 25].map(|nanos| id(None, nanos)),
            [None, Some(0), Some(1), Some(0), Some(0), Some(0), None]
        );
        assert_eq!([40, 60, 90, 91].map(|nanos| id(None, nanos)), [Some(3), Some(4), Some(4), None]);
        assert_eq!([id(Some(1), 16), id(Some(2), 18), id(Some(2), 30)], [Some(0), Some(1), None]);
    }

    #[test]
    fn an_event_is_drawn_before_the_end_and_not_before_the_begin() {
        let drawn = |(start, end), nanos| slice(1, 0, start, end).drawn(start, nanos);
        assert_eq!([10, 15, 20].map(|nanos| drawn((10, 20), nanos)), [10, 15, 19]);
        assert_eq!((drawn((10, 10), 10), drawn((10, OPEN), 12)), (10, 12));
        // These slices are drawn later than they began, because an earlier slice took no time and is drawn one
        // nanosecond long.
        assert_eq!((slice(1, 0, 10, 10).drawn(12, 10), slice(1, 0, 10, 20).drawn(11, 10)), (12, 11));
        assert_eq!(drawn((u64::MAX, u64::MAX), u64::MAX), u64::MAX);
    }
}
