//! The search for events of a capture that fulfil a condition. Each event is tested alone, so blocks in which no event
//! can fulfil the condition may be skipped.

use super::json::JsonLines;
use super::rings::{NextItem, Rings};
use super::{Printer, text};
use crate::args::limit::Part;
use crate::text::format::TimeFormat;
use crate::text::out::stdout;
use crate::text::paint::DIM;
use eventring::schema::EventType as _;
use eventring::schema::perf::PerfEvent;
use eventring_capture::condition::{Condition, EventSubject, Subject};
use eventring_capture::recording::{EntryContent, RecordingEntry};
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
        let nothing = || Ok(());
        let found = search_with(capture, condition, u64::MAX, is_stopped, nothing, move |_| {
            Ok(Box::new(JsonLines::new(true, lines).of_file(file)))
        })?;
        return Ok(Searched { hits: part.taken - hits_before, ..found });
    }
    let printer = |rings: &Rings| text::to_stdout(rings, style.is_full, TimeFormat::new(style.is_utc));
    let begin = || writeln!(stdout(), "{DIM}── {file} ──{DIM:#}");
    let found = search_with(capture, condition, part.left(), is_stopped, begin, printer)?;
    part.taken += found.hits;
    Ok(found)
}

/// Searches, and gives the hits to a printer. Calls `begin` before the first one.
fn search_with<'p>(
    capture: &CaptureFile,
    condition: &Condition,
    hits_max: u64,
    is_stopped: &dyn Fn() -> bool,
    begin: impl Fn() -> io::Result<()>,
    make_printer: impl FnOnce(&Rings) -> io::Result<Box<dyn Printer + 'p>>,
) -> io::Result<Searched> {
    let mut rings = Rings::of_capture(capture);
    let mut printer = make_printer(&rings)?;
    let (mut found, mut losses) = (Searched::default(), Losses::default());
    let mut count = 0_u64;
    while found.hits < hits_max
        && !printer.is_over()
        && let Some(NextItem::Entry(ring, entry)) = rings.next(Duration::ZERO, |_, _| true)
    {
        count += 1;
        if count.is_multiple_of(LOOK_EVENTS) && is_stopped() {
            found.is_stopped = true;
            break;
        }
        losses.add(&entry);
        if !tested(&entry, |event| condition.holds(event)) {
            continue;
        }
        if found.hits == 0 {
            begin()?;
        }
        found.hits += 1;
        printer.event(ring, &entry)?;
    }
    if found.hits > 0 {
        printer.flush(&rings)?;
    }
    found.losses = losses.all;
    found.problems = capture.problems().iter().chain(rings.problems()).cloned().collect();
    Ok(found)
}

/// Returns the result of a test of an event by what it says itself, and false for one that only begins or ends a slice of
/// a span, or describes a thread or call site.
fn tested(entry: &RecordingEntry<'_>, test: impl FnOnce(&dyn Subject) -> bool) -> bool {
    if let EntryContent::Perf { record, .. } = &entry.content
        && !PerfEvent::from_code(record.descriptor.event_type).is_some_and(PerfEvent::has_values)
    {
        return false;
    }
    entry.seen().is_some_and(|event| test(&EventSubject { event, replay: None, by_option: false }))
}

/// The losses among the events that were read.
#[derive(Default)]
struct Losses {
    all: Vec<RingLoss>,
    /// For each ring, the time of its last event, and the losses after it.
    rings: HashMap<u32, (u64, Vec<usize>)>,
}

impl Losses {
    fn add(&mut self, entry: &RecordingEntry<'_>) {
        let ring = entry.ring;
        let (last_nanos, waiting) = self.rings.entry(ring).or_default();
        if let EntryContent::Gap(gap) = entry.content {
            if gap.is_loss() {
                let (from_nanos, to_nanos) = (*last_nanos, u64::MAX);
                waiting.push(self.all.len());
                self.all.push(RingLoss { ring, cause: gap.cause.name(), count: gap.count, from_nanos, to_nanos });
            }
        } else if let Some((event, payload)) = entry.event() {
            let nanos = event.record_epoch_nanos;
            *last_nanos = nanos;
            waiting.drain(..).for_each(|loss| self.all[loss].to_nanos = nanos);
            if payload.valid().is_none() {
                let (from_nanos, to_nanos) = (nanos, nanos);
                self.all.push(RingLoss { ring, cause: "payload", count: 1, from_nanos, to_nanos });
            }
        }
    }
}

#[cfg(test)]
mod tests;
