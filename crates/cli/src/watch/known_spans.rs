//! The open spans that a watch has seen.

use super::ring::Ring;
use eventring::reader::Descriptor;
use eventring::tracing::{CallSite, Field, PerfContent, PerfRecord};
use std::collections::HashMap;
use std::sync::Arc;

/// The largest number of open spans that are remembered. If there are more, all are forgotten.
const SPANS_MAX: usize = 1 << 20;

/// The open spans, by process and id.
#[derive(Default)]
pub(super) struct KnownSpans(HashMap<(u64, u64), KnownSpan>);

/// An open span.
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
}

impl KnownSpans {
    /// Returns a span of the process that writes the ring.
    pub(super) fn get(&self, ring: &Ring, span: u64) -> Option<&KnownSpan> {
        self.0.get(&(ring.process, span))
    }

    /// Takes note of a span that an event creates, changes or is in.
    pub(super) fn learn(&mut self, ring: &Ring, event: &Descriptor, record: &PerfRecord) {
        if self.0.len() >= SPANS_MAX {
            self.0.clear();
        }
        let known = |call_site: &Arc<CallSite>, parent, since_nanos| KnownSpan {
            call_site: call_site.clone(),
            parent,
            since_nanos,
            fields: Vec::new(),
            has_lost_fields: false,
            is_loss_counted: false,
        };
        let key = (ring.process, ring.span_id(event));
        match &record.content {
            PerfContent::SpanNew { parent, call_site, fields, .. } => {
                let parent = parent.map_or(0, |parent| parent.get());
                let new = known(call_site, parent, Some(event.record_epoch_nanos));
                let has_lost_fields = fields.problem.is_some();
                self.0.insert(key, KnownSpan { fields: fields.values.clone(), has_lost_fields, ..new });
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

    /// Forgets a span that is closed.
    pub(super) fn forget(&mut self, ring: &Ring, span_id: u64) {
        self.0.remove(&(ring.process, span_id));
    }
}
