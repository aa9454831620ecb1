//! The decoder: makes a [`PerfRecord`] from a descriptor and a payload.

use super::catalog::{CallSite, Catalog};
use super::log_record::normalize;
use super::record::{Field, Fields, FieldsProblem, PerfContent, PerfRecord, SpanId};
use crate::reader::{Descriptor, PayloadRead};
use crate::schema::perf::{PerfEvent, PerfExt, RawField, RawFields};
use crate::schema::{EventPayload, EventType, RecordError};
use std::sync::Arc;

/// Decodes one event of a perf ring. `shard` is the index of the ring. The call site and the thread that the event
/// names are looked up in `catalog`. If the event describes a call site or a thread, the description is added to
/// `catalog` first.
///
/// This function cannot fail: any descriptor and payload give a record. The record shows which of its parts are
/// missing or damaged.
pub fn decode_record(
    catalog: &mut Catalog,
    shard: u32,
    descriptor: &Descriptor,
    payload: PayloadRead<'_>,
) -> PerfRecord {
    let ext = PerfExt::from_words(descriptor.content_ext);
    let content = decode_content(catalog, descriptor, &ext, payload);
    PerfRecord {
        shard,
        seqno: descriptor.seqno,
        epoch_nanos: descriptor.record_epoch_nanos,
        thread: catalog.thread(ext.thread_id),
        content: content
            .unwrap_or(PerfContent::Unknown { event_type: descriptor.event_type, content_ext: descriptor.content_ext }),
    }
}

/// Decodes the content of an event. Returns `None` if the event's type is not known, or if the event is damaged.
fn decode_content(
    catalog: &mut Catalog,
    descriptor: &Descriptor,
    ext: &PerfExt,
    payload: PayloadRead<'_>,
) -> Option<PerfContent> {
    let span = SpanId::new(ext.span_id);
    Some(match PerfEvent::from_code(descriptor.event_type)? {
        PerfEvent::RecordError => {
            let error = payload.valid().and_then(|payload| RecordError::decode(payload).ok());
            PerfContent::NotRecorded { span, error: error.map(|(error, _)| error) }
        }
        PerfEvent::ThreadStarted => {
            if let Some(payload) = payload.valid()
                && !catalog.learn_thread(ext.thread_id, payload)
            {
                return None;
            }
            PerfContent::ThreadStarted
        }
        PerfEvent::ThreadEnded => PerfContent::ThreadEnded,
        PerfEvent::CallSite => {
            if let Some(payload) = payload.valid()
                && !catalog.learn_call_site(ext.call_site_id, payload)
            {
                return None;
            }
            PerfContent::CallSite(catalog.call_site(ext.call_site_id))
        }
        PerfEvent::SpanNew => {
            let call_site = catalog.call_site(ext.call_site_id);
            let fields = decode_fields(&call_site, ext, payload);
            PerfContent::SpanNew { span: span?, parent: SpanId::new(ext.related), call_site, fields, flags: ext.flags }
        }
        PerfEvent::SpanRecord => {
            let call_site = catalog.call_site(ext.call_site_id);
            let fields = decode_fields(&call_site, ext, payload);
            PerfContent::SpanRecord { span: span?, call_site, fields }
        }
        PerfEvent::SpanEnter => PerfContent::SpanEnter { span: span?, call_site: catalog.call_site(ext.call_site_id) },
        PerfEvent::SpanExit => PerfContent::SpanExit { span: span?, call_site: catalog.call_site(ext.call_site_id) },
        PerfEvent::SpanClose => PerfContent::SpanClose { span: span?, call_site: catalog.call_site(ext.call_site_id) },
        PerfEvent::SpanFollowsFrom => PerfContent::SpanFollowsFrom { span: span?, follows: SpanId::new(ext.related)? },
        PerfEvent::Event => {
            let call_site = catalog.call_site(ext.call_site_id);
            let fields = decode_fields(&call_site, ext, payload);
            let (call_site, fields) = normalize(call_site, fields);
            PerfContent::Event { span, call_site, fields }
        }
        PerfEvent::Counter => {
            let value = RawField { index: 0, type_code: ext.value_type, value: &ext.related.to_le_bytes(), cut: None };
            PerfContent::Counter { span, call_site: catalog.call_site(ext.call_site_id), value: value.to_value() }
        }
        PerfEvent::Marker => PerfContent::Marker {
            span,
            call_site: catalog.call_site(ext.call_site_id),
            text: payload.valid().map(|text| String::from_utf8_lossy(text).into_owned()),
        },
    })
}

fn decode_fields(call_site: &CallSite, ext: &PerfExt, payload: PayloadRead<'_>) -> Fields {
    let mut fields = Fields { missing: ext.missing_fields, ..Fields::default() };
    match payload {
        // The payload was overwritten. An event without fields has lost nothing by this.
        PayloadRead::Expired if ext.field_count > 0 => fields.problem = Some(FieldsProblem::Expired),
        PayloadRead::Malformed => fields.problem = Some(FieldsProblem::Malformed),
        PayloadRead::Expired => {}
        PayloadRead::Valid(payload) => {
            for field in RawFields::new(payload) {
                match field {
                    Ok(field) => fields.values.push(named(call_site, &field)),
                    Err(_) => fields.problem = Some(FieldsProblem::Malformed),
                }
            }
            if fields.values.len() != usize::from(ext.field_count) {
                fields.problem = Some(FieldsProblem::Malformed);
            }
        }
    }
    fields
}

fn named(call_site: &CallSite, field: &RawField<'_>) -> Field {
    let name = call_site.field_names.get(usize::from(field.index)).cloned();
    Field {
        name: name.unwrap_or_else(|| Arc::from(format!("field {}", field.index))),
        index: field.index,
        value: field.to_value(),
        cut: field.cut,
    }
}
