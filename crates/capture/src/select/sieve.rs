//! The filter of a selection: which blocks are read, and which of their records are returned.

use crate::condition::Truth;
use crate::format::header::BlockHeader;
use crate::select::found::FoundParts;
use crate::select::roots::{ProcessSpan, Roots};
use eventring::reader::Descriptor;
use eventring::schema::perf::{PerfEvent, PerfExt};
use eventring::schema::{EventType as _, ExtWords};
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
    /// The spans with which the selection begins, if it is one of spans.
    pub(crate) roots: Option<Roots>,
    /// The parts that were found by reading the capture, if the selection is one of these.
    pub(crate) found: Option<FoundParts>,
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
}

/// Whether spans are open inside of roots, and inside of found spans. They may outlive these.
#[derive(Clone, Copy)]
struct OpenInside {
    of_roots: bool,
    of_found: bool,
}

impl Choice {
    /// Returns false if no record of the block is wanted, where spans inside of chosen ones are open as `open` says.
    fn may_need(&self, ring: u32, header: &BlockHeader, open: OpenInside) -> bool {
        let Some(choice) = self.rings.get(ring as usize) else { return false };
        let is_of_spans = self.roots.is_some() || self.found.is_some();
        let from_nanos = if is_of_spans { self.from_nanos } else { self.shown_from_nanos };
        let is_in_window = header.first_nanos <= self.to_nanos && from_nanos <= header.last_nanos;
        let has_thread = || {
            let threads = choice.threads.as_deref();
            threads.is_none_or(|ids| ids.iter().any(|id| header.filter.may_have_thread(*id)))
        };
        let may_have = |roots: &Roots| roots.may_be_open(header.first_nanos, header.last_nanos);
        let of_roots = self.roots.as_ref().map(|roots| open.of_roots || may_have(roots));
        let of_found = self.found.as_ref().map(|found| open.of_found || may_have(&found.roots));
        let may_have_wanted = match (of_roots, of_found) {
            (None, None) => choice.is_wanted && has_thread(),
            // The creation of a span inside of a chosen one may lie in any perf ring, and on any thread; and inside of
            // a root that lies in a found span, or the other way round, also where only one of the two is open.
            (of_roots, of_found) => {
                (choice.is_wanted || choice.is_perf) && (of_roots == Some(true) || of_found == Some(true))
            }
        };
        // Losses are shown whatever spans and threads are wanted.
        is_in_window && (may_have_wanted || (choice.is_wanted && header.filter.may_have_gaps()))
    }
}

/// A choice, and the spans that are open at one place of the stream.
pub(crate) struct Sieve {
    choice: Arc<Choice>,
    /// The spans inside of the roots.
    inside: InnerSpans,
    /// The spans inside of those that were found.
    inside_found: InnerSpans,
    has_told: bool,
}

impl Sieve {
    pub(crate) fn new(choice: Arc<Choice>) -> Self {
        Self { choice, inside: InnerSpans::default(), inside_found: InnerSpans::default(), has_told: false }
    }

    /// Returns the problems that were found when the spans were chosen.
    pub(crate) fn problems(&self) -> &[String] {
        self.choice.roots.as_ref().map_or(&[], |roots| &roots.problems)
    }

    /// Returns true if the block has wanted records, as far as is known before any block is read.
    pub(crate) fn needs(&self, ring: u32, header: &BlockHeader) -> bool {
        self.choice.may_need(ring, header, OpenInside { of_roots: false, of_found: false })
    }

    /// Returns false if no record of the block is wanted, whatever other blocks hold.
    pub(crate) fn may_ever_need(&self, ring: u32, header: &BlockHeader) -> bool {
        self.choice.may_need(ring, header, OpenInside { of_roots: true, of_found: true })
    }

    /// Returns false if no record of the block is wanted, after all records before it were seen.
    pub(crate) fn needs_now(&self, ring: u32, header: &BlockHeader) -> bool {
        let open = OpenInside { of_roots: !self.inside.open.is_empty(), of_found: !self.inside_found.open.is_empty() };
        self.choice.may_need(ring, header, open)
    }

    /// Returns whether an event is wanted. `sort_nanos` is its sort time.
    pub(crate) fn accepts_event(&mut self, ring_index: u32, sort_nanos: u64, event: &Descriptor) -> Truth {
        let Self { choice, inside, inside_found, .. } = self;
        let Some(ring) = choice.rings.get(ring_index as usize) else { return Truth::No };
        if !(choice.from_nanos..=choice.to_nanos).contains(&sort_nanos) {
            return Truth::No;
        }
        // If the tables had no room for a call site, this event is the only place that names its spans.
        if ring.is_perf && event.event_type == PerfEvent::CallSite as u16 {
            return (ring.is_wanted && sort_nanos >= choice.shown_from_nanos).into();
        }
        // Both follow each event, also one that the other does not want.
        let is_found = choice.found.as_ref().map_or(Truth::Yes, |found| {
            let is_inside = inside_found.follow(&found.roots, choice.spans_max, ring, event);
            if is_inside || found.has_event(ring_index, event.seqno) {
                return Truth::Yes;
            }
            let process = ring.is_perf.then_some(ring.process);
            if found.is_untested(ring_index, process, event) { Truth::Unknown } else { Truth::No }
        });
        let is_of_spans = choice.roots.as_ref().is_none_or(|roots| inside.follow(roots, choice.spans_max, ring, event));
        let is_of_thread = || {
            let thread = PerfExt::from_words(event.content_ext).thread_id;
            ring.threads.as_ref().is_none_or(|threads| threads.contains(&thread))
        };
        let is_shown = sort_nanos >= choice.shown_from_nanos;
        is_found.min((is_shown && is_of_spans && ring.is_wanted && (!ring.is_perf || is_of_thread())).into())
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
        let is_full = self.inside.is_full || self.inside_found.is_full;
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
