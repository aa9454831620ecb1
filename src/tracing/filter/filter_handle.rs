//! A filter that can be changed while other threads use it.

use crate::sync::{AtomicBool, AtomicUsize, Ordering, fence};
use crate::tracing::filter::directive::limits::LEVELS;
use crate::tracing::filter::effective::{EffectiveFilter, SpanDirective};
use crate::tracing::filter::filter::TargetFilter;
use crate::tracing::filter::span_matches::SpanMatches;
use crate::tracing::filter::switch::switch;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, TryLockError, Weak};
use tracing_core::dispatcher::{Dispatch, WeakDispatch};
use tracing_core::subscriber::Interest;
use tracing_core::{LevelFilter, Metadata};

/// Handle that can change a filter while the program runs: the filter of a
/// [`RecorderSubscriber`](crate::tracing::RecorderSubscriber), or of a layer
/// ([`RecorderLayer::filtered`](crate::tracing::RecorderLayer::filtered)). Clones of a handle change the same filter.
///
/// A change is effective on all threads when the function returns, for spans that are open already, too: a span
/// directive counts at once for every open span that was recorded.
#[derive(Clone)]
pub struct FilterHandle(Arc<SharedFilter>);

/// A filter that can be changed. All its handles share it.
pub(in crate::tracing) struct SharedFilter {
    /// True while a directive has a condition on the value of a field. Then each new span is judged.
    judges_values: AtomicBool,
    /// Two places for a filter: one holds the current filter, the other takes the next filter. A change locks only the
    /// place that is not current. So a thread that asks the current filter never waits for a lock. In a forked child, a
    /// wait could last for ever, because another thread may have held the lock at the fork.
    filters: [RwLock<EffectiveFilter>; 2],
    /// Index of the current filter.
    current: AtomicUsize,
    /// Lock that a thread holds while it changes the filter.
    changing: Mutex<Changing>,
    /// Index in [`LEVELS`] of the one level that decides for all targets. If the filter names targets, this is
    /// [`BY_TARGET`].
    level_of_all: AtomicUsize,
    /// The open spans that have met conditions of span directives.
    matches: SpanMatches,
    /// The first dispatcher of the subscriber, or of the stack of layers, that uses the filter.
    dispatch: OnceLock<WeakDispatch>,
}

/// The open spans of one subscriber or layer that the filter belongs to.
pub(in crate::tracing) trait OpenSpans: Send {
    /// Judges the open spans by new directives, and adds what they have met to `matches`. Returns the number of spans
    /// that could not be judged.
    fn judge(&self, directives: &[&SpanDirective], matches: &SpanMatches) -> u64;
}

/// The state that only changes of a filter need.
#[derive(Default)]
pub(super) struct Changing {
    next_key: u32,
    pub(super) next_override: u64,
    /// The subscribers and layers that the filter belongs to.
    sources: Vec<Box<dyn OpenSpans>>,
}

/// Value of `level_of_all` if the filter names targets, so that one level does not decide for all of them.
const BY_TARGET: usize = LEVELS.len();

/// True if there is, or has been, a filter with conditions on values of fields.
static MAY_JUDGE: AtomicBool = AtomicBool::new(false);

fn note_judging_filter() {
    // Relaxed, as `FilterHandle::judges_values`.
    MAY_JUDGE.store(true, Ordering::Relaxed);
}

/// Returns true if there is, or has been, a filter with conditions on values of fields.
#[inline(always)]
pub(in crate::tracing) fn may_judge() -> bool {
    MAY_JUDGE.load(Ordering::Relaxed)
}

