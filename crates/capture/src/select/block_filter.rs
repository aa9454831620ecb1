//! The filter of a selection: which blocks are read, and which of their records are returned.

use crate::condition::{Condition, SeenContent, Truth, TypedContent};
use crate::format::header::BlockHeader;
use crate::select::events::fits_each;
use crate::select::matches::Matches;
use crate::select::roots::{ProcessSpan, Roots};
use eventring::reader::{Descriptor, PayloadRead};
use eventring::schema::perf::{PerfEvent, PerfExt};
use eventring::schema::{EventType as _, ExtWords, SchemaModel};
use eventring::tracing::{Catalog, RawRecord};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// The meaning of a selection in one capture.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) from_nanos: u64,
    pub(crate) to_nanos: u64,
    /// What was recorded before is not returned, but it is read to know what lies in spans.
    pub(crate) shown_from_nanos: u64,
    /// By index of the ring.
    pub(crate) rings: Vec<RingChoice>,
    /// What each event must fulfil by itself.
    pub(crate) each: Vec<Condition>,
    /// What fulfils each of the conditions about spans and what is in them.
    pub(crate) found: Vec<Matches>,
    /// The largest number of open spans in the roots. A capture with more is damaged.
    pub(crate) spans_max: usize,
}

/// The meaning of a selection for one ring.
#[derive(Clone, Debug)]
pub(crate) struct RingChoice {
    pub(crate) is_wanted: bool,
    pub(crate) is_perf: bool,
    pub(crate) process: u32,
    pub(crate) words: ExtWords,
    /// The ids of the wanted threads, or `None` if all threads are wanted.
    pub(crate) threads: Option<Arc<HashSet<u32>>>,
    /// The codes of the wanted types, or `None` if all are wanted.
    pub(crate) codes: Option<HashSet<u16>>,
    pub(crate) model: Option<Cow<'static, SchemaModel>>,
    /// The index of the ring that is shard 0 of its recorder.
    pub(crate) recorder: usize,
}

impl Choice {
    /// Returns false if no record of the block is wanted. `may_be_inside` says whether spans may be open that are inside
    /// of those that fulfil the condition with this index: they may outlive these.
    fn may_need(&self, ring: u32, header: &BlockHeader, may_be_inside: impl Fn(usize) -> bool) -> bool {
        let Some(choice) = self.rings.get(ring as usize) else { return false };
        let from_nanos = if self.found.is_empty() { self.shown_from_nanos } else { self.from_nanos };
        let is_in_window = header.first_nanos <= self.to_nanos && from_nanos <= header.last_nanos;
        let has_thread = || {
            let threads = choice.threads.as_deref();
            threads.is_none_or(|ids| ids.iter().any(|id| header.filter.may_have_thread(*id)))
        };
        // Blocks of spans may describe call sites.
        let has_type = || {
            let codes = choice.codes.as_ref().filter(|_| !choice.is_perf);
            codes.is_none_or(|codes| codes.iter().any(|code| header.filter.may_have_type(*code)))
        };
        let is_found = |(index, found): (usize, &Matches)| {
            may_be_inside(index) || found.roots.may_be_open(header.first_nanos, header.last_nanos)
        };
        let may_have_wanted = match self.found.is_empty() {
            true => choice.is_wanted && has_thread() && has_type(),
            // The creation of a span inside of a chosen one may lie in any perf ring, and on any thread; and inside of
            // a span that fulfils another condition, also where only one of the two is open.
            false => (choice.is_wanted || choice.is_perf) && self.found.iter().enumerate().any(is_found),
        };
        // Losses are shown whatever spans and threads are wanted.
        is_in_window && (may_have_wanted || (choice.is_wanted && header.filter.may_have_gaps()))
    }
}

/// A choice, and the spans that are open at one place of the stream.
pub(crate) struct BlockFilter {
    choice: Arc<Choice>,
    /// The spans inside of those that fulfil each condition.
    inside: Vec<InnerSpans>,
    /// The call sites and threads by recorder, if events are tested by themselves.
    catalogs: Vec<Catalog>,
    has_told: bool,
}

impl BlockFilter {
    pub(crate) fn new(choice: Arc<Choice>, catalogs: &[Catalog]) -> Self {
        let inside = choice.found.iter().map(|_| InnerSpans::default()).collect();
        let catalogs = if choice.each.is_empty() { Vec::new() } else { catalogs.to_vec() };
        Self { choice, inside, catalogs, has_told: false }
    }

