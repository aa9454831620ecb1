//! The spans with which a selection of spans begins. A pass over the capture finds them before any event is returned,
//! because a span's duration is not known before its end. The pass reads no payloads.

use super::error::{CaptureError, CaptureErrorKind};
use super::events::{CaptureEvents, ContentRef, RecordRef};
use super::sieve::Choice;
use crate::schema::perf::{PerfEvent, PerfExt};
use std::collections::{HashMap, HashSet};

/// The process and the id of a span.
pub(super) type ProcessSpan = (u32, u64);

/// The spans that a selection names or that last long enough. Selected are these spans and everything in them.
#[derive(Debug, Default)]
pub(super) struct Roots {
    ids: HashSet<ProcessSpan>,
    /// The times in which roots are open: first and last nanosecond, in ascending order, apart from each other.
    times: Vec<(u64, u64)>,
    /// The problems of the blocks in which roots were looked for.
    pub(super) problems: Vec<String>,
}

/// The condition for roots.
pub(super) struct RootRule<'r> {
    /// The call sites of the spans by ring; `None` if the spans have any call site.
    pub(super) call_sites: Option<&'r [HashSet<u32>]>,
    /// The index of shard 0 for each ring.
    pub(super) shard0: &'r [u32],
    pub(super) min_nanos: u64,
    /// The end of the window, or of the capture.
    pub(super) end_nanos: u64,
    /// The largest number of spans. A capture with more is damaged.
    pub(super) spans_max: usize,
}

/// The types of events that say something about the life of a span.
pub(super) const SPAN_EVENTS: [PerfEvent; 5] =
    [PerfEvent::SpanNew, PerfEvent::SpanRecord, PerfEvent::SpanEnter, PerfEvent::SpanExit, PerfEvent::SpanClose];

impl RootRule<'_> {
    /// Returns true if a span with this call site may be a root. `ring` is the index of the ring.
    pub(super) fn may_have(&self, ring: u32, is_it: impl Fn(u32) -> bool) -> bool {
        self.accepts(ring, |ids| ids.iter().any(|id| is_it(*id)))
    }

    fn has_call_site(&self, ring: u32, id: u32) -> bool {
        self.accepts(ring, |ids| ids.contains(&id))
    }

    /// Returns true if `test` accepts the call sites of roots in this ring, or if the spans have any call site.
    #[inline]
    fn accepts(&self, ring: u32, test: impl FnOnce(&HashSet<u32>) -> bool) -> bool {
        let Some(call_sites) = self.call_sites else { return true };
        let shard0 = self.shard0.get(ring as usize).and_then(|shard0| call_sites.get(*shard0 as usize));
        shard0.is_some_and(test)
    }
}

impl Roots {
    /// Finds the roots among the `events` of the window of `choice`.
    ///
    /// # Errors
    /// There are more spans than any capture of this size has.
    pub(super) fn find(events: &mut CaptureEvents, choice: &Choice, rule: &RootRule<'_>) -> Result<Self, CaptureError> {
        let mut roots = Self::default();
        // The open spans, each with the time of its creation or the first time at which it was seen.
        let mut open: HashMap<ProcessSpan, u64> = HashMap::new();
        while let Some(RecordRef { ring, content }) = events.next_ref() {
            let ContentRef::Event { descriptor, .. } = content else { continue };
            let nanos = descriptor.record_epoch_nanos;
            let ext = PerfExt::from_words(descriptor.content_ext);
            let Some(event) = SPAN_EVENTS.into_iter().find(|event| *event as u16 == descriptor.event_type) else {
                continue;
            };
            if !rule.has_call_site(ring, ext.call_site_id) {
                continue;
            }
            let span = (choice.rings[ring as usize].process, ext.span_id);
            // A span that exists before its creation is seen was created before the window.
            let since = if choice.from_nanos > 0 { choice.from_nanos } else { nanos };
            match event {
                PerfEvent::SpanNew => {
                    open.insert(span, nanos);
                }
                PerfEvent::SpanClose => {
                    let since = open.remove(&span).unwrap_or(since);
                    if nanos.saturating_sub(since) >= rule.min_nanos {
                        roots.add(span, since, events.sort_nanos(ring).max(nanos));
                    }
                }
                // Threads race to record: the exit of a span may come after its close.
                PerfEvent::SpanExit => {}
                _ => {
                    open.entry(span).or_insert(since);
                }
            }
            if open.len() + roots.ids.len() > rule.spans_max {
                let message = format!(
                    "it has more than {} spans, which a file of its size cannot have: it is damaged; copy it anew from where it was made",
                    rule.spans_max
                );
                return Err(CaptureError::new(CaptureErrorKind::Damaged, message));
            }
        }
        for (span, since) in open {
            if rule.end_nanos.saturating_sub(since) >= rule.min_nanos {
                roots.add(span, since, u64::MAX);
            }
        }
        roots.join_times();
        roots.problems = events.problems().to_vec();
        Ok(roots)
    }

    fn add(&mut self, span: ProcessSpan, since: u64, until: u64) {
        self.ids.insert(span);
        self.times.push((since, until));
    }

    /// Joins times that overlap.
    fn join_times(&mut self) {
        self.times.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (since, until) in self.times.drain(..) {
            match joined.last_mut() {
                Some(last) if since <= last.1 => last.1 = until.max(last.1),
                _ => joined.push((since, until)),
            }
        }
        self.times = joined;
    }

    pub(super) fn has(&self, span: ProcessSpan) -> bool {
        self.ids.contains(&span)
    }

    /// Returns true if a root is open in this time.
    pub(super) fn may_be_open(&self, first_nanos: u64, last_nanos: u64) -> bool {
        let after = self.times.partition_point(|(_, until)| *until < first_nanos);
        self.times.get(after).is_some_and(|(since, _)| *since <= last_nanos)
    }
}
