//! The hole tables. A hole is a seqno that was handed out and will never be committed. Readers find holes in a table,
//! and do not wait for their events.
//!
//! A table is divided into sets of a few entries. A seqno may be in any entry of one set. A new hole replaces the
//! smallest entry of its set, but only if the hole's seqno is larger. So entries only grow.
//!
//! A hole must stay in its table until its slot has an event of a later lap. If a set gets more such holes than it has
//! entries, one hole is replaced too early. Readers then wait for its seqno until the ring is one lap further.
//!
//! With the wide table, this early replacement cannot happen in rings of up to 65,536 descriptors, and is nearly
//! impossible in larger rings.
//!
//! Readers that know version 1.2 of the header's extension use the wide table. Older readers use the narrow table: it
//! has 64 sets, selected by the seqno modulo 64.

use super::memory::{HoleTable, RingMemory};
use super::mutation::{self, Mutation};
use crate::layout::extension::{HOLE_ENTRIES, HOLE_WAYS, WIDE_HOLE_WAYS, wide_hole_set};
use crate::sync::Ordering;
use std::ops::Range;

/// Returns the indices of the entries that may hold `seqno`.
fn entries<M: RingMemory>(memory: &M, table: HoleTable, seqno: u64) -> Range<u64> {
    let (set, ways) = match table {
        HoleTable::Narrow => (seqno % (HOLE_ENTRIES / HOLE_WAYS) as u64, HOLE_WAYS as u64),
        HoleTable::Wide => {
            // The capacity is a power of two, so the mask computes the remainder.
            let slot = seqno.wrapping_sub(1) & (memory.geometry().descriptor_capacity() - 1);
            (wide_hole_set(slot), WIDE_HOLE_WAYS as u64)
        }
    };
    set * ways..(set + 1) * ways
}

/// Publishes that `seqno` will never be committed.
pub(crate) fn publish<M: RingMemory>(memory: &M, seqno: u64) {
    if mutation::active(Mutation::MissingHole) {
        return;
    }
    // Models have one table: a second table could show no new fault and would multiply the interleavings.
    if !cfg!(any(loom, shuttle)) {
        enter(memory, HoleTable::Narrow, seqno);
    }
    if memory.hole_table() == HoleTable::Wide {
        enter(memory, HoleTable::Wide, seqno);
    }
}

fn enter<M: RingMemory>(memory: &M, table: HoleTable, seqno: u64) {
    // The loop repeats only if another writer has stored a hole in the same entry meanwhile. Entries only grow. So the
    // loop ends at the latest when all entries of the set are larger than `seqno`.
    loop {
        // Relaxed: the compare-exchange below decides. A reader of the entry needs nothing but its value, so the entry
        // publishes no other memory.
        let value_at = |index| (memory.hole(table, index).load(Ordering::Relaxed), index);
        let smallest = entries(memory, table, seqno).map(value_at).min();
        let Some((value, index)) = smallest.filter(|(value, _)| *value < seqno) else {
            // All entries are newer than `seqno`. We were stalled for so long that the slot already has an event of a
            // later lap. Readers see from that event that `seqno` is lost, so we need not publish the hole.
            return;
        };
        let entry = memory.hole(table, index);
        if entry.compare_exchange(value, seqno, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            return;
        }
    }
}

/// Returns true if `seqno` is in the hole table that readers use.
pub(crate) fn holds<M: RingMemory>(memory: &M, seqno: u64) -> bool {
    let table = memory.hole_table();
    // Relaxed: a stale value only makes the reader wait longer.
    entries(memory, table, seqno).any(|index| memory.hole(table, index).load(Ordering::Relaxed) == seqno)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::layout::extension::WIDE_HOLE_SETS;

    /// Returns the number of `slots` that share the fullest set.
    fn fullest(slots: impl Iterator<Item = u64>) -> usize {
        let mut sets = vec![0; WIDE_HOLE_SETS];
        slots.for_each(|slot| sets[wide_hole_set(slot) as usize] += 1);
        sets.into_iter().max().unwrap()
    }

    #[test]
    fn each_slot_of_a_ring_of_65_536_has_an_entry_of_its_own() {
        assert_eq!(fullest(0..1 << 15), WIDE_HOLE_WAYS / 2);
        assert_eq!(fullest(0..1 << 16), WIDE_HOLE_WAYS);
    }

    #[test]
    fn sixteen_thousand_stalled_slots_of_a_larger_ring_have_entries_whatever_the_distance_between_them() {
        const STALLED: u64 = 1 << 14;
        for capacity_shift in [17u32, 18, 21, 24, 28, 32] {
            let mask = (1u64 << capacity_shift) - 1;
            let widest = 1 << (capacity_shift - 14);
            let powers = (0..=capacity_shift - 14).map(|shift| 1 << shift);
            let odd = [3, 5, 7, 10, 63, 65, 100, 1000, 2047, 2049, 4095, 4097, 10_946, 28_657, 75_025, 196_418];
            for distance in powers.chain(odd).filter(|distance| *distance <= widest) {
                let fullest = fullest((0..STALLED).map(|i| (i * distance + 12_345) & mask));
                assert!(fullest <= WIDE_HOLE_WAYS, "2^{capacity_shift}, each {distance}th: {fullest}");
            }
            // Groups of eight neighbouring slots, as if each thread stalled in eight slots at once.
            let runs = (0..STALLED).map(|i| ((i / 8) * widest * 8 + i % 8) & mask);
            assert!(fullest(runs) <= WIDE_HOLE_WAYS);
            // Slots in random order.
            let mut state = u64::from(capacity_shift);
            let anyhow = std::iter::repeat_with(|| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 20) & mask
            });
            let distinct: std::collections::BTreeSet<u64> = anyhow.take(STALLED as usize).collect();
            assert!(fullest(distinct.into_iter()) <= WIDE_HOLE_WAYS);
        }
    }
}
