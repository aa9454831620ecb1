//! The replay of spans: turns a stream of records into spans and span slices. Only this module interprets enters,
//! exits, closes and losses.
//!
//! | file | idea |
//! |---|---|
//! | `span_record` | the record that the replay reads: decoded, or raw |
//! | `stacks` | the span stack of each thread |
//! | `losses` | the time until which each ring has lost events, and the threads that may have recorded them |
//! | `open` | the open spans and slices |
//! | `step` | the change that one record makes to spans |
//! | `around` | closed ancestors of spans that are still in the replay |
//! | `inside` | which spans are inside of which, and so which closed ones are kept |
//! | `memory` | sizes, from which the memory that a replay takes is estimated |
//! | `live` | the replay of a stream without end, in bounded memory |
//! | `refused` | the open spans for which a replay in bounded memory has no room |
//! | `thread_clock` | how long a thread ran, could have run, and slept |
//! | `tail` | the replay of batches that arrive one after the other |
//! | `ended` | the spans that the replay returns: closed, lost, and the rest at the end |

mod around;
mod ended;
mod inside;
mod live;
mod losses;
mod memory;
mod open;
mod refused;
mod span_record;
mod stacks;
mod step;
mod tail;
mod thread_clock;

pub use losses::RingLosses;
pub use step::{SpanChange, SpanStep};
pub(super) use thread_clock::Off;

use super::call_site::CallSite;
use super::catalog::Catalog;
use super::id_map::IdMap;
use super::raw::RawRecord;
use super::record::PerfRecord;
use super::slice::ThreadKey;
use super::span::{Span, SpanSlice, TimeOnThread};
use crate::schema::perf::PerfEvent;
use crate::tracing::span_id::SpanId;
use around::SpansAround;
use memory::{FOLLOWS_FROM_MAX, LINK_BYTES, SLICE_BYTES};
use refused::RefusedSpans;
use span_record::{NamedRecord, SpanRecord};
use stacks::SpanStacks;
use std::collections::VecDeque;
use std::sync::Arc;

/// The time in nanoseconds for which the replay keeps a span after its close. Other threads may have recorded events
/// of the span at the same time, and these records may come later in the stream than the close.
pub const GRACE_NANOS: u64 = 5_000_000;

/// A replay of the records of one process. It rebuilds the spans of the process and their slices. Threads race to
/// record, so the replay accepts the records of a span in any order, for example the close before an exit.
///
/// The caller passes each record of a merged stream to [`push`](Self::push), which returns the change that the record
/// makes. The replay keeps each span until the caller takes it.
///
/// [`take_closed`](Self::take_closed) takes a span that was closed. It does so only when 5 milliseconds of the stream
/// have passed since the close, because records that other threads made at the same time may still come. At the end of
/// the stream, [`finish`](Self::finish) returns the remaining spans.
///
/// Three functions show the state of the replay between two records. [`open_spans`](Self::open_spans) returns the
/// spans that are open, [`open_slices`](Self::open_slices) returns the slices that threads are in, and
/// [`stack`](Self::stack) returns the slices that one thread is in.
///
/// In a stream without end, the memory of the replay grows without limit, unless the caller does two things.
/// [`take_lost`](Self::take_lost), called from time to time, removes spans whose close was lost.
/// [`without_slices`](Self::without_slices) drops the slices of spans that threads enter again and again. The replay
/// still keeps a little memory for each thread that has recorded.
#[derive(Clone, Debug, Default)]
pub struct SpanReplay {
    /// The spans. Each has a place of its own: a map of spans would be so large that few of its entries stay in the
    /// processor's caches.
    spans: IdMap<SpanId, Box<Span>>,
    /// The places of spans that were taken, for later spans.
    #[allow(clippy::vec_box, reason = "a place moves into the map and back")]
    free: Vec<Box<Span>>,
    stacks: SpanStacks,
    losses: RingLosses,
    /// The number of calls of [`Self::gap`] so far.
    gaps: u64,
    /// The closed spans that were not taken yet, each with the time of its close, in the order of their closes in the
    /// stream.
    closing: VecDeque<(u64, SpanId)>,
    now_epoch_nanos: u64,
    /// The batch that is replayed; `None` if there are no batches.
    batch: Option<BatchTimes>,
    spans_seen: u64,
    /// An estimate of the bytes that the spans take in addition to themselves.
    more_bytes: u64,
    /// Closed spans that were taken.
    around: SpansAround,
    drops_fields: bool,
    drops_slices: bool,
    /// The limits of a replay in bounded memory; `None` if the memory is not bounded.
    live: Option<LiveLimits>,
}

