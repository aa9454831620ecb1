//! The open spans that a watch has seen, and the closed ones around them.

use super::ring::Ring;
use eventring::reader::Descriptor;
use eventring::tracing::{CallSite, Field, PerfContent, PerfRecord};
use std::collections::HashMap;
use std::sync::Arc;

/// The largest number of spans that are remembered. If there are more, closed ones are forgotten, and if that is not
/// enough, all are.
const SPANS_MAX: usize = 1 << 20;

/// The open spans and the closed ones around them, by process and id.
#[derive(Default)]
pub(super) struct KnownSpans(HashMap<(u64, u64), KnownSpan>);

/// A span that is open, or has an open one inside of it.
pub(super) struct KnownSpan {
    pub(super) call_site: Arc<CallSite>,
    pub(super) parent: u64,
    /// The time of its creation; `None` if it was created before the watch began.
    pub(super) since_nanos: Option<u64>,
    pub(super) fields: Vec<Field>,
    /// True if the payload of an event with fields was lost.
    pub(super) has_lost_fields: bool,
    /// True if this counts already as a lost payload.
    is_loss_counted: bool,
    is_closed: bool,
    /// The number of remembered spans that were created in it.
    spans_inside: u32,
}

impl KnownSpans {
    /// Returns a span of the process that writes the ring.
    pub(super) fn get(&self, ring: &Ring, span: u64) -> Option<&KnownSpan> {
        self.0.get(&(ring.process, span))
    }

    /// Takes note of a span that an event creates, changes or is in.
    pub(super) fn learn(&mut self, ring: &Ring, event: &Descriptor, record: &PerfRecord) {
        if self.0.len() >= SPANS_MAX {
            self.0.retain(|_, span| !span.is_closed);
            if self.0.len() >= SPANS_MAX / 2 {
                self.0.clear();
            }
        }
        let known = |call_site: &Arc<CallSite>, parent, since_nanos| KnownSpan {
            call_site: call_site.clone(),
            parent,
            since_nanos,
            fields: Vec::new(),
            has_lost_fields: false,
            is_loss_counted: false,
            is_closed: false,
            spans_inside: 0,
        };
        let key = (ring.process, ring.span_id(event));
        match &record.content {
            PerfContent::SpanNew { parent, call_site, fields, .. } => {
                let parent = parent.map_or(0, |parent| parent.get());
                let new = known(call_site, parent, Some(event.record_epoch_nanos));
                let has_lost_fields = fields.problem.is_some();
                let (before, spans_inside) = self.0.get(&key).map_or((0, 0), |it| (it.parent, it.spans_inside));
                self.0.insert(key, KnownSpan { fields: fields.values.clone(), has_lost_fields, spans_inside, ..new });
                if before != parent {
                    self.leave((ring.process, before));
                    if let Some(parent) = self.0.get_mut(&(ring.process, parent)) {
                        parent.spans_inside += 1;
                    }
                }
            }
            PerfContent::SpanRecord { call_site, fields, .. } => {
                let span = self.0.entry(key).or_insert_with(|| known(call_site, 0, None));
                span.has_lost_fields |= fields.problem.is_some();
                for field in &fields.values {
                    span.fields.retain(|it| it.name != field.name);
                    span.fields.push(field.clone());
                }
            }
            PerfContent::SpanEnter { call_site, .. } | PerfContent::SpanExit { call_site, .. } => {
                self.0.entry(key).or_insert_with(|| known(call_site, 0, None));
            }
            _ => {}
        }
    }

    /// Counts the lost fields of a span. Returns true at the first time: they are no loss of each event in it.
    pub(super) fn counts_loss(&mut self, ring: &Ring, span_id: u64) -> bool {
        let span = self.0.get_mut(&(ring.process, span_id));
        span.is_some_and(|span| !std::mem::replace(&mut span.is_loss_counted, true))
    }

    /// Notes that a span is closed. It is forgotten with the last span inside of it.
    pub(super) fn close(&mut self, ring: &Ring, span_id: u64) {
        let key = (ring.process, span_id);
        if let Some(span) = self.0.get_mut(&key) {
            span.is_closed = true;
            self.forget_unused(key);
        }
    }

    /// Notes that one span less is inside of a span.
    fn leave(&mut self, key: (u64, u64)) {
        if let Some(span) = self.0.get_mut(&key) {
            span.spans_inside = span.spans_inside.saturating_sub(1);
            self.forget_unused(key);
        }
    }

    /// Forgets a span that is closed and has none inside of it, and those around it of which the same is then true.
    fn forget_unused(&mut self, mut key: (u64, u64)) {
        while self.0.get(&key).is_some_and(|span| span.is_closed && span.spans_inside == 0) {
            let Some(span) = self.0.remove(&key) else { return };
            key.1 = span.parent;
            if let Some(outer) = self.0.get_mut(&key) {
                outer.spans_inside = outer.spans_inside.saturating_sub(1);
            }
        }
    }
}
