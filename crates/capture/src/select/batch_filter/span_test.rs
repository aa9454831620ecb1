//! Tests of the events of one recorder during copying.
//!
//! A span is tested when it begins, with the fields that it has then, because the capture cannot wait for its end. If
//! the span fulfils the condition, all events in it are kept.

use crate::condition::{Condition, EventSubject, SeenContent, Truth, TypedContent};
use crate::select::events::{EventSelection, fits_each};
use eventring::reader::{Descriptor, PayloadRead, Reader};
use eventring::schema::perf::{PerfEvent, PerfExt};
use eventring::schema::{EventType as _, ExtWords, SchemaModel};
use eventring::tracing::{Catalog, RawRecord, SpanReplay};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

/// The largest number of open spans that are remembered for the events in them.
const SPANS_MAX: usize = 1 << 20;

/// The spans that the recorders of a program have open: typed events ask for those of the same program.
pub(crate) type OpenSpans = Arc<Mutex<SpanReplay>>;

/// Returns an empty list of open spans.
pub(crate) fn no_open_spans() -> OpenSpans {
    Arc::new(Mutex::new(SpanReplay::live(SPANS_MAX)))
}

/// The tests of the events of one recorder.
pub(crate) struct SpanTest {
    around: Vec<Condition>,
    each: Vec<Condition>,
    /// True if log records and typed events may fulfil a condition that no span around them does.
    asks_events: bool,
    /// True if the payloads of the beginnings of spans are asked for.
    reads_payloads: bool,
    open: OpenSpans,
    /// The ring with the tables of call sites and threads, or a ring of typed events.
    shard0: Reader,
    catalog: Catalog,
    model: Option<Cow<'static, SchemaModel>>,
    words: ExtWords,
}

/// For each condition about spans and what is in them, a bit.
pub(crate) type Bits = u8;

/// The answers for all conditions: a bit for each that holds, and for each that depends on a lost payload.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Answers {
    pub(crate) yes: Bits,
    pub(crate) unknown: Bits,
}

impl SpanTest {
    pub(crate) fn new(selection: &EventSelection, shard0: &Reader, open: OpenSpans) -> Self {
        let around = selection.around();
        let asks_events = !around.iter().all(Condition::is_about_spans_alone);
        let reads_payloads = around.iter().any(|condition| !condition.field_paths().is_empty());
        let (model, words, catalog) = (shard0.schema().ok(), shard0.ext_words(), Catalog::new());
        let (each, shard0) = (selection.each(), shard0.clone());
        Self { around, each, asks_events, reads_payloads, open, shard0, catalog, model, words }
    }

    /// Returns the bits of all conditions about spans and what is in them.
    pub(crate) fn all(&self) -> Bits {
        ((1_u16 << self.around.len()) - 1) as Bits
    }

    /// Returns true if all events are selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.around.is_empty() && self.each.is_empty()
    }

    /// Returns true if the payloads of the beginnings of spans are asked for.
    pub(crate) fn reads_payloads(&self) -> bool {
        self.reads_payloads
    }

    fn answers(&self, event: SeenContent<'_>, replay: Option<&SpanReplay>, of: Bits) -> Answers {
        let subject = EventSubject { event, replay, by_option: false };
        let mut answers = Answers::default();
        for (index, condition) in self.around.iter().enumerate().filter(|(index, _)| of & 1 << index != 0) {
            match condition.truth(&subject) {
                Truth::Yes => answers.yes |= 1 << index,
                // The events of its span are kept, and say that fields were lost.
                Truth::Indeterminate if subject.is_content() && !subject.has_lost_fields() => {}
                Truth::Indeterminate => answers.unknown |= 1 << index,
                // Its log records may ask for its fields, even if it fulfils the condition in no case.
                Truth::No if !subject.is_content() && subject.has_lost_fields() && asks_for(condition, subject) => {
                    answers.unknown |= 1 << index;
                }
                Truth::No => {}
            }
        }
        answers
    }

    /// Takes note of a description of a call site or thread: the tables may have had no room for it.
    pub(crate) fn learn(&mut self, event: &Descriptor, payload: PayloadRead<'_>) {
        RawRecord::new(&mut self.catalog, 0, event, payload);
    }

    /// Returns which conditions a span fulfils that begins now. `event` is its SPAN_NEW.
    pub(crate) fn begins(&mut self, event: &Descriptor, payload: PayloadRead<'_>) -> Answers {
        let record = self.record(event, payload);
        if self.asks_events {
            self.open().push_raw(0, &record, &self.catalog);
        }
        self.answers(SeenContent::Record(&record, &self.catalog), None, self.all())
    }

    /// Returns which of these conditions a log record, a mark or a typed event fulfils by itself.
    pub(crate) fn holds(&mut self, event: &Descriptor, payload: PayloadRead<'_>, of: Bits, is_perf: bool) -> Answers {
        if of == 0 || !self.asks_events {
            return Answers::default();
        }
        let open = self.open.clone();
        let open = open.lock().unwrap_or_else(PoisonError::into_inner);
        if is_perf {
            let record = self.record(event, payload);
            return self.answers(SeenContent::Record(&record, &self.catalog), Some(&open), of);
        }
        self.answers(SeenContent::Typed(self.typed(event, payload)), Some(&open), of)
    }

    /// Returns true if an event fulfils by itself what each event must, or may do so.
    pub(crate) fn fits(&mut self, event: &Descriptor, payload: PayloadRead<'_>, is_perf: bool) -> bool {
        if self.each.is_empty() {
            return true;
        }
        if !is_perf {
            return fits_each(&self.each, SeenContent::Typed(self.typed(event, payload))) != Truth::No;
        }
        let record = self.record(event, payload);
        fits_each(&self.each, SeenContent::Record(&record, &self.catalog)) != Truth::No
    }

    /// Forgets a span that is closed.
    pub(crate) fn ends(&mut self, span_id: u64, epoch_nanos: u64) {
        if !self.asks_events {
            return;
        }
        let content_ext = PerfExt::of_span(span_id, 0).to_words();
        let (event_type, record_epoch_nanos) = (PerfEvent::SpanClose.code(), epoch_nanos);
        let close = Descriptor { event_type, content_ext, record_epoch_nanos, ..Descriptor::default() };
        let record = RawRecord::new(&mut self.catalog, 0, &close, PayloadRead::Valid(&[]));
        let mut open = self.open();
        open.push_raw(0, &record, &self.catalog);
        while let Some(span) = open.take_closed_boxed() {
            open.recycle(span);
        }
    }

    fn open(&self) -> std::sync::MutexGuard<'_, SpanReplay> {
        // A panic of another thread leaves no span half known.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn typed<'p>(&'p self, event: &'p Descriptor, payload: PayloadRead<'p>) -> TypedContent<'p> {
        TypedContent { descriptor: event, payload, model: self.model.as_deref(), words: &self.words }
    }

    fn record<'p>(&mut self, event: &'p Descriptor, payload: PayloadRead<'p>) -> RawRecord<'p> {
        let ext = PerfExt::from_words(event.content_ext);
        let knows = |catalog: &Catalog| {
            (ext.call_site_id == 0 || catalog.knows_call_site(ext.call_site_id)) && catalog.knows_thread(ext.thread_id)
        };
        if !knows(&self.catalog) {
            self.catalog.update(&self.shard0);
        }
        RawRecord::new(&mut self.catalog, 0, event, payload)
    }
}

fn asks_for(condition: &Condition, subject: EventSubject<'_>) -> bool {
    use crate::condition::Subject as _;
    condition.field_paths().iter().any(|path| subject.may_have_lost(path))
}
