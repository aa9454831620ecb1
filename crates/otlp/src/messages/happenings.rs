//! Happenings: log records, typed events, marks, losses. A happening in a span becomes an event of the span; a
//! happening outside all spans becomes a log record.

use super::attributes::Attributes;
use eventring::internal::decode_event;
use eventring::reader::{Descriptor, Gap, GapCause, PayloadRead};
use eventring::schema::perf::{CallSiteLevel, PerfEvent};
use eventring::schema::{RecordError, RecordErrorView};
use eventring::tracing::{Catalog, Field, Fields, FieldsProblem, PerfContent, RawRecord, Span};
use eventring_capture::recording::RecordedRings;
use eventring_export::args::{ArgValue, Args};
use eventring_export::numbers::counted;
use eventring_live::LiveFields;
use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};
use opentelemetry_proto::tonic::trace::v1::span::Event;
use std::sync::Arc;

/// Something that happened at one time.
pub(super) struct Happening {
    pub epoch_nanos: u64,
    /// The instrumentation scope.
    pub(super) scope: String,
    name: String,
    /// The text of a log record.
    message: Option<String>,
    level: CallSiteLevel,
    attributes: Attributes,
}

/// The estimated size of a happening without its texts, in bytes.
const HAPPENING_BYTES: u64 = 256;

/// The scope of everything that is no log record of the program.
const OWN_SCOPE: &str = "eventring";

impl Happening {
    /// Makes the happening of a record of a perf ring. Returns `None` if the record is about spans, threads or call
    /// sites, and for a sample of a counter.
    pub(super) fn of_record(record: &RawRecord<'_>, catalog: &Catalog) -> Option<Self> {
        record.event.filter(|event| event.is_happening() || *event == PerfEvent::RecordError)?;
        let thread = catalog.thread(record.ext.thread_id);
        let mut happening = match record.decode(catalog).content {
            PerfContent::Event { call_site, fields, .. } => {
                let (name, scope, level) = (call_site.name.clone(), call_site.target.clone(), call_site.level);
                let mut attributes = of_fields(fields.values, fields.missing, fields.problem);
                attributes.push_call_site(&call_site);
                let message = attributes.take_text("message");
                Self { epoch_nanos: 0, scope, name, message, level, attributes }
            }
            PerfContent::Marker { call_site, text, .. } => {
                Self { message: text, ..Self::named(&call_site.name, CallSiteLevel::None) }
            }
            PerfContent::NotRecorded { error, .. } => Self::not_recorded(Attributes::default(), error),
            _ => return None,
        };
        happening.epoch_nanos = record.epoch_nanos();
        if let Some(count) = record.instructions() {
            happening.attributes.push_count("eventring.instructions", count);
        }
        happening.attributes.push_thread(&thread);
        Some(happening)
    }

    pub(super) fn of_typed_event(
        rings: &RecordedRings,
        ring: u32,
        descriptor: &Descriptor,
        payload: PayloadRead<'_>,
    ) -> Self {
        let code = descriptor.event_type;
        let mut args = Args::default();
        match payload.valid() {
            Some(bytes) => args.push_payload(&decode_event(rings.model(ring), code, bytes)),
            None => args.push("eventring.payload_lost", ArgValue::Bool(true)),
        }
        let words = rings.words(ring);
        for (index, word) in words.iter_own() {
            if let Some(value) = word.value(descriptor.content_ext[index]) {
                args.push_named(&format!("eventring.word.{}", word.key()), ArgValue::Uint(value));
            }
        }
        let attributes = Attributes::of_args(args);
        let mut happening = if rings.is_record_error(ring, code, payload.valid()) {
            let error = payload.valid().and_then(|payload| RecordErrorView::decode(payload).ok()?.error);
            Self::not_recorded(attributes, error)
        } else {
            Self { attributes, ..Self::named(&rings.event_name(ring, code), CallSiteLevel::None) }
        };
        happening.epoch_nanos = descriptor.record_epoch_nanos;
        happening.attributes.push_text("eventring.ring", rings.name(ring));
        happening.attributes.push_count("eventring.seqno", descriptor.seqno);
        happening.attributes.push_count("eventring.code", code.into());
        happening
    }

    /// Makes the happening of an event that could not be recorded, in whichever ring. `error` says why, if it is known.
    fn not_recorded(attributes: Attributes, error: Option<RecordError>) -> Self {
        let mut lost = Self { attributes, ..Self::named("eventring.not_recorded", CallSiteLevel::Warn) };
        lost.message = Some("an event could not be recorded".to_owned());
        if let Some(error) = error {
            lost.attributes.push_text("eventring.why", error.to_string());
        }
        lost
    }

