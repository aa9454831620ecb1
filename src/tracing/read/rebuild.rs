//! From a stream of events back to spans.

use super::catalog::CallSite;
use super::record::{PerfContent, PerfRecord, SpanId};
use super::span::{Moment, Slice, Span};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// By how much the times of two threads' events may run against the order in which they happened, and a late event against
/// the stream, in nanoseconds.
const GRACE_NANOS: u64 = 5_000_000;

/// Puts spans together from the records of a merged stream, in whatever order threads raced to record them.
///
/// A closed span is handed out by [`take_closed`](Self::take_closed) a little later than its close was met, so that what
/// another thread recorded at the same time is in it; memory is that of the spans which are open. [`finish`](Self::finish)
/// gives the rest. For everything at once there is [`SpanTree`](super::tree::SpanTree).
#[derive(Debug, Default)]
pub struct SpanRebuilder {
    spans: HashMap<SpanId, Span>,
    /// Closed spans with the time of their close, in the order of the stream.
    closing: VecDeque<(u64, SpanId)>,
    now_epoch_nanos: u64,
}

impl SpanRebuilder {
    /// No spans yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next record of the stream.
    pub fn push(&mut self, record: &PerfRecord) {
        self.now_epoch_nanos = self.now_epoch_nanos.max(record.epoch_nanos);
        let moment = || Moment { epoch_nanos: record.epoch_nanos, thread: record.thread.clone() };
        match &record.content {
            PerfContent::SpanNew { span, parent, call_site, fields, flags } => {
                let span = self.span(*span);
                span.parent = *parent;
                span.call_site = Some(call_site.clone());
                // Values that another thread recorded at once are newer.
                let later = std::mem::replace(&mut span.fields, fields.clone());
                span.fields.update(later);
                span.created = Some(moment());
                span.flags |= flags;
                span.may_have_losses = false;
            }
            PerfContent::SpanRecord { span, call_site, fields } => {
                self.span_at(*span, call_site).fields.update(fields.clone());
            }
            PerfContent::SpanEnter { span, call_site } => {
                let slice = Slice {
                    thread: record.thread.clone(),
                    entered_epoch_nanos: Some(record.epoch_nanos),
                    exited_epoch_nanos: None,
                };
                self.span_at(*span, call_site).slices.push(slice);
            }
            PerfContent::SpanExit { span, call_site } => {
                let span = self.span_at(*span, call_site);
                let is_entered =
                    |slice: &&mut Slice| slice.exited_epoch_nanos.is_none() && slice.thread.id == record.thread.id;
                match span.slices.iter_mut().rev().find(is_entered) {
                    Some(slice) => slice.exited_epoch_nanos = Some(record.epoch_nanos),
                    None => {
                        span.may_have_losses = true;
                        span.slices.push(Slice {
                            thread: record.thread.clone(),
                            entered_epoch_nanos: None,
                            exited_epoch_nanos: Some(record.epoch_nanos),
                        });
                    }
                }
            }
            PerfContent::SpanClose { span, call_site } => {
                let id = *span;
                self.span_at(id, call_site).closed = Some(moment());
                self.closing.push_back((record.epoch_nanos, id));
            }
            PerfContent::SpanFollowsFrom { span, follows } => self.span(*span).follows_from.push(*follows),
            PerfContent::NotRecorded { span: Some(span), .. } => self.span(*span).may_have_losses = true,
            _ => {}
        }
    }

    /// Events of some ring are missing here: what is open may have lost some of its own.
    pub fn gap(&mut self) {
        self.spans.values_mut().for_each(|span| span.may_have_losses = true);
    }

    fn span(&mut self, id: SpanId) -> &mut Span {
        self.spans.entry(id).or_insert_with(|| Span::unseen(id))
    }

    /// As [`Self::span`]; if its creation was not seen, it gets its name from here.
    fn span_at(&mut self, id: SpanId, call_site: &Arc<CallSite>) -> &mut Span {
        let span = self.span(id);
        if span.call_site.is_none() && call_site.is_known {
            span.call_site = Some(call_site.clone());
        }
        span
    }

