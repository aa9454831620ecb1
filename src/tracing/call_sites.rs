//! The call sites that this process has met, and their ids.
//!
//! The id of a call site is found from the address of its metadata at every span and event: by a few loads, without a lock.
//! Call sites are `'static` and never forgotten, so that a table with open addressing does, which grows by further, larger
//! levels. Ids are the same for all recorders of the process; every recorder has all call sites in its tables, in case it needs
//! them.

use super::recorder::PerfCore;
use crate::schema::perf::{CallSiteKind, CallSiteLevel, CallSiteView};
use crate::sync::{AtomicUsize, Ordering};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use tracing_core::{Level, Metadata};

/// Slots of each level, as shifts: 2.4 million call sites in all.
const LEVEL_SHIFTS: [u32; 4] = [12, 15, 18, 21];
/// A call site is in one of this many slots of a level, or in a later level.
const WINDOW: usize = 8;

/// A call site's place in a level.
struct Slot {
    /// Address of what the call site is known by, 0 if the slot is free.
    key: AtomicUsize,
    metadata: OnceLock<&'static Metadata<'static>>,
}

/// See the [module](self).
pub(super) struct CallSites {
    levels: [OnceLock<Box<[Slot]>>; LEVEL_SHIFTS.len()],
    known: Mutex<Known>,
}

/// Call sites in the order in which they were met, and who wants to know.
struct Known {
    call_sites: Vec<(u32, Box<[u8]>)>,
    recorders: Vec<Weak<PerfCore>>,
}

/// Those of this process.
pub(super) static CALL_SITES: CallSites = CallSites {
    levels: [const { OnceLock::new() }; LEVEL_SHIFTS.len()],
    known: Mutex::new(Known { call_sites: Vec::new(), recorders: Vec::new() }),
};

/// Id of a call site that did not fit.
pub(super) const NO_CALL_SITE: u32 = 0;

impl CallSites {
    /// The id of a span's or event's call site, if it was met before.
    #[inline(always)]
    pub(super) fn known_id_of(&self, metadata: &'static Metadata<'static>) -> Option<u32> {
        self.find(ptr::from_ref(metadata).addr())
    }

    /// As [`Self::id_of`], for what is no metadata: `key` is the address of something that lives as long as the program.
    pub(super) fn id_of_key(&self, key: usize, describe: impl FnOnce() -> Vec<u8>) -> u32 {
        self.find(key).unwrap_or_else(|| self.register(key, None, describe))
    }

    /// The id of a span's or event's call site. At the first time it is told to all recorders, which takes a lock.
    #[cold]
    #[inline(never)]
    pub(super) fn id_of(&self, metadata: &'static Metadata<'static>) -> u32 {
        let key = ptr::from_ref(metadata).addr();
        self.find(key).unwrap_or_else(|| self.register(key, Some(metadata), || view_of(metadata).encode()))
    }

    /// The metadata of a call site, if it has one.
    pub(super) fn metadata(&self, id: u32) -> Option<&'static Metadata<'static>> {
        let mut index = (id as usize).checked_sub(1)?;
        for (level, shift) in LEVEL_SHIFTS.into_iter().enumerate() {
            if index < 1 << shift {
                return self.levels[level].get()?.get(index)?.metadata.get().copied();
            }
            index -= 1 << shift;
        }
        None
    }

    #[inline(always)]
    fn find_at_once(&self, key: usize) -> Option<u32> {
        let first = window(key, LEVEL_SHIFTS[0]).next()?;
        // Acquire: with the key comes that the recorders know the call site.
        let is_there = self.levels[0].get()?.get(first)?.key.load(Ordering::Acquire) == key;
        is_there.then_some(first as u32 + 1)
    }

    #[inline(always)]
    fn find(&self, key: usize) -> Option<u32> {
        match self.find_at_once(key) {
            Some(id) => Some(id),
            None => self.find_elsewhere(key),
        }
    }

