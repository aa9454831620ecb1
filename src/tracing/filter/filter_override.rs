//! Filter overrides: directives for recording more than the configured filter allows.

use crate::tracing::filter::filter::TargetFilter;
use crate::tracing::filter::filter_handle::FilterHandle;
use crate::tracing::filter::switch::switch;

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

impl FilterHandle {
    /// Adds a filter override: what `filter` accepts is recorded, too, until the filter override is dropped. What was
    /// said of [`Self::set`] and scoped subscribers also holds here, and for the drop of the filter override.
    ///
    /// If a directive names the value of a field, this function reads the values of the open spans from the recorder's
    /// rings. This takes a few milliseconds.
    pub fn add_override(&self, filter: TargetFilter) -> FilterOverride {
        let mut added = (0, 0);
        switch(|| {
            let mut number = 0;
            let unjudged_spans = self.change(|changing, effective| {
                changing.next_override += 1;
                number = changing.next_override;
                effective.overrides.push((number, filter));
            });
            added = (number, unjudged_spans);
            true
        });
        let (number, unjudged_spans) = added;
        FilterOverride { filter: self.clone(), number, unjudged_spans }
    }

    pub(in crate::tracing) fn end_override(&self, number: u64) {
        switch(|| {
            self.change(|_, effective| effective.overrides.retain(|(other, _)| *other != number));
            true
        });
    }
}
