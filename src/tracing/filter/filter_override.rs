//! Filter overrides: directives for recording more than the configured filter allows.

use crate::tracing::filter::filter::TargetFilter;
use crate::tracing::filter::filter_handle::{FilterHandle, SharedFilter};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

/// A filter override for spans and events, in addition to what the configured filter accepts. It lasts until it is
/// dropped.
///
/// While there are filter overrides, a span or event is recorded if the configured filter or any of the filter
/// overrides accepts it. [`FilterHandle::add_override`] makes a filter override.
#[must_use = "a filter override ends when it is dropped"]
#[derive(Debug)]
pub struct FilterOverride {
    pub(in crate::tracing) filter: FilterHandle,
    pub(in crate::tracing) number: u64,
    pub(in crate::tracing) unjudged_spans: u64,
}

impl FilterOverride {
    /// Returns the number of open spans that could not be judged when the filter override came. A directive names the
    /// value of a field of such a span, but the value is not known any more: the event of the span's creation was
    /// overwritten in the ring, or was never recorded. The filter override does not count such a span as met, unless
    /// the value is recorded again.
    #[must_use]
    pub fn unjudged_spans(&self) -> u64 {
        self.unjudged_spans
    }

    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    pub(in crate::tracing) fn is_of(&self, filter: &FilterHandle) -> bool {
        self.filter.is_same(filter)
    }

    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    pub(in crate::tracing) fn handle(&self) -> FilterHandle {
        self.filter.clone()
    }
}

impl Drop for FilterOverride {
    fn drop(&mut self) {
        self.filter.end_override(self.number);
    }
}

/// The filters of this process that can be changed. Filters that are no longer used are removed when another one is
/// added.
static LIVE_FILTERS: Mutex<Vec<Weak<SharedFilter>>> = Mutex::new(Vec::new());

fn lock() -> MutexGuard<'static, Vec<Weak<SharedFilter>>> {
    LIVE_FILTERS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(in crate::tracing) fn add_live_filter(filter: Weak<SharedFilter>) {
    let mut filters = lock();
    filters.retain(|filter| filter.strong_count() > 0);
    filters.push(filter);
    drop(filters);
    #[cfg(all(feature = "server", target_os = "linux", not(eventring_unsupported)))]
    crate::tracing::filter::steered::make_known();
}

/// Returns handles to the filters of this process that can be changed: those of all `RecorderSubscriber`s, and those
/// that were made for layers.
pub(in crate::tracing) fn live_filters() -> Vec<FilterHandle> {
    lock().iter().filter_map(FilterHandle::from_weak).collect()
}

/// The filters with conditions on values of fields.
pub(in crate::tracing) mod judging_filters {
    use super::{FilterHandle, live_filters};
    use crate::sync::{AtomicBool, Ordering};

    static MAY_EXIST: AtomicBool = AtomicBool::new(false);

    /// Notes that there is such a filter.
    pub(in crate::tracing) fn note() {
        // Relaxed, as `FilterHandle::judges_values`.
        MAY_EXIST.store(true, Ordering::Relaxed);
    }

    /// Returns true if there is, or has been, such a filter.
    #[inline(always)]
    pub(in crate::tracing) fn may_exist() -> bool {
        MAY_EXIST.load(Ordering::Relaxed)
    }

    /// Calls `f` with each of these filters.
    pub(in crate::tracing) fn for_each(f: impl Fn(&FilterHandle)) {
        if may_exist() {
            live_filters().iter().filter(|filter| filter.judges_values()).for_each(f);
        }
    }
}

impl FilterHandle {
    /// Returns the configured filter as text.
    pub(crate) fn configured(&self) -> String {
        self.get().to_string()
    }

    /// Returns what the configured filter and the filter overrides accept together, as one filter.
    pub(crate) fn effective(&self) -> TargetFilter {
        self.ask(crate::tracing::filter::effective::EffectiveFilter::union)
    }
}
