//! Testing spans that are already open when a span directive is added.
//!
//! This module reads the rings, because the values of an open span's fields are only in the events of its creation and
//! of later values.

use super::RecorderLayer;
use crate::reader::{Cursor, Descriptor, Next, Reader, Seek};
use crate::schema::EventType;
use crate::schema::perf::{PerfEvent, PerfExt, flags};
use crate::span_slab::SPAN_SLAB;
use crate::tracing::filter::effective::SpanDirective;
use crate::tracing::filter::filter_handle::OpenSpans;
use crate::tracing::filter::span_matches::SpanMatches;
use crate::tracing::record::perf_recorder::global::PERF;
use crate::tracing::record::perf_recorder::handle::PerfRecorder;
use crate::tracing::record::sites::call_sites::CALL_SITES;
use crate::tracing::record::spans::open_spans::{SpanOwner, SpanSource};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Time to wait for an event that a thread is recording. A thread that takes longer does not run at present.
const COMMIT_TIME_MAX: Duration = Duration::from_millis(20);

impl SpanSource {
    fn recorder(&self) -> Option<PerfRecorder> {
        match &self.recorder {
            Some(core) => core.upgrade().map(|core| PerfRecorder { core }),
            None => PERF.installed().cloned(),
        }
    }

    /// Returns the ids of open spans that may meet a directive. The call site of a span that begins now may be that of
    /// an earlier span.
    fn candidates(&self, directives: &[&SpanDirective]) -> HashSet<u64> {
        let mut candidates = HashSet::new();
        let mut add = |span_id, call_site_id| {
            let site = CALL_SITES.metadata(call_site_id);
            if site.is_some_and(|site| directives.iter().any(|of_spans| of_spans.fits_span(site))) {
                candidates.insert(span_id);
            }
        };
        match &self.spans {
            SpanOwner::Subscriber => SPAN_SLAB.for_each_open(add),
            SpanOwner::Layer(stack, owner) => {
                let stack = stack.upgrade();
                let layer = stack.as_ref().and_then(|stack| stack.downcast_ref::<RecorderLayer>());
                if let Some(layer) = layer.filter(|layer| layer.is(*owner)) {
                    layer.spans().for_each_open(|span| add(span.span_id, span.call_site_id));
                }
            }
        }
        candidates
    }
}

impl OpenSpans for SpanSource {
    /// The ring may not have the creation of some spans any more: these cannot be judged. A span that is created during
    /// the call may be counted by mistake.
    fn judge(&self, directives: &[&SpanDirective], matches: &SpanMatches) -> u64 {
        // The open spans are collected before the rings are read: the creation of each is then in a ring.
        let candidates = self.candidates(directives);
        if candidates.is_empty() {
            return 0;
        }
        let mut judged = HashSet::new();
        for shard in self.recorder().and_then(|recorder| recorder.open_readers().ok()).unwrap_or_default() {
            judge_ring(&shard, &candidates, directives, matches, &mut judged);
        }
        (candidates.len() - judged.len()) as u64
    }
}

fn judge_ring(
    ring: &Reader,
    candidates: &HashSet<u64>,
    directives: &[&SpanDirective],
    matches: &SpanMatches,
    judged: &mut HashSet<u64>,
) {
    let mut cursor = ring.cursor();
    let end = cursor.next_seqno();
    cursor.seek(Seek::Oldest);
    let mut buffer = Vec::new();
    while let Some(descriptor) = next_before(&mut cursor, end) {
        let Some(event @ (PerfEvent::SpanNew | PerfEvent::SpanRecord)) = PerfEvent::from_code(descriptor.event_type)
        else {
            continue;
        };
        let ext = PerfExt::from_words(descriptor.content_ext);
        if !candidates.contains(&ext.span_id) {
            continue;
        }
        let Some(metadata) = CALL_SITES.metadata(ext.call_site_id) else { continue };
        let Some(payload) = cursor.payload(&descriptor, &mut buffer).valid() else { continue };
        let met = directives.iter().filter(|of_spans| of_spans.fits_span(metadata));
        matches.add(ext.span_id, met.map(|of_spans| of_spans.conditions_met(metadata, payload)));
        // A layer records an adopted span later than the program made it, and without its fields.
        if event == PerfEvent::SpanNew && ext.flags & flags::ADOPTED == 0 {
            judged.insert(ext.span_id);
        }
    }
}

/// Returns the next event before the seqno `end`. Waits for an event that is being recorded, but not for long. Returns
/// `None` if there is no other event.
fn next_before(cursor: &mut Cursor, end: u64) -> Option<Descriptor> {
    let mut waiting_since = None;
    while cursor.next_seqno() < end {
        match cursor.next() {
            Next::Event(descriptor) => return Some(descriptor),
            Next::Gap(_) => {}
            Next::NotReady if waiting_since.get_or_insert_with(Instant::now).elapsed() > COMMIT_TIME_MAX => {
                cursor.pass_unready(end - 1);
                waiting_since = None;
            }
            Next::NotReady => std::thread::yield_now(),
        }
    }
    None
}
