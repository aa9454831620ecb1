//! The sizes of a ring that takes at most a given amount of memory.

use super::Geometry;
use super::limits::{COMPACT_DESCRIPTOR_SHIFTS, COMPACT_PAYLOAD_SHIFTS, DESCRIPTOR_SHIFTS, PAYLOAD_SHIFTS};
use core::ops::RangeInclusive;

/// The step in which the sizes of rings differ: the size of a huge page. Every section of a ring is a multiple of it,
/// except a small context area. There, a whole step is counted, because a file on hugetlbfs takes whole pages.
pub const STEP_BYTES: u64 = 2 << 20;
/// Limits of the payload section's size, divided by the size of the descriptor section, as powers of two. Within these
/// limits a ring has 32 to 128 bytes of payload buffer for each event. A ring beyond them would run out of one section
/// long before the other, so it is chosen only if no other ring fits.
const BALANCED: RangeInclusive<i32> = -1..=1;
/// Binary logarithm of the size of a descriptor.
const DESCRIPTOR_SHIFT: u32 = 6;

/// The kinds of events for which a size is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Events {
    /// Events with small payloads or none, such as the steps of spans. If two sizes fit equally well, the ring has more
    /// descriptors.
    Small,
    /// Events of any size. If two sizes fit equally well, the ring has the larger payload buffer.
    Any,
}

/// The shifts of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shifts {
    /// The binary logarithm of the number of descriptors.
    pub descriptor: u32,
    /// The binary logarithm of the bytes of the payload buffer.
    pub payload: u32,
}

impl Shifts {
    /// Returns the memory that a ring of this size takes, in bytes, with a context area of `context_bytes`. On
    /// hugetlbfs the ring takes this memory, elsewhere it may take less than one step less.
    pub fn ring_bytes(self, context_bytes: u64) -> u64 {
        let context_bytes = context_bytes.checked_next_multiple_of(STEP_BYTES).unwrap_or(u64::MAX);
        let sections = Geometry::new(1 << self.descriptor, 1 << self.payload, 0);
        sections.map_or(u64::MAX, |sections| sections.file_bytes().saturating_add(context_bytes))
    }

    /// Returns the shifts of the largest ring that takes at most `bytes`, of the kind that `is_compact` says. Returns
    /// `None` if the smallest ring of this kind takes more.
    pub fn within(bytes: u64, context_bytes: u64, is_compact: bool, events: Events) -> Option<Self> {
        let (descriptors, payloads) = match is_compact {
            true => (COMPACT_DESCRIPTOR_SHIFTS, COMPACT_PAYLOAD_SHIFTS),
            false => (DESCRIPTOR_SHIFTS, PAYLOAD_SHIFTS),
        };
        let all = descriptors
            .flat_map(|descriptor| payloads.clone().map(move |payload| Self { descriptor, payload }))
            .filter(|shifts| shifts.ring_bytes(context_bytes) <= bytes);
        all.max_by_key(|shifts| {
            let ratio = shifts.payload as i32 - (shifts.descriptor + DESCRIPTOR_SHIFT) as i32;
            let imbalance = (BALANCED.start() - ratio).max(ratio - BALANCED.end()).max(0);
            let preferred = match events {
                Events::Small => shifts.descriptor,
                Events::Any => shifts.payload,
            };
            (-imbalance, shifts.ring_bytes(context_bytes), preferred)
        })
    }
}

/// Returns the smallest sizes that are possible, at most four, in rising order. `bytes_within` gets an upper bound in
/// bytes and returns how many of these bytes are used, or `None` if nothing fits. All sizes are larger than `above`.
pub fn possible_sizes(above: u64, bytes_within: impl Fn(u64) -> Option<u64>) -> Vec<u64> {
    /// Number of sizes that are tried. The smallest recorder with 1,024 shards is found with a fifth of them.
    const TRIED: u64 = 1 << 14;
    let mut sizes = Vec::new();
    for step in 1..TRIED {
        let bound = above.next_multiple_of(STEP_BYTES) + step * STEP_BYTES;
        sizes.extend(bytes_within(bound));
        sizes.dedup();
        if sizes.len() == 4 {
            break;
        }
    }
    sizes
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    fn fit(mebibytes: u64, is_compact: bool, events: Events) -> Option<(u32, u32)> {
        Shifts::within(mebibytes * MIB, 0, is_compact, events).map(|shifts| (shifts.descriptor, shifts.payload))
    }

    #[test]
    fn the_largest_balanced_ring_is_chosen() {
        let any = |mebibytes| fit(mebibytes, true, Events::Any);
        assert_eq!(any(5), None);
        assert_eq!(any(6), Some((15, 21)));
        assert_eq!(any(10), Some((16, 22)));
        assert_eq!(any(64), Some((18, 25)));
        assert_eq!(fit(64, true, Events::Small), Some((19, 24)));
        assert_eq!(any(128), Some((19, 26)));
        // The published limits: the smallest ring has a large payload buffer for few descriptors.
        let published = |mebibytes| fit(mebibytes, false, Events::Any);
        assert_eq!(published(133), None);
        assert_eq!(published(134), Some((16, 27)));
        assert_eq!(published(150), Some((18, 27)));
        assert_eq!(published(1 << 20), Some((32, 39)));
        assert_eq!(published(u64::MAX / MIB), Some((32, 39)));
    }

    #[test]
    fn the_possible_sizes_begin_with_the_smallest() {
        let sizes = |context_bytes| {
            let used = |bound| Some(Shifts::within(bound, context_bytes, true, Events::Any)?.ring_bytes(context_bytes));
            possible_sizes(context_bytes, used).iter().map(|size| size / MIB).collect::<Vec<_>>()
        };
        assert_eq!(sizes(0), [6, 8, 10, 14]);
        assert_eq!(sizes(4096), [8, 10, 12, 16]);
        assert_eq!(sizes(2 << 30)[0], 2048 + 6);
    }

    proptest! {
        #[test]
        fn a_ring_takes_no_more_than_it_may_and_more_than_half_of_it(
            bytes in 6 * MIB..1 << 38, is_compact: bool, is_small: bool, context_shift in 12..22u32,
        ) {
            let events = if is_small { Events::Small } else { Events::Any };
            let context_bytes = 1 << context_shift;
            if let Some(shifts) = Shifts::within(bytes, context_bytes, is_compact, events) {
                let used = shifts.ring_bytes(context_bytes);
                prop_assert!(used <= bytes);
                prop_assert!(used > bytes / 2);
            } else {
                let smallest = if is_compact { 6 * MIB } else { 134 * MIB };
                prop_assert!(bytes < smallest + context_bytes.max(2 * MIB));
            }
        }
    }
}
