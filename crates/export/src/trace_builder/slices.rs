//! Thread view: a track for each thread, with its span slices.

use super::drawn::{DrawnSlice, drawn_end, lost_end};
use super::{ArgValue, Args, Label, TraceBuilder, TrackKey};
use crate::formats::trace_writer::TrackId;
use eventring::tracing::{Catalog, GRACE_NANOS, OpenSlice, SpanReplay, Thread, ThreadKey};
use eventring_capture::recording::RecordingEntry;
use std::io;

/// The number of slices of a span from which on the slices that ended long ago are forgotten, at least.
const SLICES_MANY: usize = 8;
/// The estimated size of what is kept for an open slice, beside its fields.
const SLICE_BYTES: u64 = 512;

impl TraceBuilder<'_> {
    pub(super) fn begin_slice(
        &mut self,
        entry: &RecordingEntry<'_>,
        slice: &OpenSlice,
        catalog: &Catalog,
        replay: &SpanReplay,
    ) -> io::Result<()> {
        let Some(replayed) = replay.get(slice.span).filter(|_| self.view.has_threads()) else { return Ok(()) };
        let outline = &self.outline.processes[entry.process_index];
        let row = outline.overlapping.contains(slice.id).then(|| {
            let rows = self.overlapping_rows.entry(slice.thread).or_default();
            rows.begin(slice.id, slice.entered_epoch_nanos, None)
        });
        let track = self.slice_track(entry.process, slice.thread, row, catalog)?;
        let id = self.next_slice();
        let start_nanos = self.free_from(slice.thread, slice.entered_epoch_nanos);
        let mut more = Args::default();
        if outline.open_slices.contains(&slice.id) {
            more.push_open(slice.entered_epoch_nanos, self.outline.end_nanos[entry.process_index]);
        }
        more.push_some(
            "trace_id",
            replayed.remote_trace.map(|trace| trace.trace_id.to_string().into()).map(ArgValue::Text),
        );
        let place = &mut self.processes[entry.process_index].flows;
        let flows = outline.flows.of_next(place, slice.id);
        let call_site = replayed.call_site.as_deref();
        let name = self.names.of_span(slice.span, call_site);
        let label = Label { flows: flows.as_ends(), ..Label::new(&name, call_site) };
        let process = &mut self.processes[entry.process_index];
        let span = process.spans.entry(slice.span).or_default();
        let shown = span.shown();
        self.writer.begin(track, id, start_nanos, label, span.args(slice.span, replayed.parent, &mut more))?;
        if span.slices.len() >= span.slices_many.max(SLICES_MANY) {
            let now_nanos = self.now_nanos;
            span.slices.retain(|slice| slice.end_nanos.is_none_or(|end| end.saturating_add(GRACE_NANOS) > now_nanos));
            // So that a look at all of them is paid for by as many new ones.
            span.slices_many = span.slices.len().saturating_mul(2);
        }
        let (thread, replay_id, begun_nanos) = (slice.thread, slice.id, slice.entered_epoch_nanos);
        let lost_nanos = outline.lost_slices.get(&slice.id).copied();
        span.slices.push(DrawnSlice {
            id,
            track,
            thread,
            replay_id,
            begun_nanos,
            start_nanos,
            end_nanos: lost_nanos,
            row,
            shown,
            bytes: SLICE_BYTES.saturating_add(span.field_bytes),
        });
        self.field_bytes = self.field_bytes.saturating_add(SLICE_BYTES.saturating_add(span.field_bytes));
        if let Some(seen_nanos) = lost_nanos {
            // The exit of this slice was lost. The slice is ended in the output at once, so that its end comes before
            // later events with the same time.
            let end_nanos = self.end_nanos(thread, start_nanos, seen_nanos);
            self.end_row(thread, row, replay_id, end_nanos);
            return self.writer.end(track, id, end_nanos, &lost_end());
        }
        Ok(())
    }

    /// Ends a slice. The end shows the arguments `args`, and the fields of the slice's span that the slice does not
    /// show yet.
    pub(super) fn end_slice(
        &mut self,
        process_index: usize,
        slice: &OpenSlice,
        nanos: u64,
        mut args: Args,
    ) -> io::Result<()> {
        let Some(span) = self.processes[process_index].spans.get_mut(&slice.span) else { return Ok(()) };
        let open = |drawn: &&mut DrawnSlice| drawn.replay_id == slice.id && drawn.end_nanos.is_none();
        let Some(drawn) = span.slices.iter_mut().rev().find(open) else { return Ok(()) };
        drawn.end_nanos = Some(nanos);
        let DrawnSlice { id, track, start_nanos, row, shown, bytes, .. } = *drawn;
        self.field_bytes = self.field_bytes.saturating_sub(bytes);
        span.push_rest(shown, &mut args);
        let end_nanos = self.end_nanos(slice.thread, start_nanos, nanos);
        self.end_row(slice.thread, row, slice.id, end_nanos);
        self.writer.end(track, id, end_nanos, &args)
    }

    /// Returns the track of a slice: the track of its thread, or a separate row if the slice overlaps other slices
    /// without nesting.
    fn slice_track(
        &mut self,
        process: u32,
        thread: ThreadKey,
        row: Option<u32>,
        catalog: &Catalog,
    ) -> io::Result<TrackId> {
        if row.is_none()
            && let Some(track) = self.tracks.get(&TrackKey::Thread(thread))
        {
            return Ok(*track);
        }
        let described: &Thread = &catalog.thread(thread.thread_id);
        // A row of overlapping slices is drawn under the thread's own track, so the thread's track is made first.
        let track = self.thread_track(process, thread, described)?;
        match row {
            None => Ok(track),
            Some(row) => self.track(TrackKey::Overlapping(thread, row + 1), Some((process, described))),
        }
    }

    fn end_row(&mut self, thread: ThreadKey, row: Option<u32>, slice: u64, end_nanos: u64) {
        if let (Some(row), Some(rows)) = (row, self.overlapping_rows.get_mut(&thread)) {
            rows.end(row, slice, end_nanos);
        }
    }

    fn free_from(&self, thread: ThreadKey, nanos: u64) -> u64 {
        self.free_from.get(&thread).map_or(nanos, |free| nanos.max(*free))
    }

    /// Returns the time at which to draw the end of a slice that ended at `nanos`. The time is later than `nanos` if
    /// the slice would otherwise have no length, or if a slice inside it is drawn up to a later time. The next slices
    /// of the thread are then drawn from the returned time on.
    fn end_nanos(&mut self, thread: ThreadKey, start_nanos: u64, nanos: u64) -> u64 {
        let end = drawn_end(start_nanos, self.free_from(thread, nanos));
        if end > nanos {
            self.free_from.insert(thread, end);
        }
        end
    }
}
