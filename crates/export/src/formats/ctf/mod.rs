//! Traces of the Common Trace Format, version 1.8 (<https://diamon.org/ctf/v1.8.3/>): a directory with the text
//! `metadata`, and a file for each stream of events.
//!
//! | file | idea |
//! |---|---|
//! | `identifiers` | names of fields |
//! | `metadata` | the text that describes the trace |
//! | `stream` | packets of events in the order of time, and the losses between them |
//! | `ring_streams` | the streams of a ring |
//! | `members` | fields of events whose types are known only when the event is written |
//! | `perf_events` | events of spans, log records, samples, marks |
//! | `payload` | payloads of typed events |
//! | `typed_events` | typed events |

mod identifiers;
mod members;
mod metadata;
mod payload;
mod perf_events;
mod ring_streams;
mod stream;
#[cfg(test)]
mod tests;
mod typed_events;

use super::files::ExportFiles;
use crate::exec::ring_blocks::RingBlocks;
use eventring::reader::GapCause;
use eventring::tracing::SpanStep;
use eventring_capture::CaptureError;
use eventring_capture::recording::{
    CaptureRecording, EntryContent, RecordingEntry, ReplayConsumer, ReplayCounts, ReplayNeeds, ReplayParts,
    ReplayState, replay_capture, write_error,
};
use metadata::Metadata;
use perf_events::PerfEvents;
use ring_streams::RingStreams;
use std::io;
use stream::PacketHead;
use typed_events::TypedEvents;

/// The name of the file that describes the trace. Every reader expects this name.
const METADATA: &str = "metadata";

/// The file that each trace has, and a text in it that says who wrote the trace.
pub(crate) const MARK: (&str, &str) = (METADATA, "tracer_name = \"eventring\";");

/// Returns true if a trace has a file with this name, or may have one.
pub(crate) fn may_have_file(name: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_stream = |numbers: &str| numbers.splitn(2, '_').all(is_number);
    name == METADATA || name.strip_prefix("stream_").is_some_and(is_stream)
}

/// Writes the files of a trace.
pub(crate) fn write(
    recording: &CaptureRecording<'_>,
    files: &mut dyn ExportFiles,
) -> Result<ReplayCounts, CaptureError> {
    write_with_uuid(recording, files, metadata::random_uuid())
}

fn write_with_uuid(
    recording: &CaptureRecording<'_>,
    files: &mut dyn ExportFiles,
    uuid: [u8; 16],
) -> Result<ReplayCounts, CaptureError> {
    let mut writer = CtfWriter::begin(recording, files, uuid).map_err(write_error)?;
    let mut counts = replay_capture(recording, &mut writer)?;
    counts.problems.extend(writer.finish(counts.last_nanos).map_err(write_error)?);
    Ok(counts)
}

/// Writes a trace.
struct CtfWriter<'o> {
    recording: &'o CaptureRecording<'o>,
    files: &'o mut dyn ExportFiles,
    metadata: Metadata,
    /// The streams of each ring.
    streams: Vec<RingStreams>,
    perf_events: PerfEvents,
    /// True if the metadata has the class of the streams of perf rings.
    has_perf_streams: bool,
    /// The events of each ring that is no perf ring.
    typed_events: Vec<Option<TypedEvents<'o>>>,
}

