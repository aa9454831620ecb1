//! Lanes: where things that overlap without nesting go apart.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something with a beginning and perhaps an end, in nanoseconds, and perhaps another one in which it should lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub(super) start: u64,
    /// `None` if it never ended.
    pub(super) end: Option<u64>,
    /// Index of the interval in which it should be drawn if it lies in it.
    pub(super) parent: Option<usize>,
}

impl Interval {
    fn end(&self) -> u64 {
        self.end.unwrap_or(u64::MAX)
    }

    /// Strictly, so that no order of equal times can tear the two apart.
    fn lies_in(&self, outer: &Self) -> bool {
        self.start > outer.start && (self.end() < outer.end() || outer.end.is_none())
    }
}

/// A lane for each interval, from 0: on one lane any two lie in one another or are apart. As few lanes as are needed at the
/// same time, children on their parent's lane where they fit.
pub(super) fn assign(intervals: &[Interval]) -> Vec<u32> {
    let mut by_start: Vec<usize> = (0..intervals.len()).collect();
    by_start.sort_by_key(|index| (intervals[*index].start, Reverse(intervals[*index].end())));
    let mut lane_of = vec![u32::MAX; intervals.len()];
    // For each lane, what is open on it, from the outside in.
    let mut open: Vec<Vec<usize>> = Vec::new();
    let mut occupied: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    let mut free: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
    for index in by_start {
        let interval = &intervals[index];
        while let Some(Reverse((end, lane))) = occupied.peek().copied()
            && end < interval.start
        {
            occupied.pop();
            open[lane as usize].clear();
            free.push(Reverse(lane));
        }
        let lane = match inside_parent(intervals, index, &lane_of, &mut open) {
            Some(lane) => lane,
            None => {
                let Reverse(lane) = free.pop().unwrap_or_else(|| {
                    open.push(Vec::new());
                    Reverse((open.len() - 1) as u32)
                });
                occupied.push(Reverse((interval.end(), lane)));
                lane
            }
        };
        open[lane as usize].push(index);
        lane_of[index] = lane;
    }
    lane_of
}

/// The parent's lane, if the parent is what is open there and the interval lies in it.
fn inside_parent(intervals: &[Interval], index: usize, lane_of: &[u32], open: &mut [Vec<usize>]) -> Option<u32> {
    let interval = &intervals[index];
    let parent = interval.parent.filter(|parent| *parent != index)?;
    let lane = *lane_of.get(parent)?;
    let stack = open.get_mut(lane as usize)?;
    while let Some(innermost) = stack.last()
        && intervals[*innermost].end() < interval.start
    {
        stack.pop();
    }
    (stack.last() == Some(&parent) && interval.lies_in(&intervals[parent])).then_some(lane)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn interval(start: u64, end: u64, parent: Option<usize>) -> Interval {
        Interval { start, end: (end != 0).then_some(end), parent }
    }

    #[test]
    fn children_lie_in_their_parent_and_those_that_overlap_go_apart() {
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
        fn on_a_lane_everything_nests(raw in prop::collection::vec((0_u64..60, 0_u64..30, any::<bool>(), 0_usize..40), 1..40)) {
            let count = raw.len();
            let intervals: Vec<Interval> = raw
                .iter()
                .map(|(start, length, is_open, parent)| Interval {
                    start: *start,
                    end: (!is_open).then_some(start + length),
                    parent: (*parent < count).then_some(*parent),
                })
                .collect();
            let lanes = assign(&intervals);
            for (a, first) in intervals.iter().enumerate() {
                for (b, second) in intervals.iter().enumerate().skip(a + 1) {
                    let apart = first.end() < second.start || second.end() < first.start;
                    let nested = first.lies_in(second) || second.lies_in(first);
                    prop_assert!(lanes[a] != lanes[b] || apart || nested, "{first:?} {second:?}");
                }
            }
        }
    }
}
