//! An event of a perf ring before its payload is decoded. The words of its descriptor are decoded, and its payload is
//! borrowed.

use super::call_site::CallSite;
use super::catalog::Catalog;
use super::record::{Field, Fields, FieldsProblem};
use crate::reader::{Descriptor, PayloadRead};
use crate::schema::perf::{Allocated, FieldValue, PerfEvent, PerfExt, RawField, RawFields, ThreadTime, flags};
use crate::schema::{EventPayload as _, EventType};
use crate::tracing::span_id::SpanId;
use std::sync::Arc;

/// An event of a perf ring. Names and fields are decoded only when somebody asks for them.
#[derive(Clone, Copy, Debug)]
pub struct RawRecord<'p> {
    pub(crate) shard: u32,
    /// The event, as the ring has it.
    pub descriptor: &'p Descriptor,
    /// The ids of its thread, span and call site.
    pub ext: PerfExt,
    /// The event's type. It is `None` if the type is not known, or if the event is damaged.
    pub event: Option<PerfEvent>,
    /// The payload.
    pub payload: PayloadRead<'p>,
}

impl<'p> RawRecord<'p> {
    /// Makes a record of an event. If the event describes a call site or a thread, the description is added to
    /// `catalog`.
    #[inline]
    pub fn new(catalog: &mut Catalog, shard: u32, descriptor: &'p Descriptor, payload: PayloadRead<'p>) -> Self {
        let ext = PerfExt::from_words(descriptor.content_ext);
        let event = PerfEvent::from_code(descriptor.event_type);
        let event = event.filter(|event| is_whole(*event, &ext, payload, catalog));
        Self { shard, descriptor, ext, event, payload }
    }

    /// Returns the two records that a replay gets for this event, if it gets two. The begin of a scope is the creation
    /// of a span and an enter, and its end is an exit and a close. Every other event is one record.
    #[inline]
    pub fn parts(&self) -> Option<[Self; 2]> {
        let second = match self.event? {
            PerfEvent::SpanNew if self.ext.flags & flags::ENTERED != 0 => PerfEvent::SpanEnter,
            PerfEvent::SpanExit if self.ext.flags & flags::CLOSED != 0 => PerfEvent::SpanClose,
            _ => return None,
        };
        let mut flags = self.ext.flags & !(flags::ENTERED | flags::CLOSED);
        // Only the exit of a scope closes. A reader may not have seen the begin.
        if second == PerfEvent::SpanClose {
            flags |= flags::SCOPE;
        }
        let of_second =
            PerfExt { thread_id: self.ext.thread_id, ..PerfExt::of_span(self.ext.span_id, self.ext.call_site_id) };
        let first = Self { ext: PerfExt { flags, ..self.ext }, ..*self };
        let payload = PayloadRead::Valid(&[]);
        Some([first, Self { event: Some(second), ext: of_second, payload, ..*self }])
    }

    /// Returns true if this is the second of the [`parts`](Self::parts) of an event. Whoever counts events counts the
    /// first.
    #[inline]
    #[must_use]
    pub fn is_second_part(&self) -> bool {
        self.event.is_some_and(|event| event as u16 != self.descriptor.event_type)
    }

    /// Returns the span that the event is about, or in which it was recorded.
    #[inline]
    pub fn span(&self) -> Option<SpanId> {
        SpanId::new(self.ext.span_id)
    }

    /// Returns the parent of a new span, or the span that a span follows from.
    #[inline]
    pub fn related(&self) -> Option<SpanId> {
        match self.event {
            Some(PerfEvent::SpanNew | PerfEvent::SpanFollowsFrom) => SpanId::new(self.ext.related),
            _ => None,
        }
    }

    /// Returns the number of instructions that the program had executed on the thread, if the event says so.
    #[inline]
    pub fn instructions(&self) -> Option<u64> {
        match self.event {
            Some(PerfEvent::SpanEnter | PerfEvent::SpanExit | PerfEvent::Event) => {
                Some(self.ext.related).filter(|count| *count > 0)
            }
            _ => None,
        }
    }

    /// Returns what a THREAD_TIME says, and whether it tells queue from sleep. Returns `None` for another event, or if
    /// the payload was overwritten.
    #[inline]
    pub fn thread_time(&self) -> Option<(ThreadTime, bool)> {
        let payload = self.payload.valid().filter(|_| self.event == Some(PerfEvent::ThreadTime))?;
        let (times, _) = ThreadTime::decode(payload).ok()?;
        Some((times, self.ext.flags & flags::NO_QUEUE == 0))
    }

