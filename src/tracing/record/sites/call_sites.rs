//! The call sites that this process has reached, and their ids.
//!
//! Each event of a span, and each log record, carries the id of its call site. A hash table maps the address of the
//! call site's metadata to the id. A lookup takes a few loads and no lock. No entry is ever removed, because call sites
//! are `'static`.
//!
//! A call site has the same id in all recorders of the process, and every recorder writes all call sites into its
//! tables.

use crate::schema::perf::{CallSiteKind, CallSiteLevel, CallSiteView};
use crate::sync::locked_section::LockedSection;
use crate::sync::segmented::SegmentedArray;
use crate::sync::{AtomicUsize, Ordering};
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::sites::seen_texts::SeenTexts;
use crate::tracing::record::sites::task_sites;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use tracing_core::{Level, Metadata};

/// The entries, for 2.4 million call sites in total.
type Entries = SegmentedArray<CallSiteEntry, FIRST_SHIFT, 3, BLOCKS>;

/// The first block has 2^`FIRST_SHIFT` entries. Each further block has eight times as many entries as the block
/// before it.
const FIRST_SHIFT: u32 = 12;
const BLOCKS: usize = 4;
/// Number of neighbouring entries of a block that a call site may take. The call site's hash gives the first of them.
/// If other call sites have taken all of them, the call site takes an entry of the next block.
const WINDOW: usize = 8;

/// A call site. Its id is one more than the index of its entry.
struct CallSiteEntry {
    /// The address by which the call site is found, or 0 if the entry is free.
    key: AtomicUsize,
    /// What is known of a span's or log record's call site. The entries are many more than the call sites, so it has a
    /// place of its own.
    known: OnceLock<Box<KnownCallSite>>,
}

/// A call site of spans or log records.
struct KnownCallSite {
    metadata: &'static Metadata<'static>,
    texts: SeenTexts,
}

/// The call sites that this process has met, and their ids. The [module](self) explains the table.
pub(in crate::tracing::record) struct CallSites {
    entries: Entries,
    known: Mutex<Known>,
}

struct Known {
    /// The id and the encoded description of each call site that the process has met, in the order in which the
    /// process met them.
    call_sites: Vec<(u32, Box<[u8]>)>,
    /// The recorders that get every new call site.
    recorders: Vec<Weak<PerfCore>>,
}

/// The call sites of this process.
pub(in crate::tracing::record) static CALL_SITES: CallSites = CallSites::new();

/// Id of a call site that has no entry. Either no entry was free, or the thread has come to the call site inside a
/// locked section: then the call site gets its own id when a thread next comes to it. All such call sites share this
/// id.
pub(in crate::tracing::record) const NO_CALL_SITE: u32 = 0;

impl CallSites {
    const fn new() -> Self {
        Self { entries: Entries::new(), known: Mutex::new(Known { call_sites: Vec::new(), recorders: Vec::new() }) }
    }

    /// Returns the id of the call site of a span or event. Returns `None` if the process has not met this call site
    /// before.
    #[inline(always)]
    pub(in crate::tracing::record) fn known_id_of(&self, metadata: &'static Metadata<'static>) -> Option<u32> {
        self.find(ptr::from_ref(metadata).addr())
    }

    /// Returns the id of a counter's or marker's call site, which has no metadata. Otherwise this is the same as
    /// [`Self::id_of`]. `key` is the address of a static that stands for the call site.
    pub(in crate::tracing::record) fn id_of_key(&self, key: usize, describe: impl FnOnce() -> Vec<u8>) -> u32 {
        self.find(key).unwrap_or_else(|| self.register(key, None, describe))
    }

    /// Returns the id of the call site of a span or event. If the process meets the call site for the first time,
    /// this call adds it to the tables of all recorders, which takes a lock.
    #[cold]
    #[inline(never)]
    pub(in crate::tracing::record) fn id_of(&self, metadata: &'static Metadata<'static>) -> u32 {
        let key = ptr::from_ref(metadata).addr();
        self.find(key).unwrap_or_else(|| self.register(key, Some(metadata), || view_of(metadata).encode()))
    }

    /// Returns the metadata of a call site, if it has any.
    pub(in crate::tracing::record) fn metadata(&self, id: u32) -> Option<&'static Metadata<'static>> {
        Some(self.known(id)?.metadata)
    }

    /// Returns what is known about the texts of a call site's log records.
    #[inline(always)]
    pub(in crate::tracing::record) fn texts(&self, id: u32) -> Option<&SeenTexts> {
        Some(&self.known(id)?.texts)
    }

    #[inline(always)]
    fn known(&self, id: u32) -> Option<&KnownCallSite> {
        self.entries.get((id as usize).checked_sub(1)?)?.known.get().map(|known| &**known)
    }

