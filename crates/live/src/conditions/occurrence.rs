//! Occurrences, on which conditions are tested: an observation, an open span that has reached an age, a phase of a
//! task, or a signal. Each occurrence has the state of the engine.

use crate::core::series::{SeriesKind, SeriesView};
use crate::observation::{ClosedSpan, Observation};
use crate::state::LiveState;
use crate::state::open::OpenSpan;
use crate::state::open::span_name;
use crate::state::task_phase::TaskPhase;
use eventring::reader::RingEnd;
use eventring::schema::perf::CallSiteLevel;
use eventring::tracing::Span;
use eventring_capture::condition::{
    Condition, EventSubject, LiveFields, Operand, RateOf, SeenContent, SpanSubject, Subject, TimesPart, Truth,
};
use eventring_capture::recording::RecordedProgram;
use eventring_tasks::{TaskState, is_task};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// Something that may fulfil a condition.
#[derive(Clone, Copy, Debug)]
pub struct Occurrence<'a> {
    what: What<'a>,
    state: LiveState<'a>,
    /// True if rates and percentiles are not looked at.
    lacks_rates: bool,
}

#[derive(Clone, Copy, Debug)]
enum What<'a> {
    Seen(&'a Observation<'a>),
    /// A span that has reached an age and is still open.
    Open(&'a OpenSpan<'a>),
    /// A span that reached an age while it was open, and was closed before a tick came.
    Outgrown(&'a ClosedSpan<'a>),
    /// What a task does or did.
    Phase(&'a TaskPhase<'a>),
    /// A signal that the watching program got.
    Signal,
}

impl<'a> Occurrence<'a> {
    /// Makes the occurrence of what was seen.
    #[must_use]
    pub fn from_observation(observation: &'a Observation<'a>, state: LiveState<'a>) -> Self {
        Self { what: What::Seen(observation), state, lacks_rates: false }
    }

    /// Makes the occurrence that a span has reached an age.
    #[must_use]
    pub fn of_open(span: &'a OpenSpan<'a>, state: LiveState<'a>) -> Self {
        Self { what: What::Open(span), state, lacks_rates: false }
    }

    /// Makes the occurrence that a span had reached an age before it was closed.
    pub(crate) fn of_outgrown(span: &'a ClosedSpan<'a>, state: LiveState<'a>) -> Self {
        Self { what: What::Outgrown(span), state, lacks_rates: false }
    }

    /// Makes the occurrence that a task did something for as long as a condition says.
    pub(crate) fn of_phase(phase: &'a TaskPhase<'a>, state: LiveState<'a>) -> Self {
        Self { what: What::Phase(phase), state, lacks_rates: false }
    }

    /// Returns whether a condition holds because of what happened, and not only because of rates that last.
    pub(crate) fn fulfils(&self, condition: &Condition) -> Truth {
        let truth = condition.truth(self);
        if truth == Truth::No || !condition.holds(&Occurrence::from_observation(&Observation::Tick, self.state)) {
            return truth;
        }
        truth.min(condition.truth(&Occurrence { lacks_rates: true, ..*self }))
    }

    /// Makes the occurrence that the watching program got a signal.
    #[must_use]
    pub fn of_signal(state: LiveState<'a>) -> Self {
        Self { what: What::Signal, state, lacks_rates: false }
    }

    /// Returns the time in nanoseconds since the epoch.
    #[must_use]
    pub fn epoch_nanos(&self) -> u64 {
        match self.what {
            What::Seen(Observation::SpanClosed(span)) | What::Outgrown(span) => span.epoch_nanos(),
            What::Seen(Observation::LogRecord(record)) => record.epoch_nanos(),
            What::Seen(Observation::TypedEvent(event)) => event.epoch_nanos(),
            What::Seen(Observation::Marker(mark)) => mark.epoch_nanos(),
            What::Seen(Observation::ProgramEnded(end)) => end.epoch_nanos,
            What::Phase(phase) => phase.epoch_nanos(),
            _ => self.state.now_epoch_nanos(),
        }
    }

