//! Thread view: a track for each thread, with its span slices.

use super::drawn::{DrawnSlice, Shown, Waiting, lost_end};
use super::{ArgValue, Args, Label, SliceKey, TraceBuilder, TrackKey, View};
use crate::export::span_slices::drawn_end;
use crate::tracing::{OpenSlice, Thread, ThreadKey};
use std::io;

impl TraceBuilder<'_> {
    pub(super) fn begin_slice(&mut self, process: u32, slice: &OpenSlice, thread: &Thread) -> io::Result<()> {
        if self.view == View::Span {
            return Ok(());
        }
        let key = (process, slice.id);
        let track_key = self.track_of_slice(slice.thread, key);
        // A row of overlapping slices is drawn under the thread's own track, so the thread's track is made first.
        self.thread_track(process, slice.thread, thread)?;
        let track = self.track(track_key, Some((process, thread)))?;
        let id = self.next_slice();
        let start_nanos = self.free_from(slice.thread, slice.entered_epoch_nanos);
        if start_nanos > slice.entered_epoch_nanos {
            self.moved.insert(key, start_nanos);
        }
        let (parent, call_site) = self.described((process, slice.span));
        let span = self.spans.entry((process, slice.span)).or_default();
        let mut args = span.args(slice.span, parent);
        if self.timeline.open_slices.contains(&key) {
            args.push("open", ArgValue::Bool(true));
        }
        let shown = Shown::of(&span.fields);
        let name = self.names.of_span(slice.span, call_site.as_deref());
        let label = Label { flows: self.flows.at(key), ..Label::new(&name, call_site.as_deref()) };
        self.writer.begin(track, id, start_nanos, label, &args)?;
        for Waiting { slice, nanos, name, category, source, args } in self.waiting.remove(&key).unwrap_or_default() {
            let source = source.as_ref().map(|(file, line)| (file.as_str(), *line));
            let label = Label { name: &name, category: &category, source, ..Label::default() };
            self.writer.instant(track, slice.drawn(start_nanos, nanos), label, &args)?;
        }
        if let Some(seen_nanos) = self.timeline.lost_slices.get(&key) {
            // The exit of this slice was lost. The slice is ended in the output at once, so that its end comes before
            // later events with the same time.
            let end_nanos = self.end_nanos(slice.thread, start_nanos, *seen_nanos);
            return self.writer.end(track, id, end_nanos, &lost_end());
        }
        self.slices.insert(key, DrawnSlice { id, track, start_nanos, shown });
        Ok(())
    }

    /// Ends a slice. The end shows the arguments `args`, and the fields of the slice's span that the slice does not
    /// show yet.
    pub(super) fn end_slice(&mut self, process: u32, slice: &OpenSlice, nanos: u64, mut args: Args) -> io::Result<()> {
        let Some(drawn) = self.slices.remove(&(process, slice.id)) else { return Ok(()) };
        if let Some(span) = self.spans.get(&(process, slice.span)) {
            drawn.shown.push_rest(&span.fields, &mut args);
        }
        let end_nanos = self.end_nanos(slice.thread, drawn.start_nanos, nanos);
        self.writer.end(drawn.track, drawn.id, end_nanos, &args)
    }

    /// Returns the track of a slice: the track of its thread, or a separate row if the slice overlaps other slices
    /// without nesting.
    pub(super) fn track_of_slice(&self, thread: ThreadKey, slice: SliceKey) -> TrackKey {
        match self.timeline.overlapping.get(&slice) {
            Some(row) => TrackKey::Overlapping(thread, *row),
            None => TrackKey::Thread(thread),
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
