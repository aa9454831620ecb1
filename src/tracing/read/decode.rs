//! The decoder: makes a [`PerfRecord`] from a descriptor and a payload.

use super::catalog::Catalog;
use super::log_record::normalize;
use super::raw::RawRecord;
use super::record::{PerfContent, PerfRecord};
use crate::reader::{Descriptor, PayloadRead};
use crate::schema::perf::PerfEvent;
use crate::schema::{EventPayload, RecordError};

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
    RawRecord::new(catalog, shard, descriptor, payload).decode(catalog)
}

impl RawRecord<'_> {
    /// Decodes the whole record.
    pub fn decode(&self, catalog: &Catalog) -> PerfRecord {
        let Descriptor { event_type, content_ext, .. } = *self.descriptor;
        PerfRecord {
            shard: self.shard,
            seqno: self.descriptor.seqno,
            epoch_nanos: self.epoch_nanos(),
            thread: catalog.thread(self.ext.thread_id),
            instructions: self.instructions(),
            content: self.content(catalog).unwrap_or(PerfContent::Unknown { event_type, content_ext }),
        }
    }

    /// Decodes the content of the event. Returns `None` if the event's type is not known, or if the event is damaged.
    fn content(&self, catalog: &Catalog) -> Option<PerfContent> {
        let span = self.span();
        let call_site = || catalog.call_site(self.ext.call_site_id);
        Some(match self.event? {
            PerfEvent::RecordError => {
                let error = self.payload.valid().and_then(|payload| RecordError::decode(payload).ok());
                PerfContent::NotRecorded { span, error: error.map(|(error, _)| error) }
            }
            PerfEvent::ThreadStarted => PerfContent::ThreadStarted,
            PerfEvent::ThreadEnded => PerfContent::ThreadEnded,
            PerfEvent::CallSite => PerfContent::CallSite(call_site()),
            PerfEvent::SpanNew => {
                let (call_site, parent, flags) = (call_site(), self.related(), self.ext.flags);
                let fields = self.fields(&call_site);
                PerfContent::SpanNew { span: span?, parent, call_site, fields, flags }
            }
            PerfEvent::SpanRecord => {
                let call_site = call_site();
                let fields = self.fields(&call_site);
                PerfContent::SpanRecord { span: span?, call_site, fields }
            }
            PerfEvent::SpanEnter => PerfContent::SpanEnter { span: span?, call_site: call_site() },
            PerfEvent::SpanExit => PerfContent::SpanExit { span: span?, call_site: call_site(), flags: self.ext.flags },
            PerfEvent::SpanClose => PerfContent::SpanClose { span: span?, call_site: call_site() },
            PerfEvent::SpanFollowsFrom => PerfContent::SpanFollowsFrom { span: span?, follows: self.related()? },
            PerfEvent::Event => {
                let call_site = call_site();
                let fields = self.fields(&call_site);
                let (call_site, fields) = normalize(call_site, fields);
                PerfContent::Event { span, call_site, fields }
            }
            PerfEvent::Counter => PerfContent::Counter { span, call_site: call_site(), value: self.sample() },
            PerfEvent::Marker => PerfContent::Marker {
                span,
                call_site: call_site(),
                text: self.payload.valid().map(|text| String::from_utf8_lossy(text).into_owned()),
            },
            PerfEvent::ThreadSwitched => PerfContent::ThreadSwitched { span },
            PerfEvent::ThreadTime => PerfContent::ThreadTime {
                span,
                times: self.thread_time().map(|(times, _)| times),
                flags: self.ext.flags,
            },
            PerfEvent::Allocated => PerfContent::Allocated { span, allocated: self.allocated() },
        })
    }
}
