//! The spans with which a selection of spans begins. A pass over the capture finds them before any event is returned,
//! because a span's duration is not known before its end. The pass reads no payloads.

use crate::error::{CaptureError, CaptureErrorKind};
use eventring::reader::{Descriptor, Gap, GapCause};
use eventring::schema::perf::{PerfEvent, PerfExt};
use eventring::tracing::{RingLosses, ThreadKey};
use std::collections::{HashMap, HashSet};

/// The process and the id of a span.
pub(crate) type ProcessSpan = (u32, u64);

/// The spans that a selection names or that last long enough. Selected are these spans and everything in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roots {
    ids: HashSet<ProcessSpan>,
    /// The times in which roots are open, in ascending order, apart from each other.
    times: Vec<OpenTime>,
    /// The problems of the blocks in which roots were looked for.
    pub(crate) problems: Vec<String>,
}

/// A time in which a root is open: its first and its last nanosecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct OpenTime {
    since: u64,
    until: u64,
}

/// The condition for roots.
pub(crate) struct RootRule<'r> {
    /// The call sites of the spans by ring; `None` if the spans have any call site.
    pub(crate) call_sites: Option<&'r [HashSet<u32>]>,
    /// The index of shard 0 for each ring.
    pub(crate) shard0: &'r [u32],
    /// The process of each ring.
    pub(crate) processes: &'r [u32],
    /// The beginning of the window.
    pub(crate) from_nanos: u64,
    pub(crate) min_nanos: u64,
    /// The end of the window, or of the capture.
    pub(crate) end_nanos: u64,
    /// The largest number of spans. A capture with more is damaged.
    pub(crate) spans_max: usize,
}

/// The types of events that say something about the life of a span.
pub(crate) const SPAN_EVENTS: [PerfEvent; 5] =
    [PerfEvent::SpanNew, PerfEvent::SpanRecord, PerfEvent::SpanEnter, PerfEvent::SpanExit, PerfEvent::SpanClose];

impl RootRule<'_> {
    /// Returns true if a span with this call site may be a root. `ring` is the index of the ring.
    pub(crate) fn may_have(&self, ring: u32, is_it: impl Fn(u32) -> bool) -> bool {
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

/// A span that is open at one place of the stream, and may be a root.
struct RootCandidate {
    /// The first time at which the span may have events in the window.
    since: u64,
    /// The first time at which the span is known to have been open in the window.
    known_since: u64,
    /// The time of the last event of the span.
    seen: u64,
    /// The thread that has entered the span last and has not exited it.
    entered_by: Option<ThreadKey>,
}

impl RootCandidate {
    fn new(since: u64, known_since: u64) -> Self {
        Self { since, known_since, seen: known_since, entered_by: None }
    }

    /// Returns the last time at which the span is known to have been open. `end_nanos` is the end of the window. The
    /// end of the span may be among lost events.
    fn known_until(&self, losses: Option<&RingLosses>, end_nanos: u64) -> u64 {
        let Some(losses) = losses else { return end_nanos };
        let lost_until = match self.entered_by {
            Some(thread) => losses.of_thread(thread, u64::MAX),
            None => losses.of_process(u64::MAX),
        };
        if lost_until > self.seen { self.seen } else { end_nanos }
    }
}

impl Roots {
    pub(crate) fn add(&mut self, span: ProcessSpan, since: u64, until: u64) {
        self.ids.insert(span);
        self.add_time(since, until);
    }

    /// Adds a time in which something of the selection lies.
    pub(crate) fn add_time(&mut self, since: u64, until: u64) {
        self.times.push(OpenTime { since, until });
    }

    /// Joins times that overlap.
    pub(crate) fn join_times(&mut self) {
        self.times.sort_unstable();
        let mut joined: Vec<OpenTime> = Vec::new();
        for time in self.times.drain(..) {
            match joined.last_mut() {
                Some(last) if time.since <= last.until => last.until = time.until.max(last.until),
                _ => joined.push(time),
            }
        }
        self.times = joined;
    }

    pub(crate) fn has(&self, span: ProcessSpan) -> bool {
        self.ids.contains(&span)
    }

    /// Returns true if a root is open in this time.
    pub(crate) fn may_be_open(&self, first_nanos: u64, last_nanos: u64) -> bool {
        let after = self.times.partition_point(|time| time.until < first_nanos);
        self.times.get(after).is_some_and(|time| time.since <= last_nanos)
    }
}

/// The search for the roots among the events of a window.
pub(crate) struct RootSearch<'r> {
    rule: &'r RootRule<'r>,
    roots: Roots,
    open: HashMap<ProcessSpan, RootCandidate>,
    losses: HashMap<u32, RingLosses>,
    threads: usize,
}

