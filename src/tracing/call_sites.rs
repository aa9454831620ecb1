//! The call sites that this process has met, and their ids.
//!
//! Each span and each event needs the id of its call site. The id is found by the address of the call site's metadata,
//! with a few loads and without a lock, in a hash table with open addressing in the blocks of a segmented array.
//! Entries need no removal, because call sites are `'static`.
//!
//! Ids are the same for all recorders of the process. The tables of every recorder hold all call sites, because any
//! recorder may record an event of any call site.

use super::core::PerfCore;
use crate::schema::perf::{CallSiteKind, CallSiteLevel, CallSiteView};
use crate::segmented::SegmentedArray;
use crate::sync::{AtomicUsize, Ordering};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use tracing_core::{Level, Metadata};

/// The entries, for 2.4 million call sites in total.
type Entries = SegmentedArray<CallSiteEntry, FIRST_SHIFT, 3, BLOCKS>;

/// Number of entries in the first block, as a shift. Each further block has eight times as many entries as the block
/// before.
const FIRST_SHIFT: u32 = 12;
const BLOCKS: usize = 4;
/// Number of neighbouring entries of a block in which a call site may be. If other call sites use all of them, the call
/// site is in a later block.
const WINDOW: usize = 8;

/// A call site. Its id is one more than the index of its entry.
struct CallSiteEntry {
    /// The address that identifies the call site, or 0 if the entry is free.
    key: AtomicUsize,
    metadata: OnceLock<&'static Metadata<'static>>,
}

/// The call sites that this process has met, and their ids. See the [module](self).
pub(super) struct CallSites {
    entries: Entries,
    known: Mutex<Known>,
}

struct Known {
    /// The id of each call site and its encoded view, in the order in which the process met them.
    call_sites: Vec<(u32, Box<[u8]>)>,
    /// The recorders that get every new call site.
    recorders: Vec<Weak<PerfCore>>,
}

/// The call sites of this process.
pub(super) static CALL_SITES: CallSites = CallSites::new();

/// Id that stands for every call site for which there was no free entry.
pub(super) const NO_CALL_SITE: u32 = 0;

impl CallSites {
    const fn new() -> Self {
        Self { entries: Entries::new(), known: Mutex::new(Known { call_sites: Vec::new(), recorders: Vec::new() }) }
    }

    /// Returns the id of a span's or event's call site, if the process has met it before.
    #[inline(always)]
    pub(super) fn known_id_of(&self, metadata: &'static Metadata<'static>) -> Option<u32> {
        self.find(ptr::from_ref(metadata).addr())
    }

    /// Returns the id of a call site without metadata, like [`Self::id_of`]. `key` is the address of a static that
    /// stands for the call site.
    pub(super) fn id_of_key(&self, key: usize, describe: impl FnOnce() -> Vec<u8>) -> u32 {
        self.find(key).unwrap_or_else(|| self.register(key, None, describe))
    }

    /// Returns the id of a span's or event's call site. The first call for a call site adds it to the tables of all
    /// recorders, which takes a lock.
    #[cold]
    #[inline(never)]
    pub(super) fn id_of(&self, metadata: &'static Metadata<'static>) -> u32 {
        let key = ptr::from_ref(metadata).addr();
        self.find(key).unwrap_or_else(|| self.register(key, Some(metadata), || view_of(metadata).encode()))
    }

    /// Returns the metadata of a call site, if it has any.
    pub(super) fn metadata(&self, id: u32) -> Option<&'static Metadata<'static>> {
        self.entries.get((id as usize).checked_sub(1)?)?.metadata.get().copied()
    }

    /// Returns the id of the call site if it is in the first entry in which it may be. Looks at no other entry.
    #[inline(always)]
    fn try_find(&self, key: usize) -> Option<u32> {
        let first = window(key, 0).next()?;
        // Acquire, pairs with the release in `register`. So the recorders have the call site in their tables before any
        // thread records an event with its id.
        let is_there = self.entries.block(0)?.get(first)?.key.load(Ordering::Acquire) == key;
        is_there.then_some(first as u32 + 1)
    }

    #[inline(always)]
    fn find(&self, key: usize) -> Option<u32> {
        match self.try_find(key) {
            Some(id) => Some(id),
            None => self.find_slow(key),
        }
    }

    #[inline(never)]
    fn find_slow(&self, key: usize) -> Option<u32> {
        for block in 0..BLOCKS {
            let entries = self.entries.block(block)?;
            for index in window(key, block) {
                // Acquire, as in `try_find`.
                match entries[index].key.load(Ordering::Acquire) {
                    found if found == key => return Some(id_at(block, index)),
                    // A call site takes the first free entry of its window, and no entry becomes free again. So the
                    // call site is in no entry after this free entry.
                    0 => return None,
                    _ => {}
                }
            }
        }
        None
    }