impl<'o> CtfWriter<'o> {
    fn begin(recording: &'o CaptureRecording<'o>, files: &'o mut dyn ExportFiles, uuid: [u8; 16]) -> io::Result<Self> {
        let file = io::BufWriter::new(files.create(METADATA)?);
        let metadata = Metadata::begin(Box::new(file), recording, uuid)?;
        let rings = recording.capture.rings().iter().zip(0..);
        let typed_events: Vec<Option<TypedEvents<'o>>> = rings
            .clone()
            .map(|(ring, index)| (!ring.is_perf()).then(|| TypedEvents::of_ring(recording, index)))
            .collect();
        let streams = rings.zip(&typed_events).map(|((ring, index), typed)| {
            let mut origin = ring.process.to_le_bytes().to_vec();
            metadata::put_text(&mut origin, &ring.name);
            // The time is 0 if it is not known. Then no loss is longer than a moment.
            let created_nanos = if ring.created_epoch_nanos == 0 { u64::MAX } else { ring.created_epoch_nanos };
            let class_id = typed.as_ref().map_or(perf_events::STREAM_CLASS, TypedEvents::stream_class);
            RingStreams::new(index, PacketHead { uuid, class_id, stream_id: 0, origin }, created_nanos)
        });
        let streams = streams.collect();
        let perf_events = PerfEvents::default();
        Ok(Self { recording, files, metadata, streams, perf_events, has_perf_streams: false, typed_events })
    }

    /// Describes the class of a ring's streams, if the metadata does not have it yet.
    fn describe_streams(&mut self, ring: usize) -> io::Result<()> {
        let class_id = self.streams[ring].class_id();
        match &self.typed_events[ring] {
            Some(_) if self.streams[ring].is_begun() => Ok(()),
            Some(events) => self.metadata.stream_class(class_id, &events.context()),
            None if std::mem::replace(&mut self.has_perf_streams, true) => Ok(()),
            None => self.metadata.stream_class(class_id, perf_events::CONTEXT),
        }
    }

    /// Writes the rest of the trace. Returns the problems of the recording that the trace shows in another way.
    fn finish(&mut self, last_nanos: u64) -> io::Result<Vec<String>> {
        let mut problems = Vec::new();
        for (streams, ring) in self.streams.iter_mut().zip(self.recording.capture.rings()) {
            let moved = streams.finish(last_nanos)?;
            if moved > 0 {
                problems.push(format!(
                    "the ring {} has {moved} events whose times fall too often, or lie after the year 2262: the trace \
                     has them at other times; export it as jsonl, which has all times",
                    ring.name
                ));
            }
        }
        self.metadata.flush()?;
        Ok(problems)
    }
}

impl ReplayConsumer for CtfWriter<'_> {
    fn needs(&self) -> ReplayNeeds {
        ReplayNeeds { remaining: true, ..ReplayNeeds::default() }
    }

    fn follow(&self, parts: &mut ReplayParts) {
        RingBlocks::follow(self.recording.capture, parts);
    }

    fn entry(&mut self, entry: &RecordingEntry<'_>, _: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        let ring = entry.ring as usize;
        let pid = self.recording.ring(entry.ring).pid;
        self.describe_streams(ring)?;
        let (nanos, event_class, content) = match &entry.content {
            EntryContent::Perf { record, catalog, .. } => {
                let class = self.perf_events.encode(pid, record, catalog, &mut self.metadata)?;
                let Some(class) = class else { return Ok(()) };
                (record.epoch_nanos(), class, &self.perf_events.content)
            }
            EntryContent::Typed { descriptor, payload } => {
                let Some(events) = &mut self.typed_events[ring] else { return Ok(()) };
                let block_number = state.part().and_then(RingBlocks::last_number);
                let class = events.encode(pid, descriptor, (*payload, block_number), &mut self.metadata)?;
                (descriptor.record_epoch_nanos, class, &events.content)
            }
            EntryContent::Gap(gap) => {
                // What had been overwritten before the capture began is the past, and nobody has discarded it.
                let discarded = if gap.cause == GapCause::OverwrittenBefore { 0 } else { gap.count };
                return self.streams[ring].lose(self.files, discarded);
            }
        };
        self.streams[ring].event(self.files, nanos, event_class, content)
    }

    fn kept_bytes(&self) -> u64 {
        let of_rings = self.typed_events.iter().flatten().map(TypedEvents::kept_bytes);
        let of_streams = self.streams.iter().map(RingStreams::kept_bytes);
        of_rings.chain(of_streams).fold(self.perf_events.kept_bytes(), u64::saturating_add)
    }
}
