//! The spans and events on which conditions are tested, with the values that conditions compare. A replay knows the
//! spans around each of them.

use super::fields::{LiveFields, has_typed_field, may_have_field, span_may_have_lost};
use super::{Condition, NameKind, Operand, Subject, TimesPart, Truth};
use eventring::internal::decode_event;
use eventring::reader::{Descriptor, PayloadRead};
use eventring::schema::perf::{CallSiteLevel, PerfEvent};
use eventring::schema::{ExtWords, SchemaModel};
use eventring::tracing::{CallSite, Catalog, RawRecord, Span, SpanId, SpanReplay, Thread, is_log_record};
use std::borrow::Cow;
use std::sync::Arc;

/// A span, as far as it is known at one place of the stream.
#[derive(Clone, Copy, Debug)]
pub struct SpanSubject<'a> {
    /// The span.
    pub span: &'a Span,
    /// The threads that are in it, unless it is closed: then it is the thread that closed it.
    pub entered_by: &'a [Arc<Thread>],
    /// The time from which on it is known to have existed, in nanoseconds since the epoch.
    pub start_epoch_nanos: u64,
    /// The age in nanoseconds, if the span is open and conditions ask for ages.
    pub open_nanos: Option<u64>,
}

/// An event, with the spans in which it was recorded, as far as they are known at its place of the stream.
#[derive(Clone, Copy, Debug)]
pub struct EventSubject<'a> {
    /// The event.
    pub event: SeenContent<'a>,
    /// What is known of the spans of its process; `None` if the event is tested by what it says itself.
    pub replay: Option<&'a SpanReplay>,
    /// True if an option asks, such as `--thread`: then each event of a perf ring has its thread, which is also named by
    /// its number, and the target and level of its call site.
    pub by_option: bool,
}

/// What an event says.
#[derive(Clone, Copy, Debug)]
pub enum SeenContent<'a> {
    /// An event of a perf ring, with the call sites and threads of its recorder.
    Record(&'a RawRecord<'a>, &'a Catalog),
    /// A typed event.
    Typed(TypedContent<'a>),
}

/// A typed event, and what is known of its ring.
#[derive(Clone, Copy, Debug)]
pub struct TypedContent<'a> {
    /// The event.
    pub descriptor: &'a Descriptor,
    /// Its payload.
    pub payload: PayloadRead<'a>,
    /// The schema of the ring, if it is known.
    pub model: Option<&'a SchemaModel>,
    /// The names of the extension words.
    pub words: &'a ExtWords,
}

impl<'a> SpanSubject<'a> {
    /// Makes the subject of a span.
    #[must_use]
    pub fn new(span: &'a Span) -> Self {
        Self { span, entered_by: &[], start_epoch_nanos: span.start_epoch_nanos(), open_nanos: None }
    }
}

/// Returns true if `test` holds for the target and the name of a span. A name that is not known fits nothing.
fn has_name(span: &Span, test: &mut dyn FnMut(&str, &str) -> bool) -> bool {
    span.call_site.as_ref().is_some_and(|site| test(&site.target, &site.name))
}

impl Subject for SpanSubject<'_> {
    fn is_unnamed(&self) -> bool {
        self.span.call_site.is_none()
    }

    fn any_span_name(&self, test: &mut dyn FnMut(&str, &str) -> bool) -> bool {
        has_name(self.span, test)
    }

    fn target(&self) -> Option<&str> {
        Some(self.span.call_site.as_deref().map_or("", |site| &site.target))
    }

    fn each_thread_name(&self, take: &mut dyn FnMut(&str)) {
        match &self.span.closed {
            Some(closed) => closed.thread.name.as_deref().into_iter().for_each(take),
            None => self.entered_by.iter().filter_map(|it| it.name.as_deref()).for_each(take),
        }
    }

    fn closed_after_nanos(&self) -> Option<u64> {
        let closed = self.span.closed.as_ref().filter(|_| self.open_nanos.is_none())?;
        Some(closed.epoch_nanos.saturating_sub(self.start_epoch_nanos))
    }

    fn times_nanos(&self, part: TimesPart) -> Option<u64> {
        self.closed_after_nanos()?;
        self.span.times().map(|times| part.nanos(&times))
    }

    fn open_nanos(&self) -> Option<u64> {
        self.open_nanos
    }

    fn field(&self, path: &str, take: &mut dyn FnMut(Operand<'_>)) {
        LiveFields::of_span(self.span).operands(path, take);
    }

    fn may_have_lost(&self, path: &str) -> bool {
        span_may_have_lost(self.span, path)
    }
}

impl<'a> EventSubject<'a> {
    /// Returns the span that the event is about, or in which it was recorded.
    #[must_use]
    pub fn span_id(&self) -> Option<SpanId> {
        match self.event {
            SeenContent::Record(record, _) => record.span(),
            SeenContent::Typed(event) => SpanId::new(event.words.span_id(event.descriptor.content_ext)),
        }
    }

    /// Returns the span that the event is about, or in which it was recorded, and those around it, innermost first.
    pub fn spans(&self) -> impl Iterator<Item = &'a Span> + use<'a> {
        let around = self.replay.zip(self.span_id());
        around.into_iter().flat_map(|(replay, span)| replay.spans_around(span))
    }

    fn record(&self) -> Option<&'a RawRecord<'a>> {
        match self.event {
            SeenContent::Record(record, _) => Some(record),
            SeenContent::Typed(_) => None,
        }
    }

