//! JSON objects, one a line. The first object describes the rings, the last one has the counts.

use super::ExportSummary;
use super::json::{JsonText, SiteText};
use super::line_slices::{LineSlice, LineSlices, SpanSlices};
use super::ring_blocks::RingBlocks;
use eventring::internal::decode_event;
use eventring::reader::{Descriptor, Gap, PayloadRead};
use eventring::schema::perf::PerfEvent;
use eventring::tracing::context::SpanIdText;
use eventring::tracing::{CallSite, Catalog, PerfContent, RawRecord, Span, SpanId, SpanInstructions, SpanStep, Thread};
use eventring_capture::recording::{
    CaptureRecording, EntryContent, OverSpan, PerDescription, RecordingEntry, ReplayConsumer, ReplayState, SpanParts,
    payloads::PayloadLosses, replay_capture, write_error,
};
use eventring_capture::{CaptureError, CaptureFile, CapturedLife, CapturedRing, RingRole};
use serde::Serialize;
use std::io::{self, Write};
use std::sync::Arc;

/// Writes the lines. Events come in their order. A span is written when it is closed; the spans that are still open
/// come at the end.
pub(super) fn write(recording: &CaptureRecording<'_>, out: &mut dyn Write) -> Result<ExportSummary, CaptureError> {
    let (call_sites, threads) = (PerDescription::default(), PerDescription::default());
    let slices = recording.processes().iter().map(|_| LineSlices::default()).collect();
    let blocks = RingBlocks::new(recording);
    let mut lines = LineWriter { recording, out, text: JsonText::default(), call_sites, threads, slices, blocks };
    lines.line(&head(recording.capture)).map_err(write_error)?;
    let counts = replay_capture(recording, &mut lines)?;
    lines.line(&foot(recording, &counts)).and_then(|()| lines.out.write_all(&lines.text.0)).map_err(write_error)?;
    Ok(counts)
}

/// The lines that are not about spans and records of spans.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line<'a> {
    /// The first one.
    Capture {
        version: u32,
        started_ns: u64,
        rings: Vec<RingRow<'a>>,
    },
    Loss {
        process: u32,
        ring: &'a str,
        first_seqno: u64,
        count: u64,
        cause: &'a str,
    },
    /// The last one.
    End(End<'a>),
}

#[derive(Serialize)]
struct RingRow<'a> {
    name: &'a str,
    process: u32,
    pid: u32,
    program: &'a str,
    content_type: u16,
    content_name: &'a str,
    shard: Option<u32>,
    first_seqno: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    host: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled_per_million: Option<u32>,
}

#[derive(Serialize)]
struct End<'a> {
    #[serde(flatten)]
    counts: &'a ExportSummary,
    lost_payloads: u64,
    payload_losses: &'a [PayloadLosses],
    processes: Vec<LifeRow>,
}

/// What is known of a program's end.
#[derive(Serialize)]
struct LifeRow {
    process: u32,
    state: Option<&'static str>,
    ended_after_ns: Option<u64>,
    ended_before_ns: Option<u64>,
}

fn head<'a>(capture: &'a CaptureFile) -> Line<'a> {
    let ring = |ring: &'a CapturedRing| RingRow {
        name: &ring.name,
        process: ring.process,
        pid: ring.pid,
        program: &ring.program_name,
        content_type: ring.content_type,
        content_name: &ring.content_name,
        shard: match ring.role {
            RingRole::Shard { shard, .. } => Some(shard),
            RingRole::Single => None,
        },
        first_seqno: ring.first_seqno,
        host: &ring.host,
        filter: ring.says_its_filter().then_some(ring.filter.as_str()),
        sampled_per_million: ring.says_its_filter().then_some(ring.sampled_per_million),
    };
    let rings = capture.rings().iter().map(ring).collect();
    Line::Capture { version: 1, started_ns: capture.started_epoch_nanos(), rings }
}

fn foot<'a>(recording: &CaptureRecording<'_>, counts: &'a ExportSummary) -> Line<'a> {
    let life = |process: &u32| LifeRow::new(*process, recording.capture.life_of(*process));
    let processes = recording.processes().iter().map(life).collect();
    let (lost_payloads, payload_losses) = (counts.lost_payloads(), &*counts.payload_losses);
    Line::End(End { counts, lost_payloads, payload_losses, processes })
}