    /// Returns what an ALLOCATED says. Returns `None` for another event, or if the payload was overwritten.
    #[inline]
    pub fn allocated(&self) -> Option<Allocated> {
        let payload = self.payload.valid().filter(|_| self.event == Some(PerfEvent::Allocated))?;
        Allocated::decode(payload).ok().map(|(allocated, _)| allocated)
    }

    /// Returns the time of the event in nanoseconds since the epoch.
    #[inline]
    pub fn epoch_nanos(&self) -> u64 {
        self.descriptor.record_epoch_nanos
    }

    /// Decodes the fields of a new span, of a SPAN_RECORD or of a log record. Each field is there once.
    pub fn fields(&self, call_site: &CallSite) -> Fields {
        let mut fields = Fields { missing: self.ext.missing_fields, ..Fields::default() };
        match self.payload {
            // The payload was overwritten. An event without fields has lost nothing by this.
            PayloadRead::Expired if self.ext.field_count > 0 => fields.problem = Some(FieldsProblem::Expired),
            PayloadRead::Malformed => fields.problem = Some(FieldsProblem::Malformed),
            PayloadRead::Expired => {}
            PayloadRead::Valid(payload) => {
                // The number is not trusted.
                fields.values.reserve_exact(usize::from(self.ext.field_count).min(16));
                let (mut count, mut next_index) = (0, 0);
                for field in RawFields::new(payload) {
                    match field {
                        Ok(field) if usize::from(field.index) >= next_index => {
                            (count, next_index) = (count + 1, usize::from(field.index) + 1);
                            fields.values.push(named(call_site, &field));
                        }
                        // It may be there already.
                        Ok(field) => {
                            count += 1;
                            fields.put(named(call_site, &field));
                        }
                        Err(_) => fields.problem = Some(FieldsProblem::Malformed),
                    }
                }
                if count != usize::from(self.ext.field_count) {
                    fields.problem = Some(FieldsProblem::Malformed);
                }
            }
        }
        fields
    }

    /// Decodes the fields like [`Self::fields`], with their names from `catalog`.
    pub fn named_fields(&self, catalog: &Catalog) -> Fields {
        match catalog.known_call_site(self.ext.call_site_id) {
            Some(call_site) => self.fields(call_site),
            None => self.fields(&catalog.call_site(self.ext.call_site_id)),
        }
    }

    /// Returns the value of a counter's sample, as a field.
    pub fn sample(&self) -> FieldValue {
        let value = self.ext.related.to_le_bytes();
        RawField { index: 0, type_code: self.ext.value_type, value: &value, cut: None }.to_value()
    }
}

/// Returns false if the event lacks an id that each event of its type has, or if it describes a call site or a thread
/// and the description is damaged. Adds the description to `catalog`.
#[inline]
fn is_whole(event: PerfEvent, ext: &PerfExt, payload: PayloadRead<'_>, catalog: &mut Catalog) -> bool {
    match event {
        PerfEvent::SpanNew
        | PerfEvent::SpanRecord
        | PerfEvent::SpanEnter
        | PerfEvent::SpanExit
        | PerfEvent::SpanClose => ext.span_id != 0,
        PerfEvent::SpanFollowsFrom => ext.span_id != 0 && ext.related != 0,
        PerfEvent::ThreadStarted => payload.valid().is_none_or(|payload| catalog.learn_thread(ext.thread_id, payload)),
        PerfEvent::CallSite => payload.valid().is_none_or(|payload| catalog.learn_call_site(ext.call_site_id, payload)),
        PerfEvent::ThreadTime => payload.valid().is_none_or(|payload| ThreadTime::decode(payload).is_ok()),
        PerfEvent::Allocated => payload.valid().is_none_or(|payload| Allocated::decode(payload).is_ok()),
        PerfEvent::RecordError
        | PerfEvent::ThreadEnded
        | PerfEvent::Event
        | PerfEvent::Counter
        | PerfEvent::Marker
        | PerfEvent::ThreadSwitched => true,
    }
}

fn named(call_site: &CallSite, field: &RawField<'_>) -> Field {
    let name = call_site.field_name(field.index).cloned();
    let (value, cut) = call_site.value_and_cut(field);
    Field { name: name.unwrap_or_else(|| Arc::from(format!("field {}", field.index))), index: field.index, value, cut }
}