/// The times that the records of a batch have reached, in nanoseconds since the epoch.
#[derive(Clone, Copy, Debug)]
struct BatchTimes {
    /// The time until which all records have come, or are in the batch.
    complete_until: u64,
    /// The time that the records of the batch have reached, of which earlier batches may have later ones.
    reached: u64,
}

/// The limits of a replay in bounded memory.
#[derive(Clone, Debug)]
struct LiveLimits {
    spans_max: usize,
    refused: RefusedSpans,
    /// The number of enters for which there was no room.
    refused_enters: u64,
    /// The memory of the fields of closed spans, for later spans.
    buffers: Vec<Vec<u8>>,
}

impl SpanReplay {
    /// Creates a replay that has seen no record.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the replay keep no fields of spans. This is for callers that read the fields from the records.
    #[must_use]
    pub fn without_fields(self) -> Self {
        Self { drops_fields: true, ..self }
    }

    /// Makes the replay keep no slices in its spans. This is for callers that follow the changes that [`Self::push`]
    /// returns.
    #[must_use]
    pub fn without_slices(self) -> Self {
        Self { drops_slices: true, ..self }
    }

    /// Takes the next record of the stream and returns the change that it makes. A process can have several
    /// recorders: the caller gives each of them a number, `recorder`. If there is one recorder, the number is 0.
    pub fn push(&mut self, recorder: u32, record: &PerfRecord) -> SpanChange {
        match self.step(recorder, record) {
            SpanStep::None => SpanChange::None,
            SpanStep::Updated(span) => SpanChange::Updated(span),
            SpanStep::SliceBegun(slice) => SpanChange::SliceBegun(slice),
            SpanStep::SliceEnded(taken) => SpanChange::SliceEnded(taken.slice),
            SpanStep::Closed { span, cut } => {
                SpanChange::Closed { span, cut: cut.into_iter().map(|taken| taken.slice).collect() }
            }
        }
    }

    /// Takes the next record of the stream, as [`Self::push`] does. `catalog` has the names for the ids of the record.
    pub fn push_raw(&mut self, recorder: u32, record: &RawRecord<'_>, catalog: &Catalog) -> SpanStep {
        self.step(recorder, &NamedRecord { record, catalog })
    }

    #[inline]
    fn step(&mut self, recorder: u32, record: &impl SpanRecord) -> SpanStep {
        let nanos = record.epoch_nanos();
        let (shard, thread_id) = record.place();
        let thread = ThreadKey { recorder, thread_id };
        self.now_epoch_nanos = self.now_epoch_nanos.max(nanos);
        self.reach_in_batch(nanos);
        self.losses.record((recorder, shard), thread, nanos);
        let Some(event) = record.event() else { return SpanStep::None };
        let span = record.span();
        if self.live.is_some() && self.live_step(event, span, thread, record) {
            return SpanStep::None;
        }
        match (event, span) {
            (PerfEvent::SpanNew, Some(id)) => self.create(id, thread, record),
            (PerfEvent::SpanRecord, Some(id)) => {
                let drops_fields = self.drops_fields;
                let drops_fields = drops_fields || self.live.is_some();
                let span = self.span(id, nanos, || record.known_call_site());
                if let Some(caller) = record.caller() {
                    span.set_caller(&caller);
                }
                if !drops_fields {
                    let before = span.fields.kept_bytes();
                    span.fields.update(record.fields());
                    let after = span.fields.kept_bytes();
                    span.more_bytes = span.more_bytes.saturating_sub(before) + after;
                    self.more_bytes = self.more_bytes.saturating_sub(before) + after;
                }
                self.keep_raw_fields(id, record, false);
                SpanStep::Updated(id)
            }
            (PerfEvent::SpanEnter, Some(id)) => self.enter(id, thread, record),
            (PerfEvent::SpanExit, Some(id)) => self.exit(id, thread, record),
            (PerfEvent::SpanClose, Some(id)) => self.close(id, recorder, record),
            (PerfEvent::SpanFollowsFrom, Some(id)) => {
                let span = self.span(id, nanos, || None);
                if span.follows_from.len() >= FOLLOWS_FROM_MAX {
                    span.follows_from_dropped += 1;
                    return SpanStep::None;
                }
                span.follows_from.extend(record.related());
                span.more_bytes += LINK_BYTES;
                self.more_bytes += LINK_BYTES;
                SpanStep::Updated(id)
            }
            (PerfEvent::Event | PerfEvent::Counter | PerfEvent::Marker, span) => {
                self.happen(span, thread, nanos, true);
                SpanStep::None
            }
            (PerfEvent::ThreadSwitched, span) => {
                self.happen(span, thread, nanos, true);
                self.stacks.switched(thread, nanos, || record.measures_times());
                SpanStep::None
            }
            (PerfEvent::ThreadTime, span) => {
                self.happen(span, thread, nanos, true);
                if let Some((times, has_queue)) = record.thread_time() {
                    self.stacks.measured(thread, nanos, (&times, has_queue), || record.measures_times());
                }
                SpanStep::None
            }
            (PerfEvent::Allocated, span) => {
                self.happen(span, thread, nanos, true);
                let innermost = self.stacks.stack_of(thread).last().map(|slice| slice.span);
                if let (Some(span), Some(allocated)) = (innermost, record.allocated())
                    && let Some(span) = self.spans.get_mut(&span)
                {
                    span.allocated = Some(span.allocated.unwrap_or_default().plus(allocated));
                }
                SpanStep::None
            }
            (PerfEvent::RecordError, span) => {
                self.happen(span, thread, nanos, false);
                if let Some(span) = span.and_then(|span| self.spans.get_mut(&span)) {
                    span.may_have_losses = true;
                }
                SpanStep::None
            }
            (PerfEvent::ThreadEnded, _) => {
                self.stacks.end_thread(thread);
                SpanStep::None
            }
            (PerfEvent::ThreadStarted | PerfEvent::CallSite, _)
            | (
                PerfEvent::SpanNew
                | PerfEvent::SpanRecord
                | PerfEvent::SpanEnter
                | PerfEvent::SpanExit
                | PerfEvent::SpanClose
                | PerfEvent::SpanFollowsFrom,
                None,
            ) => SpanStep::None,
        }
    }

