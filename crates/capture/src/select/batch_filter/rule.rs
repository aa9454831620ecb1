//! The verdict on a span by its id and call site alone, without the spans above it.

use super::BatchFilter;
use crate::format::ring::{ALL_PER_MILLION, process_key};
use crate::select::selection::names_span;
use eventring::reader::Reader;
use eventring::schema::perf::CallSiteLevel;
use eventring::tracing::Catalog;
use std::hash::Hasher as _;
use twox_hash::XxHash3_64;

/// The filter for the spans of one perf recorder.
pub(crate) struct SpanRule {
    filter: BatchFilter,
    /// The ring with the tables of call sites.
    shard0: Reader,
    process_key: u64,
    catalog: Catalog,
}

impl SpanRule {
    pub(super) fn new(filter: &BatchFilter, shard0: &Reader) -> Self {
        Self {
            filter: filter.clone(),
            shard0: shard0.clone(),
            process_key: process_key(shard0),
            catalog: Catalog::new(),
        }
    }

    /// Returns true if the filter needs to know the spans above a span.
    pub(super) fn is_about_trees(&self) -> bool {
        self.filter.sampled_per_million < ALL_PER_MILLION || !self.keeps_every_name() || self.has_condition()
    }

    /// Returns true if the spans may have any name.
    pub(super) fn keeps_every_name(&self) -> bool {
        self.filter.spans.is_empty()
    }

    /// Returns true if spans must fulfil a condition.
    pub(super) fn has_condition(&self) -> bool {
        self.filter.condition.is_some()
    }

    /// Returns true if the sample has the tree with this root.
    pub(super) fn has_in_sample(&self, root: u64) -> bool {
        let mut hasher = XxHash3_64::new();
        hasher.write(&self.process_key.to_le_bytes());
        hasher.write(&root.to_le_bytes());
        let place = (u128::from(hasher.finish()) * u128::from(ALL_PER_MILLION)) >> 64;
        place < u128::from(self.filter.sampled_per_million)
    }

    /// Returns true if what this call site makes has a wanted level. An unknown call site has.
    pub(super) fn has_level(&mut self, call_site: u32) -> bool {
        self.filter.level == CallSiteLevel::Trace || {
            self.know(call_site);
            self.catalog.known_call_site(call_site).is_none_or(|it| it.level <= self.filter.level)
        }
    }

    /// Returns true if the spans of this call site have a name that the filter names.
    pub(super) fn has_wanted_name(&mut self, call_site: u32) -> bool {
        if self.keeps_every_name() {
            return false;
        }
        self.know(call_site);
        let known = self.catalog.known_call_site(call_site);
        known.is_some_and(|it| self.filter.spans.iter().any(|wanted| names_span(wanted, &it.target, &it.name)))
    }

    /// Reads the table of call sites, if it may have one that is not known yet.
    fn know(&mut self, call_site: u32) {
        if !self.catalog.knows_call_site(call_site) {
            self.catalog.update(&self.shard0);
        }
    }
}
