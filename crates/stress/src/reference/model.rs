//! Two references for the tests of `tracing`. [`ReferenceLayer`] asks the `Registry` for the parents of spans.
//! [`ReferenceTee`] wraps the tested subscriber and keeps its own record of parents and handles.

use super::{Collected, EventFacts, SpanFacts, os_thread_id};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fmt;
use std::sync::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_core::LevelFilter;
use tracing_core::span::Current;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// Visitor that prints fields in the reader's format.
#[derive(Default)]
pub struct Printed {
    pub fields: BTreeMap<String, String>,
    pub uid: u64,
}

impl Printed {
    fn put(&mut self, field: &Field, value: String) {
        self.fields.insert(field.name().to_owned(), value);
    }
}

impl Visit for Printed {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "uid" {
            self.uid = value;
        }
        self.put(field, value.to_string());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.to_string());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.to_owned());
    }

    fn record_bytes(&mut self, field: &Field, value: &[u8]) {
        let hex = value.iter().map(|byte| format!("{byte:02x}"));
        self.put(field, format!("0x{}", hex.collect::<String>()));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let mut texts = vec![value.to_string()];
        let mut source = value.source();
        while let Some(error) = source {
            texts.push(error.to_string());
            source = error.source();
        }
        self.put(field, texts.join(": "));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }
}

fn span_facts(attributes: &Attributes<'_>) -> (u64, SpanFacts) {
    let mut printed = Printed::default();
    attributes.record(&mut printed);
    let metadata = attributes.metadata();
    let facts = SpanFacts {
        name: metadata.name().into(),
        target: metadata.target().into(),
        fields: printed.fields,
        ..SpanFacts::default()
    };
    (printed.uid, facts)
}

fn event_facts(event: &Event<'_>, span: Option<u64>) -> (u64, EventFacts) {
    let mut printed = Printed::default();
    event.record(&mut printed);
    let metadata = event.metadata();
    let facts = EventFacts {
        target: metadata.target().into(),
        level: metadata.level().to_string(),
        span,
        fields: printed.fields,
        thread: os_thread_id(),
    };
    (printed.uid, facts)
}

fn with_span(facts: &Collected, uid: u64, change: impl FnOnce(&mut SpanFacts)) {
    change(facts.lock().unwrap().spans.get_mut(&uid).expect("a span that was created"));
}

fn stay(facts: &Collected, uid: u64, what: char) {
    with_span(facts, uid, |span| span.stays.entry(os_thread_id()).or_default().push(what));
}

fn record(facts: &Collected, uid: u64, values: &Record<'_>) {
    let mut printed = Printed::default();
    values.record(&mut printed);
    with_span(facts, uid, |span| span.fields.extend(printed.fields));
}

/// A layer over a `Registry`, from which it gets the parents.
pub struct ReferenceLayer(pub Collected);

struct Uid(u64);

impl ReferenceLayer {
    fn uid<S: Subscriber + for<'l> LookupSpan<'l>>(id: &Id, context: &Context<'_, S>) -> Option<u64> {
        context.span(id)?.extensions().get::<Uid>().map(|uid| uid.0)
    }
}

impl<S: Subscriber + for<'l> LookupSpan<'l>> Layer<S> for ReferenceLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let (uid, mut facts) = span_facts(attributes);
        let span = context.span(id).unwrap();
        facts.parent = span.parent().and_then(|parent| Self::uid(&parent.id(), &context));
        span.extensions_mut().insert(Uid(uid));
        assert!(self.0.lock().unwrap().spans.insert(uid, facts).is_none(), "uid {uid} twice");
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        record(&self.0, Self::uid(id, &context).unwrap(), values);
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, context: Context<'_, S>) {
        let (Some(uid), Some(follows)) = (Self::uid(id, &context), Self::uid(follows, &context)) else { return };
        with_span(&self.0, uid, |span| {
            span.follows.insert(follows);
        });
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let span = context.event_span(event).and_then(|span| Self::uid(&span.id(), &context));
        let (uid, facts) = event_facts(event, span);
        assert!(self.0.lock().unwrap().events.insert(uid, facts).is_none(), "event uid {uid} twice");
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        stay(&self.0, Self::uid(id, &context).unwrap(), 'E');
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        stay(&self.0, Self::uid(id, &context).unwrap(), 'X');
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let uid = Self::uid(&id, &context).unwrap();
        with_span(&self.0, uid, |span| assert!(!std::mem::replace(&mut span.is_closed, true), "{uid} closed twice"));
    }
}

