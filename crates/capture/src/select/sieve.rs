//! The filter of a selection: which blocks are read, and which of their records are returned.

use crate::format::header::BlockHeader;
use crate::select::found::FoundParts;
use crate::select::roots::Roots;
use eventring::reader::Descriptor;
use eventring::schema::ExtWords;
use eventring::schema::perf::{PerfEvent, PerfExt};
use std::collections::HashSet;
use std::sync::Arc;

/// The meaning of a selection in one capture.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) from_nanos: u64,
    pub(crate) to_nanos: u64,
    /// By index of the ring.
    pub(crate) rings: Vec<RingChoice>,
    /// The spans with which the selection begins, if it is one of spans.
    pub(crate) roots: Option<Roots>,
    /// What was found by reading the capture, if the selection is one of that.
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

impl Choice {
    /// Returns false if no record of the block is wanted.
    fn may_need(&self, ring: u32, header: &BlockHeader) -> bool {
        let Some(choice) = self.rings.get(ring as usize) else { return false };
        let is_in_window = header.first_nanos <= self.to_nanos && self.from_nanos <= header.last_nanos;
        let has_thread = || {
            let threads = choice.threads.as_deref();
            threads.is_none_or(|ids| ids.iter().any(|id| header.filter.may_have_thread(*id)))
        };
        let may_have = match &self.roots {
            None => choice.is_wanted && has_thread(),
            // The creation of a span inside of a root may lie in any perf ring, and on any thread.
            Some(roots) => {
                (choice.is_wanted || choice.is_perf) && roots.may_be_open(header.first_nanos, header.last_nanos)
            }
        };
        let may_have_found =
            self.found.as_ref().is_none_or(|found| found.roots.may_be_open(header.first_nanos, header.last_nanos));
        // Losses are shown whatever spans and threads are wanted.
        is_in_window && ((may_have && may_have_found) || (choice.is_wanted && header.filter.may_have_gaps()))
    }
}

/// A choice, and the spans that are open at one place of the stream.
pub(crate) struct Sieve {
    choice: Arc<Choice>,
    /// The open spans inside of the roots: process and span id.
    inside: HashSet<(u32, u64)>,
    /// The open spans inside of those that were found.
    inside_found: HashSet<(u32, u64)>,
    is_full: bool,
    problem: Option<String>,
}

impl Sieve {
    pub(crate) fn new(choice: Arc<Choice>) -> Self {
        Self { choice, inside: HashSet::new(), inside_found: HashSet::new(), is_full: false, problem: None }
    }

    /// Returns the problems that were found when the spans were chosen.
    pub(crate) fn problems(&self) -> &[String] {
        self.choice.roots.as_ref().map_or(&[], |roots| &roots.problems)
    }

    /// Returns false if no record of the block is wanted.
    pub(crate) fn may_need(&self, ring: u32, header: &BlockHeader) -> bool {
        self.choice.may_need(ring, header)
    }

    /// Returns true if an event is wanted. `sort_nanos` is its sort time.
    pub(crate) fn accepts_event(&mut self, ring_index: u32, sort_nanos: u64, event: &Descriptor) -> bool {
        let choice = self.choice.clone();
        let Some(ring) = choice.rings.get(ring_index as usize) else { return false };
        if !(choice.from_nanos..=choice.to_nanos).contains(&sort_nanos) {
            return false;
        }
        let is_found = choice.found.as_ref().is_none_or(|found| self.is_found(found, ring_index, ring, event));
        if !ring.is_perf {
            let span = ring.words.span_id(event.content_ext);
            return is_found
                && ring.is_wanted
                && choice.roots.as_ref().is_none_or(|roots| self.is_inside(roots, (ring.process, span)));
        }
        let ext = PerfExt::from_words(event.content_ext);
        // If the tables had no room for a call site, this event is the only place that names its spans.
        if event.event_type == PerfEvent::CallSite as u16 {
            return ring.is_wanted;
        }
        let is_of_spans = match &choice.roots {
            None => true,
            Some(roots) => {
                let span = (ring.process, ext.span_id);
                if event.event_type == PerfEvent::SpanNew as u16
                    && !roots.has(span)
                    && self.is_inside(roots, (ring.process, ext.related))
                {
                    self.open(span);
                }
                let is_inside = self.is_inside(roots, span);
                if event.event_type == PerfEvent::SpanClose as u16 {
                    self.inside.remove(&span);
                }
                is_inside
            }
        };
        is_found
            && is_of_spans
            && ring.is_wanted
            && ring.threads.as_ref().is_none_or(|threads| threads.contains(&ext.thread_id))
    }

    /// Returns true if an event was found, or is in a span that was.
    fn is_found(&mut self, found: &FoundParts, ring_index: u32, ring: &RingChoice, event: &Descriptor) -> bool {
        let has = |inside: &HashSet<(u32, u64)>, span: (u32, u64)| {
            span.1 != 0 && (found.roots.has(span) || inside.contains(&span))
        };
        if !ring.is_perf {
            let span = (ring.process, ring.words.span_id(event.content_ext));
            return found.has_event(ring_index, event.seqno) || has(&self.inside_found, span);
        }
        let ext = PerfExt::from_words(event.content_ext);
        let span = (ring.process, ext.span_id);
        if event.event_type == PerfEvent::SpanNew as u16
            && !found.roots.has(span)
            && has(&self.inside_found, (ring.process, ext.related))
            && self.inside_found.len() < self.choice.spans_max
        {
            self.inside_found.insert(span);
        }
        let is_inside = found.has_event(ring_index, event.seqno) || has(&self.inside_found, span);
        if event.event_type == PerfEvent::SpanClose as u16 {
            self.inside_found.remove(&span);
        }
        is_inside
    }

    /// Returns true if a gap is wanted. `before_nanos` is the sort time of the record before the gap, and `after_nanos`
    /// is the time of the event after the gap, if this event is in the same block.
    pub(crate) fn accepts_gap(&self, ring: u32, before_nanos: u64, after_nanos: Option<u64>) -> bool {
        let choice = &self.choice;
        let is_wanted = choice.rings.get(ring as usize).is_some_and(|ring| ring.is_wanted);
        is_wanted && before_nanos <= choice.to_nanos && after_nanos.is_none_or(|after| choice.from_nanos <= after)
    }

    /// Takes the problem that was found by the last event, if it is the first one.
    pub(crate) fn take_problem(&mut self) -> Option<String> {
        self.problem.take()
    }

    fn is_inside(&self, roots: &Roots, span: (u32, u64)) -> bool {
        span.1 != 0 && (roots.has(span) || self.inside.contains(&span))
    }

    fn open(&mut self, span: (u32, u64)) {
        if self.inside.len() < self.choice.spans_max {
            self.inside.insert(span);
        } else if !std::mem::replace(&mut self.is_full, true) {
            self.problem = Some(format!(
                "more than {} spans are open at a time, which a file of its size cannot have: it is damaged; some spans are left out; copy the \
                 file anew from where it was made",
                self.choice.spans_max
            ));
        }
    }
}
