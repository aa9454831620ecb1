//! Instants (log records, markers, failed records and typed events), and samples of counters.

use super::pending_instants::{Instant, Origin};
use super::{Alert, ArgValue, Args, Label, TraceBuilder, TrackKey};
use crate::args::is_of_event;
use eventring::internal::decode_event;
use eventring::reader::{Descriptor, PayloadRead};
use eventring::schema::perf::FieldValue;
use eventring::tracing::{Catalog, PerfContent, RawRecord, ThreadKey};
use eventring_capture::recording::RecordingEntry;
use std::io;

impl<'p> TraceBuilder<'p> {
    /// Returns the category of what a ring of typed events has recorded.
    pub(super) fn category(&self, ring: u32) -> &'p str {
        match self.recording.ring(ring).content_name.as_str() {
            "" => "typed events",
            name => name,
        }
    }

    /// Draws a record that is not about spans.
    pub(super) fn instant_of(
        &mut self,
        entry: &RecordingEntry<'_>,
        recorder: u32,
        record: &RawRecord<'_>,
        catalog: &Catalog,
    ) -> io::Result<()> {
        let decoded = record.decode(catalog);
        let mut args = Args::default();
        let (span, name, call_site) = match decoded.content {
            PerfContent::Event { span, call_site, fields } => {
                args.0.reserve_exact(fields.values.len() + 3);
                args.push("level", ArgValue::Text(call_site.level.name().unwrap_or_default().into()));
                args.push("target", ArgValue::Text(call_site.target.clone().into()));
                let message = fields.get("message").map(ToString::to_string);
                let facts = args.0.len();
                fields.values.into_iter().for_each(|field| args.push_field(field));
                args.tell_from_facts(facts, is_of_event);
                args.push_problems(fields.missing, fields.problem);
                (span, message, Some(call_site))
            }
            PerfContent::Counter { call_site, value, .. } => {
                let key = TrackKey::Counter { process: entry.process, name: call_site.name.clone() };
                let track = self.track(key, None)?;
                return self.writer.counter(track, decoded.epoch_nanos, &value);
            }
            PerfContent::Allocated { allocated: Some(allocated), .. } => {
                let process = &mut self.processes[entry.process_index];
                let more = allocated.bytes.wrapping_sub(allocated.freed_bytes).cast_signed();
                process.allocated_bytes = process.allocated_bytes.saturating_add(more);
                let value = FieldValue::I64(process.allocated_bytes);
                let key =
                    TrackKey::Counter { process: entry.process, name: "allocated bytes since the begin".to_owned() };
                let track = self.track(key, None)?;
                return self.writer.counter(track, decoded.epoch_nanos, &value);
            }
            PerfContent::Marker { span, call_site, text } => {
                args.push_some("text", text.map(|text| ArgValue::Text(text.into())));
                (span, None, Some(call_site))
            }
            PerfContent::NotRecorded { span, error } => {
                args.push_some("why", error.map(|error| ArgValue::Text(format!("{error:?}").into())));
                (span, Some("not recorded".into()), None)
            }
            _ => return Ok(()),
        };
        let thread = ThreadKey { recorder, thread_id: decoded.thread.id };
        let instant = Instant {
            process_index: entry.process_index,
            origin: Origin::Thread(thread, decoded.thread),
            span,
            nanos: decoded.epoch_nanos,
            name,
            call_site,
            args,
        };
        self.hold(instant, record.payload)
    }

    /// Draws a typed event.
    pub(super) fn typed_event(
        &mut self,
        entry: &RecordingEntry<'_>,
        descriptor: &Descriptor,
        payload: PayloadRead<'_>,
    ) -> io::Result<()> {
        let (recording, ring) = (self.recording, entry.ring);
        let args = self.typed_args(ring, descriptor, payload);
        let instant = Instant {
            process_index: entry.process_index,
            origin: Origin::Ring(ring),
            span: recording.rings().span(ring, descriptor),
            nanos: descriptor.record_epoch_nanos,
            name: Some(recording.rings().event_name(ring, descriptor.event_type).into_owned()),
            call_site: None,
            args,
        };
        self.hold(instant, payload)
    }

    /// Returns the arguments of a typed event: its seqno, its words, and its payload.
    pub(super) fn typed_args(&self, ring: u32, descriptor: &Descriptor, payload: PayloadRead<'_>) -> Args {
        let recording = self.recording;
        let mut args = Args::default();
        args.push("seqno", ArgValue::Uint(descriptor.seqno));
        for (index, word) in recording.rings().words(ring).iter_own() {
            let number = descriptor.content_ext[index];
            if let Some(value) = word.value(number).filter(|_| number != 0) {
                args.push_named(&word.key(), ArgValue::Uint(value));
            }
        }
        match payload {
            PayloadRead::Valid([]) if recording.rings().model(ring).is_none() => {}
            PayloadRead::Valid(bytes) => {
                let facts = args.0.len();
                args.push_payload(&decode_event(recording.rings().model(ring), descriptor.event_type, bytes));
                args.tell_from_facts(facts, is_of_event);
            }
            _ => args.push("payload", ArgValue::Text("lost".into())),
        }
        args
    }

    /// Holds an instant of a span until its slice is certain. Draws any other instant.
    fn hold(&mut self, mut instant: Instant, payload: PayloadRead<'_>) -> io::Result<()> {
        let Some(span) = instant.span else { return self.draw_instant(&instant) };
        instant.args.push("span_id", ArgValue::Uint(span.get()));
        self.held.push(instant, self.now_nanos, payload.valid().map_or(0, <[u8]>::len));
        Ok(())
    }

    /// Draws an instant in the slice of its span at that time. If there is no such slice, the instant is drawn on the
    /// track of its origin.
    pub(super) fn draw_instant(&mut self, instant: &Instant) -> io::Result<()> {
        let thread = match &instant.origin {
            Origin::Thread(thread, _) => Some(*thread),
            Origin::Ring(_) => None,
        };
        let process = &self.processes[instant.process_index];
        let drawn = instant.span.and_then(|span| process.spans.get(&span)).and_then(|span| {
            // With both views, the instant is drawn once, in the thread that recorded it if that was in the span.
            let slice = span.slice_at(thread, instant.nanos).filter(|_| self.view.has_threads());
            let whole = span.whole.as_ref().and_then(|whole| Some((whole.track, whole.drawn(instant.nanos)?)));
            slice.map(|slice| (slice.track, slice.drawn(instant.nanos))).or(whole)
        });
        let (track, nanos) = match (drawn, &instant.origin) {
            (Some(drawn), _) => drawn,
            (None, Origin::Thread(thread, described)) => {
                let process = self.recording.processes()[instant.process_index];
                (self.thread_track(process, *thread, described)?, instant.nanos)
            }
            (None, Origin::Ring(ring)) => (self.track(TrackKey::Ring(*ring), None)?, instant.nanos),
        };
        let category = match instant.origin {
            Origin::Thread(..) => "eventring",
            Origin::Ring(ring) => self.category(ring),
        };
        let call_site = instant.call_site.as_deref();
        let name = match &instant.name {
            None => call_site.map_or("", |call_site| &call_site.name),
            Some(name) => name,
        };
        let label = match call_site {
            Some(site) => match site.level.name() {
                // A query for all errors, or all of a level, then needs no arguments.
                Some(level) => {
                    Label { category: level, alert: Some(Alert::of_level(site.level)), ..Label::new(name, call_site) }
                }
                None => Label::new(name, call_site),
            },
            None => Label { name, category, ..Label::default() },
        };
        self.writer.instant(track, nanos, label, &instant.args)
    }
}

