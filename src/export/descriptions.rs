//! Facts that follow from the description of a call site or thread, found by the address of the description.

use crate::tracing::IdMap;
use std::sync::Arc;

/// One fact for each description. The descriptions are kept, so no other description comes to the same address.
pub(super) struct PerDescription<D, F> {
    facts: IdMap<*const D, (Arc<D>, F)>,
}

impl<D, F> Default for PerDescription<D, F> {
    fn default() -> Self {
        Self { facts: IdMap::default() }
    }
}

impl<D, F> PerDescription<D, F> {
    pub(super) fn get(&self, description: &Arc<D>) -> Option<&F> {
        self.facts.get(&Arc::as_ptr(description)).map(|(_, fact)| fact)
    }

    pub(super) fn insert(&mut self, description: &Arc<D>, fact: F) {
        self.facts.insert(Arc::as_ptr(description), (description.clone(), fact));
    }
}
