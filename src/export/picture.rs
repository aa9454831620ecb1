//! The second look at a capture: tracks, slices, instants, counters.

mod rows;

use super::View;
use super::args::{ArgValue, Args};
use super::drawn::{OpenSlice, OpenSpan, Shown, Waiting, add_fields, lost_end, span_args};
use super::recording::{Content, Recording};
use super::sink::{Label, Sink, SliceId, TrackId, level_name};
use super::stays::{Stay, drawn_end};
use super::timeline::{SpanKey, ThreadKey, Timeline};
use crate::capture::CapturedPayload;
use crate::reader::Descriptor;
use crate::schema::decode_event;
use crate::tracing::{CallSite, Field, PerfContent, PerfRecord, SpanId, Thread};
use rows::Row;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

/// Draws a recording.
pub(super) fn draw(recording: &Recording<'_>, timeline: &Timeline, view: View, sink: &mut dyn Sink) -> io::Result<()> {
    let mut picture = Picture {
        recording,
        timeline,
        view,
        sink,
        tracks: HashMap::new(),
        next_slice: 0,
        enters: 0,
        waiting: HashMap::new(),
        moved: HashMap::new(),
        free_from: HashMap::new(),
        spans: HashMap::new(),
        threads: HashMap::new(),
        lossy: HashSet::new(),
    };
    for entry in recording.entries() {
        match &entry.content {
            Content::Perf { recorder, record } => picture.record(entry.process, *recorder, record)?,
            Content::Other { descriptor, payload } => {
                picture.other(entry.process, entry.ring, descriptor, payload)?;
            }
            Content::Gap { .. } => {
                picture.lossy.insert(entry.process);
            }
        }
    }
    picture.end_lost_spans()?;
    picture.losses()?;
    picture.sink.finish()
}

/// Where an instant is drawn that lies in no slice.
enum Place<'a> {
    Thread(ThreadKey, &'a Thread),
    Ring(u32),
}

struct Picture<'p> {
    recording: &'p Recording<'p>,
    timeline: &'p Timeline,
    view: View,
    sink: &'p mut dyn Sink,
    tracks: HashMap<Row, TrackId>,
    next_slice: u64,
    enters: u64,
    /// What lies in slices that have not begun, by the number of their enter: rings race by nanoseconds.
    waiting: HashMap<u64, Vec<Waiting>>,
    /// When slices begin that had to make room, by the number of their enter.
    moved: HashMap<u64, u64>,
    /// Threads with slices that took no time and are drawn with some: from when on the next ones can be drawn.
    free_from: HashMap<ThreadKey, u64>,
    spans: HashMap<SpanKey, OpenSpan>,
    threads: HashMap<ThreadKey, Vec<OpenSlice>>,
    lossy: HashSet<u32>,
}

