//! Happenings (log records, typed events, marks, losses) of open spans. They are sent when their span has ended, with
//! the span.
//!
//! The memory is bounded, but no happening is dropped: a happening without room is sent at once, as a log record with
//! the ids of its span. The links of a span beyond a limit are dropped and counted.

use super::happenings::Happening;
use super::ids::Tree;
use eventring::tracing::SpanId;
use std::collections::HashMap;

/// The numbers of events and of links that a span has at most. They are the limits of OpenTelemetry's own libraries.
pub(super) const EVENTS_MAX: usize = 128;
/// The bytes of everything that is held.
const HELD_BYTES_MAX: u64 = 32 << 20;
/// The number of spans for which something is held.
const SPANS_MAX: usize = 1 << 16;
/// The estimated size of an entry without its happenings, in bytes.
const ENTRY_BYTES: u64 = 128;

/// The happenings and links of one open span.
#[derive(Default)]
pub(super) struct SpanHappenings {
    pub(super) events: Vec<Happening>,
    /// The number of those that have left as log records.
    pub(super) as_logs: u64,
    /// The spans from which the span follows, each with its tree.
    pub(super) links: Vec<(SpanId, Tree)>,
    /// The number of further ones.
    pub(super) links_dropped: u32,
    /// The text of the first log record of the level ERROR.
    pub(super) error: Option<String>,
    bytes: u64,
}

/// The happenings and links of the open spans of all processes.
#[derive(Default)]
pub(super) struct OpenSpanEvents {
    spans: HashMap<(usize, SpanId), SpanHappenings>,
    bytes: u64,
}

/// The answer to something that should be held for a span.
pub(super) enum Holding<T> {
    /// Success: it is held.
    Held,
    /// Refusal: the span has enough of them, or there is no memory for it. The span counts it.
    Full(T),
    /// Refusal: the span has no entry, and there is no room for another. Nothing counts it.
    NoEntry(T),
}

impl OpenSpanEvents {
    /// Keeps a happening until its span is over. Gives it back if there is no room.
    pub(super) fn add(&mut self, process: usize, span: SpanId, happening: Happening) -> Holding<Happening> {
        if !self.has_entry((process, span)) {
            return Holding::NoEntry(happening);
        }
        let of_span = of_span(&mut self.spans, &mut self.bytes, (process, span));
        if of_span.error.is_none()
            && let Some(error) = happening.error()
        {
            // The status is a sentence for people.
            let error: String = error.chars().take(256).collect();
            of_span.bytes += error.len() as u64;
            self.bytes += error.len() as u64;
            of_span.error = Some(error);
        }
        let bytes = happening.kept_bytes();
        if of_span.events.len() >= EVENTS_MAX || self.bytes + bytes > HELD_BYTES_MAX {
            of_span.as_logs += 1;
            return Holding::Full(happening);
        }
        of_span.events.push(happening);
        of_span.bytes += bytes;
        self.bytes += bytes;
        Holding::Held
    }

    /// Keeps the fact that a span follows from another one, which is in this tree. Links beyond the limit are
    /// counted.
    pub(super) fn link(&mut self, process: usize, span: SpanId, link: (SpanId, Tree)) -> Holding<()> {
        if !self.has_entry((process, span)) {
            return Holding::NoEntry(());
        }
        let of_span = of_span(&mut self.spans, &mut self.bytes, (process, span));
        let bytes = size_of_val(&link) as u64;
        if of_span.links.len() >= EVENTS_MAX || self.bytes + bytes > HELD_BYTES_MAX {
            of_span.links_dropped = of_span.links_dropped.saturating_add(1);
            return Holding::Full(());
        }
        of_span.links.push(link);
        of_span.bytes += bytes;
        self.bytes += bytes;
        Holding::Held
    }

    /// Returns true if a span has an entry, or if there is room for one.
    fn has_entry(&self, key: (usize, SpanId)) -> bool {
        self.spans.len() < SPANS_MAX || self.spans.contains_key(&key)
    }

    /// Takes what happened in a span that is over.
    pub(super) fn take(&mut self, process: usize, span: SpanId) -> SpanHappenings {
        let taken = self.spans.remove(&(process, span)).unwrap_or_default();
        self.bytes -= taken.bytes;
        taken
    }

    /// Returns true if there is little room, so that spans which are gone should be looked for.
    pub(super) fn is_crowded(&self) -> bool {
        self.spans.len() >= SPANS_MAX / 2 || self.bytes >= HELD_BYTES_MAX / 2
    }

    /// Takes what happened in spans that nobody knows any more.
    pub(super) fn take_gone(
        &mut self,
        is_known: impl Fn(usize, SpanId) -> bool,
    ) -> Vec<((usize, SpanId), SpanHappenings)> {
        let mut gone: Vec<_> =
            self.spans.keys().copied().filter(|(process, span)| !is_known(*process, *span)).collect();
        // A map has its own order; a recording is exported in one.
        gone.sort_unstable();
        gone.into_iter().map(|key| (key, self.take(key.0, key.1))).collect()
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        self.bytes
    }
}

/// Returns the entry of a span, which is new if it had none.
fn of_span<'s>(
    spans: &'s mut HashMap<(usize, SpanId), SpanHappenings>,
    bytes: &mut u64,
    key: (usize, SpanId),
) -> &'s mut SpanHappenings {
    spans.entry(key).or_insert_with(|| {
        *bytes += ENTRY_BYTES;
        SpanHappenings { bytes: ENTRY_BYTES, ..SpanHappenings::default() }
    })
}
