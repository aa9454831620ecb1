//! The map of a layer from the span ids of a `Registry` to the span ids in the ring, which are never used twice.
//!
//! The ring has its own span ids, because a `Registry` gives one id to several spans: a slot of the registry reuses the
//! id of a closed span after 8,192 further spans. A ring holds more spans.
//!
//! The map has an entry of 24 bytes for each open span of a layer, in a hash table. A lookup takes a few loads and no
//! lock. Ids in the extensions of the `Registry` would cost a lock and a heap allocation for each span.
//!
//! Each block of entries is twice as large as the previous block, is made before the previous block is full, and is
//! never freed. So the map may have room for about four times as many spans as were ever open at the same time.

use crate::sync::segmented::SegmentedArray;
use crate::sync::{AtomicU64, Ordering};

/// The entries: nearly 2^24 in total, in 384 MiB.
type Entries = SegmentedArray<SpanMapEntry, FIRST_SHIFT, 1, BLOCKS>;

/// The first block has 2^`FIRST_SHIFT` entries. Each further block has twice as many entries as the block before it.
const FIRST_SHIFT: u32 = 10;
const BLOCKS: usize = 14;
/// Number of neighbouring entries of the first block that a span may take. The hash of the span's id gives the first
/// of them. If other spans have taken all of them, the span goes to a later block.
const FIRST_WINDOW: usize = 4;
/// Number of neighbouring entries of each later block that a span may take.
const WINDOW: usize = 8;

/// An open span of a layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tracing::record) struct MappedSpan {
    /// The span's id in the ring.
    pub(in crate::tracing::record) span_id: u64,
    /// The span's call site.
    pub(in crate::tracing::record) call_site_id: u32,
}

struct SpanMapEntry {
    /// The span's id in the registry, or 0 if the entry is free.
    key: AtomicU64,
    span_id: AtomicU64,
    /// The call site. The span's cell in the slab has it, too, but farther away.
    call_site_id: AtomicU64,
}

/// The map of the open spans of one layer. The [module](self) explains the map.
pub(in crate::tracing::record) struct SpanMap {
    entries: Entries,
}

impl SpanMap {
    pub(in crate::tracing::record) const fn new() -> Self {
        Self { entries: Entries::new() }
    }

    /// Adds a span that has just been created. No other thread can know its id yet, so none looks it up during the
    /// call. Returns false if there is no room.
    #[inline(always)]
    pub(in crate::tracing::record) fn insert(&self, key: u64, span: MappedSpan) -> bool {
        // Most programs never need a second block.
        self.insert_into::<FIRST_WINDOW>(0, key, span) || self.insert_slow(key, span)
    }

    #[cold]
    #[inline(never)]
    fn insert_slow(&self, key: u64, span: MappedSpan) -> bool {
        (1..BLOCKS).any(|block| self.insert_into::<WINDOW>(block, key, span))
    }

    #[inline(always)]
    fn insert_into<const W: usize>(&self, block: usize, key: u64, span: MappedSpan) -> bool {
        let Some(entries) = self.entries.get_or_make_block(block, |_| SpanMapEntry::free()) else { return false };
        for index in window::<W>(key, block) {
            let entry = &entries[index];
            // The load can be relaxed, because the compare-exchange decides whether the entry is free. The acquire of
            // the compare-exchange pairs with the release in `remove`. So everything that other threads did with the
            // entry for its previous span happens before the stores below.
            if entry.key.load(Ordering::Relaxed) == 0
                && entry.key.compare_exchange(0, key, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                // Relaxed, here and in `get`: a thread that looks up the span has a handle of it. These stores happen
                // before the handle is given to any other thread.
                entry.span_id.store(span.span_id, Ordering::Relaxed);
                entry.call_site_id.store(span.call_site_id.into(), Ordering::Relaxed);
                return true;
            }
        }
        false
    }

    /// Returns an open span.
    #[inline(always)]
    pub(in crate::tracing::record) fn get(&self, key: u64) -> Option<MappedSpan> {
        self.find(key).map(SpanMapEntry::span)
    }

    /// Removes a closed span. No thread has a handle of it any more, so none looks up its id during the call. Returns
    /// `None` if the map does not have the span.
    #[inline(always)]
    pub(in crate::tracing::record) fn remove(&self, key: u64) -> Option<MappedSpan> {
        let entry = self.find(key)?;
        let span = entry.span();
        // Release, pairs with the acquire in `insert_into`.
        entry.key.store(0, Ordering::Release);
        Some(span)
    }

    /// Calls `f` with each open span. If a span is inserted or removed during the call, `f` may or may not get it.
    pub(in crate::tracing::record) fn for_each_open(&self, f: impl FnMut(MappedSpan)) {
        let entries = (0..BLOCKS).map_while(|block| self.entries.block(block)).flatten();
        let open = entries.filter(|entry| entry.key.load(Ordering::Relaxed) != 0);
        open.map(SpanMapEntry::span).for_each(f);
    }

    #[inline(always)]
    fn find(&self, key: u64) -> Option<&SpanMapEntry> {
        self.find_in::<FIRST_WINDOW>(0, key).or_else(|| self.find_slow(key))
    }

    #[cold]
    #[inline(never)]
    fn find_slow(&self, key: u64) -> Option<&SpanMapEntry> {
        (1..BLOCKS).find_map(|block| self.find_in::<WINDOW>(block, key))
    }

    #[inline(always)]
    fn find_in<const W: usize>(&self, block: usize, key: u64) -> Option<&SpanMapEntry> {
        let entries = self.entries.block(block)?;
        let found = window::<W>(key, block).find(|index| entries[*index].key.load(Ordering::Relaxed) == key);
        found.map(|index| &entries[index])
    }
}

impl SpanMapEntry {
    fn free() -> Self {
        Self { key: AtomicU64::new(0), span_id: AtomicU64::new(0), call_site_id: AtomicU64::new(0) }
    }

    #[inline(always)]
    fn span(&self) -> MappedSpan {
        MappedSpan {
            span_id: self.span_id.load(Ordering::Relaxed),
            call_site_id: self.call_site_id.load(Ordering::Relaxed) as u32,
        }
    }
}

/// Returns the indices of the entries of `block` that the span with this `key` may take.
#[inline(always)]
fn window<const W: usize>(key: u64, block: usize) -> impl Iterator<Item = usize> {
    let len = Entries::block_len(block);
    // Fibonacci hashing: the high bits of the product depend on all bits of the key.
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - len.ilog2());
    (0..W).map(move |step| (hash as usize + step) & (len - 1))
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
        // Block 9 was not made. Blocks 0 to 8 together have less than 2^19 entries, so the map has at most 5.3 entries
        // for each of the 100,000 spans.
        assert!(map.entries.block(9).is_none());
    }

    #[test]
    fn threads_that_insert_at_the_same_time_do_not_take_the_same_entry() {
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
