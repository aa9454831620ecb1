//! Instants (log records, markers, failed records and typed events), and samples of counters.

use super::drawn::Waiting;
use super::{ArgValue, Args, Label, TraceBuilder, TrackKey, View};
use crate::capture::CapturedPayload;
use crate::export::span_slices::Slice;
use crate::reader::Descriptor;
use crate::schema::decode_event;
use crate::tracing::{PerfContent, PerfRecord, SpanId, Thread, ThreadKey};
use std::io;

/// The thread or the ring that recorded an instant. If the instant lies in no slice, it is drawn on the track of this
/// thread or ring.
#[derive(Clone, Copy)]
enum Origin<'a> {
    Thread(ThreadKey, &'a Thread),
    Ring(u32),
}

impl TraceBuilder<'_> {
    /// Draws a record that is not about spans.
    pub(super) fn instant_of(&mut self, process: u32, recorder: u32, record: &PerfRecord) -> io::Result<()> {
        let nanos = record.epoch_nanos;
        let origin = Origin::Thread(ThreadKey { recorder, thread_id: record.thread.id }, &record.thread);
        let mut args = Args::default();
        match &record.content {
            PerfContent::Event { span, call_site, fields } => {
                args.push("level", ArgValue::Text(call_site.level.name().unwrap_or_default().into()));
                args.push_fields(fields);
                let message = fields.get("message").map(ToString::to_string);
                let label = Label::new(message.as_deref().unwrap_or(&call_site.name), Some(call_site));
                self.instant(process, origin, *span, nanos, label, args)
            }
            PerfContent::Counter { call_site, value, .. } => {
                let track = self.track(TrackKey::Counter { process, name: call_site.name.clone() }, None)?;
                self.writer.counter(track, nanos, value)
            }
            PerfContent::Marker { span, call_site, text } => {
                if let Some(text) = text {
                    args.push("text", ArgValue::Text(text.clone()));
                }
                self.instant(process, origin, *span, nanos, Label::new(&call_site.name, Some(call_site)), args)
            }
            PerfContent::NotRecorded { span, error } => {
                if let Some(error) = error {
                    args.push("why", ArgValue::Text(format!("{error:?}")));
                }
                let label = Label { name: "not recorded", category: "eventring", ..Label::default() };
                self.instant(process, origin, *span, nanos, label, args)
            }
            _ => Ok(()),
        }
    }

    /// Draws a typed event.
    pub(super) fn typed_event(
        &mut self,
        process: u32,
        ring: u32,
        descriptor: &Descriptor,
        payload: &CapturedPayload,
    ) -> io::Result<()> {
        let recording = self.recording;
        let mut args = Args::default();
        args.push("seqno", ArgValue::Uint(descriptor.seqno));
        for (index, word) in recording.words(ring).iter_own() {
            let number = descriptor.content_ext[index];
            if let Some(value) = word.value(number).filter(|_| number != 0) {
                args.push(&word.key(), ArgValue::Uint(value));
            }
        }
        match payload {
            CapturedPayload::Valid(bytes) if bytes.is_empty() && recording.model(ring).is_none() => {}
            CapturedPayload::Valid(bytes) => {
                args.push_payload(&decode_event(recording.model(ring), descriptor.event_type, bytes));
            }
            _ => args.push("payload", ArgValue::Text("lost".into())),
        }
        let name = recording.event_name(ring, descriptor.event_type);
        let category = match recording.ring(ring).content_name.as_str() {
            "" => "typed events",
            name => name,
        };
        let label = Label { name: &name, category, ..Label::default() };
        let span = recording.span(ring, descriptor);
        self.instant(process, Origin::Ring(ring), span, descriptor.record_epoch_nanos, label, args)
    }

    /// Draws an instant in the slice of its span at that time. If there is no such slice, the instant is drawn on the
    /// track of `origin`.
    fn instant(
        &mut self,
        process: u32,
        origin: Origin<'_>,
        span: Option<SpanId>,
        nanos: u64,
        label: Label<'_>,
        mut args: Args,
    ) -> io::Result<()> {
        if let Some(span) = span {
            args.push("span_id", ArgValue::Uint(span.get()));
        }
        let thread = match origin {
            Origin::Thread(thread, _) => Some(thread),
            Origin::Ring(_) => None,
        };
        if let Some(times) = span.and_then(|span| self.timeline.get((process, span))) {
            if self.view == View::Span {
                let track = self.track(TrackKey::Spans { process, row: times.row }, None)?;
                return self.writer.instant(track, times.drawn(nanos), label, &args);
            }
            if let Some(slice) = times.slices.at(thread, nanos) {
                return self.instant_in(process, slice, nanos, label, args);
            }
        }
        let track = match origin {
            Origin::Thread(thread, described) => self.thread_track(process, thread, described)?,
            Origin::Ring(ring) => self.track(TrackKey::Ring(ring), None)?,
        };
        self.writer.instant(track, nanos, label, &args)
    }

    /// Draws an instant in a slice. If the slice has not begun in the output, the instant is kept in `waiting` until
    /// the slice begins.
    fn instant_in(&mut self, process: u32, slice: Slice, nanos: u64, label: Label<'_>, args: Args) -> io::Result<()> {
        let key = (process, slice.id);
        let has_begun = slice.id < self.replay(process).slices_begun();
        let track = self.tracks.get(&self.track_of_slice(slice.thread, key));
        if let Some(track) = track.filter(|_| has_begun) {
            let start_nanos = self.moved.get(&key).copied().unwrap_or(slice.start_nanos);
            return self.writer.instant(*track, slice.drawn(start_nanos, nanos), label, &args);
        }
        let source = label.source.map(|(file, line)| (file.to_owned(), line));
        let (name, category) = (label.name.to_owned(), label.category.to_owned());
        self.waiting.entry(key).or_default().push(Waiting { slice, nanos, name, category, source, args });
        Ok(())
    }
}
