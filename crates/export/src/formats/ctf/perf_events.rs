//! The events of perf rings: those of spans, log records, samples and marks.

use super::members::{Members, declarations};
use super::metadata::{Metadata, put_text};
use crate::args::allocated_values;
use crate::args::{ArgValue, Args};
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{CallSite, Catalog, Fields, PerfContent, RawRecord, SpanId, is_log_record};
use std::collections::HashMap;
use std::io;

/// The number of the class of all streams of perf rings.
pub(super) const STREAM_CLASS: u32 = 0;

/// The fields that each event has before its own fields. LTTng gives the first three the same names.
pub(super) const CONTEXT: &str =
    "uint32_t _vpid; uint32_t _vtid; string _procname; uint32_t _thread_id; uint64_t _span_id; ";

/// Returns the name of the events of such records. Returns `None` if the trace has no event for them.
fn event_name(event: Option<PerfEvent>) -> Option<&'static str> {
    Some(match event {
        Some(PerfEvent::SpanNew) => "span_new",
        Some(PerfEvent::SpanRecord) => "span_record",
        Some(PerfEvent::SpanEnter) => "span_enter",
        Some(PerfEvent::SpanExit) => "span_exit",
        Some(PerfEvent::SpanClose) => "span_close",
        Some(PerfEvent::SpanFollowsFrom) => "span_follows_from",
        Some(PerfEvent::Event) => "log_record",
        Some(PerfEvent::Counter) => "counter",
        Some(PerfEvent::Marker) => "marker",
        Some(PerfEvent::ThreadSwitched) => "thread_switched",
        Some(PerfEvent::ThreadTime) => "thread_time",
        Some(PerfEvent::Allocated) => "allocated",
        Some(PerfEvent::RecordError) => "not_recorded",
        None => "unknown",
        Some(PerfEvent::CallSite | PerfEvent::ThreadStarted | PerfEvent::ThreadEnded) => return None,
    })
}

/// The estimated number of bytes that are kept for an event class, beside its key.
const CLASS_BYTES: u64 = 128;

/// The classes of events of perf rings, and the event that is being written.
#[derive(Default)]
pub(super) struct PerfEvents {
    classes: HashMap<Vec<u8>, u32>,
    kept_bytes: u64,
    members: Members,
    /// The bytes of the event that was encoded last, from its context on.
    pub(super) content: Vec<u8>,
}

impl PerfEvents {
    pub(super) fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    /// Encodes a record into [`Self::content`], and returns the number of its class. Returns `None` if the trace has no
    /// event for such a record: it describes a call site or a thread, and other events have this description.
    pub(super) fn encode(
        &mut self,
        pid: u32,
        record: &RawRecord<'_>,
        catalog: &Catalog,
        metadata: &mut Metadata,
    ) -> io::Result<Option<u32>> {
        let Some(name) = event_name(record.event) else { return Ok(None) };
        self.put_members(name, record, catalog);
        self.content.clear();
        self.put_context(pid, record, catalog);
        self.content.extend(&self.members.values);
        if let Some(class) = self.classes.get(&self.members.key) {
            return Ok(Some(*class));
        }
        let class = self.classes.len() as u32;
        metadata.event_class(STREAM_CLASS, class, name, &declarations(&self.members.key))?;
        self.kept_bytes += CLASS_BYTES + self.members.key.len() as u64;
        self.classes.insert(self.members.key.clone(), class);
        Ok(Some(class))
    }

    fn put_context(&mut self, pid: u32, record: &RawRecord<'_>, catalog: &Catalog) {
        let thread_id = record.ext.thread_id;
        let thread = catalog.known_thread(thread_id);
        let os_thread_id = thread.and_then(|thread| thread.os_thread_id).unwrap_or(0);
        let name = thread.and_then(|thread| thread.name.as_deref()).unwrap_or("");
        self.content.extend(pid.to_le_bytes());
        self.content.extend(os_thread_id.to_le_bytes());
        put_text(&mut self.content, name);
        self.content.extend(thread_id.to_le_bytes());
        self.content.extend(record.span().map_or(0, SpanId::get).to_le_bytes());
    }

