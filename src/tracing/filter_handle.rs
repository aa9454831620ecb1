//! A filter that can be changed while other threads use it.

use super::filter::TargetFilter;
use super::switch::switch;
use crate::sync::{AtomicUsize, Ordering};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock, TryLockError};
use tracing_core::{LevelFilter, Metadata};

/// Handle that can change the filter of a [`RecorderSubscriber`](super::RecorderSubscriber) while the program runs.
/// Clones of a handle change the same filter.
#[derive(Clone)]
pub struct FilterHandle(Arc<Shared>);

struct Shared {
    /// Two places for a filter: one holds the current filter, the other takes the next filter. A change locks only the
    /// place that is not current. So a thread that asks the current filter never waits for a lock. In a forked child, a
    /// wait could last for ever, because another thread may have held the lock at the fork.
    filters: [RwLock<TargetFilter>; 2],
    /// Index of the current filter.
    current: AtomicUsize,
    /// Lock that a thread holds while it changes the filter.
    changing: Mutex<()>,
    /// Index in [`LEVELS`] of the one level that decides for all targets. If the filter names targets, this is
    /// [`BY_TARGET`].
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
/// Value of `level_of_all` if the filter names targets, so that one level does not decide for all of them.
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
    /// for all call sites. `tracing` asks through the calling thread's subscriber. If the program has only a scoped
    /// subscriber (`set_default`), call this in its scope: outside of the scope, `tracing` finds no subscriber, and
    /// stores that nobody wants any call site.
    pub fn set(&self, filter: TargetFilter) {
        switch(|| {
            self.replace(filter);
            true
        });
    }

    /// Replaces the filter without making `tracing` ask again. This is enough for a subscriber that is not in use
    /// yet.
    pub(super) fn replace(&self, filter: TargetFilter) {
        let _changing = self.0.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let level_of_all = level_index(&filter);
        // Relaxed: the index is stored only under the lock.
        let next = 1 - self.0.current.load(Ordering::Relaxed);
        // `filters[next]` still holds the filter that was current before the last change, and threads may be using
        // it. The write lock waits until they have finished.
        *self.0.filters[next].write().unwrap_or_else(PoisonError::into_inner) = filter;
        // Release, both stores: the first pairs with the acquire in `ask`, the second with the acquire in `accepts`.
        self.0.current.store(next, Ordering::Release);
        self.0.level_of_all.store(level_of_all, Ordering::Release);
    }

    /// Returns true if the filter accepts a span or event. This must be fast: if the subscribers of a program disagree
    /// about a call site, `tracing` calls this function for every span and event of the call site. So if one level
    /// decides for all targets, this function needs one load.
    #[inline]
    pub(super) fn accepts(&self, metadata: &Metadata<'_>) -> bool {
        // Acquire, pairs with the release in `replace`. `replace` stores the filter before `level_of_all`. So a thread
        // that loads `BY_TARGET` then asks the filter that was stored before this `BY_TARGET`, or a later filter.
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
    /// Calls `ask` with the current filter, and returns what `ask` returns. While another thread changes the filter,
    /// `ask` gets either the old or the new filter.
    fn ask<R>(&self, ask: impl Fn(&TargetFilter) -> R) -> R {
        loop {
            // Acquire, pairs with the release in `replace`: the filter was written before its index was stored, so it
            // is complete here.
            match self.filters[self.current.load(Ordering::Acquire)].try_read() {
                Ok(filter) => return ask(&filter),
                Err(TryLockError::Poisoned(filter)) => return ask(&filter.into_inner()),
                // A thread in `replace` holds the write lock of this filter. It locks only a filter that is not
                // current, so `current` has changed since it was loaded. The loop loads it again.
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
