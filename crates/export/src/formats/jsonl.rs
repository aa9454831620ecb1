//! JSON objects, one a line. The first object describes the rings, the last one has the counts.

use super::json_rows::JsonRows;
use crate::exec::ring_blocks::RingBlocks;
use crate::rows::{LogRow, LossRow, RingRow, Row, RowFields, SampleKind, SampleRow, SpanRow, TypedRow};
use crate::slices::line_slices::{LineSlice, LineSlices, SpanSlices};
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{Catalog, PerfContent, RawRecord, Span, SpanId, SpanStep, is_log_record};
use eventring_capture::recording::PayloadLosses;
use eventring_capture::recording::{
    CaptureRecording, EntryContent, OverSpan, RecordingEntry, ReplayConsumer, ReplayCounts, ReplayNeeds, ReplayParts,
    ReplayState, replay_capture, write_error,
};
use eventring_capture::{CaptureError, CapturedLife};
use serde::Serialize;
use std::io::{self, Write};

/// Writes the lines. Events come in their order. A span is written when it is closed; the spans that are still open
/// come at the end.
pub(crate) fn write(recording: &CaptureRecording<'_>, out: &mut dyn Write) -> Result<ReplayCounts, CaptureError> {
    let slices = recording.processes().iter().map(|_| LineSlices::default()).collect();
    let mut lines = LineWriter { recording, out, rows: JsonRows::default(), slices, last_nanos: None };
    lines.first_line().map_err(write_error)?;
    let counts = replay_capture(recording, &mut lines)?;
    lines.last_line(&counts).and_then(|()| lines.out.write_all(&lines.rows.text.0)).map_err(write_error)?;
    Ok(counts)
}

/// The last line.
#[derive(Serialize)]
struct End<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    counts: &'a ReplayCounts,
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
    rows: JsonRows,
    /// The slices of each process's open spans.
    slices: Vec<LineSlices>,
    /// The time of the last event; `None` before the first one.
    last_nanos: Option<u64>,
}

/// The number of bytes that are passed on together.
const WRITE_BYTES: usize = 64 << 10;

impl ReplayConsumer for LineWriter<'_> {
    fn needs(&self) -> ReplayNeeds {
        ReplayNeeds { fields: true, remaining: true, ..ReplayNeeds::default() }
    }

    fn follow(&self, parts: &mut ReplayParts) {
        RingBlocks::follow(self.recording.capture, parts);
    }

    fn entry(&mut self, entry: &RecordingEntry<'_>, step: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        let process = entry.process;
        match &entry.content {
            EntryContent::Perf { recorder, record, catalog } => {
                self.last_nanos = Some(record.epoch_nanos());
                let replay = &state.replays[entry.process_index];
                let mut slices = std::mem::take(&mut self.slices[entry.process_index]);
                let written = match slices.record(*recorder, (record, catalog), step, replay) {
                    Some((span, slice)) => self.slice_line(process, span, &slice),
                    None => Ok(()),
                };
                self.slices[entry.process_index] = slices;
                written?;
                self.record(process, record, catalog)
            }
            EntryContent::Typed { descriptor, payload } => {
                self.last_nanos = Some(descriptor.record_epoch_nanos);
                let block_number = state.part().and_then(RingBlocks::last_number);
                let place = (process, entry.ring);
                self.line("typed_event", &TypedRow::new(self.recording, place, descriptor, *payload, block_number))
            }
            EntryContent::Gap(gap) => {
                let ring = &self.recording.ring(entry.ring).name;
                self.line("loss", &LossRow::new(process, ring, *gap, self.last_nanos))
            }
        }
    }

    fn span(&mut self, process: usize, over: &OverSpan<'_>, _: ReplayState<'_>) -> io::Result<()> {
        self.span_line(process, over.span)
    }

    fn kept_bytes(&self) -> u64 {
        self.slices.iter().map(LineSlices::kept_bytes).fold(0, u64::saturating_add)
    }
}