    fn put_members(&mut self, name: &str, record: &RawRecord<'_>, catalog: &Catalog) {
        self.members.begin_event(name);
        match record.event {
            None => self.members.uint32("code", record.descriptor.event_type.into()),
            Some(PerfEvent::RecordError) => {
                if let PerfContent::NotRecorded { error: Some(error), .. } = record.decode(catalog).content {
                    self.members.text("why", &format!("{error:?}"));
                }
            }
            Some(PerfEvent::ThreadSwitched) => {}
            Some(PerfEvent::ThreadTime) => self.put_thread_time(record),
            Some(PerfEvent::Allocated) => {
                let values = record.allocated().map(|allocated| allocated_values(&allocated));
                values.into_iter().flatten().for_each(|(name, count)| self.members.uint64(name, count));
            }
            Some(_) => match catalog.known_call_site(record.ext.call_site_id) {
                Some(call_site) => self.put_of_call_site(record, call_site, catalog),
                None => self.put_of_call_site(record, &catalog.call_site(record.ext.call_site_id), catalog),
            },
        }
    }

    fn put_of_call_site(&mut self, record: &RawRecord<'_>, call_site: &CallSite, catalog: &Catalog) {
        match record.event {
            Some(PerfEvent::SpanNew) => {
                self.put_call_site(call_site);
                self.members.uint64("parent_id", record.related().map_or(0, SpanId::get));
                self.put_fields(record.fields(call_site));
            }
            Some(PerfEvent::Event) if is_log_record(call_site) => {
                if let PerfContent::Event { call_site, fields, .. } = record.decode(catalog).content {
                    self.put_call_site(&call_site);
                    self.put_instructions(record);
                    self.put_fields(fields);
                }
            }
            Some(PerfEvent::Event) => {
                self.put_call_site(call_site);
                self.put_instructions(record);
                self.put_fields(record.fields(call_site));
            }
            _ => {
                self.members.text("name", &call_site.name);
                match record.event {
                    Some(PerfEvent::SpanRecord) => self.put_fields(record.fields(call_site)),
                    Some(PerfEvent::SpanFollowsFrom) => {
                        self.members.uint64("follows_id", record.related().map_or(0, SpanId::get));
                    }
                    Some(PerfEvent::Counter) => self.members.argument("value", &ArgValue::from(record.sample())),
                    Some(PerfEvent::Marker) => {
                        if let PerfContent::Marker { text: Some(text), .. } = record.decode(catalog).content {
                            self.members.text("text", &text);
                        }
                    }
                    _ => self.put_instructions(record),
                }
            }
        }
    }

    fn put_call_site(&mut self, call_site: &CallSite) {
        self.members.text("name", &call_site.name);
        self.members.text("target", &call_site.target);
        self.members.level("level", call_site.level);
        self.members.text("file", call_site.file.as_deref().unwrap_or(""));
        self.members.uint32("line", call_site.line.unwrap_or(0));
    }

    fn put_instructions(&mut self, record: &RawRecord<'_>) {
        if let Some(count) = record.instructions() {
            self.members.uint64("instructions", count);
        }
    }

    fn put_thread_time(&mut self, record: &RawRecord<'_>) {
        let Some((times, has_queue)) = record.thread_time() else { return };
        self.members.uint64("since", times.since_epoch_nanos);
        self.members.uint64("cpu_ns", times.cpu_nanos);
        if has_queue {
            self.members.uint64("queue_ns", times.queue_nanos);
        }
        self.members.uint32("slices", times.slices);
        self.members.uint32("merged", times.merged);
        self.members.uint32("voluntary_switches", times.voluntary_switches);
        self.members.uint32("involuntary_switches", times.involuntary_switches);
        self.members.uint32("minor_faults", times.minor_faults);
        self.members.uint32("major_faults", times.major_faults);
    }

    /// Puts the fields of a span or log record, the reasons why values are not whole, and what is missing.
    fn put_fields(&mut self, fields: Fields) {
        let mut values = Args::default();
        fields.values.into_iter().for_each(|field| values.push_field(field));
        self.members.begin("fields");
        values.0.iter().for_each(|value| self.members.argument(&value.name, &value.value));
        self.members.end();
        if values.0.iter().any(|value| value.cut.is_some()) {
            self.members.begin("cut");
            let cuts = values.0.iter().filter_map(|value| Some((&value.name, value.cut.as_ref()?)));
            cuts.for_each(|(name, cut)| self.members.argument(name, cut));
            self.members.end();
        }
        let mut problems = Args::default();
        problems.push_problems(fields.missing, fields.problem);
        problems.0.iter().for_each(|problem| self.members.argument(&problem.name, &problem.value));
    }
}
