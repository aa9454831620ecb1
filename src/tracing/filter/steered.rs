//! The filters of this process that clients of its server can change.

use crate::control::{DOMAIN, Switchable, register};
use crate::tracing::filter::filter::TargetFilter;
use crate::tracing::filter::filter_handle::FilterHandle;
use crate::tracing::filter::wish::{Wish, live_filters};
use std::sync::{Arc, Mutex, Once, PoisonError};

/// All filters of this process that can be changed.
#[derive(Default)]
struct SteeredFilters {
    /// The wishes in force, each with its text.
    wishes: Mutex<Vec<(String, Wish)>>,
}

/// Makes the filters known to the servers of this process. A server puts the wishes of its clients into force in
/// filters that are made later, too.
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

    fn set_wishes(&self, wanted: &[String]) -> String {
        let mut wishes = self.wishes.lock().unwrap_or_else(PoisonError::into_inner);
        let filters = live_filters();
        let mut unjudged_spans = 0;
        for text in wanted {
            let Ok(filter) = TargetFilter::parse(text) else { continue };
            for handle in &filters {
                if wishes.iter().any(|(known, wish)| known == text && wish.is_of(handle)) {
                    continue;
                }
                let wish = handle.in_scope(|| handle.wish(filter.clone()));
                unjudged_spans += wish.unjudged_spans();
                wishes.push((text.clone(), wish));
            }
        }
        // Old wishes end after the new ones have begun, so what both want is recorded without a break.
        let (kept, ended) = wishes.drain(..).partition(|(text, _)| wanted.contains(text));
        *wishes = kept;
        for (_, wish) in ended {
            let handle = wish.handle();
            handle.in_scope(|| drop(wish));
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