impl FilterHandle {
    /// Makes a filter that the process does not know yet.
    pub(super) fn not_known_yet(filter: TargetFilter) -> Self {
        let mut changing = Changing::default();
        let filter = EffectiveFilter::new(filter, Vec::new(), &[], &mut changing.next_key);
        if filter.judges_values() {
            note_judging_filter();
        }
        Self(Arc::new(SharedFilter {
            judges_values: AtomicBool::new(filter.judges_values()),
            level_of_all: AtomicUsize::new(level_index(&filter)),
            filters: [RwLock::new(filter.clone()), RwLock::new(filter)],
            current: AtomicUsize::new(0),
            changing: Mutex::new(changing),
            matches: SpanMatches::default(),
            dispatch: OnceLock::new(),
        }))
    }

    pub(in crate::tracing) fn from_weak(filter: &Weak<SharedFilter>) -> Option<Self> {
        filter.upgrade().map(Self)
    }

    pub(in crate::tracing) fn downgrade(&self) -> Weak<SharedFilter> {
        Arc::downgrade(&self.0)
    }

    /// Adds a subscriber or layer that uses the filter.
    pub(in crate::tracing) fn add_source(&self, source: impl OpenSpans + 'static) {
        self.0.changing.lock().unwrap_or_else(PoisonError::into_inner).sources.push(Box::new(source));
    }

    /// Notes the dispatcher of the subscriber that uses the filter.
    pub(in crate::tracing) fn add_dispatch(&self, dispatch: &Dispatch) {
        // Any dispatcher would do: it is needed only to reach the subscriber.
        let _ = self.0.dispatch.set(dispatch.downgrade());
    }

    /// Calls `change` in the scope of the subscriber that uses the filter. `tracing` asks the subscriber of the calling
    /// thread, and a thread of a server has none if the program uses only scoped subscribers.
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    pub(in crate::tracing) fn in_scope<R>(&self, change: impl FnOnce() -> R) -> R {
        match self.0.dispatch.get().and_then(WeakDispatch::upgrade) {
            Some(dispatch) => tracing_core::dispatcher::with_default(&dispatch, change),
            None => change(),
        }
    }

    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    pub(in crate::tracing) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the configured filter, without filter overrides.
    #[must_use]
    pub fn get(&self) -> TargetFilter {
        self.ask(|filter| filter.configured.clone())
    }

    /// Replaces the configured filter. Filter overrides stay. Spans that are open stay recorded.
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

    /// Replaces the configured filter without making `tracing` ask again. This is enough for a subscriber that is not
    /// in use yet.
    pub(in crate::tracing) fn replace(&self, filter: TargetFilter) {
        self.change(|_, effective| effective.configured = filter);
    }

    /// Changes the filter, and judges the open spans by new directives. Returns the number of spans that could not be
    /// judged.
    pub(super) fn change(&self, change: impl FnOnce(&mut Changing, &mut EffectiveFilter)) -> u64 {
        let shared = &*self.0;
        let mut changing = shared.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wanted = self.ask(EffectiveFilter::clone);
        change(&mut changing, &mut wanted);
        let old = wanted.span_directives;
        let filter = EffectiveFilter::new(wanted.configured, wanted.overrides, &old, &mut changing.next_key);
        shared.store(filter.clone());
        if old.is_empty() && filter.span_directives.is_empty() {
            return 0;
        }
        shared.matches.keep(|key| filter.span_directives.iter().any(|directive| directive.key == key));
        let is_new = |key| old.iter().all(|directive| directive.key != key);
        let values = filter.span_directives.iter().filter(|directive| directive.has_values());
        let new: Vec<_> = values.filter(|directive| is_new(directive.key)).collect();
        if new.is_empty() {
            return 0;
        }
        // Two full fences (docs/ORDERING.md): a thread that creates a span gets the seqno of the event, which is a full
        // fence, and then loads the filter. This thread has stored the filter and then loads the last seqnos. So either
        // that thread judges the span by the new filter, or this thread finds its event.
        fence(Ordering::SeqCst);
        changing.sources.iter().map(|source| source.judge(&new, &shared.matches)).sum()
    }