    #[inline(never)]
    fn find_elsewhere(&self, key: usize) -> Option<u32> {
        let mut base = 0;
        for (level, shift) in LEVEL_SHIFTS.into_iter().enumerate() {
            let slots = self.levels[level].get()?;
            for index in window(key, shift) {
                // Acquire: as in `find_at_once`.
                match slots[index].key.load(Ordering::Acquire) {
                    found if found == key => return Some(base + index as u32 + 1),
                    // A call site takes the first free slot, and none is ever given up.
                    0 => return None,
                    _ => {}
                }
            }
            base += 1 << shift;
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
        let Some((id, slot)) = self.free_slot(key) else { return NO_CALL_SITE };
        if let Some(metadata) = metadata {
            // The slot was free: its metadata has not been set.
            let _ = slot.metadata.set(metadata);
        }
        let body = describe().into_boxed_slice();
        known
            .recorders
            .retain(|recorder| recorder.upgrade().is_some_and(|recorder| recorder.learn_call_site(id, &body)));
        known.call_sites.push((id, body));
        // Release: see `find_at_once`.
        slot.key.store(key, Ordering::Release);
        id
    }

    /// The slot that `key` is to have, and its id. Only under the lock.
    fn free_slot(&self, key: usize) -> Option<(u32, &Slot)> {
        let mut base = 0;
        for (level, shift) in LEVEL_SHIFTS.into_iter().enumerate() {
            let new = |_| Slot { key: AtomicUsize::new(0), metadata: OnceLock::new() };
            let slots = self.levels[level].get_or_init(|| (0..1usize << shift).map(new).collect());
            // Relaxed: stored only under the lock.
            let free = window(key, shift).find(|index| slots[*index].key.load(Ordering::Relaxed) == 0);
            if let Some(index) = free {
                return Some((base + index as u32 + 1, &slots[index]));
            }
            base += 1 << shift;
        }
        None
    }

    /// Tells a new recorder of all call sites, and of those to come.
    pub(super) fn add_recorder(&self, recorder: &Arc<PerfCore>) {
        let mut known = self.lock();
        for (id, body) in &known.call_sites {
            recorder.learn_call_site(*id, body);
        }
        known.recorders.push(Arc::downgrade(recorder));
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // A panic in between (out of memory) leaves a list that is whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slots of a level in which `key` may be.
#[inline(always)]
fn window(key: usize, shift: u32) -> impl Iterator<Item = usize> {
    // Fibonacci hashing: the high bits of the product depend on all bits of the address. Twice, for call sites often lie at equal
    // distances, of which some would come to lie side by side.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let once = (key as u64).wrapping_mul(FACTOR);
    let hash = (once ^ once >> 32).wrapping_mul(FACTOR) >> (64 - shift);
    let mask = (1 << shift) - 1;
    (0..WINDOW).map(move |step| (hash as usize + step) & mask)
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

    fn call_sites() -> CallSites {
        CallSites {
            levels: [const { OnceLock::new() }; LEVEL_SHIFTS.len()],
            known: Mutex::new(Known { call_sites: Vec::new(), recorders: Vec::new() }),
        }
    }

    #[test]
    fn twenty_thousand_call_sites_have_ids_of_their_own_and_keep_them() {
        let sites = call_sites();
        let keys: Vec<usize> = (1..20_000).map(|n| n * 48).collect();
        let ids: Vec<u32> = keys.iter().map(|key| sites.id_of_key(*key, Vec::new)).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), keys.len());
        assert!(!ids.contains(&NO_CALL_SITE));
        for (key, id) in keys.iter().zip(&ids) {
            assert_eq!(sites.id_of_key(*key, || panic!("described twice")), *id);
        }
        assert!(sites.levels[1].get().is_some());
    }

    #[test]
    fn threads_that_meet_a_call_site_at_once_agree_on_its_id() {
        let sites = call_sites();
        let ids: HashSet<Vec<u32>> = std::thread::scope(|scope| {
            let look = || (1..500).map(|n| sites.id_of_key(n * 48, Vec::new)).collect();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(look)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(ids.len(), 1);
        assert_eq!(sites.lock().call_sites.len(), 499);
    }
}