impl LifeRow {
    fn new(process: u32, life: CapturedLife) -> Self {
        let (state, ended_before_ns) = match life {
            CapturedLife::Lived(_) => (Some("live"), None),
            CapturedLife::Ended { end, is_how_known: false } => (None, Some(end.before_epoch_nanos)),
            CapturedLife::Ended { end, .. } => {
                (Some(if end.has_died { "died" } else { "ended" }), Some(end.before_epoch_nanos))
            }
            CapturedLife::Unknown => (None, None),
        };
        Self { process, state, ended_after_ns: life.until_nanos(), ended_before_ns }
    }
}

/// Writes lines.
struct LineWriter<'o> {
    recording: &'o CaptureRecording<'o>,
    out: &'o mut dyn Write,
    /// Lines that were not passed to `out` yet.
    text: JsonText,
    call_sites: PerDescription<CallSite, SiteText>,
    threads: PerDescription<Thread, Vec<u8>>,
    /// The slices of each process's open spans.
    slices: Vec<LineSlices>,
    blocks: RingBlocks<'o>,
}

/// The number of bytes that are passed on together.
const WRITE_BYTES: usize = 64 << 10;

impl ReplayConsumer for LineWriter<'_> {
    fn parts(&self) -> SpanParts {
        SpanParts { fields: true, remaining: true, ..SpanParts::default() }
    }

    fn entry(&mut self, entry: &RecordingEntry<'_>, step: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        match &entry.content {
            EntryContent::Perf { recorder, record, catalog } => {
                let replay = &state.replays[entry.process_index];
                let mut slices = std::mem::take(&mut self.slices[entry.process_index]);
                let written = match slices.record(*recorder, (record, catalog), step, replay) {
                    Some((span, slice)) => self.slice_line(entry.process, span, &slice),
                    None => Ok(()),
                };
                self.slices[entry.process_index] = slices;
                written?;
                self.record(entry.process, record, catalog)
            }
            EntryContent::Typed { descriptor, payload } => self.typed_event(entry, descriptor, *payload),
            EntryContent::Gap(gap) => {
                let ring = &self.recording.ring(entry.ring).name;
                let Gap { first_seqno, count, cause, .. } = *gap;
                self.line(&Line::Loss { process: entry.process, ring, first_seqno, count, cause: cause.name() })
            }
        }
    }

    fn span(&mut self, process: usize, over: &OverSpan<'_>, _: ReplayState<'_>) -> io::Result<()> {
        self.span_line(process, over.span)
    }

    fn kept_bytes(&self) -> u64 {
        let of_blocks = self.blocks.kept_bytes();
        self.slices.iter().map(LineSlices::kept_bytes).fold(of_blocks, u64::saturating_add)
    }
}

