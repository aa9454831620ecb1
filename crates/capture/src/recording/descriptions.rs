//! A cache of facts about descriptions of call sites and threads. Its key is the address of the description.

use eventring::tracing::{CallSite, IdMap, Span};
use std::sync::Arc;

/// One fact for each description. The descriptions are kept, so no other description comes to the same address.
pub struct PerDescription<D, F> {
    facts: IdMap<usize, (Arc<D>, F)>,
}

impl<D, F> Default for PerDescription<D, F> {
    fn default() -> Self {
        Self { facts: IdMap::default() }
    }
}

impl<D, F> PerDescription<D, F> {
    /// Returns the fact about a description, if it was inserted.
    pub fn get(&self, description: &Arc<D>) -> Option<&F> {
        self.facts.get(&address(description)).map(|(_, fact)| fact)
    }

    /// Returns the number of descriptions.
    pub fn count(&self) -> usize {
        self.facts.len()
    }

    /// Adds the fact about a description, or replaces it.
    pub fn insert(&mut self, description: &Arc<D>, fact: F) {
        self.facts.insert(address(description), (description.clone(), fact));
    }
}

impl<F: Copy> PerDescription<CallSite, F> {
    /// Returns the fact about a span's call site. `find` finds it for a call site that is new, and for each span whose
    /// call site is not known.
    pub fn of_span(&mut self, span: &Span, find: impl FnOnce() -> F) -> F {
        let site = span.call_site.as_ref().filter(|site| site.is_known);
        site.and_then(|site| self.get(site)).copied().unwrap_or_else(|| {
            let fact = find();
            if let Some(site) = site {
                self.insert(site, fact);
            }
            fact
        })
    }
}

fn address<D>(description: &Arc<D>) -> usize {
    Arc::as_ptr(description).addr()
}