    /// Makes the happening of a loss. `total` is the number of events that the process has lost so far.
    pub(super) fn of_loss(ring_name: &str, gap: Gap, epoch_nanos: u64, total: u64) -> Self {
        let mut loss = Self::named("eventring.lost", CallSiteLevel::Warn);
        loss.epoch_nanos = epoch_nanos;
        let what = match gap.cause {
            GapCause::OverwrittenBefore => "had been overwritten before the recording was read",
            _ if gap.count == 1 => "was lost",
            _ => "were lost",
        };
        loss.message = Some(format!("{} of the ring {ring_name} {what}", counted(gap.count, "event", "events")));
        loss.attributes.push_text("eventring.ring", ring_name);
        loss.attributes.push_count("eventring.lost.first_seqno", gap.first_seqno);
        loss.attributes.push_count("eventring.lost.count", gap.count);
        loss.attributes.push_text("eventring.lost.cause", gap.cause.name());
        loss.attributes.push_count("eventring.lost.total", total);
        loss
    }

    /// Makes the happening of a link to a span, which has these ids. Its time is 0 if it is not known.
    pub(super) fn of_link(trace_id: &[u8], span_id: &[u8], epoch_nanos: u64) -> Self {
        let mut link = Self::named("eventring.link", CallSiteLevel::None);
        let hex = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        link.epoch_nanos = epoch_nanos;
        link.attributes.push_text("eventring.link.trace_id", hex(trace_id));
        link.attributes.push_text("eventring.link.span_id", hex(span_id));
        link
    }

    /// Notes that the span does not show this happening: neither among its events or links, nor in a count, nor as its
    /// status.
    pub(super) fn is_apart(&mut self) {
        self.attributes.push_flag("eventring.apart", true);
    }

    fn named(name: &str, level: CallSiteLevel) -> Self {
        let attributes = Attributes::default();
        Self { epoch_nanos: 0, scope: OWN_SCOPE.to_owned(), name: name.to_owned(), message: None, level, attributes }
    }

    /// Returns the text if this is a log record of the level ERROR.
    pub(super) fn error(&self) -> Option<&str> {
        (self.level == CallSiteLevel::Error).then(|| self.message.as_deref().unwrap_or(&self.name))
    }

    /// Returns an estimate of the bytes that it takes.
    pub(super) fn kept_bytes(&self) -> u64 {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let of_attributes = self.attributes.0.iter().map(|attribute| {
            let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
            let of_value = if let Some(any_value::Value::StringValue(text)) = value { text.len() } else { 0 };
            (size_of_val(attribute) + attribute.key.len() + of_value + 32) as u64
        });
        HAPPENING_BYTES + (self.scope.len() + self.name.len() + text(&self.message)) as u64 + of_attributes.sum::<u64>()
    }

    /// Makes it an event of a span. The text of a log record is the event's name; other texts are attributes.
    pub(super) fn into_event(mut self) -> Event {
        let is_log_record = self.scope != OWN_SCOPE;
        if is_log_record {
            self.attributes.push_text("eventring.target", self.scope);
        }
        let name = match self.message {
            Some(message) if is_log_record => message,
            Some(message) => {
                self.attributes.push_text("eventring.text", message);
                self.name
            }
            None => self.name,
        };
        Event { time_unix_nano: self.epoch_nanos, name, attributes: self.attributes.0, dropped_attributes_count: 0 }
    }

    /// Makes it a log record. The ids are empty if it happened in no span.
    pub(super) fn into_log_record(self, trace_id: Vec<u8>, span_id: Vec<u8>) -> LogRecord {
        let severity = match self.level {
            CallSiteLevel::None => SeverityNumber::Unspecified,
            CallSiteLevel::Error => SeverityNumber::Error,
            CallSiteLevel::Warn => SeverityNumber::Warn,
            CallSiteLevel::Info => SeverityNumber::Info,
            CallSiteLevel::Debug => SeverityNumber::Debug,
            CallSiteLevel::Trace => SeverityNumber::Trace,
        };
        let body = self.message.map(|text| AnyValue { value: Some(any_value::Value::StringValue(text)) });
        LogRecord {
            time_unix_nano: self.epoch_nanos,
            observed_time_unix_nano: self.epoch_nanos,
            severity_number: severity.into(),
            severity_text: self.level.name().unwrap_or_default().to_owned(),
            body,
            attributes: self.attributes.0,
            trace_id,
            span_id,
            event_name: self.name,
            ..LogRecord::default()
        }
    }
}

/// Returns the fields of a span or log record as attributes.
fn of_fields(values: impl IntoIterator<Item = Field>, missing: u16, problem: Option<FieldsProblem>) -> Attributes {
    let mut args = Args::default();
    values.into_iter().for_each(|field| args.push_field(field));
    let mut facts = Args::default();
    facts.push_problems(missing, problem);
    let mut attributes = Attributes::of_args(args);
    attributes.push_facts(facts);
    attributes
}

/// Returns the fields of a span as attributes, whether or not they are decoded.
pub(super) fn attributes_of(span: &Span) -> Attributes {
    let Fields { values, missing, problem, .. } = &span.fields;
    if span.raw_fields().is_empty() {
        return of_fields(values.iter().cloned(), *missing, *problem);
    }
    let raw = LiveFields::of_span(span);
    let decoded = raw.iter().map(|(name, field)| Field {
        name: Arc::from(if name.is_empty() { format!("field {}", field.index) } else { name.to_owned() }),
        index: field.index,
        value: raw.decode(&field),
        cut: field.cut,
    });
    of_fields(decoded, *missing, *problem)
}
