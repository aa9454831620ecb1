//! The open spans that have met conditions of span directives.
//!
//! The recorder keeps no values of span fields in memory. So it tests a span when the values are recorded, and keeps
//! only the conditions that the span meets.

use crate::span_slab::SPAN_SLAB;
use crate::sync::locked_section::LockedSection;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

/// Number of entries at which the table first looks for entries of closed spans.
const FIRST_LOOK: usize = 1024;

/// The conditions of one span directive that a span has met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tracing) struct MetConditions {
    /// Number of the directive.
    pub(in crate::tracing) key: u32,
    /// A bit for each condition, by its index in the directive.
    pub(in crate::tracing) met: u32,
}

/// A table of spans and the conditions that they have met.
#[derive(Default)]
pub(in crate::tracing) struct SpanMatches(RwLock<MatchTable>);

#[derive(Default)]
struct MatchTable {
    spans: HashMap<u64, Vec<MetConditions>>,
    /// Number of entries at which the table looks for entries of closed spans again.
    look_at: usize,
}

impl SpanMatches {
    /// Adds conditions that a span has met. Nothing happens if it has met none, or inside a locked section.
    pub(in crate::tracing) fn add(&self, span_id: u64, met: impl IntoIterator<Item = MetConditions>) {
        let mut met = met.into_iter().filter(|conditions| conditions.met != 0).peekable();
        if met.peek().is_none() {
            return;
        }
        let Some(_section) = LockedSection::enter() else { return };
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.forget_closed();
        let of_span = table.spans.entry(span_id).or_default();
        for new in met {
            match of_span.iter_mut().find(|old| old.key == new.key) {
                Some(old) => old.met |= new.met,
                None => of_span.push(new),
            }
        }
    }

    /// Returns true if the span has met all of these conditions. Inside a locked section, returns false.
    pub(in crate::tracing) fn has_met(&self, span_id: u64, wanted: MetConditions) -> bool {
        let Some(_section) = LockedSection::enter() else { return false };
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let of_span = table.spans.get(&span_id).map_or(&[][..], Vec::as_slice);
        of_span.iter().any(|has| has.key == wanted.key && has.met & wanted.met == wanted.met)
    }

    /// Keeps only conditions of directives for which `is_wanted` is true.
    pub(in crate::tracing) fn keep(&self, is_wanted: impl Fn(u32) -> bool) {
        let _section = LockedSection::enter();
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.spans.retain(|_, of_span| {
            of_span.retain(|conditions| is_wanted(conditions.key));
            !of_span.is_empty()
        });
        if table.spans.is_empty() {
            *table = MatchTable::default();
        }
    }

    #[cfg(test)]
    pub(in crate::tracing) fn len(&self) -> usize {
        self.0.read().unwrap().spans.len()
    }
}

impl MatchTable {
    /// Removes the entries of closed spans, if the table has doubled since the last time. So a span that closes need
    /// not look here.
    fn forget_closed(&mut self) {
        if self.spans.len() >= self.look_at.max(FIRST_LOOK) {
            self.spans.retain(|span_id, _| SPAN_SLAB.is_open(*span_id));
            self.look_at = 2 * self.spans.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span_slab::FreeList;

    #[test]
    fn conditions_that_are_met_one_by_one_add_up_and_entries_of_closed_spans_go() {
        let matches = SpanMatches::default();
        let open = SPAN_SLAB.create::<false>(&FreeList::new(), 1).unwrap();
        let conditions = |met| MetConditions { key: 1, met };
        matches.add(open, [conditions(0b01)]);
        assert!(!matches.has_met(open, conditions(0b11)));
        matches.add(open, [conditions(0b10), MetConditions { key: 2, met: 1 }]);
        assert!(matches.has_met(open, conditions(0b11)));
        matches.add(7, [conditions(0)]);
        assert_eq!(matches.len(), 1);
        // No open span has these ids.
        (1..100_000).for_each(|n| matches.add(n << 24 | 5, [conditions(1)]));
        assert!(matches.len() <= FIRST_LOOK + 1);
        matches.keep(|key| key == 2);
        assert!(!matches.has_met(open, conditions(1)));
        matches.keep(|_| false);
        assert_eq!(matches.len(), 0);
    }
}