impl LineWriter<'_> {
    fn line(&mut self, object: &Line<'_>) -> io::Result<()> {
        self.text.value(object)?;
        self.end_line()
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.text.0.push(b'\n');
        self.pass_on()
    }

    /// Passes the text on if there is enough of it.
    fn pass_on(&mut self) -> io::Result<()> {
        // The last byte stays: it says whether a comma comes next.
        if self.text.0.len() >= WRITE_BYTES
            && let Some(last) = self.text.0.pop()
        {
            self.out.write_all(&self.text.0)?;
            self.text.0.clear();
            self.text.0.push(last);
        }
        Ok(())
    }

    /// Writes the line of a span. An open span counts as busy until the end of the recording if a thread is in it.
    fn span_line(&mut self, process_index: usize, span: &Span) -> io::Result<()> {
        let busy = span.known_busy_nanos();
        let process = self.recording.processes()[process_index];
        let of_span = self.slices[process_index].take(span.id);
        self.text.begin();
        self.text.member("type", "span")?;
        self.text.member("process", &process)?;
        self.text.member("id", &span.id.get())?;
        self.text.member("parent", &span.parent.map(SpanId::get))?;
        let ids = self.recording.rings().ids(process_index).of(span);
        self.text.plain_member("trace_id", Some(ids.trace_id))?;
        self.text.plain_member("span_id", Some(SpanIdText(ids.span_id)))?;
        self.text.plain_member("parent_span_id", ids.parent_span_id.map(SpanIdText))?;
        match &span.call_site {
            Some(call_site) => self.call_site(call_site)?,
            None => {
                self.text.member("name", &span.name())?;
                self.text.raw_members(b"\"target\":null,\"level\":null,\"file\":null,\"line\":null");
            }
        }
        let text = &mut self.text;
        text.member("start_ns", &span.created.as_ref().map(|created| created.epoch_nanos))?;
        text.member("end_ns", &span.closed.as_ref().map(|closed| closed.epoch_nanos))?;
        text.member("duration_ns", &span.wall_nanos())?;
        text.member("busy_ns", &busy)?;
        if let Some(SpanInstructions { all, own, .. }) = &span.instructions {
            text.member("instructions", all)?;
            text.member("self_instructions", own)?;
        }
        if span.is_scope() {
            text.member("scope", &true)?;
        }
        if span.has_ended_with_parent() {
            text.member("ended_with_parent", &true)?;
        }
        text.member("open", &(span.is_open() && !span.is_end_lost))?;
        text.member("end_lost", &span.is_end_lost)?;
        text.member("last_seen_ns", &span.is_end_lost.then_some(span.last_seen_epoch_nanos))?;
        text.member("may_have_losses", &(span.may_have_losses || busy.is_none()))?;
        text.key("follows_from");
        text.raw(b"[");
        for id in &span.follows_from {
            text.comma();
            text.value(&id.get())?;
        }
        text.raw(b"]");
        text.key("slices");
        text.raw(b"[");
        let slices = std::mem::take(&mut self.slices[process_index]);
        let written = self.slices(&slices, &of_span, span.closed.as_ref().map(|closed| closed.epoch_nanos));
        self.slices[process_index] = slices;
        written?;
        self.text.raw(b"]");
        if of_span.written > 0 {
            self.text.member("more_slices", &of_span.written)?;
        }
        if span.follows_from_dropped > 0 {
            self.text.member("follows_from_dropped", &span.follows_from_dropped)?;
        }
        self.text.fields(&span.fields)?;
        self.text.end();
        self.end_line()
    }

    /// Writes the slices of a span. If it was closed, they end with the close at the latest.
    fn slices(&mut self, slices: &LineSlices, of_span: &SpanSlices, closed_nanos: Option<u64>) -> io::Result<()> {
        for mut slice in slices.iter(of_span) {
            let is_missing = slice.end_nanos.is_none() && closed_nanos.is_some() && !slice.is_end_lost;
            slice.end_nanos = match (slice.end_nanos, closed_nanos) {
                (Some(end), Some(closed)) => Some(end.min(closed)),
                (end, _) if slice.is_end_lost => end,
                (end, closed) => end.or(closed),
            };
            self.text.comma();
            self.text.begin();
            self.slice(&slice)?;
            if slice.is_end_lost {
                self.text.member("end_lost", &true)?;
            } else if is_missing {
                self.text.member("exit_missing", &true)?;
            }
            self.text.end();
            self.pass_on()?;
        }
        Ok(())
    }

    fn slice(&mut self, slice: &LineSlice<'_>) -> io::Result<()> {
        self.thread(slice.thread)?;
        self.text.member("start_ns", &slice.start_nanos)?;
        self.text.member("end_ns", &slice.end_nanos)
    }

    /// Writes the line of a slice for which the line of its span has no room.
    fn slice_line(&mut self, process: u32, span: SpanId, slice: &LineSlice<'_>) -> io::Result<()> {
        self.text.begin();
        self.text.member("type", "slice")?;
        self.text.member("process", &process)?;
        self.text.member("span", &span.get())?;
        self.slice(slice)?;
        self.text.end();
        self.end_line()
    }

    /// Writes the members that describe a call site.
    fn call_site(&mut self, call_site: &Arc<CallSite>) -> io::Result<()> {
        if !call_site.is_known {
            self.text.raw_members(&SiteText::new(call_site)?.members);
            return Ok(());
        }
        if self.call_sites.get(call_site).is_none() {
            self.call_sites.insert(call_site, SiteText::new(call_site)?);
        }
        if let Some(site) = self.call_sites.get(call_site) {
            self.text.raw_members(&site.members);
        }
        Ok(())
    }

    /// Writes the member `thread`.
    fn thread(&mut self, thread: &Arc<Thread>) -> io::Result<()> {
        self.text.key("thread");
        // The catalog makes a new description of an unknown thread each time, so its text is not kept.
        if thread.started_epoch_nanos.is_none() {
            return self.text.thread(thread);
        }
        if self.threads.get(thread).is_none() {
            let mut text = JsonText::default();
            text.thread(thread)?;
            self.threads.insert(thread, text.0);
        }
        if let Some(text) = self.threads.get(thread) {
            self.text.raw(text);
        }
        Ok(())
    }

    /// Writes the line of a record that is not about spans.
    fn record(&mut self, process: u32, record: &RawRecord<'_>, catalog: &Catalog) -> io::Result<()> {
        let kind = match record.event {
            Some(PerfEvent::Event) => "event",
            Some(PerfEvent::Counter) => "counter",
            Some(PerfEvent::Marker) => "marker",
            Some(PerfEvent::RecordError) => "not_recorded",
            None => "unknown",
            Some(_) => return Ok(()),
        };
        self.text.begin();
        self.text.member("type", kind)?;
        self.text.member("process", &process)?;
        self.text.member("time_ns", &record.epoch_nanos())?;
        match catalog.known_thread(record.ext.thread_id) {
            Some(thread) => self.thread(thread)?,
            None => self.thread(&catalog.thread(record.ext.thread_id))?,
        }
        if record.event.is_none() {
            self.text.member("code", &record.descriptor.event_type)?;
        } else {
            self.text.member("span", &record.span().map(SpanId::get))?;
            if let Some(count) = record.instructions() {
                self.text.member("instructions", &count)?;
            }
            self.content(record, catalog)?;
        }
        self.text.end();
        self.end_line()
    }

    fn content(&mut self, record: &RawRecord<'_>, catalog: &Catalog) -> io::Result<()> {
        if record.event == Some(PerfEvent::Event)
            && let Some(call_site) = catalog.known_call_site(record.ext.call_site_id)
        {
            let start = self.text.0.len();
            self.call_site(call_site)?;
            if let Some(site) = self.call_sites.get(call_site)
                && self.text.try_raw_fields(record, site)?
            {
                return Ok(());
            }
            self.text.0.truncate(start);
        }
        match record.decode(catalog).content {
            PerfContent::Event { call_site, fields, .. } => {
                self.text.raw_members(&SiteText::new(&call_site)?.members);
                self.text.fields(&fields)
            }
            PerfContent::Counter { call_site, value, .. } => {
                self.text.member("name", &call_site.name)?;
                self.text.member("value", &value)
            }
            PerfContent::Marker { call_site, text, .. } => {
                self.text.member("name", &call_site.name)?;
                self.text.member("text", &text)
            }
            PerfContent::NotRecorded { error, .. } => {
                self.text.member("why", &error.as_ref().map(|error| format!("{error:?}")))
            }
            _ => Ok(()),
        }
    }

    fn typed_event(
        &mut self,
        entry: &RecordingEntry<'_>,
        descriptor: &Descriptor,
        payload: PayloadRead<'_>,
    ) -> io::Result<()> {
        let (recording, ring, code) = (self.recording, entry.ring, descriptor.event_type);
        let text = &mut self.text;
        text.begin();
        text.member("type", "typed_event")?;
        text.member("process", &entry.process)?;
        text.member("ring", &recording.ring(ring).name)?;
        text.member("seqno", &descriptor.seqno)?;
        text.member("time_ns", &descriptor.record_epoch_nanos)?;
        text.member("name", &*recording.rings().event_name(ring, code))?;
        text.member("code", &code)?;
        text.member("payload", &payload.valid().map(|bytes| decode_event(recording.rings().model(ring), code, bytes)))?;
        let words = recording.rings().words(ring);
        let named = || words.iter_own().filter(|(_, word)| !word.is_reserved());
        // If every extension word has a name, the object has each word under its name. Then the object has no
        // `content_ext`, which would only repeat the words.
        if named().count() + usize::from(words.has_span()) < descriptor.content_ext.len() {
            text.member("content_ext", &descriptor.content_ext)?;
        }
        for (index, word) in named() {
            text.any_key(&word.key())?;
            text.value(&word.value(descriptor.content_ext[index]))?;
        }
        if recording.ring(ring).is_exec() {
            text.member("block_number", &self.blocks.number_of(ring, descriptor, payload))?;
        }
        text.member("span", &recording.rings().span(ring, descriptor).map(SpanId::get))?;
        text.end();
        self.end_line()
    }
}
