//! Span view: one slice for each span, from its creation to its close.

use super::drawn::{WholeSlice, lost_end};
use super::{ArgValue, Args, Label, TraceBuilder, TrackKey, View};
use crate::formats::trace_writer::SliceId;
use crate::slices::flows::SliceFlows;
use eventring::tracing::{Span, SpanId, SpanReplay};
use std::io;

impl TraceBuilder<'_> {
    /// Begins the slice of a span that a record names, if the slice has not begun yet. The first record of a span may
    /// be of any kind, because the record of its creation may have been lost.
    pub(super) fn show_span(&mut self, process_index: usize, id: SpanId, replay: &SpanReplay) -> io::Result<()> {
        let process = &mut self.processes[process_index];
        if !self.view.has_spans() || process.spans.get(&id).is_some_and(|span| span.whole.is_some()) {
            return Ok(());
        }
        let Some(replayed) = replay.get(id) else { return Ok(()) };
        let outline = &self.outline.processes[process_index];
        let start = outline.starts.get(&replayed.number);
        let start_nanos = start.map_or(replayed.start_epoch_nanos(), |start| start.nanos);
        let end = outline.ends.get(&replayed.number);
        let lost_nanos = end.and_then(|end| end.lost_nanos);
        let parent = replayed.parent.filter(|_| !outline.outside_parent.contains(replayed.number));
        let whole_parent = parent.and_then(|parent| process.spans.get(&parent)?.whole.as_ref());
        // A parent whose end was lost is drawn up to the time at which it was last seen. Its children may go on.
        let inside = whole_parent.filter(|parent| parent.end_nanos.is_none());
        let inside = inside.map(|parent| (parent.number, parent.row));
        let row = process.rows.begin(replayed.number, start_nanos, inside);
        if let Some(nanos) = lost_nanos {
            process.rows.end(row, replayed.number, nanos);
        }
        let track = self.track(TrackKey::Spans { process: self.recording.processes()[process_index], row }, None)?;
        let slice = self.next_slice();
        let mut more = Args::default();
        if start.is_some_and(|start| !start.is_known) {
            more.push("start", ArgValue::Text("lost".into()));
        }
        if let Some(end) = end {
            if end.lost_nanos.is_none() {
                more.push_open(start_nanos, self.outline.end_nanos[process_index]);
            }
            more.push_some("busy_ns", end.busy_nanos.map(ArgValue::Uint));
        }
        more.push_some(
            "trace_id",
            replayed.remote_trace.map(|trace| trace.trace_id.to_string().into()).map(ArgValue::Text),
        );
        let place = &mut self.processes[process_index].flows;
        let flows = match self.view {
            View::Span => outline.flows.of_next(place, replayed.number),
            // The flows are those of slices of threads.
            _ => SliceFlows::default(),
        };
        let known = start.and_then(|start| start.call_site.as_deref());
        let call_site = replayed.call_site.as_deref().or(known);
        let name = self.names.of_span(id, call_site);
        let label = Label { flows: flows.as_ends(), ..Label::new(&name, call_site) };
        let span = self.processes[process_index].spans.entry(id).or_default();
        span.whole = Some(WholeSlice {
            id: slice,
            track,
            row,
            number: replayed.number,
            start_nanos,
            end_nanos: lost_nanos,
            has_ended: false,
            shown: span.shown(),
        });
        self.writer.begin(track, slice, start_nanos, label, span.args(id, replayed.parent, &mut more))
    }

    /// Ends the slice of a span that was closed.
    pub(super) fn close(
        &mut self,
        process_index: usize,
        id: SpanId,
        nanos: u64,
        replay: &SpanReplay,
    ) -> io::Result<()> {
        let process = &mut self.processes[process_index];
        let Some(span) = process.spans.get_mut(&id) else { return Ok(()) };
        let Some(whole) = span.whole.as_mut().filter(|whole| !whole.has_ended) else { return Ok(()) };
        let end_nanos = nanos.max(whole.start_nanos);
        whole.end_nanos = Some(end_nanos);
        whole.has_ended = true;
        process.rows.end(whole.row, whole.number, end_nanos);
        let WholeSlice { id: slice, track, shown, .. } = *whole;
        let mut args = Args::default();
        span.push_rest(shown, &mut args);
        let replayed = replay.get(id);
        args.push("busy_ns", ArgValue::Uint(replayed.map_or(0, |span| span.counted_busy_nanos())));
        args.push_scope_end(replayed);
        let whole = replayed.filter(|span| span.missing_exits().is_empty());
        args.push_instructions(whole.and_then(|span| span.instructions));
        args.push_times(replayed.and_then(Span::times));
        args.push_allocated(replayed.and_then(|span| span.allocated));
        self.writer.end(track, slice, end_nanos, &args)
    }

    /// Ends the slices of spans whose end may have been lost. Each is drawn up to the last time at which the span was
    /// seen.
    pub(super) fn end_lost_spans(&mut self) -> io::Result<()> {
        let mut ended: Vec<(SliceId, usize, SpanId)> = Vec::new();
        for (process_index, process) in self.processes.iter().enumerate() {
            for (id, span) in &process.spans {
                let lost = span.whole.as_ref().filter(|whole| whole.end_nanos.is_some() && !whole.has_ended);
                ended.extend(lost.map(|whole| (whole.id, process_index, *id)));
            }
        }
        ended.sort_unstable_by_key(|(slice, ..)| slice.0);
        for (slice, process_index, id) in ended {
            let Some(span) = self.processes[process_index].spans.get(&id) else { continue };
            let Some(WholeSlice { track, end_nanos: Some(end_nanos), shown, .. }) = &span.whole else { continue };
            let mut args = lost_end();
            span.push_rest(*shown, &mut args);
            self.writer.end(*track, slice, *end_nanos, &args)?;
        }
        Ok(())
    }
}
