//! Floors: the lowest possible costs of `tracing`'s spans and log records. Each subscriber or layer here does one part
//! of a recorder's work.

use crate::reference::ReferenceRing;
use eventring::recorder::Recorder;
use std::hint::black_box;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_core::Interest;
use tracing_subscriber::layer::{Context, Layer};

/// The work that is done at each call.
pub trait Work: Send + Sync + 'static {
    /// Does the work for one call about a span. `what` names the call: the creation without fields, an enter, an exit,
    /// or the close.
    fn span(&self, what: u16, id: u64);
    /// Does the work for a log record, or for a new span with fields. `what` names the call. The fields have been
    /// visited already, and `seen` was computed from their values.
    fn fields(&self, what: u16, seen: u64);

    /// Does the work of a new span, with or without fields.
    fn new_span(&self, attributes: &Attributes<'_>, id: u64) {
        if attributes.fields().is_empty() {
            return self.span(5, id);
        }
        let mut seen = Seen::default();
        attributes.record(&mut seen);
        self.fields(5, seen.0);
    }

    /// Does the work of a log record.
    fn log(&self, event: &Event<'_>) {
        let mut seen = Seen::default();
        event.record(&mut seen);
        self.fields(9, seen.0);
    }
}

/// No work: the cost of `tracing` itself.
pub struct Nothing;

impl Work for Nothing {
    fn span(&self, _: u16, _: u64) {}
    fn fields(&self, _: u16, _: u64) {}
}

/// Reads of the tick counter: the cost of time stamps.
pub struct Stamps;

impl Work for Stamps {
    fn span(&self, _: u16, _: u64) {
        black_box(ticks());
    }

    fn fields(&self, _: u16, _: u64) {
        black_box(ticks());
    }
}

#[cfg(target_arch = "x86_64")]
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
pub fn ticks() -> u64 {
    eventring::recorder::Clock::global().now_epoch_nanos()
}

/// The work of the ring alone: each call records an event with fixed extension words. If the span or log record has
/// fields, the event also has a fixed payload of 29 bytes. No state of spans is kept.
pub struct Records(pub Recorder);

impl Work for Records {
    fn span(&self, what: u16, id: u64) {
        self.0.record(what, [id, 2, 3, 4], &[]);
    }

    fn fields(&self, what: u16, seen: u64) {
        self.0.record(what, [1, 2, 3, seen], black_box(&[7; 29]));
    }
}

/// The same work as [`Records`], but with the algorithm of the original C implementation and with ticks as its clock.
/// The algorithm takes two fetch-adds and does not claim the slot, so a stalled writer can tear another writer's event.
/// No ring that several threads share can record an event at less cost, even if torn events are accepted.
pub struct Unclaimed(pub ReferenceRing);

impl Work for Unclaimed {
    fn span(&self, what: u16, id: u64) {
        self.0.record_at(ticks(), what, [id, 2, 3, 4], &[]);
    }

    fn fields(&self, what: u16, seen: u64) {
        self.0.record_at(ticks(), what, [1, 2, 3, seen], black_box(&[7; 29]));
    }
}

/// A subscriber, or a layer, that does this work.
pub struct Floor<W>(pub W);

impl<W: Work, S: Subscriber> Layer<S> for Floor<W> {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        self.0.new_span(attributes, id.into_u64());
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.0.log(event);
    }

    fn on_enter(&self, id: &Id, _: Context<'_, S>) {
        self.0.span(6, id.into_u64());
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        self.0.span(7, id.into_u64());
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        self.0.span(8, id.into_u64());
    }
}

impl<W: Work> Subscriber for Floor<W> {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::always()
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        self.0.new_span(attributes, 1);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.0.log(event);
    }

    fn enter(&self, id: &Id) {
        self.0.span(6, id.into_u64());
    }

    fn exit(&self, id: &Id) {
        self.0.span(7, id.into_u64());
    }

    fn try_close(&self, id: Id) -> bool {
        self.0.span(8, id.into_u64());
        true
    }
}

/// A visitor that looks at fields and keeps a number.
#[derive(Default)]
struct Seen(u64);

impl Visit for Seen {
    fn record_u64(&mut self, _: &Field, value: u64) {
        self.0 = self.0.wrapping_add(value);
    }

    fn record_str(&mut self, _: &Field, value: &str) {
        self.0 += value.len() as u64;
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}