    /// Returns a short name: that of the span or event, `death`, `signal`, or `rate`.
    #[must_use]
    pub fn name(&self) -> Cow<'a, str> {
        match self.what {
            What::Seen(Observation::SpanClosed(span)) | What::Outgrown(span) => span.name(),
            What::Open(span) => span.name(),
            What::Seen(Observation::LogRecord(record)) => match record.span() {
                Some(span) => span_name(span),
                None => record.call_site().map_or("record", |call_site| &call_site.name).into(),
            },
            What::Seen(Observation::TypedEvent(event)) => event.name(),
            What::Seen(Observation::Marker(mark)) => mark.name().into(),
            What::Seen(Observation::ProgramEnded(_)) => "death".into(),
            What::Signal => "signal".into(),
            What::Phase(phase) => LiveFields::of_span(phase.span()).text("name").unwrap_or_else(|| "task".into()),
            What::Seen(_) => "rate".into(),
        }
    }

    /// Returns the span that it is about, or in which it was recorded.
    #[must_use]
    pub fn span(&self) -> Option<&'a Span> {
        match self.what {
            What::Seen(Observation::SpanClosed(span)) | What::Outgrown(span) => Some(span.span()),
            What::Open(span) => span.span(),
            What::Phase(phase) => Some(phase.span()),
            What::Seen(Observation::LogRecord(record)) => record.span(),
            What::Seen(Observation::TypedEvent(event)) => event.span(),
            What::Seen(Observation::Marker(mark)) => mark.span(),
            _ => None,
        }
    }

    /// Returns the name of the span that it is about, or in which it was recorded; of a task, the task's name.
    #[must_use]
    pub fn span_name(&self) -> Option<Cow<'a, str>> {
        let span = self.span()?;
        Some(match self.what {
            What::Seen(Observation::TypedEvent(_) | Observation::Marker(_)) => span_name(span),
            _ => self.name(),
        })
    }

    /// Returns true if it happens once, or because a user wants it: the death of a program, or a signal.
    #[must_use]
    pub fn is_death_or_signal(&self) -> bool {
        self.is_death() || self.is_signal()
    }

    /// Returns the program, unless it is a signal or a rate.
    #[must_use]
    pub fn program(&self) -> Option<&'a RecordedProgram> {
        match self.what {
            What::Seen(Observation::SpanClosed(span)) | What::Outgrown(span) => Some(span.program()),
            What::Open(span) => Some(span.program()),
            What::Phase(phase) => Some(phase.program()),
            What::Seen(Observation::LogRecord(record)) => Some(record.program()),
            What::Seen(Observation::TypedEvent(event)) => Some(event.program()),
            What::Seen(Observation::Marker(mark)) => Some(mark.program()),
            What::Seen(Observation::ProgramEnded(end)) => Some(end.program),
            _ => None,
        }
    }

    /// Returns the times between which the program ended, if this is its end.
    #[must_use]
    pub fn program_end(&self) -> Option<RingEnd> {
        match self.what {
            What::Seen(Observation::ProgramEnded(end)) => end.bounds,
            _ => None,
        }
    }

    /// Asks the span or the event. Returns nothing if this is an end, a signal or a tick.
    fn ask<R: Default>(&self, ask: impl FnOnce(&dyn Subject) -> R) -> R {
        let span = match self.what {
            What::Seen(Observation::LogRecord(record)) => {
                return ask(&self.event(SeenContent::Record(record.record, record.catalog)));
            }
            What::Seen(Observation::Marker(mark)) => {
                return ask(&self.event(SeenContent::Record(mark.record, mark.catalog)));
            }
            What::Seen(Observation::TypedEvent(event)) => return ask(&self.event(SeenContent::Typed(event.content()))),
            What::Open(span) => {
                let Some(replayed) = span.span() else { return R::default() };
                let (entered_by, open_nanos) = (&*span.threads(), Some(span.age_nanos()));
                return ask(&SpanSubject { entered_by, open_nanos, ..SpanSubject::new(replayed) });
            }
            What::Seen(Observation::SpanClosed(span)) => SpanSubject::new(span.span()),
            What::Outgrown(span) => {
                SpanSubject { open_nanos: Some(span.wall_nanos()), ..SpanSubject::new(span.span()) }
            }
            What::Phase(phase) => SpanSubject::new(phase.span()),
            _ => return R::default(),
        };
        ask(&span)
    }

    fn event(&self, event: SeenContent<'a>) -> EventSubject<'a> {
        let process = self.program().and_then(|program| self.state.process_of(program));
        let replay = process.and_then(|process| self.state.replayed.replays.get(process));
        EventSubject { event, replay, by_option: false }
    }

    /// Returns the span and those around it, also closed ones.
    fn spans(&self) -> impl Iterator<Item = &'a Span> {
        let (span, process) = (self.span(), self.program().and_then(|program| self.state.process_of(program)));
        let outer = span.and_then(|span| span.parent).zip(process);
        span.into_iter().chain(outer.into_iter().flat_map(|(id, process)| self.state.spans_around(process, id)))
    }
}