    /// A span that has not been handed out yet.
    #[must_use]
    pub fn get(&self, id: SpanId) -> Option<&Span> {
        self.spans.get(&id)
    }

    /// How many spans have not been handed out yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether every span has been handed out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The next span that was closed long enough ago, in the order of the closes.
    pub fn take_closed(&mut self) -> Option<Span> {
        loop {
            let (closed, id) = *self.closing.front()?;
            if closed.saturating_add(GRACE_NANOS) > self.now_epoch_nanos {
                return None;
            }
            self.closing.pop_front();
            // A damaged ring can close a span twice.
            if let Some(span) = self.spans.remove(&id) {
                return Some(span);
            }
        }
    }

    /// All spans that have not been handed out, closed ones too, by id.
    #[must_use]
    pub fn finish(self) -> Vec<Span> {
        let mut spans: Vec<Span> = self.spans.into_values().collect();
        spans.sort_unstable_by_key(|span| span.id);
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalog::Catalog;
    use super::super::record::Fields;
    use super::*;

    fn id(id: u64) -> SpanId {
        SpanId::new(id).unwrap()
    }

    fn record(epoch_nanos: u64, thread: u32, content: PerfContent) -> PerfRecord {
        PerfRecord { shard: 0, seqno: 1, epoch_nanos, thread: Catalog::new().thread(thread), content }
    }

    fn new(span: u64, parent: u64) -> PerfContent {
        PerfContent::SpanNew {
            span: id(span),
            parent: SpanId::new(parent),
            call_site: Catalog::new().call_site(9),
            fields: Fields::default(),
            flags: 0,
        }
    }

    fn enter(span: u64) -> PerfContent {
        PerfContent::SpanEnter { span: id(span), call_site: Catalog::new().call_site(9) }
    }

    fn exit(span: u64) -> PerfContent {
        PerfContent::SpanExit { span: id(span), call_site: Catalog::new().call_site(9) }
    }

    fn close(span: u64) -> PerfContent {
        PerfContent::SpanClose { span: id(span), call_site: Catalog::new().call_site(9) }
    }

    #[test]
    fn events_of_two_threads_that_come_in_the_wrong_order_still_make_one_span() {
        let mut spans = SpanRebuilder::new();
        spans.push(&record(10, 2, enter(5)));
        spans.push(&record(11, 1, new(5, 3)));
        spans.push(&record(20, 1, close(5)));
        spans.push(&record(21, 2, exit(5)));
        assert_eq!(spans.take_closed(), None);
        spans.push(&record(20 + GRACE_NANOS, 1, PerfContent::ThreadEnded));
        let span = spans.take_closed().unwrap();
        assert_eq!((span.parent, span.wall_nanos(), span.busy_nanos()), (Some(id(3)), Some(9), 11));
        assert!(!span.may_have_losses && !span.is_open());
        assert!(spans.is_empty());
    }

    #[test]
    fn what_was_not_seen_is_said() {
        let mut spans = SpanRebuilder::new();
        spans.push(&record(10, 1, exit(1)));
        spans.push(&record(11, 1, new(2, 1)));
        spans.push(&record(12, 1, enter(2)));
        spans.gap();
        spans.push(&record(13, 1, new(3, 2)));
        let [first, second, third] = spans.finish().try_into().unwrap();
        assert!(first.may_have_losses && first.created.is_none() && first.slices[0].entered_epoch_nanos.is_none());
        assert!(second.may_have_losses && second.is_open() && second.slices[0].exited_epoch_nanos.is_none());
        assert!(!third.may_have_losses);
    }

    #[test]
    fn a_span_entered_twice_on_one_thread_is_exited_from_the_inside_out() {
        let mut spans = SpanRebuilder::new();
        for (time, content) in [(1, new(1, 0)), (2, enter(1)), (3, enter(1)), (4, exit(1)), (5, exit(1))] {
            spans.push(&record(time, 1, content));
        }
        let span = spans.finish().remove(0);
        let ends: Vec<_> = span.slices.iter().map(Slice::nanos).collect();
        assert_eq!((ends, span.busy_nanos()), (vec![Some(3), Some(1)], 3));
    }
}
