//! A filter that can be changed while others ask it.

use super::filter::TargetFilter;
use super::switch::switch;
use crate::sync::{AtomicUsize, Ordering};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock, TryLockError};
use tracing_core::{LevelFilter, Metadata};

/// Changes the filter of a [`RecorderSubscriber`](super::RecorderSubscriber) while the program runs.
#[derive(Clone)]
pub struct FilterHandle(Arc<Shared>);

struct Shared {
    /// The filter, and a place for the next one. Who asks never waits: in a forked child a lock could be held for ever.
    filters: [RwLock<TargetFilter>; 2],
    /// Which of the two holds.
    current: AtomicUsize,
    /// Who has it changes the filter.
    changing: Mutex<()>,
    /// Place of the filter's only level in [`LEVELS`]; [`BY_TARGET`] if it has several.
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
/// No place in [`LEVELS`].
const BY_TARGET: usize = LEVELS.len();

impl FilterHandle {
    pub(super) fn new(filter: TargetFilter) -> Self {
        let level_of_all = AtomicUsize::new(place_of_level(&filter));
        let filters = [RwLock::new(filter.clone()), RwLock::new(filter)];
        Self(Arc::new(Shared { filters, current: AtomicUsize::new(0), changing: Mutex::new(()), level_of_all }))
    }

    /// The filter now.
    #[must_use]
    pub fn get(&self) -> TargetFilter {
        self.0.ask(TargetFilter::clone)
    }

    /// Replaces the filter. Spans that are open stay recorded.
    ///
    /// All call sites are asked again, by way of the calling thread's subscriber: if the program has only one, in a scope
    /// (`set_default`), call this in that scope; elsewhere `tracing` finds nobody who wants anything.
    pub fn set(&self, filter: TargetFilter) {
        switch(|| {
            self.replace(filter);
            true
        });
    }

    /// As [`Self::set`] for a subscriber that nobody uses yet.
    pub(super) fn replace(&self, filter: TargetFilter) {
        let _changing = self.0.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let level_of_all = place_of_level(&filter);
        // Relaxed: stored only under the lock.
        let next = 1 - self.0.current.load(Ordering::Relaxed);
        // Waits for those who still ask the filter before the last one.
        *self.0.filters[next].write().unwrap_or_else(PoisonError::into_inner) = filter;
        // Release, twice: who sees it sees what was stored before.
        self.0.current.store(next, Ordering::Release);
        self.0.level_of_all.store(level_of_all, Ordering::Release);
    }

    /// Whether a span or event is to be recorded. (If several subscribers of a program do not agree on a call site, this is asked each
    /// time: hence the short way.)
    #[inline]
    pub(super) fn accepts(&self, metadata: &Metadata<'_>) -> bool {
        // Acquire: that the filter is one by target comes with that filter, or a later one.
        match LEVELS.get(self.0.level_of_all.load(Ordering::Acquire)) {
            Some(level) => metadata.level() <= level,
            None => self.accepts_target(metadata),
        }
    }

    #[inline(never)]
    fn accepts_target(&self, metadata: &Metadata<'_>) -> bool {
        self.0.ask(|filter| filter.accepts_metadata(metadata))
    }

    /// Nothing less important than this is recorded.
    pub(super) fn max_level(&self) -> LevelFilter {
        self.0.ask(TargetFilter::max_level)
    }
}

impl Shared {
    /// Asks the filter; while it is being changed, the old or the new one.
    fn ask<R>(&self, ask: impl Fn(&TargetFilter) -> R) -> R {
        loop {
            // Acquire: with the number comes the filter.
            match self.filters[self.current.load(Ordering::Acquire)].try_read() {
                Ok(filter) => return ask(&filter),
                Err(TryLockError::Poisoned(filter)) => return ask(&filter.into_inner()),
                // Only the one that does not hold is changed: the other one holds by now.
                Err(TryLockError::WouldBlock) => {}
            }
        }
    }
}

fn place_of_level(filter: &TargetFilter) -> usize {
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
    fn a_filter_of_one_level_is_known_by_its_level_and_any_other_is_asked_for_targets() {
        for (place, level) in LEVELS.into_iter().enumerate() {
            assert_eq!(place_of_level(&TargetFilter::level(level)), place);
        }
        for (filter, place) in [("warn", 2), ("", 0), ("warn,db=debug", BY_TARGET), ("db=debug", BY_TARGET)] {
            assert_eq!(place_of_level(&filter.parse().unwrap()), place, "{filter}");
        }
        assert!(TargetFilter::all().accepts("any", &Level::TRACE));
    }
}
