//! The selection of live events, in the order of time. An event is tested with what is known when the event is read:
//! without the later fields and the duration of an open span.

use super::consumer::{OverSpan, ReplayConsumer, ReplayNeeds};
use super::entry::RecordingEntry;
use super::parts::ReplayState;
use super::replay::{RecordingReplay, ReplayBounds, SPANS_MAX};
use crate::condition::{Condition, EventSubject, SeenContent, Truth};
use crate::select::events::{EventSelection, fits_each};
use eventring::tracing::{SpanId, SpanReplay, SpanStep};
use std::collections::HashSet;
use std::io;

/// The number of entries after which the replay forgets what is of no use any more.
const TIDY_ENTRIES: u32 = 1 << 16;

/// A selection at work on the entries of rings.
pub struct SelectedNow {
    /// The spans around the events; `None` if the selection does not ask for them.
    replay: Option<RecordingReplay>,
    test: Test,
    entries: u32,
}

/// The test of each event, when the replay has taken it.
struct Test {
    around: Vec<Condition>,
    each: Vec<Condition>,
    /// The spans whose lost fields count as a lost payload already, by the index of their process.
    counted: HashSet<(usize, SpanId)>,
    /// The result for the last event.
    truth: Truth,
}

impl SelectedNow {
    /// Begins. Types are not looked at: that needs no state ([`EventSelection::codes`]).
    #[must_use]
    pub fn new(selection: &EventSelection) -> Self {
        let (around, each) = (selection.around(), selection.each());
        let bounds = ReplayBounds::Forget { spans_max: SPANS_MAX };
        let replay = (!around.is_empty()).then(|| RecordingReplay::new(ReplayNeeds::default(), bounds));
        Self { replay, test: Test { around, each, counted: HashSet::new(), truth: Truth::Yes }, entries: 0 }
    }

    /// Returns whether an event is selected: by itself, or because a span is selected in which it was recorded, as far
    /// as that span is known now. The answer is unknown if that depends on a lost payload; where it is that of a span,
    /// only for the first event that asks for it. A loss is always selected. All entries must come here.
    pub fn accepts(&mut self, entry: &RecordingEntry<'_>) -> Truth {
        let Self { replay, test, entries } = self;
        let Some(replay) = replay else {
            return entry.seen().map_or(Truth::Yes, |event| fits_each(&test.each, event));
        };
        test.truth = Truth::Yes;
        // The test writes nothing, so nothing fails.
        let _ = replay.step(entry, test);
        let truth = test.truth;
        *entries += 1;
        if entries.is_multiple_of(TIDY_ENTRIES) {
            let _ = replay.make_room(entry.tables, test);
        }
        truth
    }
}

impl Test {
    fn truth(&mut self, process: usize, event: SeenContent<'_>, replay: Option<&SpanReplay>) -> Truth {
        let subject = EventSubject { event, replay, by_option: false };
        let each = fits_each(&self.each, event);
        let truth = self.around.iter().fold(each, |truth, condition| truth.min(subject.is_selected_by(condition)));
        let has_lost_fields = subject.has_lost_fields();
        if truth == Truth::Indeterminate && !(has_lost_fields && subject.is_content()) {
            let has_lost = subject.spans().find(|span| span.fields.problem.is_some());
            let is_new = has_lost.is_some_and(|span| self.counted.insert((process, span.id)));
            if !is_new && !has_lost_fields {
                return Truth::No;
            }
        }
        truth
    }
}

impl ReplayConsumer for Test {
    fn entry(&mut self, entry: &RecordingEntry<'_>, _: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        let Some(event) = entry.seen() else { return Ok(()) };
        let truth = self.truth(entry.process_index, event, state.replays.get(entry.process_index));
        // Of an event with two parts, the second one decides: it is then known whether its span is closed. What the
        // first one has counted as lost stays so.
        let has_counted = !entry.is_next_event() && self.truth == Truth::Indeterminate;
        self.truth = if has_counted { truth.max(Truth::Indeterminate) } else { truth };
        Ok(())
    }

    fn span(&mut self, process: usize, over: &OverSpan<'_>, _: ReplayState<'_>) -> io::Result<()> {
        self.counted.remove(&(process, over.span.id));
        Ok(())
    }
}