    /// Returns the constant text of a call site's log records, if it is known.
    #[inline(always)]
    pub(in crate::tracing::record) fn constant_text(&self, id: u32) -> Option<&str> {
        Some(&self.texts(id)?.constant()?.text)
    }

    /// Looks for the call site only in the first entry that it may take, where most call sites are. Returns the call
    /// site's id, or `None` if that entry does not hold the call site.
    #[inline(always)]
    fn try_find(&self, key: usize) -> Option<u32> {
        let first = window(key, 0).next()?;
        // Acquire, pairs with the release in `register`. `register` writes the call site to the tables of all
        // recorders before it stores the key. So the tables have the call site before this thread records an event
        // with its id.
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
                    // A free entry ends the search: `register` takes the first free entry of the window, and an entry
                    // never becomes free again. So the call site is in no later entry.
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
        // `describe` and the tables allocate memory, and the allocator may record.
        let Some(_section) = LockedSection::enter() else { return NO_CALL_SITE };
        let mut known = self.lock();
        if let Some(id) = self.find(key) {
            return id;
        }
        let Some((id, entry)) = self.free_entry(key) else { return NO_CALL_SITE };
        if let Some(metadata) = metadata {
            // The entry was free: its metadata has not been set.
            let _ = entry.known.set(Box::new(KnownCallSite { metadata, texts: SeenTexts::new() }));
            task_sites::learn(id, metadata);
        }
        let body = describe().into_boxed_slice();
        known.recorders.retain(|recorder| recorder.upgrade().is_some_and(|recorder| recorder.add_call_site(id, &body)));
        known.call_sites.push((id, body));
        // Release, pairs with the acquire in `try_find`.
        entry.key.store(key, Ordering::Release);
        id
    }

    /// Returns the first free entry that `key` may take, and the id that belongs to this entry. Call this only while
    /// you hold the lock.
    fn free_entry(&self, key: usize) -> Option<(u32, &CallSiteEntry)> {
        for block in 0..BLOCKS {
            let free = |_| CallSiteEntry { key: AtomicUsize::new(0), known: OnceLock::new() };
            let entries = self.entries.get_or_make_block(block, free)?;
            // Relaxed: keys are stored only under the lock.
            let index = window(key, block).find(|index| entries[*index].key.load(Ordering::Relaxed) == 0);
            if let Some(index) = index {
                return Some((id_at(block, index), &entries[index]));
            }
        }
        None
    }

    /// Adds all call sites that the process has met to the tables of a new recorder. Call sites that the process
    /// meets later are added, too.
    pub(in crate::tracing::record) fn add_recorder(&self, recorder: &Arc<PerfCore>) {
        let _section = LockedSection::enter();
        let mut known = self.lock();
        for (id, body) in &known.call_sites {
            recorder.add_call_site(*id, body);
        }
        known.recorders.push(Arc::downgrade(recorder));
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // A poisoned lock does no harm: wherever code panics while it holds this lock, the lists are complete.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PerfCore {
    /// Returns the id of a call site. In a forked child, returns [`NO_CALL_SITE`] for a call site that the process
    /// has not met. The child must not take the lock of the call sites, because another thread may have held it at
    /// the fork. The child records nothing anyway, so it needs no new ids.
    #[inline(always)]
    pub(in crate::tracing::record) fn call_site_id(&self, metadata: &'static Metadata<'static>) -> u32 {
        match CALL_SITES.known_id_of(metadata) {
            Some(id) => id,
            None if self.belongs_to_this_process() => CALL_SITES.id_of(metadata),
            None => NO_CALL_SITE,
        }
    }
}

/// Returns the id of the call site that has the entry at `index` of `block`.
fn id_at(block: usize, index: usize) -> u32 {
    (Entries::block_start(block) + index) as u32 + 1
}

/// Returns the indices of the entries of `block` that the call site with this `key` may take.
#[inline(always)]
fn window(key: usize, block: usize) -> impl Iterator<Item = usize> {
    // Fibonacci hashing: the high bits of the product depend on all bits of the address. Call sites often lie at equal
    // distances in memory. One multiplication would give neighbouring call sites neighbouring entries, so the product
    // is multiplied a second time.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let len = Entries::block_len(block);
    let once = (key as u64).wrapping_mul(FACTOR);
    let hash = (once ^ once >> 32).wrapping_mul(FACTOR) >> (64 - len.ilog2());
    (0..WINDOW).map(move |step| (hash as usize + step) & (len - 1))
}

pub(in crate::tracing::record) fn view_of(metadata: &'static Metadata<'static>) -> CallSiteView<'static> {
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