    #[cold]
    fn register(
        &self,
        key: usize,
        metadata: Option<&'static Metadata<'static>>,
        describe: impl FnOnce() -> Vec<u8>,
    ) -> u32 {
        let mut known = self.lock();
        if let Some(id) = self.find(key) {
            return id;
        }
        let Some((id, entry)) = self.free_entry(key) else { return NO_CALL_SITE };
        if let Some(metadata) = metadata {
            // The entry was free: its metadata has not been set.
            let _ = entry.metadata.set(metadata);
        }
        let body = describe().into_boxed_slice();
        known.recorders.retain(|recorder| recorder.upgrade().is_some_and(|recorder| recorder.add_call_site(id, &body)));
        known.call_sites.push((id, body));
        // Release, pairs with the acquire in `try_find`.
        entry.key.store(key, Ordering::Release);
        id
    }

    /// Returns the first free entry in which `key` may be, and the id of the call site that takes it. Call this only
    /// under the lock.
    fn free_entry(&self, key: usize) -> Option<(u32, &CallSiteEntry)> {
        for block in 0..BLOCKS {
            let free = |_| CallSiteEntry { key: AtomicUsize::new(0), metadata: OnceLock::new() };
            let entries = self.entries.get_or_make_block(block, free)?;
            // Relaxed: keys are stored only under the lock.
            let index = window(key, block).find(|index| entries[*index].key.load(Ordering::Relaxed) == 0);
            if let Some(index) = index {
                return Some((id_at(block, index), &entries[index]));
            }
        }
        None
    }

    /// Adds all present and future call sites to the tables of a new recorder.
    pub(super) fn add_recorder(&self, recorder: &Arc<PerfCore>) {
        let mut known = self.lock();
        for (id, body) in &known.call_sites {
            recorder.add_call_site(*id, body);
        }
        known.recorders.push(Arc::downgrade(recorder));
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // A poisoned lock does no harm: a panic under the lock (out of memory) leaves the lists complete.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the id of the call site whose entry has this index in this block.
fn id_at(block: usize, index: usize) -> u32 {
    (Entries::block_start(block) + index) as u32 + 1
}

/// Returns the indices of the entries of a block in which `key` may be.
#[inline(always)]
fn window(key: usize, block: usize) -> impl Iterator<Item = usize> {
    // Fibonacci hashing: the high bits of the product depend on all bits of the address. The hash is applied twice,
    // because call sites often lie at equal distances, and neighbours would get neighbouring entries.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let len = Entries::block_len(block);
    let once = (key as u64).wrapping_mul(FACTOR);
    let hash = (once ^ once >> 32).wrapping_mul(FACTOR) >> (64 - len.ilog2());
    (0..WINDOW).map(move |step| (hash as usize + step) & (len - 1))
}

fn view_of(metadata: &'static Metadata<'static>) -> CallSiteView<'static> {
    CallSiteView {
        kind: if metadata.is_span() { CallSiteKind::Span } else { CallSiteKind::Event },
        level: level_of(*metadata.level()),
        name: metadata.name().into(),
        target: metadata.target().into(),
        module: metadata.module_path().unwrap_or_default().into(),
        file: metadata.file().unwrap_or_default().into(),
        line: metadata.line().unwrap_or(0),
        field_names: metadata.fields().iter().map(|field| field.name().into()).collect(),
    }
}

fn level_of(level: Level) -> CallSiteLevel {
    match level {
        Level::ERROR => CallSiteLevel::Error,
        Level::WARN => CallSiteLevel::Warn,
        Level::INFO => CallSiteLevel::Info,
        Level::DEBUG => CallSiteLevel::Debug,
        Level::TRACE => CallSiteLevel::Trace,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn twenty_thousand_call_sites_have_ids_of_their_own_and_keep_them() {
        let sites = CallSites::new();
        let keys: Vec<usize> = (1..20_000).map(|n| n * 48).collect();
        let ids: Vec<u32> = keys.iter().map(|key| sites.id_of_key(*key, Vec::new)).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), keys.len());
        assert!(!ids.contains(&NO_CALL_SITE));
        for (key, id) in keys.iter().zip(&ids) {
            assert_eq!(sites.id_of_key(*key, || panic!("described twice")), *id);
        }
        assert!(sites.entries.block(1).is_some());
    }

    #[test]
    fn threads_that_meet_a_call_site_at_the_same_time_agree_on_its_id() {
        let sites = CallSites::new();
        let ids: HashSet<Vec<u32>> = std::thread::scope(|scope| {
            let look = || (1..500).map(|n| sites.id_of_key(n * 48, Vec::new)).collect();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(look)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(ids.len(), 1);
        assert_eq!(sites.lock().call_sites.len(), 499);
    }
}