    /// Returns the problems that were found when the spans were chosen.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.choice.found.iter().flat_map(|found| found.problems.iter().cloned()).collect()
    }

    /// Returns true if the block has wanted records, as far as is known before any block is read.
    pub(crate) fn needs(&self, ring: u32, header: &BlockHeader) -> bool {
        self.choice.may_need(ring, header, |_| false)
    }

    /// Returns false if no record of the block is wanted, whatever other blocks hold.
    pub(crate) fn may_ever_need(&self, ring: u32, header: &BlockHeader) -> bool {
        self.choice.may_need(ring, header, |_| true)
    }

    /// Returns false if no record of the block is wanted, after all records before it were seen.
    pub(crate) fn needs_now(&self, ring: u32, header: &BlockHeader) -> bool {
        self.choice.may_need(ring, header, |index| !self.inside[index].open.is_empty())
    }

    /// Returns whether an event is wanted. `sort_nanos` is its sort time.
    pub(crate) fn accepts_event(
        &mut self,
        ring_index: u32,
        sort_nanos: u64,
        event: &Descriptor,
        payload: PayloadRead<'_>,
    ) -> Truth {
        let Self { choice, inside, catalogs, .. } = self;
        let Some(ring) = choice.rings.get(ring_index as usize) else { return Truth::No };
        if !(choice.from_nanos..=choice.to_nanos).contains(&sort_nanos) {
            return Truth::No;
        }
        let is_shown = ring.is_wanted && sort_nanos >= choice.shown_from_nanos;
        // If the tables had no room for a call site, this event is the only place that names its spans.
        if ring.is_perf && event.event_type == PerfEvent::CallSite as u16 {
            if let Some(catalog) = catalogs.get_mut(ring.recorder) {
                RawRecord::new(catalog, 0, event, payload);
            }
            return is_shown.into();
        }
        // The times and allocations of a thread are those of all spans that it is in.
        const OF_THREADS: [u16; 3] =
            [PerfEvent::ThreadTime as u16, PerfEvent::ThreadSwitched as u16, PerfEvent::Allocated as u16];
        if ring.is_perf && OF_THREADS.contains(&event.event_type) && ring.codes.is_none() {
            let thread_id = PerfExt::from_words(event.content_ext).thread_id;
            return (is_shown && ring.threads.as_ref().is_none_or(|threads| threads.contains(&thread_id))).into();
        }
        let mut truth = Truth::Yes;
        // Each of them follows each event, also one that another one does not want.
        for (found, inside) in choice.found.iter().zip(inside) {
            let is_inside = inside.follow(&found.roots, choice.spans_max, ring, event);
            let process = ring.is_perf.then_some(ring.process);
            truth = truth.min(match is_inside || found.has_event(ring_index, event.seqno) {
                true => Truth::Yes,
                false if found.is_untested(ring_index, process, event) => Truth::Indeterminate,
                false => Truth::No,
            });
        }
        let is_of_type = ring.codes.as_ref().is_none_or(|codes| codes.contains(&event.event_type));
        truth = truth.min((is_shown && is_of_type).into());
        if truth == Truth::No || choice.each.is_empty() {
            return truth;
        }
        match catalogs.get_mut(ring.recorder).filter(|_| ring.is_perf) {
            Some(catalog) => {
                let record = RawRecord::new(catalog, 0, event, payload);
                truth.min(fits_each(&choice.each, SeenContent::Record(&record, catalog)))
            }
            None => {
                let (model, words) = (ring.model.as_deref(), &ring.words);
                let typed = TypedContent { descriptor: event, payload, model, words };
                truth.min(fits_each(&choice.each, SeenContent::Typed(typed)))
            }
        }
    }

    /// Returns true if a gap is wanted. `before_nanos` is the sort time of the record before the gap, and `after_nanos`
    /// is the time of the event after the gap, if this event is in the same block.
    pub(crate) fn accepts_gap(&self, ring: u32, before_nanos: u64, after_nanos: Option<u64>) -> bool {
        let choice = &self.choice;
        let is_wanted = choice.rings.get(ring as usize).is_some_and(|ring| ring.is_wanted);
        is_wanted && before_nanos <= choice.to_nanos && after_nanos.is_none_or(|after| choice.shown_from_nanos <= after)
    }

    /// Takes the problem that was found by the last event, if it is the first one.
    pub(crate) fn take_problem(&mut self) -> Option<String> {
        let is_full = self.inside.iter().any(|inside| inside.is_full);
        if !is_full || std::mem::replace(&mut self.has_told, true) {
            return None;
        }
        Some(format!(
            "more than {} spans are open at a time, which a file of its size cannot have: it is damaged; some spans are left out; copy the \
             file anew from where it was made",
            self.choice.spans_max
        ))
    }
}

/// The open spans inside of chosen ones.
#[derive(Default)]
struct InnerSpans {
    open: HashSet<ProcessSpan>,
    /// True if a span was left out, because there were too many.
    is_full: bool,
}

impl InnerSpans {
    /// Returns true if an event is in one of the chosen spans, `roots`. Takes note of the spans that begin and end
    /// inside of them; of `spans_max` at most.
    fn follow(&mut self, roots: &Roots, spans_max: usize, ring: &RingChoice, event: &Descriptor) -> bool {
        if !ring.is_perf {
            return self.has(roots, (ring.process, ring.words.span_id(event.content_ext)));
        }
        let ext = PerfExt::from_words(event.content_ext);
        let span = (ring.process, ext.span_id);
        if event.event_type == PerfEvent::SpanNew as u16
            && !roots.has(span)
            && self.has(roots, (ring.process, ext.related))
        {
            if self.open.len() < spans_max {
                self.open.insert(span);
            } else {
                self.is_full = true;
            }
        }
        let is_inside = self.has(roots, span);
        if PerfEvent::from_code(event.event_type).is_some_and(|event| ext.closes_span(event)) {
            self.open.remove(&span);
        }
        is_inside
    }

    fn has(&self, roots: &Roots, span: ProcessSpan) -> bool {
        span.1 != 0 && (roots.has(span) || self.open.contains(&span))
    }
}
