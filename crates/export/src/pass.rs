//! A pass over a recording: replays the spans, counts, and calls a consumer with each entry and with each span that has
//! ended.

use super::ExportSummary;
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{Span, SpanReplay, SpanStep};
use eventring_capture::CaptureError;
use eventring_capture::recording::CaptureRecording;
use eventring_capture::recording::{EntryContent, RecordingEntry};
use std::io;

/// A consumer of a recording.
pub trait Pass {
    /// Returns the replay for the spans of one process.
    fn replay(&self) -> SpanReplay {
        SpanReplay::new().without_fields().without_slices()
    }

    /// Takes an entry. `step` is its effect on `replay`, the replay of the entry's process.
    fn entry(&mut self, entry: &RecordingEntry<'_>, step: &SpanStep, replay: &SpanReplay) -> io::Result<()>;

    /// Takes a span that was closed 5 milliseconds ago. `process_index` is that of its entries, and `replay` has the
    /// other spans of the process.
    fn closed(&mut self, process_index: usize, span: &Span, replay: &SpanReplay) -> io::Result<()>;

    /// Takes the next entry for its counts: each of them, also those that stand for no event.
    fn count(&mut self, _: &RecordingEntry<'_>) {}

    /// Returns an estimate of the bytes that the consumer keeps in memory at present.
    fn kept_bytes(&self) -> u64;
}

/// The end of a pass.
pub struct PassEnd {
    pub(super) counts: ExportSummary,
    /// The times of the first and the last event.
    pub(super) first_nanos: u64,
    pub(super) last_nanos: u64,
    /// The last time at which each process is known to have lived: spans that are open then last until then.
    pub end_nanos: Vec<u64>,
    /// The replays of the processes, which still hold the open spans and those that were closed lately.
    pub(super) replays: Vec<SpanReplay>,
}

/// The memory is checked whenever this many bytes of events have been read.
pub const CHECK_BYTES: usize = 64 << 10;

/// Passes all entries of a recording to `pass`.
///
/// # Errors
/// Writing fails, or the pass would take more memory than any capture of this size from a real program needs.
pub fn run(recording: &CaptureRecording<'_>, pass: &mut impl Pass) -> Result<PassEnd, CaptureError> {
    let mut replays = Vec::new();
    let (counts, first_nanos, last_nanos) = run_on(recording, pass, &mut replays)?;
    let until = |process: &u32| recording.capture.life_of(*process).until_nanos().unwrap_or(last_nanos);
    let end_nanos = recording.processes().iter().map(until).collect();
    Ok(PassEnd { counts, first_nanos, last_nanos, end_nanos, replays })
}

/// Passes all entries of a recording to `pass`, with the replays of the recordings before it. Returns the counts, and
/// the times of the first and the last event. What the replays have kept before does not count against the memory that
/// this recording may take.
///
/// # Errors
/// As [`run`].
pub fn run_on(
    recording: &CaptureRecording<'_>,
    pass: &mut impl Pass,
    replays: &mut Vec<SpanReplay>,
) -> Result<(ExportSummary, u64, u64), CaptureError> {
    replays.resize_with(recording.processes().len().max(replays.len()), || pass.replay());
    let (mut first_nanos, mut last_nanos) = (u64::MAX, 0);
    let mut counts = ExportSummary::default();
    let of_all = |replays: &[SpanReplay]| replays.iter().map(SpanReplay::kept_bytes).fold(0, u64::saturating_add);
    let kept_before = of_all(replays);
    let mut unchecked_bytes = 0;
    let mut entries = recording.entries();
    while let Some(entry) = entries.next() {
        pass.count(&entry);
        // A seqno that was given up never had an event, so it is not shown as a loss.
        if let EntryContent::Gap { cause, .. } = &entry.content
            && !cause.is_loss()
        {
            continue;
        }
        let replay = &mut replays[entry.process_index];
        let (mut step, mut bytes) = (SpanStep::None, 0);
        let nanos = match &entry.content {
            EntryContent::Perf { recorder, record, catalog } => {
                step = replay.push_raw(*recorder, record, catalog);
                match record.event {
                    Some(PerfEvent::SpanEnter) => counts.slices += 1,
                    Some(PerfEvent::Event) => counts.events += 1,
                    Some(PerfEvent::Counter) => counts.counters += 1,
                    Some(PerfEvent::Marker) => counts.markers += 1,
                    _ => {}
                }
                bytes = record.payload.valid().map_or(0, <[u8]>::len);
                Some(record.epoch_nanos())
            }
            EntryContent::Typed { descriptor, payload } => {
                counts.typed_events += 1;
                if let Some(span) = recording.rings().span(entry.ring, descriptor) {
                    replay.push_typed_event(span, descriptor.record_epoch_nanos);
                }
                bytes = payload.valid().map_or(0, <[u8]>::len);
                Some(descriptor.record_epoch_nanos)
            }
            EntryContent::Gap { count, cause, .. } => {
                replay.gap(recording.rings().losing_shard(entry.ring, *cause));
                counts.lost = counts.lost.saturating_add(*count);
                None
            }
        };
        if let Some(nanos) = nanos {
            (first_nanos, last_nanos) = (first_nanos.min(nanos), last_nanos.max(nanos));
        }
        pass.entry(&entry, &step, replay).map_err(write_error)?;
        while let Some(span) = replay.take_closed_boxed() {
            pass.closed(entry.process_index, &span, replay).map_err(write_error)?;
            replay.recycle(span);
        }
        unchecked_bytes += size_of::<RecordingEntry<'_>>() + bytes;
        if unchecked_bytes >= CHECK_BYTES {
            unchecked_bytes = 0;
            let of_replays = of_all(replays).saturating_sub(kept_before);
            entries.check_kept(of_replays.saturating_add(pass.kept_bytes()))?;
        }
    }
    counts.problems = entries.problems().to_vec();
    counts.payload_losses = entries.payload_losses();
    Ok((counts, first_nanos.min(last_nanos), last_nanos))
}

/// Returns the error that an export cannot be written.
pub fn write_error(error: io::Error) -> CaptureError {
    CaptureError::io_writing("write the export", error)
}

impl PassEnd {
    /// Ends the replays, and calls `take` with each remaining span and the index of its process. The spans of a process
    /// come in the order of their ids. Returns the counts, which are complete now.
    pub fn finish(mut self, mut take: impl FnMut(usize, Span) -> io::Result<()>) -> io::Result<ExportSummary> {
        for (process_index, (replay, end_nanos)) in self.replays.into_iter().zip(self.end_nanos).enumerate() {
            self.counts.spans += replay.spans_seen();
            for span in replay.finish(end_nanos) {
                self.counts.open_spans += u64::from(span.is_open() && !span.is_end_lost);
                self.counts.lost_ends += u64::from(span.is_end_lost);
                take(process_index, span)?;
            }
        }
        Ok(self.counts)
    }
}
