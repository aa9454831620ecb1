//! The filters of this process that clients of its server can change.

use crate::control::{DOMAIN, Switchable, register};
use crate::tracing::filter::filter::TargetFilter;
use crate::tracing::filter::filter_handle::FilterHandle;
use crate::tracing::filter::filter_override::FilterOverride;
use crate::tracing::filter::live_filters::live_filters;
use std::sync::{Arc, Mutex, Once, PoisonError};

/// All filters of this process that can be changed.
#[derive(Default)]
struct SteeredFilters {
    /// The filter overrides in force, each with its text.
    overrides: Mutex<Vec<(String, FilterOverride)>>,
}

/// Makes the filters known to the servers of this process. A server puts the filter overrides of its clients into force
/// in filters that are made later, too.
pub(in crate::tracing) fn make_known() {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| register(Arc::new(SteeredFilters::default())));
    crate::control::changed();
}

impl Switchable for SteeredFilters {
    fn is_alive(&self) -> bool {
        true
    }

    fn takes(&self, directive: &str) -> Result<bool, String> {
        if directive.starts_with(DOMAIN) || live_filters().is_empty() {
            return Ok(false);
        }
        TargetFilter::parse(directive).map(|_| true).map_err(|error| error.to_string())
    }

    fn set_overrides(&self, wanted: &[String]) -> String {
        let mut overrides = self.overrides.lock().unwrap_or_else(PoisonError::into_inner);
        let filters = live_filters();
        let mut unjudged_spans = 0;
        for text in wanted {
            let Ok(filter) = TargetFilter::parse(text) else { continue };
            for handle in &filters {
                if overrides.iter().any(|(known, filter_override)| known == text && filter_override.is_of(handle)) {
                    continue;
                }
                let filter_override = handle.in_scope(|| handle.add_override(filter.clone()));
                unjudged_spans += filter_override.unjudged_spans();
                overrides.push((text.clone(), filter_override));
            }
        }
        // Old filter overrides end after the new ones have begun, so what both want is recorded without a break.
        let (kept, ended) = overrides.drain(..).partition(|(text, _)| wanted.contains(text));
        *overrides = kept;
        for (_, filter_override) in ended {
            let handle = filter_override.handle();
            handle.in_scope(|| drop(filter_override));
        }
        match unjudged_spans {
            0 => String::new(),
            count => format!(
                "{count} open {} could not be judged: the values of fields are no longer in the ring; spans that are \
                 created from now on are judged",
                if count == 1 { "span" } else { "spans" }
            ),
        }
    }

    fn configured(&self) -> String {
        joined(live_filters().iter().map(FilterHandle::configured))
    }

    fn effective(&self) -> String {
        joined(live_filters().iter().map(|filter| filter.effective().to_string()))
    }
}

/// Joins the filters of several subscribers. Most programs have one.
fn joined(filters: impl Iterator<Item = String>) -> String {
    let mut filters: Vec<String> = filters.filter(|filter| !filter.is_empty()).collect();
    filters.dedup();
    filters.join(",")
}