    /// Notes that a typed event was recorded in the span whose id the event carries: the span existed at that time.
    /// Returns the span, or `None` if the replay does not know it.
    pub fn push_typed_event(&mut self, span: SpanId, epoch_nanos: u64) -> Option<&Span> {
        self.note_named(Some(span), epoch_nanos);
        let span = self.spans.get_mut(&span)?;
        span.see(epoch_nanos);
        Some(span)
    }

    /// Notes that events are missing at this place of the stream. `ring` names the recorder and the shard that have
    /// lost the events.
    ///
    /// Pass `None` for `ring` if none of the missing events can be an exit or a close in this process. For example, the
    /// events belong to a ring that is not a perf ring, or they were never committed because the program died.
    pub fn gap(&mut self, ring: Option<(u32, u32)>) {
        self.gaps += 1;
        if let Some(ring) = ring {
            self.losses.lose(ring);
        }
    }

    /// Notes that a ring had an event at this time, in nanoseconds since the epoch, which ends its loss. The event itself
    /// may be left out.
    #[doc(hidden)]
    pub fn end_loss(&mut self, ring: (u32, u32), epoch_nanos: u64) {
        self.losses.end(ring, epoch_nanos);
    }

    fn create(&mut self, id: SpanId, thread: ThreadKey, record: &impl SpanRecord) -> SpanStep {
        let (drops_fields, gaps, parent) = (self.drops_fields, self.gaps, record.related());
        let drops_fields = drops_fields || self.live.is_some();
        let of_parent = parent.and_then(|parent| self.get_around(parent)).map(|span| (span.root, span.remote_trace));
        let (root, remote_trace) = of_parent.unwrap_or((parent.unwrap_or(id), None));
        let span = self.span(id, record.epoch_nanos(), || None);
        // The record of a caller may have come first.
        if span.remote_parent.is_none() {
            (span.root, span.remote_trace) = (root, remote_trace);
        }
        let parent_before = std::mem::replace(&mut span.parent, parent);
        span.call_site = record.call_site();
        span.created = Some(moment(record));
        span.flags |= record.flags();
        span.may_have_losses = false;
        span.gaps_before = gaps;
        if !drops_fields {
            // A record of another thread may have come first and added fields to the span. Those fields are newer than
            // the fields of the creation, so they replace them.
            let fields = record.fields();
            let bytes = fields.kept_bytes();
            let later = std::mem::replace(&mut span.fields, fields);
            span.fields.update(later);
            span.more_bytes += bytes;
            self.more_bytes += bytes;
        }
        self.note_inside(id, parent, parent_before);
        self.keep_raw_fields(id, record, true);
        self.happen(parent, thread, record.epoch_nanos(), false);
        SpanStep::Updated(id)
    }

    fn enter(&mut self, id: SpanId, thread: ThreadKey, record: &impl SpanRecord) -> SpanStep {
        let slice =
            self.stacks.enter(thread, id, record.epoch_nanos(), record.instructions(), || record.measures_times());
        let drops_slices = self.drops_slices;
        let span = self.span(id, record.epoch_nanos(), || record.known_call_site());
        span.begin_slice(record.epoch_nanos());
        if !drops_slices {
            // Most spans have one slice. So room for exactly one is reserved when the first slice comes.
            span.slices.reserve_exact(usize::from(span.slices.is_empty()));
            span.slices.push(SpanSlice::begun(slice, record.thread()));
            span.more_bytes += SLICE_BYTES;
            self.more_bytes += SLICE_BYTES;
        }
        SpanStep::SliceBegun(slice)
    }

