//! The filters of this process that can be changed.

use crate::tracing::filter::filter_handle::{FilterHandle, SharedFilter, may_judge};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

/// Filters that are no longer used are removed when another one is added.
static LIVE_FILTERS: Mutex<Vec<Weak<SharedFilter>>> = Mutex::new(Vec::new());

fn lock() -> MutexGuard<'static, Vec<Weak<SharedFilter>>> {
    LIVE_FILTERS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn add(filter: &FilterHandle) {
    let mut filters = lock();
    filters.retain(|filter| filter.strong_count() > 0);
    filters.push(filter.downgrade());
}

/// Returns handles to the filters of this process that can be changed: those of all `RecorderSubscriber`s, and those
/// that were made for layers.
pub(in crate::tracing) fn live_filters() -> Vec<FilterHandle> {
    lock().iter().filter_map(FilterHandle::from_weak).collect()
}

/// Calls `f` with each filter that has conditions on values of fields.
pub(in crate::tracing) fn each_judging_filter(f: impl Fn(&FilterHandle)) {
    if may_judge() {
        live_filters().iter().filter(|filter| filter.judges_values()).for_each(f);
    }
}