/// A reference subscriber that wraps the tested subscriber. It passes every call on and uses the ids that the tested
/// subscriber gives. It keeps its own record of parents and handles.
pub struct ReferenceTee<R> {
    pub inner: R,
    facts: Collected,
    open: Mutex<HashMap<u64, Open>>,
}

struct Open {
    uid: u64,
    handles: u32,
}

thread_local! {
    /// The spans that the thread is in, innermost last. For each enter, the flag is true if the thread was already in
    /// the same span.
    static ENTERED: RefCell<Vec<(u64, bool)>> = const { RefCell::new(Vec::new()) };
}

impl<R> ReferenceTee<R> {
    pub fn new(inner: R, facts: Collected) -> Self {
        Self { inner, facts, open: Mutex::default() }
    }

    fn uid(&self, id: u64) -> u64 {
        self.open.lock().unwrap().get(&id).expect("an open span").uid
    }

    fn current(&self) -> Option<u64> {
        let current = ENTERED.with_borrow(|entered| entered.iter().rev().find(|entry| !entry.1).map(|entry| entry.0));
        current.map(|id| self.uid(id))
    }

    fn parent(&self, is_contextual: bool, explicit: Option<&Id>) -> Option<u64> {
        if is_contextual { self.current() } else { explicit.map(|id| self.uid(id.into_u64())) }
    }
}

impl<R: Subscriber> Subscriber for ReferenceTee<R> {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        self.inner.register_callsite(metadata)
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.inner.enabled(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.inner.max_level_hint()
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let (uid, mut facts) = span_facts(attributes);
        facts.parent = self.parent(attributes.is_contextual(), attributes.parent());
        let id = self.inner.new_span(attributes);
        let before = self.open.lock().unwrap().insert(id.into_u64(), Open { uid, handles: 1 });
        assert!(before.is_none(), "an id of an open span was given again");
        assert!(self.facts.lock().unwrap().spans.insert(uid, facts).is_none(), "uid {uid} twice");
        id
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        record(&self.facts, self.uid(id.into_u64()), values);
        self.inner.record(id, values);
    }

    fn record_follows_from(&self, id: &Id, follows: &Id) {
        let open = self.open.lock().unwrap();
        if let (Some(span), Some(follows)) = (open.get(&id.into_u64()), open.get(&follows.into_u64())) {
            with_span(&self.facts, span.uid, |span| {
                span.follows.insert(follows.uid);
            });
        }
        self.inner.record_follows_from(id, follows);
    }

    fn event(&self, event: &Event<'_>) {
        let (uid, facts) = event_facts(event, self.parent(event.is_contextual(), event.parent()));
        assert!(self.facts.lock().unwrap().events.insert(uid, facts).is_none(), "event uid {uid} twice");
        self.inner.event(event);
    }

    fn enter(&self, id: &Id) {
        stay(&self.facts, self.uid(id.into_u64()), 'E');
        ENTERED.with_borrow_mut(|entered| {
            let is_duplicate = entered.iter().any(|entry| entry.0 == id.into_u64());
            entered.push((id.into_u64(), is_duplicate));
        });
        self.inner.enter(id);
    }

    fn exit(&self, id: &Id) {
        stay(&self.facts, self.uid(id.into_u64()), 'X');
        ENTERED.with_borrow_mut(|entered| {
            if let Some(at) = entered.iter().rposition(|entry| entry.0 == id.into_u64()) {
                entered.remove(at);
            }
        });
        self.inner.exit(id);
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.open.lock().unwrap().get_mut(&id.into_u64()).expect("an open span").handles += 1;
        self.inner.clone_span(id)
    }

    fn try_close(&self, id: Id) -> bool {
        // Both this record and the inner subscriber count handles. The lock is held while both counts go down. So the
        // same thread drops the last handle in both, and both must agree that the span is closed.
        let mut open = self.open.lock().unwrap();
        let span = open.get_mut(&id.into_u64()).expect("an open span");
        span.handles -= 1;
        let closes = (span.handles == 0).then_some(span.uid);
        if let Some(uid) = closes {
            open.remove(&id.into_u64());
            with_span(&self.facts, uid, |span| span.is_closed = true);
        }
        let is_closed = self.inner.try_close(id);
        drop(open);
        assert_eq!(is_closed, closes.is_some(), "the subscriber counts handles differently");
        is_closed
    }

    fn current_span(&self) -> Current {
        self.inner.current_span()
    }
}
