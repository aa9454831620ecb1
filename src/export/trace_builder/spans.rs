//! Span view: one slice for each span, from its creation to its close.

use super::drawn::{Shown, lost_end};
use super::{ArgValue, Args, Label, SpanKey, TraceBuilder, TrackKey, View};
use crate::export::trace_writer::SliceId;
use std::io;

impl TraceBuilder<'_> {
    /// Begins the slice of a span that a record names, if the slice has not begun yet. The first record of a span may
    /// be of any kind, because the record of its creation may have been lost.
    pub(super) fn see(&mut self, key: SpanKey, nanos: u64) -> io::Result<()> {
        // Threads race: a thread may record its exit from the span after another thread has recorded the span's close.
        // The span was drawn completely at its close, so it must not begin a second time.
        let is_over = self.timeline.get(key).and_then(|times| times.end_nanos).is_some_and(|end| end < nanos);
        if is_over && !self.spans.contains_key(&key) {
            return Ok(());
        }
        self.spans.entry(key).or_default();
        self.show_span(key)
    }

    /// Begins the slice of the span, once.
    pub(super) fn show_span(&mut self, key: SpanKey) -> io::Result<()> {
        let is_shown = self.spans.get(&key).is_none_or(|span| span.slice.is_some());
        let Some(times) = self.timeline.get(key).filter(|_| self.view == View::Span && !is_shown) else {
            return Ok(());
        };
        let track = self.track(TrackKey::Spans { process: key.0, row: times.row }, None)?;
        let slice = self.next_slice();
        let (parent, call_site) = self.described(key);
        let Some(span) = self.spans.get_mut(&key) else { return Ok(()) };
        span.slice = Some(slice);
        span.shown = Shown::of(&span.fields);
        let mut args = span.args(key.1, parent);
        if !times.is_start_known {
            args.push("start", ArgValue::Text("lost".into()));
        }
        if times.is_open() {
            args.push("open", ArgValue::Bool(true));
        }
        if times.is_busy_known {
            args.push("busy_ns", ArgValue::Uint(times.busy_nanos));
        }
        let name = times.shown_name(self.names);
        let flows = self.flows.at((key.0, key.1.get()));
        let label = Label { flows, ..Label::new(&name, call_site.as_deref()) };
        self.writer.begin(track, slice, times.start_nanos, label, &args)
    }

    /// Ends the slice of a span that was closed.
    pub(super) fn close(&mut self, key: SpanKey, nanos: u64) -> io::Result<()> {
        // The span's fields are dropped here. If a thread exits the span a few nanoseconds later, the end of the
        // thread's slice shows no further fields.
        let Some(span) = self.spans.remove(&key) else { return Ok(()) };
        let (Some(slice), Some(times)) = (span.slice, self.timeline.get(key)) else { return Ok(()) };
        let mut args = Args::default();
        span.shown.push_rest(&span.fields, &mut args);
        let track = self.track(TrackKey::Spans { process: key.0, row: times.row }, None)?;
        self.writer.end(track, slice, nanos.max(times.start_nanos), &args)
    }

    /// Ends the slices of spans whose end may have been lost. Each is drawn up to the last time at which the span was
    /// seen.
    pub(super) fn end_lost_spans(&mut self) -> io::Result<()> {
        let timeline = self.timeline;
        let mut ended: Vec<(SliceId, SpanKey)> =
            self.spans.iter().filter_map(|(key, span)| Some((span.slice?, *key))).collect();
        ended.sort_unstable_by_key(|(slice, _)| slice.0);
        for (slice, key) in ended {
            let Some(times) = timeline.get(key).filter(|times| times.is_end_lost) else { continue };
            let (Some(span), Some(end_nanos)) = (self.spans.remove(&key), times.drawn_end_nanos()) else { continue };
            let mut args = lost_end();
            span.shown.push_rest(&span.fields, &mut args);
            let track = self.track(TrackKey::Spans { process: key.0, row: times.row }, None)?;
            self.writer.end(track, slice, end_nanos, &args)?;
        }
        Ok(())
    }
}
