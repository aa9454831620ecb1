//! The selection of live events, in the order of time. Each event is tested with the facts that are known when it is
//! read.

use crate::condition::{Condition, EventSubject, SeenContent, Truth};
use crate::select::events::{EventSelection, fits_each};
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{SpanId, SpanReplay};
use std::collections::{HashMap, HashSet};

/// The largest number of open spans of a process that are remembered.
const SPANS_MAX: usize = 1 << 20;

/// A selection at work on events that come in the order of time.
pub struct SelectedNow {
    around: Vec<Condition>,
    each: Vec<Condition>,
    /// The spans of each process.
    replays: HashMap<u64, SpanReplay>,
    /// The spans whose lost fields count as a lost payload already.
    counted: HashSet<(u64, SpanId)>,
}

impl SelectedNow {
    /// Begins. Types are not looked at: that needs no state ([`EventSelection::codes`]).
    #[must_use]
    pub fn new(selection: &EventSelection) -> Self {
        let (around, each) = (selection.around(), selection.each());
        Self { around, each, replays: HashMap::new(), counted: HashSet::new() }
    }

    /// Returns whether an event of a process is selected: by itself, or because a span is selected in which it was
    /// recorded, as far as that span is known now. The answer is unknown if that depends on a lost payload; where it is
    /// that of a span, only for the first event that asks for it.
    pub fn accepts(&mut self, process: u64, event: SeenContent<'_>) -> Truth {
        let Self { around, each, replays, counted } = self;
        if around.is_empty() {
            return fits_each(each, event);
        }
        let replay = replays.entry(process).or_insert_with(|| SpanReplay::live(SPANS_MAX));
        match event {
            SeenContent::Record(record, catalog) => {
                let (first, second) = record.parts();
                let mut push = |record| drop(replay.push_raw(0, record, catalog));
                push(&first);
                second.iter().for_each(push);
            }
            SeenContent::Typed(typed) => {
                let subject = EventSubject { event, replay: None, by_option: false };
                if let Some(span) = subject.span_id() {
                    replay.push_typed_event(span, typed.descriptor.record_epoch_nanos);
                }
            }
        }
        let subject = EventSubject { event, replay: Some(replay), by_option: false };
        let mut truth = fits_each(each, event);
        for condition in around.iter() {
            truth = truth.min(subject.is_selected_by(condition));
        }
        let has_lost_fields = subject.has_lost_fields();
        if truth == Truth::Indeterminate && !(has_lost_fields && subject.is_content()) {
            let has_lost = subject.spans().find(|span| span.fields.problem.is_some());
            let is_new = has_lost.is_some_and(|span| counted.insert((process, span.id)));
            if !is_new && !has_lost_fields {
                truth = Truth::No;
            }
        }
        while let Some(span) = replay.take_closed_boxed() {
            counted.remove(&(process, span.id));
            replay.recycle(span);
        }
        if matches!(event, SeenContent::Record(record, _) if record.event == Some(PerfEvent::ThreadEnded)) {
            replay.forget_old();
        }
        truth
    }

    /// Notes that events of a process are missing. Spans whose close may be among them make room for others.
    pub fn lose(&mut self, process: u64, shard: u32) {
        if let Some(replay) = self.replays.get_mut(&process) {
            replay.gap(Some((0, shard)));
            if replay.len() >= SPANS_MAX / 10 * 9 {
                replay.take_lost(u64::MAX);
            }
        }
    }
}