impl LineWriter<'_> {
    fn line(&mut self, kind: &str, row: &impl Row) -> io::Result<()> {
        self.rows.begin(kind, row)?;
        self.end_line()
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.rows.text.end();
        self.rows.text.0.push(b'\n');
        self.pass_on()
    }

    /// Passes the text on if there is enough of it.
    fn pass_on(&mut self) -> io::Result<()> {
        // The last byte stays: it says whether a comma comes next.
        let text = &mut self.rows.text.0;
        if text.len() >= WRITE_BYTES
            && let Some(last) = text.pop()
        {
            self.out.write_all(text)?;
            text.clear();
            text.push(last);
        }
        Ok(())
    }

    fn first_line(&mut self) -> io::Result<()> {
        let text = &mut self.rows.text;
        text.begin();
        text.member("type", "capture")?;
        text.member("version", &1)?;
        text.member("started_ns", &self.recording.capture.started_epoch_nanos())?;
        text.key("rings");
        text.raw(b"[");
        for ring in self.recording.capture.rings() {
            self.rows.text.comma();
            self.rows.text.begin();
            RingRow::new(ring).put_columns(&mut self.rows)?;
            self.rows.text.end();
        }
        self.rows.text.raw(b"]");
        self.end_line()
    }

    fn last_line(&mut self, counts: &ReplayCounts) -> io::Result<()> {
        let recording = self.recording;
        let life = |process: &u32| LifeRow::new(*process, recording.capture.life_of(*process));
        let processes = recording.processes().iter().map(life).collect();
        let (lost_payloads, payload_losses) = (counts.lost_payloads(), &*counts.payload_losses);
        self.rows.text.value(&End { r#type: "end", counts, lost_payloads, payload_losses, processes })?;
        self.rows.text.0.push(b'\n');
        Ok(())
    }

    /// Writes the line of a span. An open span counts as busy until the end of the recording if a thread is in it.
    fn span_line(&mut self, process_index: usize, span: &Span) -> io::Result<()> {
        let process = self.recording.processes()[process_index];
        let of_span = self.slices[process_index].take(span.id);
        self.rows.begin("span", &SpanRow::new(process, span, self.recording.rings().ids(process_index)))?;
        self.rows.text.key("slices");
        self.rows.text.raw(b"[");
        let slices = std::mem::take(&mut self.slices[process_index]);
        let written = self.slices(&slices, &of_span, span.closed.as_ref().map(|closed| closed.epoch_nanos));
        self.slices[process_index] = slices;
        written?;
        self.rows.text.raw(b"]");
        if of_span.written > 0 {
            self.rows.text.member("more_slices", &of_span.written)?;
        }
        if span.follows_from_dropped > 0 {
            self.rows.text.member("follows_from_dropped", &span.follows_from_dropped)?;
        }
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
            self.rows.text.comma();
            self.rows.text.begin();
            self.slice(&slice)?;
            if slice.is_end_lost {
                self.rows.text.member("end_lost", &true)?;
            } else if is_missing {
                self.rows.text.member("exit_missing", &true)?;
            }
            self.rows.text.end();
            self.pass_on()?;
        }
        Ok(())
    }

    fn slice(&mut self, slice: &LineSlice<'_>) -> io::Result<()> {
        self.rows.text.key("thread");
        self.rows.thread(slice.thread)?;
        self.rows.text.member("start_ns", &slice.start_nanos)?;
        self.rows.text.member("end_ns", &slice.end_nanos)
    }

    /// Writes the line of a slice for which the line of its span has no room.
    fn slice_line(&mut self, process: u32, span: SpanId, slice: &LineSlice<'_>) -> io::Result<()> {
        self.rows.text.begin();
        self.rows.text.member("type", "slice")?;
        self.rows.text.member("process", &process)?;
        self.rows.text.member("span", &span.get())?;
        self.slice(slice)?;
        self.end_line()
    }

    /// Writes the line of a record that is not about spans.
    fn record(&mut self, process: u32, record: &RawRecord<'_>, catalog: &Catalog) -> io::Result<()> {
        if record.event == Some(PerfEvent::Event) {
            return self.log_record(process, record, catalog);
        }
        let Some(kind) = SampleKind::from_event(record.event) else { return Ok(()) };
        let decoded = record.decode(catalog);
        self.line(kind.names().1, &SampleRow::new(process, record, &decoded.thread, &decoded.content))
    }

    fn log_record(&mut self, process: u32, record: &RawRecord<'_>, catalog: &Catalog) -> io::Result<()> {
        // The fields of most records are written as they lie in the payload.
        if let Some(site) = catalog.known_call_site(record.ext.call_site_id)
            && let Some(thread) = catalog.known_thread(record.ext.thread_id)
            && !is_log_record(site)
        {
            return self.line("event", &LogRow::new(process, record, thread, site, RowFields::Raw(record, site)));
        }
        let decoded = record.decode(catalog);
        let PerfContent::Event { call_site, fields, .. } = &decoded.content else { return Ok(()) };
        let fields = RowFields::Decoded(fields);
        self.line("event", &LogRow::new(process, record, &decoded.thread, call_site, fields))
    }
}
