//! Track rows. Slices of one track that overlap without nesting go to different rows of the track.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The rows of one track. Any two slices of one row either nest or do not overlap. Slices with equal times do not count
/// as nested, because viewers may order equal times in either way.
#[derive(Default)]
pub(crate) struct TrackRows {
    rows: Vec<TrackRow>,
    /// The rows whose outermost slice has ended, each with the time of its end.
    ended: BinaryHeap<Reverse<(u64, u32)>>,
    free: BinaryHeap<Reverse<u32>>,
}

#[derive(Default)]
struct TrackRow {
    /// The slices that have not ended, the outermost first, and those after them that have ended.
    slices: Vec<RowSlice>,
    /// The latest end of the slices that were in the row and are not in `slices` any more.
    used_until_nanos: Option<u64>,
}

struct RowSlice {
    id: u64,
    /// `None` until the slice ends.
    end_nanos: Option<u64>,
}

impl TrackRows {
    /// Begins a slice, and returns its row, from 0. `inside` is a slice in which it nests, and the row of this slice:
    /// the new slice begins later and will end earlier. It is in the same row if it fits there. Otherwise it gets the
    /// lowest free row, or a new row.
    pub(crate) fn begin(&mut self, id: u64, start_nanos: u64, inside: Option<(u64, u32)>) -> u32 {
        while let Some(Reverse((end, row))) = self.ended.peek().copied()
            && end < start_nanos
        {
            self.ended.pop();
            self.rows[row as usize].clear();
            self.free.push(Reverse(row));
        }
        let fits = |(outer, row): &(u64, u32)| {
            self.rows.get_mut(*row as usize).is_some_and(|row| row.fits(*outer, start_nanos))
        };
        let row = match inside.filter(fits) {
            Some((_, row)) => row,
            None => self.take_free(start_nanos),
        };
        self.rows[row as usize].slices.push(RowSlice { id, end_nanos: None });
        row
    }

    /// Ends a slice of a row.
    pub(crate) fn end(&mut self, row: u32, id: u64, end_nanos: u64) {
        let Some(slices) = self.rows.get_mut(row as usize).map(|row| &mut row.slices) else { return };
        let Some(at) = slices.iter().rposition(|slice| slice.id == id && slice.end_nanos.is_none()) else { return };
        slices[at].end_nanos = Some(end_nanos);
        if at == 0 {
            self.ended.push(Reverse((end_nanos, row)));
        }
    }

    /// Returns the lowest row that is free at `start_nanos`, or a new row.
    fn take_free(&mut self, start_nanos: u64) -> u32 {
        if let Some(Reverse(row)) = self.free.peek().copied()
            // Times can be a few nanoseconds out of order.
            && self.rows[row as usize].is_unused_at(start_nanos)
        {
            self.free.pop();
            return row;
        }
        self.rows.push(TrackRow::default());
        self.rows.len() as u32 - 1
    }

    pub(crate) fn kept_bytes(&self) -> u64 {
        // A row keeps few slices beside the open ones, and those are counted elsewhere.
        self.rows.len() as u64 * 256
    }
}

impl TrackRow {
    fn is_unused_at(&self, nanos: u64) -> bool {
        self.used_until_nanos.is_none_or(|until| until < nanos)
    }

    fn clear(&mut self) {
        let end = self.slices.drain(..).filter_map(|slice| slice.end_nanos).max();
        self.used_until_nanos = self.used_until_nanos.max(end);
    }

    /// Returns true if `outer` is the innermost slice of the row at `nanos`.
    fn fits(&mut self, outer: u64, nanos: u64) -> bool {
        while let Some(RowSlice { end_nanos: Some(end), .. }) = self.slices.last()
            && *end < nanos
            && self.slices.len() > 1
        {
            self.used_until_nanos = self.used_until_nanos.max(Some(*end));
            self.slices.pop();
        }
        let is_innermost = self.slices.last().is_some_and(|slice| slice.id == outer && slice.end_nanos.is_none());
        is_innermost && self.is_unused_at(nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    struct Interval {
        start: u64,
        /// `None` if the slice never ended.
        end: Option<u64>,
        parent: Option<usize>,
    }

    impl Interval {
        fn end(&self) -> u64 {
            self.end.unwrap_or(u64::MAX)
        }

        fn lies_in(&self, outer: &Self) -> bool {
            self.start > outer.start && (self.end() < outer.end() || outer.end.is_none())
        }
    }

    /// Draws the intervals in the order of time. Returns the row of each.
    fn rows_of(intervals: &[Interval]) -> Vec<u32> {
        let begins = intervals.iter().enumerate().map(|(index, interval)| (interval.start, 0, index));
        let ends = intervals.iter().enumerate().filter_map(|(index, interval)| Some((interval.end?, 1, index)));
        let mut changes: Vec<(u64, i32, usize)> = begins.chain(ends).collect();
        changes.sort_unstable();
        let (mut rows, mut row_of) = (TrackRows::default(), vec![None; intervals.len()]);
        for (nanos, change, index) in changes {
            let interval = &intervals[index];
            match (change, row_of[index]) {
                (0, _) => {
                    let parent = interval.parent.filter(|parent| interval.lies_in(&intervals[*parent]));
                    let inside = parent.and_then(|parent| Some((parent as u64, row_of[parent]?)));
                    row_of[index] = Some(rows.begin(index as u64, nanos, inside));
                }
                (_, Some(row)) => rows.end(row, index as u64, nanos),
                _ => {}
            }
        }
        row_of.into_iter().map(Option::unwrap).collect()
    }

    #[test]
    fn children_lie_in_their_parent_and_overlapping_ones_get_other_rows() {
        let interval = |start, end, parent| Interval { start, end, parent };
        let intervals = [
            interval(0, Some(100), None),
            interval(10, Some(20), Some(0)),
            interval(15, Some(30), Some(0)),
            interval(40, Some(50), Some(0)),
            interval(90, Some(110), Some(0)),
            interval(200, None, None),
            interval(210, Some(220), Some(5)),
        ];
        assert_eq!(rows_of(&intervals), [0, 0, 1, 0, 1, 0, 0]);
    }

    proptest! {
        #[test]
        fn in_a_row_all_intervals_nest(raw in prop::collection::vec((0_u64..60, 0_u64..30, any::<bool>(), 0_usize..40), 1..40)) {
            let count = raw.len();
            let intervals: Vec<Interval> = raw
                .iter()
                .map(|(start, length, is_open, parent)| Interval {
                    start: *start,
                    end: (!is_open).then_some(start + length),
                    parent: (*parent < count).then_some(*parent),
                })
                .collect();
            let rows = rows_of(&intervals);
            for (a, first) in intervals.iter().enumerate() {
                for (b, second) in intervals.iter().enumerate().skip(a + 1) {
                    let apart = first.end() < second.start || second.end() < first.start;
                    let nested = first.lies_in(second) || second.lies_in(first);
                    prop_assert!(rows[a] != rows[b] || apart || nested, "{first:?} {second:?}");
                }
            }
        }
    }
}