impl Picture<'_> {
    fn record(&mut self, process: u32, recorder: u32, record: &PerfRecord) -> io::Result<()> {
        let nanos = record.epoch_nanos;
        let thread = (recorder, record.thread.id);
        match &record.content {
            PerfContent::SpanNew { span, parent, call_site, fields, .. } => {
                let open = self.spans.entry((process, *span)).or_default();
                open.parent = *parent;
                open.call_site = Some(call_site.clone());
                add_fields(&mut open.fields, fields);
                self.show_span((process, *span))
            }
            PerfContent::SpanRecord { span, call_site, fields } => {
                self.see((process, *span), call_site, nanos)?;
                if let Some(open) = self.spans.get_mut(&(process, *span)) {
                    add_fields(&mut open.fields, fields);
                }
                Ok(())
            }
            PerfContent::SpanEnter { span, call_site } => {
                self.see((process, *span), call_site, nanos)?;
                self.enter(process, thread, &record.thread, *span, nanos)
            }
            PerfContent::SpanExit { span, call_site } => {
                self.see((process, *span), call_site, nanos)?;
                self.exit(thread, (process, *span), nanos)
            }
            PerfContent::SpanClose { span, call_site } => {
                self.see((process, *span), call_site, nanos)?;
                self.close(recorder, (process, *span), nanos)
            }
            PerfContent::SpanFollowsFrom { span, follows } => {
                if let Some(open) = self.spans.get_mut(&(process, *span)) {
                    let name = Arc::from("follows_from");
                    let value = crate::schema::perf::FieldValue::U64(follows.get());
                    open.fields.values.push(Field { name, index: u8::MAX, value, cut: None });
                }
                Ok(())
            }
            PerfContent::Event { span, call_site, fields } => {
                let mut args = Args::default();
                args.push("level", ArgValue::Text(level_name(call_site.level).into()));
                args.push_fields(fields);
                self.in_span_args(&mut args, *span);
                let message = fields.get("message").map(ToString::to_string);
                let name = message.as_deref().unwrap_or(&call_site.name);
                self.instant(
                    process,
                    Place::Thread(thread, &record.thread),
                    *span,
                    nanos,
                    Label::of(name, call_site),
                    args,
                )
            }
            PerfContent::Counter { call_site, value, .. } => {
                let track = self.row(Row::Counter { process, name: call_site.name.clone() }, None)?;
                self.sink.counter(track, nanos, value)
            }
            PerfContent::Marker { span, call_site, text } => {
                let mut args = Args::default();
                if let Some(text) = text {
                    args.push("text", ArgValue::Text(text.clone()));
                }
                self.in_span_args(&mut args, *span);
                let label = Label::of(&call_site.name, call_site);
                self.instant(process, Place::Thread(thread, &record.thread), *span, nanos, label, args)
            }
            PerfContent::NotRecorded { span, error } => {
                let mut args = Args::default();
                if let Some(error) = error {
                    args.push("why", ArgValue::Text(format!("{error:?}")));
                }
                self.in_span_args(&mut args, *span);
                let label = Label { name: "not recorded", category: "eventring", source: None };
                self.instant(process, Place::Thread(thread, &record.thread), *span, nanos, label, args)
            }
            _ => Ok(()),
        }
    }

    /// Something of a span was met: its creation may have been lost.
    fn see(&mut self, key: SpanKey, call_site: &Arc<CallSite>, nanos: u64) -> io::Result<()> {
        // Threads race: one may exit it when another has closed it already, and it has been drawn.
        let is_over = self.timeline.get(key).and_then(|times| times.end_nanos).is_some_and(|end| end < nanos);
        if is_over && !self.spans.contains_key(&key) {
            return Ok(());
        }
        let open = self.spans.entry(key).or_default();
        if open.call_site.is_none() && call_site.is_known {
            open.call_site = Some(call_site.clone());
        }
        self.show_span(key)
    }

    /// Span view: begins the span's slice, once.
    fn show_span(&mut self, key: SpanKey) -> io::Result<()> {
        let is_shown = self.spans.get(&key).is_none_or(|open| open.slice.is_some());
        let Some(times) = self.timeline.get(key).filter(|_| self.view == View::Span && !is_shown) else {
            return Ok(());
        };
        let track = self.row(Row::Spans { process: key.0, lane: times.lane }, None)?;
        let slice = self.slice();
        let Some(open) = self.spans.get_mut(&key) else { return Ok(()) };
        open.slice = Some(slice);
        open.shown = Shown::of(&open.fields);
        let mut args = span_args(key.1, open);
        if !times.is_start_known {
            args.push("start", ArgValue::Text("lost".into()));
        }
        if times.is_open() {
            args.push("open", ArgValue::Bool(true));
        }
        if times.is_busy_known {
            args.push("busy_ns", ArgValue::Uint(times.busy_nanos));
        }
        let name = times.name();
        let label = open.call_site.as_ref().map(|call_site| Label::of(&name, call_site));
        let label = label.unwrap_or(Label { name: &name, ..Label::default() });
        self.sink.begin(track, slice, times.start_nanos, label, args)
    }

    fn enter(
        &mut self,
        process: u32,
        thread: ThreadKey,
        described: &Thread,
        span: SpanId,
        nanos: u64,
    ) -> io::Result<()> {
        let enter = self.enters;
        self.enters += 1;
        if self.view == View::Span {
            return Ok(());
        }
        let mut track = self.thread_row(process, thread, described)?;
        if let Some(lane) = self.timeline.apart.get(&enter) {
            track = self.row(Row::ThreadApart(thread, *lane), Some((process, described)))?;
        }
        let slice = self.slice();
        let key = (process, span);
        let start_nanos = self.free_from.get(&thread).map_or(nanos, |free| nanos.max(*free));
        if start_nanos > nanos {
            self.moved.insert(enter, start_nanos);
        }
        let open = self.spans.entry(key).or_default();
        let mut args = span_args(span, open);
        if self.timeline.open_slices.contains(&enter) {
            args.push("open", ArgValue::Bool(true));
        }
        let shown = Shown::of(&open.fields);
        let call_site = open.call_site.clone();
        match &call_site {
            Some(call_site) => {
                self.sink.begin(track, slice, start_nanos, Label::of(&call_site.name, call_site), args)?
            }
            None => {
                let name = format!("span {span}");
                self.sink.begin(track, slice, start_nanos, Label { name: &name, ..Label::default() }, args)?;
            }
        }
        for Waiting { stay, nanos, name, category, source, args } in self.waiting.remove(&enter).unwrap_or_default() {
            let source = source.as_ref().map(|(file, line)| (file.as_str(), *line));
            self.sink.instant(
                track,
                stay.drawn(start_nanos, nanos),
                Label { name: &name, category: &category, source },
                args,
            )?;
        }
        if let Some(seen_nanos) = self.timeline.lost_slices.get(&enter) {
            // At once: what else happens at the same time lies behind it.
            let end_nanos = self.end_nanos(thread, start_nanos, *seen_nanos);
            return self.sink.end(track, slice, end_nanos, lost_end());
        }
        self.threads.entry(thread).or_default().push(OpenSlice { span: key, slice, track, start_nanos, shown });
        Ok(())
    }

    fn exit(&mut self, thread: ThreadKey, key: SpanKey, nanos: u64) -> io::Result<()> {
        let Some(stack) = self.threads.get_mut(&thread) else { return Ok(()) };
        let Some(at) = stack.iter().rposition(|slice| slice.span == key) else { return Ok(()) };
        let slice = stack.remove(at);
        self.end_slice(thread, &slice, nanos, Args::default())
    }

    /// When a slice of a thread is drawn to end; what follows it is drawn behind.
    fn end_nanos(&mut self, thread: ThreadKey, start_nanos: u64, nanos: u64) -> u64 {
        let free = self.free_from.get(&thread).map_or(nanos, |free| nanos.max(*free));
        let end = drawn_end(start_nanos, free);
        if end > nanos {
            self.free_from.insert(thread, end);
        }
        end
    }

    fn end_slice(&mut self, thread: ThreadKey, slice: &OpenSlice, nanos: u64, mut args: Args) -> io::Result<()> {
        if let Some(open) = self.spans.get_mut(&slice.span) {
            slice.shown.push_rest(&open.fields, &mut args);
        }
        let end_nanos = self.end_nanos(thread, slice.start_nanos, nanos);
        self.sink.end(slice.track, slice.slice, end_nanos, args)
    }

    fn close(&mut self, recorder: u32, key: SpanKey, nanos: u64) -> io::Result<()> {
        if self.lossy.contains(&key.0) {
            self.end_lost_slices(recorder, key, nanos)?;
        }
        // A thread may exit it later by some nanoseconds: then its slice has no further fields.
        let Some(open) = self.spans.remove(&key) else { return Ok(()) };
        let (Some(slice), Some(times)) = (open.slice, self.timeline.get(key)) else { return Ok(()) };
        let mut args = Args::default();
        open.shown.push_rest(&open.fields, &mut args);
        let track = self.row(Row::Spans { process: key.0, lane: times.lane }, None)?;
        self.sink.end(track, slice, nanos.max(times.start_nanos), args)
    }

    /// No thread is in a span that is closed: its exit was lost.
    fn end_lost_slices(&mut self, recorder: u32, key: SpanKey, nanos: u64) -> io::Result<()> {
        let mut ended = Vec::new();
        for (thread, stack) in self.threads.iter_mut().filter(|(thread, _)| thread.0 == recorder) {
            while let Some(at) = stack.iter().rposition(|slice| slice.span == key) {
                ended.push((*thread, stack.remove(at)));
            }
        }
        for (thread, slice) in ended {
            self.end_slice(thread, &slice, nanos, lost_end())?;
        }
        Ok(())
    }

    /// Span view: spans whose end may have been lost are drawn as far as they are known.
    fn end_lost_spans(&mut self) -> io::Result<()> {
        let timeline = self.timeline;
        let mut ended: Vec<(SliceId, SpanKey)> =
            self.spans.iter().filter_map(|(key, open)| Some((open.slice?, *key))).collect();
        ended.sort_unstable_by_key(|(slice, _)| slice.0);
        for (slice, key) in ended {
            let Some(times) = timeline.get(key).filter(|times| times.is_end_lost) else { continue };
            let (Some(open), Some(end_nanos)) = (self.spans.remove(&key), times.drawn_end_nanos()) else { continue };
            let mut args = lost_end();
            open.shown.push_rest(&open.fields, &mut args);
            let track = self.row(Row::Spans { process: key.0, lane: times.lane }, None)?;
            self.sink.end(track, slice, end_nanos, args)?;
        }
        Ok(())
    }

    /// An event of a ring that is no perf ring.
    fn other(&mut self, process: u32, ring: u32, descriptor: &Descriptor, payload: &CapturedPayload) -> io::Result<()> {
        let recording = self.recording;
        let mut args = Args::default();
        args.push("seqno", ArgValue::Uint(descriptor.seqno));
        let span = recording.span(ring, descriptor);
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
        self.in_span_args(&mut args, span);
        let name = recording.event_name(ring, descriptor.event_type);
        let category = match recording.ring(ring).content_name.as_str() {
            "" => "exec",
            name => name,
        };
        let label = Label { name: &name, category, source: None };
        self.instant(process, Place::Ring(ring), span, descriptor.record_epoch_nanos, label, args)
    }

    /// Draws an instant: in the slice of its span, which it names, or at its place.
    fn instant(
        &mut self,
        process: u32,
        place: Place<'_>,
        span: Option<SpanId>,
        nanos: u64,
        label: Label<'_>,
        args: Args,
    ) -> io::Result<()> {
        let thread = match place {
            Place::Thread(thread, _) => Some(thread),
            Place::Ring(_) => None,
        };
        if let Some(times) = span.and_then(|span| self.timeline.get((process, span))) {
            if self.view == View::Span {
                let track = self.row(Row::Spans { process, lane: times.lane }, None)?;
                return self.sink.instant(track, times.drawn(nanos), label, args);
            }
            if let Some(stay) = times.stays.at(thread, nanos) {
                return self.instant_in(stay, nanos, label, args);
            }
        }
        let track = match place {
            Place::Thread(thread, described) => self.thread_row(process, thread, described)?,
            Place::Ring(ring) => self.row(Row::Ring(ring), None)?,
        };
        self.sink.instant(track, nanos, label, args)
    }

    fn instant_in(&mut self, stay: Stay, nanos: u64, label: Label<'_>, args: Args) -> io::Result<()> {
        let row = match self.timeline.apart.get(&stay.enter) {
            Some(lane) => Row::ThreadApart(stay.thread, *lane),
            None => Row::Thread(stay.thread),
        };
        match self.tracks.get(&row) {
            Some(track) if stay.enter < self.enters => {
                let start_nanos = self.moved.get(&stay.enter).copied().unwrap_or(stay.start_nanos);
                self.sink.instant(*track, stay.drawn(start_nanos, nanos), label, args)
            }
            _ => {
                let source = label.source.map(|(file, line)| (file.to_owned(), line));
                let (name, category) = (label.name.to_owned(), label.category.to_owned());
                let waiting = Waiting { stay, nanos, name, category, source, args };
                self.waiting.entry(stay.enter).or_default().push(waiting);
                Ok(())
            }
        }
    }

    fn in_span_args(&self, args: &mut Args, span: Option<SpanId>) {
        if let Some(span) = span {
            args.push("span_id", ArgValue::Uint(span.get()));
        }
    }

    fn losses(&mut self) -> io::Result<()> {
        let timeline = self.timeline;
        for loss in &timeline.losses {
            let track = self.row(Row::Losses(loss.ring), None)?;
            let slice = self.slice();
            let mut args = Args::default();
            args.push("first_seqno", ArgValue::Uint(loss.first_seqno));
            args.push("count", ArgValue::Uint(loss.count));
            loss.causes().for_each(|(cause, count)| args.push(cause.name(), ArgValue::Uint(count)));
            let title = loss.title();
            let label = Label { name: &title, category: "eventring", source: None };
            self.sink.begin(track, slice, loss.from_nanos, label, args)?;
            self.sink.end(track, slice, loss.until_nanos, Args::default())?;
        }
        Ok(())
    }

    fn slice(&mut self) -> SliceId {
        self.next_slice += 1;
        SliceId(self.next_slice)
    }
}
