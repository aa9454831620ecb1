//! The ages at which open spans are tested, each span once.

use crate::observation::ClosedSpan;
use crate::state::LiveState;
use crate::state::open::OpenSpan;
use eventring::tracing::{SpanId, SpanReplay};
use std::collections::HashSet;

/// The number of spans up to which those that the engine gave up stay in the list.
const GIVEN_UP_MAX: usize = 4096;

/// An age that conditions name, and the spans that were tested at it.
///
/// Ticks see only the spans that are open at that moment, so a span may reach the age and be closed between two of
/// them. Such a span is tested at its close. A span that a tick has tested is remembered until its close.
#[derive(Debug)]
pub(crate) struct SpanAge {
    nanos: u64,
    /// The indices of the conditions that name the age.
    pub(crate) conditions: Vec<usize>,
    /// The open spans that a tick has tested, each with the index of its program.
    tested: HashSet<(usize, SpanId)>,
}

impl SpanAge {
    pub(crate) fn new(nanos: u64, conditions: Vec<usize>) -> Self {
        Self { nanos, conditions, tested: HashSet::new() }
    }

    pub(crate) fn nanos(&self) -> u64 {
        self.nanos
    }

    /// Calls `test` with each open span that has reached the age since the last tick.
    pub(crate) fn tick(&mut self, state: LiveState<'_>, last_tick_nanos: u64, mut test: impl FnMut(&OpenSpan<'_>)) {
        state.each_grown_older(self.nanos, last_tick_nanos, |span| {
            // After a loss, spans look open that were closed long ago. If the close comes after all, it shows how long
            // the span was open. Tables of the present know it.
            let in_tables = state.core.tables.have_span(span.program_index(), span.id().get());
            let is_open = in_tables.unwrap_or_else(|| !span.may_have_closed());
            if is_open && self.tested.insert((span.program_index(), span.id())) {
                test(span);
            }
        });
        let open: usize = state.replayed.replays.iter().map(SpanReplay::len).sum();
        if self.tested.len() > 2 * open + GIVEN_UP_MAX {
            self.tested.retain(|(index, id)| state.replayed.span(*index, *id).is_some());
        }
    }

    /// Returns true if a span that was closed has reached the age, and no tick has tested it.
    pub(crate) fn close(&mut self, span: &ClosedSpan<'_>) -> bool {
        let was_tested = self.tested.remove(&(span.process_index, span.span.id));
        !was_tested && span.wall_nanos() >= self.nanos
    }
}

#[cfg(test)]
impl SpanAge {
    pub(crate) fn tested(&self) -> usize {
        self.tested.len()
    }

    pub(crate) fn is_unused(&self) -> bool {
        self.tested.is_empty()
    }
}
