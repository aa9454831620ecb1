//! The division of a recorder's memory into shards: the largest number of shards, and the size of each.

use crate::layout::fit::{Events, Shifts, possible_sizes};

/// Memory of all shards of a recorder together, in bytes, if the program sets no size. With the default tables of 4 MiB
/// the recorder takes at most 64 MiB. This is an eighth of a container of 512 MiB.
const DEFAULT_SHARDS_BYTES: u64 = 60 << 20;
/// Default size of a shard: 2^16 events, whose descriptors take 4 MiB, and 2^22 bytes (4 MiB) for their fields.
pub(in crate::tracing::record) const DEFAULT_SHIFTS: Shifts = Shifts { descriptor: 16, payload: 22 };
/// The smallest size of a shard.
const SMALLEST_SHIFTS: Shifts = Shifts { descriptor: 15, payload: 21 };
/// Number of shards below which rather the shards are made smaller than their number. Threads that share a shard
/// compete for its cache lines, but two or three busy threads are many for a program that has little memory.
const FEW_SHARDS: u64 = 4;

/// The number of shards that a recorder is to have.
#[derive(Clone, Copy, Debug)]
pub(in crate::tracing::record) enum ShardCount {
    /// This number, because the program has set it.
    Exactly(usize),
    /// This number, or fewer if they would be small.
    AtMost(usize),
}

impl ShardCount {
    /// Returns the memory of all shards together, in bytes, if the program sets no size and enough is free.
    pub(in crate::tracing::record) fn default_bytes(self) -> u64 {
        match self {
            Self::Exactly(shards) => shards as u64 * DEFAULT_SHIFTS.ring_bytes(0),
            Self::AtMost(_) => DEFAULT_SHARDS_BYTES,
        }
    }

    /// Returns in words what is to have this number of shards.
    pub(in crate::tracing::record) fn what(self) -> String {
        match self {
            Self::Exactly(1) => "a recorder with 1 shard".into(),
            Self::Exactly(shards) => format!("a recorder with {shards} shards"),
            Self::AtMost(_) => "the recorder".into(),
        }
    }
}

/// The number of shards that a recorder may make, and the size of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tracing::record) struct MemoryPlan {
    pub(in crate::tracing::record) shards: usize,
    pub(in crate::tracing::record) shifts: Shifts,
}

impl MemoryPlan {
    /// Divides `bytes` among the tables, which take `tables_bytes`, and the shards. All shards together with the tables
    /// take at most `bytes`, also when all of them exist. Returns `None` if not even one shard fits, or not the number
    /// that the program has set.
    ///
    /// The number of shards is the largest for which each shard has the default size or more. If these are fewer than
    /// four, there are up to four shards of the smallest size. With a number of shards, each is as large as possible.
    pub(in crate::tracing::record) fn within(bytes: u64, tables_bytes: u64, count: ShardCount) -> Option<Self> {
        let bytes = bytes.checked_sub(table_section_bytes(tables_bytes))?;
        let shards = match count {
            ShardCount::Exactly(shards) => shards as u64,
            ShardCount::AtMost(most) => {
                let of_default_size = bytes / DEFAULT_SHIFTS.ring_bytes(0);
                let of_smallest_size = (bytes / SMALLEST_SHIFTS.ring_bytes(0)).min(FEW_SHARDS);
                of_default_size.max(of_smallest_size).min(most as u64)
            }
        };
        let shifts = Shifts::within(bytes.checked_div(shards)?, 0, true, Events::Small)?;
        Some(Self { shards: shards as usize, shifts })
    }

    /// Returns the memory that the tables and all shards take, in bytes.
    fn bytes(self, tables_bytes: u64) -> u64 {
        table_section_bytes(tables_bytes) + self.shards as u64 * self.shifts.ring_bytes(0)
    }

    /// Returns the smallest amounts of memory that are possible, in bytes.
    pub(in crate::tracing::record) fn possible_bytes(tables_bytes: u64, count: ShardCount) -> Vec<u64> {
        possible_sizes(tables_bytes, |bytes| Some(Self::within(bytes, tables_bytes, count)?.bytes(tables_bytes)))
    }
}

/// Returns the memory that tables take in the file of shard 0, in bytes.
fn table_section_bytes(tables_bytes: u64) -> u64 {
    SMALLEST_SHIFTS.ring_bytes(tables_bytes) - SMALLEST_SHIFTS.ring_bytes(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    fn plan(mebibytes: u64, count: ShardCount) -> Option<(usize, u32, u32)> {
        let plan = MemoryPlan::within(mebibytes * MIB, 4 * MIB, count)?;
        Some((plan.shards, plan.shifts.descriptor, plan.shifts.payload))
    }

    #[test]
    fn shards_are_as_many_as_wanted_unless_they_would_be_small() {
        let sixteen = |mebibytes| plan(mebibytes, ShardCount::AtMost(16));
        assert_eq!(sixteen(9), None);
        assert_eq!(sixteen(10), Some((1, 15, 21)));
        assert_eq!(sixteen(16), Some((2, 15, 21)));
        assert_eq!(sixteen(32), Some((4, 15, 21)));
        assert_eq!(sixteen(64), Some((6, 16, 22)));
        assert_eq!(sixteen(128), Some((12, 16, 22)));
        assert_eq!(sixteen(256), Some((16, 17, 22)));
        assert_eq!(sixteen(1024), Some((16, 19, 24)));
        let four = |mebibytes| plan(mebibytes, ShardCount::AtMost(4));
        assert_eq!(four(64), Some((4, 17, 22)));
        assert_eq!(four(256), Some((4, 19, 24)));
        assert_eq!(plan(64, ShardCount::Exactly(1)), Some((1, 19, 24)));
        assert_eq!(plan(64, ShardCount::Exactly(11)), None);
    }

    #[test]
    fn the_default_is_the_default_size_on_all_but_the_smallest_machines() {
        for most in [6, 10, 16] {
            let tables_bytes = 4 * MIB;
            let plan = MemoryPlan::within(DEFAULT_SHARDS_BYTES + tables_bytes, tables_bytes, ShardCount::AtMost(most));
            assert_eq!(plan, Some(MemoryPlan { shards: 6, shifts: DEFAULT_SHIFTS }));
            assert_eq!(plan.unwrap().bytes(tables_bytes), 64 * MIB);
        }
    }

    #[test]
    fn the_possible_sizes_begin_with_the_smallest() {
        let sizes =
            |count| MemoryPlan::possible_bytes(4 * MIB, count).iter().map(|size| size / MIB).collect::<Vec<_>>();
        assert_eq!(sizes(ShardCount::AtMost(16)), [10, 12, 14, 16]);
        assert_eq!(sizes(ShardCount::Exactly(10)), [64, 84, 104, 144]);
        assert_eq!(sizes(ShardCount::Exactly(1024))[0], 6 * 1024 + 4);
    }

    proptest! {
        #[test]
        fn all_shards_together_take_no_more_than_they_may(
            bytes in 0..1u64 << 40, tables_shift in 12..30u32, count in 1..1024usize, is_exact: bool,
        ) {
            let tables_bytes = 1 << tables_shift;
            let count_wanted = if is_exact { ShardCount::Exactly(count) } else { ShardCount::AtMost(count) };
            if let Some(plan) = MemoryPlan::within(bytes, tables_bytes, count_wanted) {
                prop_assert!(plan.bytes(tables_bytes) <= bytes);
                prop_assert!(plan.shards >= 1 && plan.shards <= count);
                prop_assert!(!is_exact || plan.shards == count);
            }
        }
    }
}
