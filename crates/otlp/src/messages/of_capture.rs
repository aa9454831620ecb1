//! The messages of a capture, as lines of JSON. Each line is one request, as collectors read and write such files.

use super::happenings::{Happening, of_decoded};
use super::ids::ProcessKey;
use super::mapper::{OtlpMapper, OtlpProcess};
use eventring::reader::Gap;
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{Span, SpanReplay, SpanStep};
use eventring_capture::CaptureError;
use eventring_capture::CaptureFile;
use eventring_capture::recording::CaptureRecording;
use eventring_capture::recording::{EntryContent, RecordingEntry};
use eventring_export::ExportSummary;
use eventring_export::pass::{self, Pass};
use serde::Serialize;
use std::io::{self, Write};

/// Writes the requests of a capture, a line each.
///
/// # Errors
/// The capture would take too much memory, writing fails, or a perf ring has a schema of another version.
pub fn write(capture: &CaptureFile, out: &mut dyn Write) -> Result<ExportSummary, CaptureError> {
    let recording = &CaptureRecording::new(capture)?;
    let mut lines = OtlpLines { recording, out, mapper: OtlpMapper::default(), last_nanos: 0, line: Vec::new() };
    for process in recording.processes() {
        lines.mapper.processes.push(process_of(recording, *process));
    }
    let end = pass::run(recording, &mut lines)?;
    let end_nanos = end.end_nanos.clone();
    let finished = end.finish(|process, span| {
        lines.mapper.span(process, &span, of_decoded(&span.fields), end_nanos[process]);
        lines.pass_on(false)
    });
    let mut counts = finished.map_err(pass::write_error)?;
    for gone in lines.mapper.take_gone(|_, _| false) {
        lines.mapper.let_go(gone);
        lines.pass_on(false).map_err(pass::write_error)?;
    }
    lines.pass_on(true).map_err(pass::write_error)?;
    lines.out.flush().map_err(pass::write_error)?;
    counts.problems.extend_from_slice(capture.problems());
    Ok(counts)
}

fn process_of(recording: &CaptureRecording<'_>, process: u32) -> OtlpProcess {
    let rings = || recording.capture.rings().iter().filter(|ring| ring.process == process);
    let Some(first) = rings().next() else { return OtlpProcess::default() };
    // A program without a ring of spans is told from others by its other rings.
    let of_perf = rings().filter(|ring| ring.is_perf()).map(|ring| ring.created_epoch_nanos).min();
    let created = of_perf.or_else(|| rings().map(|ring| ring.created_epoch_nanos).min());
    let key =
        ProcessKey { pid: first.pid, program: first.program_name.clone(), created_nanos: created.unwrap_or_default() };
    OtlpProcess::new(key, first.name.clone(), None)
}

/// The pass that writes requests.
struct OtlpLines<'o> {
    recording: &'o CaptureRecording<'o>,
    out: &'o mut dyn Write,
    mapper: OtlpMapper,
    /// The time of the last event, in nanoseconds since the epoch.
    last_nanos: u64,
    line: Vec<u8>,
}

impl Pass for OtlpLines<'_> {
    fn replay(&self) -> SpanReplay {
        SpanReplay::new().without_slices()
    }

    fn entry(&mut self, entry: &RecordingEntry<'_>, _: &SpanStep, replay: &SpanReplay) -> io::Result<()> {
        let process = entry.process_index;
        match &entry.content {
            EntryContent::Perf { record, catalog, .. } => {
                self.last_nanos = self.last_nanos.max(record.epoch_nanos());
                if let (Some(PerfEvent::SpanFollowsFrom), Some(id), Some(to)) =
                    (record.event, record.span(), record.related())
                {
                    let nanos = record.epoch_nanos();
                    self.mapper.link(process, (id, replay.get(id)), (to, replay.get(to)), nanos);
                }
                if let Some(happening) = Happening::of_record(record, catalog) {
                    let known = record.span().and_then(|id| replay.get(id));
                    self.mapper.happening(process, record.span(), known, happening);
                }
            }
            EntryContent::Typed { descriptor, payload } => {
                self.last_nanos = self.last_nanos.max(descriptor.record_epoch_nanos);
                let rings = self.recording.rings();
                let ring = (entry.ring, self.recording.ring(entry.ring).name.as_str());
                let happening = Happening::of_typed_event(rings, ring, descriptor, *payload);
                let id = rings.span(entry.ring, descriptor);
                self.mapper.happening(process, id, id.and_then(|id| replay.get(id)), happening);
            }
            EntryContent::Gap { first_seqno, count, cause } => {
                let gap = Gap { first_seqno: *first_seqno, count: *count, cause: *cause };
                let ring = self.recording.ring(entry.ring);
                // Before the first event, the loss has the time from which on the ring could have events.
                let since_nanos = match ring.created_epoch_nanos {
                    0 => self.recording.capture.started_epoch_nanos(),
                    created_nanos => created_nanos,
                };
                let nanos = if self.last_nanos == 0 { since_nanos } else { self.last_nanos };
                self.mapper.loss(process, &ring.name, gap, nanos);
            }
        }
        self.pass_on(false)
    }

    fn closed(&mut self, process_index: usize, span: &Span, _: &SpanReplay) -> io::Result<()> {
        let attributes = of_decoded(&span.fields);
        self.mapper.span(process_index, span, attributes, self.last_nanos);
        self.pass_on(false)
    }

    fn kept_bytes(&self) -> u64 {
        self.mapper.kept_bytes()
    }
}

impl OtlpLines<'_> {
    /// Writes the waiting messages if there are enough of them, or if these are the last.
    fn pass_on(&mut self, is_last: bool) -> io::Result<()> {
        let batch = &self.mapper.batch;
        if batch.is_empty() || !(is_last || batch.is_full_line()) {
            return Ok(());
        }
        let requests = self.mapper.take();
        if let Some(traces) = &requests.traces {
            self.line(traces)?;
        }
        if let Some(logs) = &requests.logs {
            self.line(logs)?;
        }
        Ok(())
    }

    fn line(&mut self, request: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, request)?;
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }
}
