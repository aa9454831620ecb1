//! A filter that can be changed while others ask it.

use super::filter::TargetFilter;
use crate::sync::{AtomicUsize, Ordering};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use tracing_core::{LevelFilter, Metadata};

/// Changes the filter of a [`RecorderSubscriber`](super::RecorderSubscriber) while the program runs.
#[derive(Clone)]
pub struct FilterHandle(Arc<Shared>);

struct Shared {
    filter: RwLock<TargetFilter>,
    /// Place of the filter's only level in [`LEVELS`]; [`BY_TARGET`] if it has several.
    level_of_all: AtomicUsize,
}

const LEVELS: [LevelFilter; 6] = [
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
        Self(Arc::new(Shared { filter: RwLock::new(filter), level_of_all }))
    }

    /// The filter now.
    #[must_use]
    pub fn get(&self) -> TargetFilter {
        self.0.filter.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the filter. Spans that are open stay recorded.
    ///
    /// All call sites are asked again, by way of the calling thread's subscriber: if the program has only one, in a scope
    /// (`set_default`), call this in that scope; elsewhere `tracing` finds nobody who wants anything.
    pub fn set(&self, filter: TargetFilter) {
        self.replace(filter);
        tracing_core::callsite::rebuild_interest_cache();
    }

    /// As [`Self::set`] for a subscriber that nobody uses yet.
    pub(super) fn replace(&self, filter: TargetFilter) {
        let mut old = self.0.filter.write().unwrap_or_else(PoisonError::into_inner);
        // Relaxed: all call sites are asked again after the change; until then either answer will do.
        self.0.level_of_all.store(place_of_level(&filter), Ordering::Relaxed);
        *old = filter;
    }

    /// Whether a span or event is to be recorded. (If several subscribers of a program do not agree on a call site, this is asked each
    /// time: hence the short way.)
    #[inline]
    pub(super) fn accepts(&self, metadata: &Metadata<'_>) -> bool {
        match LEVELS.get(self.0.level_of_all.load(Ordering::Relaxed)) {
            Some(level) => metadata.level() <= level,
            None => self.accepts_target(metadata),
        }
    }

    #[inline(never)]
    fn accepts_target(&self, metadata: &Metadata<'_>) -> bool {
        // Who changes it holds the lock for an instant only, and then all call sites are asked again. (In a forked child it
        // could be held for ever.)
        self.0.filter.try_read().map_or(true, |filter| filter.accepts_metadata(metadata))
    }

    /// Nothing less important than this is recorded; `None` while the filter is being changed.
    pub(super) fn max_level(&self) -> Option<LevelFilter> {
        self.0.filter.try_read().ok().map(|filter| filter.max_level())
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
