//! The events of a capture that fulfil a condition by their own values. The result does not depend on the blocks that
//! are read, because a test needs no other event.

use super::json::JsonLines;
use super::ring::Ring;
use super::rings::Rings;
use super::{Printer, text};
use crate::args::limit::Part;
use crate::text::format::TimeFormat;
use crate::text::out::stdout;
use crate::text::paint::DIM;
use crate::text::perf::is_description;
use eventring::reader::{Descriptor, PayloadRead, RingItem};
use eventring::schema::EventType as _;
use eventring::schema::perf::PerfEvent;
use eventring_capture::condition::{Condition, EventSubject, Subject};
use eventring_capture::{CaptureFile, RingLoss};
use std::collections::HashMap;
use std::io::{self, Write as _};
use std::time::Duration;

/// The number of events between two looks whether the user has pressed Ctrl-C.
const LOOK_EVENTS: u64 = 4096;

/// How hits are shown.
#[derive(Clone, Copy)]
pub(crate) struct HitStyle {
    pub(crate) is_json: bool,
    pub(crate) is_full: bool,
    pub(crate) is_utc: bool,
}

/// The result of a search in one file.
#[derive(Default)]
pub(crate) struct Searched {
    pub(crate) hits: u64,
    /// What the blocks that were read do not have.
    pub(crate) losses: Vec<RingLoss>,
    pub(crate) problems: Vec<String>,
    /// True if the user has stopped the search.
    pub(crate) is_stopped: bool,
}

/// Shows the events of a capture, of this file, that fulfil a condition, and are in the part that is wanted. Ends early
/// once the part does, or `is_stopped` returns true.
pub(crate) fn search(
    (capture, file): (&CaptureFile, &str),
    condition: &Condition,
    style: HitStyle,
    part: &mut Part,
    is_stopped: &dyn Fn() -> bool,
) -> io::Result<Searched> {
    let hits_before = part.taken;
    if style.is_json {
        let lines = &mut *part;
        let found = search_with(capture, condition, u64::MAX, is_stopped, move |_| {
            Ok(Box::new(JsonLines::new(true, lines).of_file(file)))
        })?;
        return Ok(Searched { hits: part.taken - hits_before, ..found });
    }
    let found = search_with(capture, condition, part.left(), is_stopped, |rings| {
        writeln!(stdout(), "{DIM}── {file} ──{DIM:#}")?;
        text::to_stdout(rings, style.is_full, TimeFormat::new(style.is_utc))
    })?;
    part.taken += found.hits;
    Ok(found)
}

/// Searches, and gives the hits to a printer that is made for the first one.
fn search_with<'p>(
    capture: &CaptureFile,
    condition: &Condition,
    hits_max: u64,
    is_stopped: &dyn Fn() -> bool,
    make_printer: impl FnOnce(&Rings) -> io::Result<Box<dyn Printer + 'p>>,
) -> io::Result<Searched> {
    let mut rings = Rings::of_capture(capture);
    let (mut found, mut losses) = (Searched::default(), Losses::default());
    let (mut printer, mut make_printer) = (None::<Box<dyn Printer + 'p>>, Some(make_printer));
    let mut count = 0_u64;
    while found.hits < hits_max
        && printer.as_ref().is_none_or(|printer| !printer.is_over())
        && let Some(item) = rings.next(Duration::ZERO)
    {
        count += 1;
        if count.is_multiple_of(LOOK_EVENTS) && is_stopped() {
            found.is_stopped = true;
            break;
        }
        let (index, event) = match item {
            RingItem::Gap { ring, gap } => {
                if gap.is_loss() {
                    losses.add_gap(ring, gap.cause.name(), gap.count);
                }
                continue;
            }
            RingItem::Event { ring, event } => (ring, event),
        };
        let (ring, mut payload) = rings.with_payload(index);
        let payload = payload.read();
        losses.add_event(index, event.record_epoch_nanos, payload.valid().is_some());
        if !tested(ring, &event, payload, |event| condition.holds(event)) {
            continue;
        }
        found.hits += 1;
        if let Some(make_printer) = make_printer.take() {
            printer = Some(make_printer(&rings)?);
        }
        let (ring, mut payload) = rings.with_payload(index);
        if let Some(printer) = &mut printer {
            printer.event(ring, &event, payload.read())?;
        }
    }
    if let Some(mut printer) = printer {
        printer.flush(&rings)?;
    }
    found.losses = losses.all;
    found.problems = capture.problems().iter().chain(rings.problems()).cloned().collect();
    Ok(found)
}

/// Returns the result of a test of an event by what it says itself, and false for one that only begins or ends a slice of
/// a span, or describes a thread or call site.
fn tested(ring: &Ring, event: &Descriptor, payload: PayloadRead<'_>, test: impl FnOnce(&dyn Subject) -> bool) -> bool {
    use PerfEvent::{Counter, Event, Marker, SpanNew, SpanRecord};
    let is_of = |events: &[PerfEvent]| events.iter().any(|it| it.code() == event.event_type);
    let says_something = ring.perf.is_none() || is_of(&[SpanNew, SpanRecord, Event, Counter, Marker]);
    // A description is read, because later events refer to it.
    if !says_something && !is_description(event.event_type) {
        return false;
    }
    ring.with_content(event, payload, |event| {
        says_something && test(&EventSubject { event, replay: None, by_option: false })
    })
}

/// The losses among the events that were read.
#[derive(Default)]
struct Losses {
    all: Vec<RingLoss>,
    /// For each ring, the time of its last event, and the losses after it.
    rings: HashMap<usize, (u64, Vec<usize>)>,
}

impl Losses {
    fn add_gap(&mut self, ring: usize, cause: &'static str, count: u64) {
        let (from_nanos, waiting) = self.rings.entry(ring).or_default();
        waiting.push(self.all.len());
        self.all.push(RingLoss { ring: ring as u32, cause, count, from_nanos: *from_nanos, to_nanos: u64::MAX });
    }

    fn add_event(&mut self, ring: usize, nanos: u64, has_payload: bool) {
        let (last_nanos, waiting) = self.rings.entry(ring).or_default();
        *last_nanos = nanos;
        waiting.drain(..).for_each(|loss| self.all[loss].to_nanos = nanos);
        if !has_payload {
            let (from_nanos, to_nanos) = (nanos, nanos);
            self.all.push(RingLoss { ring: ring as u32, cause: "payload", count: 1, from_nanos, to_nanos });
        }
    }
}

#[cfg(test)]
mod tests;
