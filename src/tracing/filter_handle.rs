//! A filter that can be changed while other threads use it.

use super::filter::TargetFilter;
use super::switch::switch;
use crate::sync::{AtomicUsize, Ordering};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock, TryLockError};
use tracing_core::{LevelFilter, Metadata};

/// Handle that changes the filter of a [`RecorderSubscriber`](super::RecorderSubscriber) while the program runs.
#[derive(Clone)]
pub struct FilterHandle(Arc<Shared>);

struct Shared {
    /// The current filter, and room for the next filter. Readers never wait for a lock, because in a forked child a
    /// lock may be held for ever.
    filters: [RwLock<TargetFilter>; 2],
    /// Index of the current filter.
    current: AtomicUsize,
    /// Lock that a thread holds while it changes the filter.
    changing: Mutex<()>,
    /// Index in [`LEVELS`] of the level that decides for all targets, or [`BY_TARGET`] if targets have levels of their
    /// own.
    level_of_all: AtomicUsize,
}

/// All levels, the most important first.
pub(super) const LEVELS: [LevelFilter; 6] = [
    LevelFilter::OFF,
    LevelFilter::ERROR,
    LevelFilter::WARN,
    LevelFilter::INFO,
    LevelFilter::DEBUG,
    LevelFilter::TRACE,
];
/// Value of `level_of_all` if no single level decides for all targets.
const BY_TARGET: usize = LEVELS.len();

impl FilterHandle {
    pub(super) fn new(filter: TargetFilter) -> Self {
        let level_of_all = AtomicUsize::new(level_index(&filter));
        let filters = [RwLock::new(filter.clone()), RwLock::new(filter)];
        Self(Arc::new(Shared { filters, current: AtomicUsize::new(0), changing: Mutex::new(()), level_of_all }))
    }

    /// Returns the current filter.
    #[must_use]
    pub fn get(&self) -> TargetFilter {
        self.0.ask(TargetFilter::clone)
    }

    /// Replaces the filter. Spans that are open stay recorded.
    ///
    /// `tracing` caches for each call site whether a subscriber wants it. So this function makes `tracing` ask again
    /// for all call sites, through the calling thread's subscriber. If the program has only a scoped subscriber
    /// (`set_default`), call this in its scope. Outside of the scope, `tracing` finds no subscriber that wants any call
    /// site.
    pub fn set(&self, filter: TargetFilter) {
        switch(|| {
            self.replace(filter);
            true
        });
    }

    /// Sets the filter of a subscriber that is not in use yet, like [`Self::set`].
    pub(super) fn replace(&self, filter: TargetFilter) {
        let _changing = self.0.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let level_of_all = level_index(&filter);
        // Relaxed: the index is stored only under the lock.
        let next = 1 - self.0.current.load(Ordering::Relaxed);
        // The place of the next filter holds the filter that was current before the last change. The lock waits for
        // threads that still use that filter.
        *self.0.filters[next].write().unwrap_or_else(PoisonError::into_inner) = filter;
        // Both stores are release, and pair with the acquire loads in `ask` and `accepts`.
        self.0.current.store(next, Ordering::Release);
        self.0.level_of_all.store(level_of_all, Ordering::Release);
    }

    /// Returns true if a span or event is to be recorded. (If several subscribers of a program do not agree on a call
    /// site, `tracing` calls this for each of its spans and events. So there is a fast path.)
    #[inline]
    pub(super) fn accepts(&self, metadata: &Metadata<'_>) -> bool {
        // Acquire, pairs with the release in `replace`: a thread that loads `BY_TARGET` then sees the filter for which
        // `BY_TARGET` was stored, or a later filter.
        match LEVELS.get(self.0.level_of_all.load(Ordering::Acquire)) {
            Some(level) => metadata.level() <= level,
            None => self.accepts_target(metadata),
        }
    }

    #[inline(never)]
    fn accepts_target(&self, metadata: &Metadata<'_>) -> bool {
        self.0.ask(|filter| filter.accepts_metadata(metadata))
    }

    /// Returns the least important level that the filter accepts for some target.
    pub(super) fn max_level(&self) -> LevelFilter {
        self.0.ask(TargetFilter::max_level)
    }
}

impl Shared {
    /// Calls `ask` with the filter. While the filter is being changed, `ask` gets the old filter or the new filter.
    fn ask<R>(&self, ask: impl Fn(&TargetFilter) -> R) -> R {
        loop {
            // Acquire, pairs with the release in `replace`, so that the filter is written before it is used.
            match self.filters[self.current.load(Ordering::Acquire)].try_read() {
                Ok(filter) => return ask(&filter),
                Err(TryLockError::Poisoned(filter)) => return ask(&filter.into_inner()),
                // A writer locks only the filter that is not current. So the index has changed since it was loaded, and
                // is loaded again.
                Err(TryLockError::WouldBlock) => {}
            }
        }
    }
}

fn level_index(filter: &TargetFilter) -> usize {
    let level_of_all = filter.level_of_all();
    LEVELS.iter().position(|level| Some(*level) == level_of_all).unwrap_or(BY_TARGET)
}

impl fmt::Debug for FilterHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FilterHandle").field(&self.get()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_core::Level;

    #[test]
    fn a_filter_of_one_level_is_known_by_its_level_and_any_other_by_its_targets() {
        for (index, level) in LEVELS.into_iter().enumerate() {
            assert_eq!(level_index(&TargetFilter::level(level)), index);
        }
        for (filter, index) in [("warn", 2), ("", 0), ("warn,db=debug", BY_TARGET), ("db=debug", BY_TARGET)] {
            assert_eq!(level_index(&filter.parse().unwrap()), index, "{filter}");
        }
        assert!(TargetFilter::all().accepts("any", &Level::TRACE));
    }
}