    /// Returns true if the filter accepts a span or event, wherever it happens. This must be fast: if the subscribers
    /// of a program disagree about a call site, `tracing` calls this function for every span and event of the call
    /// site. So if one level decides for all targets, this function needs one load.
    #[inline]
    pub(in crate::tracing) fn accepts(&self, metadata: &Metadata<'_>) -> bool {
        // Acquire, pairs with the release in `store`. `store` stores the filter before `level_of_all`. So a thread that
        // loads `BY_TARGET` then asks the filter that was stored before this `BY_TARGET`, or a later filter.
        match LEVELS.get(self.0.level_of_all.load(Ordering::Acquire)) {
            Some(level) => metadata.level() <= level,
            None => self.accepts_target(metadata),
        }
    }

    #[inline(never)]
    fn accepts_target(&self, metadata: &Metadata<'_>) -> bool {
        self.ask(|filter| filter.accepts(metadata))
    }

    /// Returns true if a span directive accepts a span or event that happens now, because of a span that the thread is
    /// in. `any_span` returns true if the function it gets does so for the id and call site of one of these spans. In a
    /// forked child, `is_in_this_process` returns false, and so does this function: it may wait for a lock, and the
    /// child records nothing.
    pub(in crate::tracing) fn accepts_in_spans(
        &self,
        metadata: &Metadata<'_>,
        is_in_this_process: impl Fn() -> bool,
        any_span: impl Fn(&dyn Fn(u64, &Metadata<'_>) -> bool) -> bool,
    ) -> bool {
        let level = *metadata.level();
        self.ask(|filter| {
            filter.may_accept_in_spans(level)
                && is_in_this_process()
                && any_span(&|span_id, span| {
                    filter.accepts_in(level, span, |conditions| self.0.matches.has_met(span_id, conditions))
                })
        })
    }

    /// Returns the interest in a call site.
    pub(in crate::tracing) fn interest(&self, metadata: &Metadata<'_>) -> Interest {
        self.ask(|filter| filter.interest(metadata))
    }

    /// Returns true if new spans must be judged by the values of their fields. Ask this after the event with the values
    /// was recorded.
    #[inline(always)]
    pub(in crate::tracing) fn judges_values(&self) -> bool {
        // Relaxed: `ask` loads the filter with acquire.
        self.0.judges_values.load(Ordering::Relaxed)
    }

    /// Judges a span by values of its fields that have just been recorded. `payload` has the values.
    pub(in crate::tracing) fn judge(&self, span_id: u64, span: &Metadata<'_>, payload: &[u8]) {
        let met: Vec<_> = self.ask(|filter| {
            let fitting = filter.span_directives.iter().filter(|directive| directive.fits_span(span));
            fitting.map(|directive| directive.conditions_met(span, payload)).collect()
        });
        self.0.matches.add(span_id, met);
    }

    /// Returns the least important level that the filter accepts somewhere.
    pub(in crate::tracing) fn max_level(&self) -> LevelFilter {
        self.ask(EffectiveFilter::max_level)
    }

    /// Calls `ask` with the current filter, and returns what `ask` returns. While another thread changes the filter,
    /// `ask` gets either the old or the new filter.
    pub(in crate::tracing) fn ask<R>(&self, ask: impl Fn(&EffectiveFilter) -> R) -> R {
        self.0.ask(ask)
    }
}

impl FilterHandle {
    /// Returns the configured filter as text.
    pub(crate) fn configured(&self) -> String {
        self.get().to_string()
    }

    /// Returns what the configured filter and the filter overrides accept together, as one filter.
    pub(crate) fn effective(&self) -> TargetFilter {
        self.ask(EffectiveFilter::union)
    }
}

impl SharedFilter {
    /// Makes `filter` the current filter. Only one thread at a time may call this.
    fn store(&self, filter: EffectiveFilter) {
        let level_of_all = level_index(&filter);
        let judges_values = filter.judges_values();
        if judges_values {
            note_judging_filter();
        }
        // Relaxed: the index is stored only under the lock.
        let next = 1 - self.current.load(Ordering::Relaxed);
        // `filters[next]` still holds the filter that was current before the last change, and threads may be using
        // it. The write lock waits until they have finished.
        *self.filters[next].write().unwrap_or_else(PoisonError::into_inner) = filter;
        // Release, all stores: the first pairs with the acquire in `ask`, the second with the acquire in `accepts`.
        self.current.store(next, Ordering::Release);
        self.level_of_all.store(level_of_all, Ordering::Release);
        self.judges_values.store(judges_values, Ordering::Release);
    }

    /// Calls `ask` with the current filter, and returns what `ask` returns. While another thread changes the filter,
    /// `ask` gets either the old or the new filter.
    fn ask<R>(&self, ask: impl Fn(&EffectiveFilter) -> R) -> R {
        loop {
            // Acquire, pairs with the release in `store`: the filter was written before its index was stored, so it
            // is complete here.
            match self.filters[self.current.load(Ordering::Acquire)].try_read() {
                Ok(filter) => return ask(&filter),
                Err(TryLockError::Poisoned(filter)) => return ask(&filter.into_inner()),
                // A thread in `store` holds the write lock of this filter. It locks only a filter that is not
                // current, so `current` has changed since it was loaded. The loop loads it again.
                Err(TryLockError::WouldBlock) => {}
            }
        }
    }
}

fn level_index(filter: &EffectiveFilter) -> usize {
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
        let index_of = |filter: TargetFilter| FilterHandle::new(filter).ask(level_index);
        for (index, level) in LEVELS.into_iter().enumerate() {
            assert_eq!(index_of(TargetFilter::level(level)), index);
        }
        for (filter, index) in [
            ("warn", 2),
            ("", 0),
            ("warn,db=debug", BY_TARGET),
            ("db=debug", BY_TARGET),
            ("info,[query]=debug", BY_TARGET),
        ] {
            assert_eq!(index_of(filter.parse().unwrap()), index, "{filter}");
        }
        let filter = FilterHandle::new(TargetFilter::level(LevelFilter::WARN));
        let filter_override = filter.add_override(TargetFilter::level(LevelFilter::DEBUG));
        assert_eq!(filter.ask(level_index), 4);
        drop(filter_override);
        assert_eq!(filter.ask(level_index), 2);
        assert!(TargetFilter::all().accepts("any", &Level::TRACE));
    }

    #[test]
    fn the_effective_filter_accepts_what_the_configured_one_and_the_overrides_accept() {
        let filter = FilterHandle::new("info,db=warn,db::pool=off".parse().unwrap());
        let overrides = ["db=debug", "error,net=trace,[query{user=7}]=trace"]
            .map(|filter_override| filter.add_override(filter_override.parse().unwrap()));
        let accepts = |target: &str| {
            let levels = [Level::TRACE, Level::DEBUG, Level::INFO, Level::WARN, Level::ERROR];
            let by_all = |level: &Level| filter.ask(|filter| filter.union().accepts(target, level));
            levels.into_iter().find(by_all)
        };
        assert_eq!(accepts("other"), Some(Level::INFO));
        assert_eq!(accepts("db"), Some(Level::DEBUG));
        assert_eq!(accepts("db::pool"), Some(Level::DEBUG));
        assert_eq!(accepts("net"), Some(Level::TRACE));
        assert_eq!(filter.effective().to_string(), "db::pool=debug,net=trace,db=debug,[query{user=7}]=trace,info");
        assert_eq!(filter.configured(), "db::pool=off,db=warn,info");
        assert!(
            crate::tracing::filter::live_filters::live_filters().iter().any(|live| Arc::ptr_eq(&live.0, &filter.0))
        );
        drop(overrides);
        assert_eq!(filter.effective().to_string(), filter.configured());
    }
}