#[cfg(test)]
mod tests {
    use crate::options::View;
    use crate::tests::chrome_events;
    use eventring::schema::perf::{CallSiteKind, CallSiteLevel, PerfEvent, PerfExt};
    use eventring_capture::fixtures::CaptureFixture;

    #[test]
    fn a_log_record_has_its_level_as_category_and_a_colour() {
        let levels = [
            (CallSiteLevel::Error, "ERROR", "terrible"),
            (CallSiteLevel::Warn, "WARN", "bad"),
            (CallSiteLevel::Info, "INFO", "generic_work"),
            (CallSiteLevel::Debug, "DEBUG", "generic_work"),
            (CallSiteLevel::Trace, "TRACE", "generic_work"),
        ];
        let mut made = CaptureFixture::new();
        for ((level, ..), call_site_id) in levels.iter().zip(1..) {
            made.call_site_of(900, call_site_id, (CallSiteKind::Event, *level), "said", &[]);
            let ext = PerfExt { call_site_id, thread_id: 1, ..PerfExt::default() };
            made.perf(PerfEvent::Event, 1000 + u64::from(call_site_id), ext, &[]);
        }
        let events = chrome_events(&made.open(), View::Thread);
        let instants = events.iter().filter(|event| event["ph"] == "i");
        let drawn: Vec<_> = instants
            .map(|event| {
                assert_eq!(event["args"]["target"], "shop::web");
                (event["cat"].clone(), event["cname"].clone())
            })
            .collect();
        assert_eq!(drawn, levels.map(|(_, category, colour)| (category.into(), colour.into())));
    }
}