impl Subject for Occurrence<'_> {
    fn is_death(&self) -> bool {
        matches!(self.what, What::Seen(Observation::ProgramEnded(end)) if end.has_died)
    }

    fn is_signal(&self) -> bool {
        matches!(self.what, What::Signal)
    }

    fn is_unnamed(&self) -> bool {
        self.ask(|subject| subject.is_unnamed())
    }

    fn any_span_name(&self, test: &mut dyn FnMut(&str, &str) -> bool) -> bool {
        match self.what {
            // A task is in all spans around its own.
            What::Phase(_) => self.spans().any(|span| {
                let target = span.call_site.as_deref().map_or("", |call_site| &call_site.target);
                test(target, &span_name(span))
            }),
            _ => self.ask(|subject| subject.any_span_name(test)),
        }
    }

    fn task_name(&self, take: &mut dyn FnMut(&str)) {
        let task = self.spans().find(|span| span.call_site.as_deref().is_some_and(is_task));
        let name = task.and_then(|task| LiveFields::of_span(task).text("name"));
        name.iter().for_each(|name| take(name));
    }

    fn task_phase_nanos(&self) -> Option<(eventring::now::TaskPhase, u64)> {
        match self.what {
            What::Phase(phase) => Some((phase.state().phase()?, phase.nanos())),
            _ => None,
        }
    }

    fn event_name(&self, take: &mut dyn FnMut(&str)) {
        self.ask(|subject| subject.event_name(take));
    }

    fn event_code(&self) -> Option<u16> {
        self.ask(|subject| subject.event_code())
    }

    fn target(&self) -> Option<&str> {
        match self.what {
            What::Seen(Observation::SpanClosed(span)) | What::Outgrown(span) => Some(span.target()),
            What::Open(span) => Some(span.target()),
            What::Seen(Observation::LogRecord(record)) => Some(record.target()),
            _ => None,
        }
    }

    fn each_thread_name(&self, take: &mut dyn FnMut(&str)) {
        // A task is polled by many threads.
        if !matches!(self.what, What::Phase(_)) {
            self.ask(|subject| subject.each_thread_name(take));
        }
    }

    fn level(&self) -> Option<CallSiteLevel> {
        self.ask(|subject| subject.level())
    }

    fn closed_after_nanos(&self) -> Option<u64> {
        // The time of a task's span is tested when it closes.
        if matches!(self.what, What::Phase(_)) { None } else { self.ask(|subject| subject.closed_after_nanos()) }
    }

    fn times_nanos(&self, part: TimesPart) -> Option<u64> {
        if matches!(self.what, What::Phase(_)) { None } else { self.ask(|subject| subject.times_nanos(part)) }
    }

    fn open_nanos(&self) -> Option<u64> {
        self.ask(|subject| subject.open_nanos())
    }

    fn field(&self, path: &str, take: &mut dyn FnMut(Operand<'_>)) {
        self.ask(|subject| subject.field(path, take));
    }

    fn may_have_lost(&self, path: &str) -> bool {
        self.ask(|subject| subject.may_have_lost(path))
    }

    fn per_second(&self, of: &RateOf, window: Duration) -> Option<f64> {
        let state = (!self.lacks_rates).then_some(self.state)?;
        Some(state.stats_of(window, |series| is_meant(of, series))?.per_second())
    }

    fn quantile_nanos(&self, of: &RateOf, window: Duration, part: f64) -> Option<u64> {
        let state = (!self.lacks_rates).then_some(self.state)?;
        state.stats_of(window, |series| is_meant(of, series))?.quantile_nanos(part)
    }
}

fn is_meant(of: &RateOf, series: &SeriesView<'_>) -> bool {
    match of {
        RateOf::Spans(pattern) => {
            series.kind() == SeriesKind::Spans && pattern.fits_span(series.target(), series.name())
        }
        RateOf::Events(pattern) => {
            let fits = |name| match series.kind() {
                SeriesKind::Events => pattern.fits_typed(name, None),
                SeriesKind::LogRecords => pattern.fits(name),
                _ => false,
            };
            fits(series.name())
        }
    }
}

/// Says what happened: "span `query` took 63.1 ms".
impl fmt::Display for Occurrence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |nanos: u64| nanos as f64 / 1e6;
        let name = self.name();
        match self.what {
            What::Seen(Observation::SpanClosed(span)) => {
                write!(f, "span `{name}` took {:.1} ms", millis(span.wall_nanos()))
            }
            What::Open(span) => write!(f, "span `{name}` is open for {:.1} ms", millis(span.age_nanos())),
            What::Outgrown(span) => write!(f, "span `{name}` was open for {:.1} ms", millis(span.wall_nanos())),
            What::Seen(Observation::LogRecord(record)) => {
                let level = record.level().name().unwrap_or("record");
                write!(f, "{level} {}", record.message())
            }
            What::Seen(Observation::TypedEvent(_)) => write!(f, "event {name}"),
            What::Seen(Observation::Marker(mark)) => write!(f, "mark {name}: {}", mark.text().unwrap_or_default()),
            What::Seen(Observation::ProgramEnded(end)) => {
                let how = if end.has_died { "died" } else { "ended" };
                write!(f, "{} (process {}) {how}", end.program.name, end.program.pid)
            }
            What::Phase(phase) => {
                let did = match (phase.state(), phase.is_over()) {
                    (TaskState::Running, false) => "is polled",
                    (TaskState::Running, true) => "was polled",
                    (TaskState::Woken, false) => "was woken and is not polled",
                    (TaskState::Woken, true) => "was woken and not polled",
                    (_, false) => "is idle",
                    (_, true) => "was idle",
                };
                write!(f, "task `{name}` {did} for {:.1} ms", millis(phase.nanos()))
            }
            What::Signal => f.write_str("a signal came"),
            What::Seen(_) => f.write_str("a rate or percentile passed its limit"),
        }
    }
}