    /// Returns the call site, if it has one that is known.
    fn call_site(&self) -> Option<&'a CallSite> {
        match self.event {
            SeenContent::Record(record, catalog) => {
                catalog.known_call_site(record.ext.call_site_id).map(|site| &**site)
            }
            SeenContent::Typed(_) => None,
        }
    }

    /// Returns true if this is a log record, a mark or a typed event: it says something by itself, and not of a span.
    #[must_use]
    pub fn is_content(&self) -> bool {
        self.record().is_none_or(|it| it.event.is_some_and(PerfEvent::is_happening))
    }

    fn is_log_record(&self) -> bool {
        self.record().is_some_and(|record| record.event == Some(PerfEvent::Event))
    }

    fn has_fields(&self) -> bool {
        let with_fields = [PerfEvent::SpanNew, PerfEvent::SpanRecord, PerfEvent::Event];
        self.record().and_then(|record| record.event).is_some_and(|event| with_fields.contains(&event))
    }

    /// Returns its own fields.
    fn fields(&self) -> Option<LiveFields<'a>> {
        let record = self.record().filter(|_| self.has_fields())?;
        Some(LiveFields::new(record.payload.valid().unwrap_or_default(), self.call_site()))
    }

    /// Returns true if it had fields or a payload of its own, which were lost.
    #[must_use]
    pub fn has_lost_fields(&self) -> bool {
        match self.event {
            SeenContent::Record(record, _) => {
                self.has_fields() && record.payload.valid().is_none() && record.ext.field_count > 0
            }
            SeenContent::Typed(event) => event.payload.valid().is_none(),
        }
    }

    /// Returns whether a condition selects the event: the event fulfils it, or a span does in which it was recorded. A
    /// span is tested as far as it is known now.
    #[must_use]
    pub fn is_selected_by(&self, condition: &Condition) -> Truth {
        let own = if self.is_content() { condition.truth(self) } else { Truth::No };
        self.spans()
            .fold(own, |truth, span| if truth == Truth::Yes { truth } else { truth.max(of_span(condition, span)) })
    }
}

/// Returns whether a span fulfils a condition, as far as it is known now. Its thread is the one that created it, or
/// closed it: if neither is known, a condition that asks for it does not hold.
fn of_span(condition: &Condition, span: &Span) -> Truth {
    let entered_by = span.created.as_ref().map_or(&[][..], |created| std::slice::from_ref(&created.thread));
    if entered_by.is_empty() && span.closed.is_none() && condition.asks_for_names(&[NameKind::Thread]) {
        return Truth::No;
    }
    condition.truth(&SpanSubject { entered_by, ..SpanSubject::new(span) })
}

impl Subject for EventSubject<'_> {
    fn any_span_name(&self, test: &mut dyn FnMut(&str, &str) -> bool) -> bool {
        if self.replay.is_none() {
            let is_about_span = !self.is_content() && self.record().is_some_and(|record| record.span().is_some());
            return is_about_span && self.call_site().is_some_and(|site| test(&site.target, &site.name));
        }
        self.spans().any(|span| has_name(span, test))
    }

    fn event_name(&self, take: &mut dyn FnMut(&str)) {
        match self.event {
            SeenContent::Record(..) if self.is_content() => self.call_site().into_iter().for_each(|it| take(&it.name)),
            SeenContent::Record(..) => {}
            SeenContent::Typed(event) => match event.model.and_then(|it| it.event(event.descriptor.event_type)) {
                Some(known) => take(known.name()),
                None => take(&format!("event {}", event.descriptor.event_type)),
            },
        }
    }

    fn event_code(&self) -> Option<u16> {
        match self.event {
            SeenContent::Record(..) => None,
            SeenContent::Typed(event) => Some(event.descriptor.event_type),
        }
    }

    fn target(&self) -> Option<&str> {
        let site = self.call_site().filter(|_| self.by_option || self.is_log_record() || !self.is_content())?;
        let of_log = is_log_record(site).then(|| self.fields()?.text("log.target")).flatten();
        match of_log {
            Some(Cow::Borrowed(target)) => Some(target),
            _ => Some(&site.target),
        }
    }

    fn each_thread_name(&self, take: &mut dyn FnMut(&str)) {
        if let SeenContent::Record(record, catalog) = self.event
            && (self.by_option || self.is_log_record() || !self.is_content())
            && let Some(thread) = catalog.known_thread(record.ext.thread_id)
        {
            thread.name.as_deref().into_iter().for_each(&mut *take);
            if let Some(number) = thread.os_thread_id.filter(|_| self.by_option) {
                take(&number.to_string());
            }
        }
    }

    fn level(&self) -> Option<CallSiteLevel> {
        let site = self.call_site().filter(|_| self.by_option || self.is_log_record());
        site.map(|site| site.level)
    }

    fn field(&self, path: &str, take: &mut dyn FnMut(Operand<'_>)) {
        if let SeenContent::Typed(event) = self.event {
            let payload = event.payload.valid();
            let value = payload.map(|payload| decode_event(event.model, event.descriptor.event_type, payload));
            if let Some(value) = value.as_ref().and_then(|value| value.get(path)) {
                return Operand::with_value(value, take);
            }
            if let Some(word) = event.words.value_of(path, event.descriptor.content_ext) {
                take(Operand::Integer(word.into()));
            }
            return;
        }
        // A field of a log record hides one of its span.
        if !self.fields().is_some_and(|fields| fields.operands(path, take))
            && self.is_log_record()
            && let Some(span) = self.spans().next()
        {
            LiveFields::of_span(span).operands(path, take);
        }
    }

    fn may_have_lost(&self, path: &str) -> bool {
        match self.event {
            SeenContent::Typed(event) => {
                self.has_lost_fields() && has_typed_field(event.model, event.descriptor.event_type, path)
            }
            SeenContent::Record(..) => {
                (self.has_lost_fields() && may_have_field(self.call_site(), path))
                    || (self.is_log_record() && self.spans().next().is_some_and(|span| span_may_have_lost(span, path)))
            }
        }
    }
}