impl<'r> RootSearch<'r> {
    pub(crate) fn new(rule: &'r RootRule<'r>) -> Self {
        Self { rule, roots: Roots::default(), open: HashMap::new(), losses: HashMap::new(), threads: 0 }
    }

    /// Takes the next record, if it is a gap.
    pub(crate) fn gap(&mut self, ring: u32, gap: &Gap) {
        // An event that was never committed is no missing end: its thread has stayed where it was.
        if gap.is_loss() && gap.cause != GapCause::NeverCommitted {
            let process = self.rule.processes[ring as usize];
            self.losses.entry(process).or_default().lose((self.rule.shard0[ring as usize], ring));
        }
    }

    /// Takes the next record, if it is an event. `sort_nanos` is its sort time.
    ///
    /// # Errors
    /// There are more spans than any capture of this size has.
    pub(crate) fn event(&mut self, ring: u32, descriptor: &Descriptor, sort_nanos: u64) -> Result<(), CaptureError> {
        let Self { rule, roots, open, losses, threads } = self;
        let process = rule.processes[ring as usize];
        let shard = (rule.shard0[ring as usize], ring);
        let nanos = descriptor.record_epoch_nanos;
        let ext = PerfExt::from_words(descriptor.content_ext);
        let thread = ThreadKey { recorder: shard.0, thread_id: ext.thread_id };
        if rule.min_nanos > 0 {
            let losses = losses.entry(process).or_default();
            let threads_before = losses.threads();
            losses.record(shard, thread, nanos);
            *threads += losses.threads() - threads_before;
        }
        let Some(event) = SPAN_EVENTS.into_iter().find(|event| *event as u16 == descriptor.event_type) else {
            return Ok(());
        };
        if !rule.has_call_site(ring, ext.call_site_id) {
            return Ok(());
        }
        let span = (process, ext.span_id);
        // A span that exists before its creation is seen was created before the window, or its creation was lost. So
        // there may be something in it from the beginning of the window on. A capture's first event is no beginning of
        // a window: other shards may begin later, and hold the creation no more.
        let first_seen = || {
            let is_lost = losses.get(&process).is_some_and(|losses| losses.of_process(nanos) > 0);
            let is_known = rule.from_nanos > 0 && !is_lost;
            RootCandidate::new(rule.from_nanos, if is_known { rule.from_nanos } else { nanos })
        };
        match event {
            _ if ext.closes_span(event) => {
                let closed = open.remove(&span).unwrap_or_else(first_seen);
                if nanos.saturating_sub(closed.known_since) >= rule.min_nanos {
                    roots.add(span, closed.since, sort_nanos.max(nanos));
                }
            }
            PerfEvent::SpanNew => {
                open.insert(span, RootCandidate::new(nanos, nanos));
            }
            PerfEvent::SpanExit => {
                // Threads race to record: the exit of a span may come after its close. Whether it does is not known of
                // a short span, which is no root: so a span of which only exits are seen is none where times matter.
                if rule.min_nanos == 0 && !roots.has(span) {
                    open.entry(span).or_insert_with(first_seen);
                }
                if let Some(open) = open.get_mut(&span) {
                    open.seen = open.seen.max(nanos);
                    open.entered_by = open.entered_by.filter(|inside| *inside != thread);
                }
            }
            _ => {
                let open = open.entry(span).or_insert_with(first_seen);
                open.seen = open.seen.max(nanos);
                if event == PerfEvent::SpanEnter {
                    open.entered_by = Some(thread);
                }
            }
        }
        // A damaged file may close the same span many times, so the times are counted, and not the ids.
        if open.len() + roots.times.len() + *threads > rule.spans_max {
            let message = format!(
                "it has more than {} spans and threads, which a file of its size cannot have: it is damaged; copy it anew from where it was made",
                rule.spans_max
            );
            return Err(CaptureError::new(CaptureErrorKind::Damaged, message));
        }
        Ok(())
    }

    /// Returns the roots. `problems` are those of the blocks in which they were looked for.
    pub(crate) fn finish(self, problems: Vec<String>) -> Roots {
        let Self { rule, mut roots, open, losses, .. } = self;
        for (span, open) in open {
            let until = open.known_until(losses.get(&span.0), rule.end_nanos);
            if until.saturating_sub(open.known_since) >= rule.min_nanos {
                roots.add(span, open.since, u64::MAX);
            }
        }
        roots.join_times();
        roots.problems = problems;
        roots
    }
}
