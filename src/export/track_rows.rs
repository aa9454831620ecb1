//! Track rows. Slices of one track that overlap without nesting go to different rows of the track.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A slice to be drawn: its times in nanoseconds, and its parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub(super) start: u64,
    /// `None` if the slice never ended.
    pub(super) end: Option<u64>,
    /// The index of the interval's parent. If this interval lies in its parent, it should be drawn in the parent's
    /// row.
    pub(super) parent: Option<usize>,
}

impl Interval {
    fn end(&self) -> u64 {
        self.end.unwrap_or(u64::MAX)
    }

    /// Returns true if the interval begins after `outer` begins, and ends before `outer` ends. If `outer` never ends,
    /// any end is before its end. Intervals with equal times do not count as nested, because viewers may order equal
    /// times in either way.
    fn lies_in(&self, outer: &Self) -> bool {
        self.start > outer.start && (self.end() < outer.end() || outer.end.is_none())
    }
}

/// Assigns a row to each interval, from 0. Any two intervals of one row either nest or do not overlap. A child is in
/// its parent's row if it fits there. Otherwise an interval gets the lowest free row, or a new row.
pub(super) fn assign(intervals: &[Interval]) -> Vec<u32> {
    let mut by_start: Vec<usize> = (0..intervals.len()).collect();
    by_start.sort_by_key(|index| (intervals[*index].start, Reverse(intervals[*index].end())));
    let mut row_of = vec![u32::MAX; intervals.len()];
    // For each row, the intervals in it that have not ended yet, the outermost first.
    let mut open: Vec<Vec<usize>> = Vec::new();
    let mut occupied: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    let mut free: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
    for index in by_start {
        let interval = &intervals[index];
        while let Some(Reverse((end, row))) = occupied.peek().copied()
            && end < interval.start
        {
            occupied.pop();
            open[row as usize].clear();
            free.push(Reverse(row));
        }
        let row = match inside_parent(intervals, index, &row_of, &mut open) {
            Some(row) => row,
            None => {
                let Reverse(row) = free.pop().unwrap_or_else(|| {
                    open.push(Vec::new());
                    Reverse((open.len() - 1) as u32)
                });
                occupied.push(Reverse((interval.end(), row)));
                row
            }
        };
        open[row as usize].push(index);
        row_of[index] = row;
    }
    row_of
}

/// Returns the parent's row, if the interval lies in its parent and the parent is the innermost open interval of that
/// row. Returns `None` otherwise.
fn inside_parent(intervals: &[Interval], index: usize, row_of: &[u32], open: &mut [Vec<usize>]) -> Option<u32> {
    let interval = &intervals[index];
    let parent = interval.parent.filter(|parent| *parent != index)?;
    let row = *row_of.get(parent)?;
    let stack = open.get_mut(row as usize)?;
    while let Some(innermost) = stack.last()
        && intervals[*innermost].end() < interval.start
    {
        stack.pop();
    }
    (stack.last() == Some(&parent) && interval.lies_in(&intervals[parent])).then_some(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn interval(start: u64, end: u64, parent: Option<usize>) -> Interval {
        Interval { start, end: (end != 0).then_some(end), parent }
    }

    #[test]
    fn children_lie_in_their_parent_and_overlapping_ones_get_other_rows() {
        let intervals = [
            interval(0, 100, None),
            interval(10, 20, Some(0)),
            interval(15, 30, Some(0)),
            interval(40, 50, Some(0)),
            interval(90, 110, Some(0)),
            interval(200, 0, None),
            interval(210, 220, Some(5)),
        ];
        assert_eq!(assign(&intervals), [0, 0, 1, 0, 1, 0, 0]);
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
            let rows = assign(&intervals);
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
