//! From the ids of a `Registry` to ids that are never used twice.
//!
//! A `Registry` uses the id of a closed span again after 8,192 further spans in its slot: a ring holds more than that, so its
//! ids do not name spans in a ring. The map has an entry for each open span of a layer: 24 bytes, found by a few loads without a
//! lock, in a table of open addressing that grows by further levels, each twice as large as the one before. (The Registry's own
//! extensions would do, at the price of a lock and a heap allocation for each span.)
//!
//! Levels stay when spans close. As hashing fills no level wholly, there are up to four slots for each span that was open at a time.

use crate::sync::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// Slots of the levels, as shifts: nearly 2^24 in all, in 384 MiB.
const LEVEL_SHIFTS: [u32; 14] = [10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23];
/// A span is in one of this many slots of the first level, or in a later level.
const FIRST_WINDOW: usize = 4;
/// And there in one of this many.
const WINDOW: usize = 8;

/// What is known of an open span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MappedSpan {
    /// Its id in the ring.
    pub(super) span_id: u64,
    /// Its call site.
    pub(super) call_site_id: u32,
}

struct Slot {
    /// The registry's id, 0 if the slot is free.
    key: AtomicU64,
    span_id: AtomicU64,
    call_site_id: AtomicU64,
}

/// See the [module](self).
pub(super) struct SpanMap {
    levels: [OnceLock<Box<[Slot]>>; LEVEL_SHIFTS.len()],
}

impl SpanMap {
    pub(super) const fn new() -> Self {
        Self { levels: [const { OnceLock::new() }; LEVEL_SHIFTS.len()] }
    }

    /// Takes in a span that has just been created: nobody asks for its id yet. False if there is no room.
    #[inline(always)]
    pub(super) fn insert(&self, key: u64, span: MappedSpan) -> bool {
        // Most programs never leave the first level.
        self.insert_at::<FIRST_WINDOW>(0, key, span) || self.insert_further(key, span)
    }

    #[cold]
    #[inline(never)]
    fn insert_further(&self, key: u64, span: MappedSpan) -> bool {
        (1..LEVEL_SHIFTS.len()).any(|level| self.insert_at::<WINDOW>(level, key, span))
    }

    #[inline(always)]
    fn insert_at<const W: usize>(&self, level: usize, key: u64, span: MappedSpan) -> bool {
        let slots = match self.levels[level].get() {
            Some(slots) => slots,
            None => self.make_level(level),
        };
        for index in window::<W>(key, LEVEL_SHIFTS[level]) {
            let slot = &slots[index];
            // Relaxed load: the compare-exchange decides. Acquire: what was stored for the slot's last span is behind its
            // release.
            if slot.key.load(Ordering::Relaxed) == 0
                && slot.key.compare_exchange(0, key, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                // Relaxed, here and in `get`: whoever asks for the span got its handle from the thread that created it.
                slot.span_id.store(span.span_id, Ordering::Relaxed);
                slot.call_site_id.store(span.call_site_id.into(), Ordering::Relaxed);
                return true;
            }
        }
        false
    }

    #[cold]
    fn make_level(&self, level: usize) -> &[Slot] {
        let new = |_| Slot { key: AtomicU64::new(0), span_id: AtomicU64::new(0), call_site_id: AtomicU64::new(0) };
        self.levels[level].get_or_init(|| (0..1 << LEVEL_SHIFTS[level]).map(new).collect())
    }

    /// An open span.
    #[inline(always)]
    pub(super) fn get(&self, key: u64) -> Option<MappedSpan> {
        self.find(key).map(Slot::span)
    }

    /// Forgets a span that has been closed; nobody asks for it any more.
    #[inline(always)]
    pub(super) fn remove(&self, key: u64) -> Option<MappedSpan> {
        let slot = self.find(key)?;
        let span = slot.span();
        // Release: who takes the slot next stores after us.
        slot.key.store(0, Ordering::Release);
        Some(span)
    }

    #[inline(always)]
    fn find(&self, key: u64) -> Option<&Slot> {
        self.find_at::<FIRST_WINDOW>(0, key).or_else(|| self.find_further(key))
    }

    #[cold]
    #[inline(never)]
    fn find_further(&self, key: u64) -> Option<&Slot> {
        (1..LEVEL_SHIFTS.len()).find_map(|level| self.find_at::<WINDOW>(level, key))
    }

    #[inline(always)]
    fn find_at<const W: usize>(&self, level: usize, key: u64) -> Option<&Slot> {
        let slots = self.levels[level].get()?;
        let found =
            window::<W>(key, LEVEL_SHIFTS[level]).find(|index| slots[*index].key.load(Ordering::Relaxed) == key);
        found.map(|index| &slots[index])
    }
}

impl Slot {
    #[inline(always)]
    fn span(&self) -> MappedSpan {
        MappedSpan {
            span_id: self.span_id.load(Ordering::Relaxed),
            call_site_id: self.call_site_id.load(Ordering::Relaxed) as u32,
        }
    }
}

/// The slots of a level in which `key` may be.
#[inline(always)]
fn window<const W: usize>(key: u64, shift: u32) -> impl Iterator<Item = usize> {
    // Fibonacci hashing: the high bits of the product depend on all bits of the key.
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - shift);
    let mask = (1 << shift) - 1;
    (0..W).map(move |step| (hash as usize + step) & mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(n: u64) -> MappedSpan {
        MappedSpan { span_id: n + 1_000_000, call_site_id: n as u32 }
    }

    #[test]
    fn a_hundred_thousand_open_spans_are_found_and_forgotten_in_any_order() {
        let map = SpanMap::new();
        assert_eq!(map.get(1), None);
        for round in 0..3 {
            let keys: Vec<u64> = (1..100_000).map(|n| n << 7 | round).collect();
            assert!(keys.iter().all(|key| map.insert(*key, span(*key))));
            assert!(keys.iter().all(|key| map.get(*key) == Some(span(*key))));
            for key in
                keys.iter().step_by(3).chain(keys.iter().skip(1).step_by(3)).chain(keys.iter().skip(2).step_by(3))
            {
                assert_eq!(map.remove(*key), Some(span(*key)));
                assert_eq!(map.get(*key), None);
            }
        }
        // Up to 2^18 slots, 2^19 in all: not more than four times as many as there were spans, and a level.
        assert!(map.levels[9].get().is_none());
    }

    #[test]
    fn threads_that_take_slots_at_once_do_not_take_the_same() {
        let map = SpanMap::new();
        std::thread::scope(|scope| {
            for thread in 1..5u64 {
                let map = &map;
                scope.spawn(move || {
                    for round in 0..200 {
                        let keys = (0..100).map(|n| (thread << 40) + (round << 20) + n);
                        keys.clone().for_each(|key| assert!(map.insert(key, span(key))));
                        keys.for_each(|key| assert_eq!(map.remove(key), Some(span(key))));
                    }
                });
            }
        });
    }
}