    fn exit(&mut self, id: SpanId, thread: ThreadKey, record: &impl SpanRecord) -> SpanStep {
        let (drops_slices, nanos) = (self.drops_slices, record.epoch_nanos());
        let open_slices = self.span(id, nanos, || record.known_call_site()).open_slices;
        let taken = self.stacks.exit(
            thread,
            id,
            nanos,
            record.instructions(),
            open_slices > 1,
            (self.losses.of_own_rings(thread, self.now_epoch_nanos), false),
        );
        let may_be_lost = self.losses.of_thread(thread, self.now_epoch_nanos);
        let Some(span) = self.spans.get_mut(&id) else { return SpanStep::Updated(id) };
        if taken.is_none() && span.has_moved_to(thread) && may_be_lost <= span.first_seen_epoch_nanos {
            return SpanStep::None;
        }
        span.flags |= record.flags();
        // A thread that leaves a span after its close was in it until then.
        let nanos = span.closed.as_ref().map_or(nanos, |closed| nanos.min(closed.epoch_nanos));
        span.count_slice(thread, taken.as_ref(), nanos, record.instructions());
        if !drops_slices && span.end_slice(thread, taken.as_ref(), nanos, || record.thread()) {
            span.more_bytes += SLICE_BYTES;
            self.more_bytes += SLICE_BYTES;
        }
        let Some(taken) = taken else {
            return SpanStep::Updated(id);
        };
        SpanStep::SliceEnded(taken)
    }

    fn close(&mut self, id: SpanId, recorder: u32, record: &impl SpanRecord) -> SpanStep {
        let nanos = record.epoch_nanos();
        let span = self.span(id, nanos, || record.known_call_site());
        // In a damaged ring, a span can be closed again and again.
        let is_first = span.closed.replace(moment(record)).is_none();
        let has_open_slices = span.open_slices > 0;
        let lost_until = |thread| self.losses.of_own_rings(thread, self.now_epoch_nanos);
        let cut = if has_open_slices { self.stacks.take_all(recorder, id, nanos, lost_until) } else { Vec::new() };
        if !cut.is_empty()
            && let Some(span) = self.spans.get_mut(&id)
        {
            cut.iter().for_each(|taken| span.cut_slice(taken, nanos));
            let bytes = SLICE_BYTES.saturating_mul(cut.len() as u64);
            span.more_bytes += bytes;
            self.more_bytes += bytes;
        }
        if is_first {
            self.closing.push_back((record.epoch_nanos(), id));
        }
        SpanStep::Closed { span: id, cut }
    }

    /// Notes that the thread recorded something in a span: the span existed at that time. If the span is the
    /// innermost one on the thread's stack, the thread was also still in it.
    /// `has_looked` says that the thread has recorded its times before, if it had any to record.
    fn happen(&mut self, span: Option<SpanId>, thread: ThreadKey, nanos: u64, has_looked: bool) {
        match span.and_then(|id| Some((id, self.spans.get_mut(&id)?))) {
            Some((id, span)) => {
                span.see(nanos);
                self.stacks.see(thread, id, nanos, has_looked);
            }
            None => self.note_named(span, nanos),
        }
    }

    /// Returns the span that a record is about, and notes that the span existed at the time of the record. If the
    /// creation of the span was not seen, its name comes from `call_site`.
    #[inline]
    fn span(&mut self, id: SpanId, nanos: u64, call_site: impl FnOnce() -> Option<Arc<CallSite>>) -> &mut Span {
        let (spans_seen, free) = (&mut self.spans_seen, &mut self.free);
        let span = self.spans.entry(id).or_insert_with(|| {
            *spans_seen += 1;
            let unseen = Span::unseen(id, *spans_seen, nanos);
            match free.pop() {
                Some(mut place) => {
                    *place = unseen;
                    place
                }
                None => Box::new(unseen),
            }
        });
        span.first_seen_epoch_nanos = span.first_seen_epoch_nanos.min(nanos);
        span.see(nanos);
        if span.call_site.is_none() {
            span.call_site = call_site();
        }
        span
    }
}

fn moment(record: &impl SpanRecord) -> TimeOnThread {
    TimeOnThread { epoch_nanos: record.epoch_nanos(), thread: record.thread() }
}

#[cfg(test)]
mod instruction_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod thread_clock_tests;
