//! An event as the subject of a test: what is known of it, and of the span that it is in.

use super::known_spans::{KnownSpan, KnownSpans};
use super::perf;
use super::ring::Ring;
use eventring::reader::Descriptor;
use eventring::schema::Value;
use eventring::schema::perf::{CallSiteLevel, FieldValue};
use eventring::tracing::{CallSite, Field, Fields, PerfContent, PerfRecord, is_log_record};
use eventring_live::{Operand, Subject, has_typed_field, is_field_of, may_have_field};
use std::cell::OnceCell;

/// An event that is tested.
pub(super) struct Tested<'a> {
    known: &'a KnownSpans,
    ring: &'a Ring,
    event: &'a Descriptor,
    /// The span that it is about, or in which it was recorded; 0 if there is none.
    span: u64,
    /// The event of a perf ring; `None` if it is a typed one.
    record: Option<&'a PerfRecord>,
    /// True if only the name of the span itself is asked for, and not of those around it.
    is_by_itself: bool,
    payload: Option<&'a [u8]>,
    /// The decoded payload of a typed event.
    value: OnceCell<Option<Value<'a>>>,
}

impl<'a> Tested<'a> {
    pub(super) fn new(
        known: &'a KnownSpans,
        ring: &'a Ring,
        event: &'a Descriptor,
        record: Option<&'a PerfRecord>,
        payload: Option<&'a [u8]>,
    ) -> Self {
        let span = ring.span_id(event);
        Self { known, ring, event, span, record, is_by_itself: false, payload, value: OnceCell::new() }
    }

    /// Tests the span that the event begins, as a span of a file is tested: by its own name.
    pub(super) fn by_itself(self) -> Self {
        Self { is_by_itself: true, ..self }
    }

    pub(super) fn call_site(&self) -> Option<&'a CallSite> {
        perf::site(&self.record?.content)
    }

    /// Returns true if one of these is the name of its thread, or the system's number of it.
    pub(super) fn is_of_thread(&self, names: &[String]) -> bool {
        let Some(record) = self.record else { return false };
        let tid = record.thread.os_thread_id.map(|tid| tid.to_string());
        let is_it = |name: &String| record.thread.name.as_ref() == Some(name) || tid.as_ref() == Some(name);
        names.iter().any(is_it)
    }

    fn known(&self, span: u64) -> Option<&'a KnownSpan> {
        self.known.get(self.ring, span)
    }

    fn all_fields(&self) -> Option<&'a Fields> {
        match &self.record?.content {
            PerfContent::SpanNew { fields, .. }
            | PerfContent::SpanRecord { fields, .. }
            | PerfContent::Event { fields, .. } => Some(fields),
            _ => None,
        }
    }

    fn is_log_record(&self) -> bool {
        self.record.is_some_and(|record| matches!(record.content, PerfContent::Event { .. }))
    }

    fn fields(&self) -> &'a [Field] {
        self.all_fields().map_or(&[], |fields| &fields.values)
    }

    /// Returns true if fields of its own were lost with its payload.
    pub(super) fn has_lost_fields(&self) -> bool {
        let has_fields = self.record.is_none() || self.all_fields().is_some_and(|fields| fields.problem.is_some());
        self.payload.is_none() && has_fields
    }
}

impl Subject for Tested<'_> {
    fn any_span_name(&self, test: &mut dyn FnMut(&str, &str) -> bool) -> bool {
        let (mut span, mut rest) = (self.span, 1000);
        while let Some(known) = self.known(span).filter(|_| rest > 0) {
            if test(&known.call_site.target, &known.call_site.name) {
                return true;
            }
            // In a damaged ring a span can be its own ancestor.
            (span, rest) = (known.parent, if self.is_by_itself { 0 } else { rest - 1 });
        }
        false
    }

    fn event_name(&self, take: &mut dyn FnMut(&str)) {
        match self.record.map(|record| &record.content) {
            None => take(self.ring.decoder.name(self.event.event_type).unwrap_or_default()),
            Some(PerfContent::Event { call_site, .. } | PerfContent::Marker { call_site, .. }) => take(&call_site.name),
            Some(_) => {}
        }
    }

    fn event_code(&self) -> Option<u16> {
        self.record.is_none().then_some(self.event.event_type)
    }

    fn target(&self) -> Option<&str> {
        let site = self.call_site()?;
        if is_log_record(site)
            && let Some(FieldValue::Str(target)) =
                self.fields().iter().find(|it| &*it.name == "log.target").map(|it| &it.value)
        {
            return Some(target);
        }
        Some(&site.target)
    }

    fn each_thread_name(&self, take: &mut dyn FnMut(&str)) {
        if let Some(name) = self.record.and_then(|record| record.thread.name.as_deref()) {
            take(name);
        }
    }

    fn level(&self) -> Option<CallSiteLevel> {
        match &self.record?.content {
            PerfContent::Event { call_site, .. } => Some(call_site.level),
            _ => None,
        }
    }

    fn closed_after_nanos(&self) -> Option<u64> {
        self.record.filter(|record| record.content.closes_span())?;
        Some(self.event.record_epoch_nanos.saturating_sub(self.known(self.span)?.since_nanos?))
    }

    fn may_have_lost(&self, path: &str) -> bool {
        if self.record.is_none() {
            return self.payload.is_none() && has_typed_field(self.ring.decoder.model(), self.event.event_type, path);
        }
        let of_span = self.known(self.span).filter(|span| span.has_lost_fields);
        (self.has_lost_fields() && may_have_field(self.call_site(), path))
            || of_span.is_some_and(|span| may_have_field(Some(&span.call_site), path))
    }

    fn field(&self, path: &str, take: &mut dyn FnMut(Operand<'_>)) {
        if self.record.is_some() {
            let is_meant = |field: &&Field| is_field_of(&field.name, path);
            let own = || self.fields().iter().filter(is_meant);
            // A field of a log record hides one of its span.
            let hides = |field: &&Field| match self.is_log_record() {
                true => own().next().is_some(),
                false => own().any(|it| it.name == field.name),
            };
            let of_span = self.known(self.span).map_or(&[][..], |known| &known.fields).iter().filter(is_meant);
            let fields = own().chain(of_span.filter(|field| !hides(field)));
            return fields.for_each(|field| Operand::with_field(&field.value, take));
        }
        let (decoder, code) = (&self.ring.decoder, self.event.event_type);
        let value = self.value.get_or_init(|| self.payload.map(|payload| decoder.decode(code, payload)));
        if let Some(value) = value.as_ref().and_then(|value| value.get(path)) {
            return Operand::with_value(value, take);
        }
        if let Some(word) = self.ring.words.value_of(path, self.event.content_ext) {
            take(Operand::Integer(word.into()));
        }
    }
}
