//! Gives a capture to a consumer: what was open at the first look at the tables of the present, then the entries, then
//! what was open at the end.

use super::consumer::ReplayConsumer;
use super::counts::ReplayCounts;
use super::looks::Looks;
use super::of_capture::{CaptureEntries, CaptureRecording};
use super::present::{PresentRecord, present_records};
use super::replay::{RecordingReplay, ReplayBounds, write_error};
use super::tables::RecordingTables;
use crate::error::CaptureError;
use crate::format::columns::PayloadsWanted;
use crate::read::file::CaptureFile;
use crate::read::present::CapturedPresent;
use eventring::now::Present;
use eventring::schema::perf::{PerfEvent, PerfExt};
use eventring::tracing::GRACE_NANOS;
use std::collections::{HashMap, HashSet};

/// The estimated bytes that are kept for each byte of an image.
const MADE_BYTES_PER_BYTE: u64 = 8;

/// Gives all of a capture to a consumer.
///
/// # Errors
/// The consumer fails, or the capture would take more memory than any capture of its size from a real program needs.
pub fn replay_capture(
    recording: &CaptureRecording<'_>,
    to: &mut impl ReplayConsumer,
) -> Result<ReplayCounts, CaptureError> {
    let mut replay = RecordingReplay::for_consumer(to, ReplayBounds::Refuse);
    let mut entries = recording.entries();
    let tells = to.needs().presents;
    replay.begin(recording.capture, &mut entries, (&mut *to, tells))?;
    replay.drive(&mut entries, to)?;
    replay.end_looks(to);
    let last_nanos = replay.counts.last_nanos;
    let until = |process: &u32| {
        let capture = recording.capture;
        // The last sign of life may be an event that is not selected.
        let last_nanos = || capture.last_selected_time_of(*process).map_or(last_nanos, |last| last.max(last_nanos));
        capture.life_of(*process).until_nanos().unwrap_or_else(last_nanos)
    };
    let end_nanos: Vec<u64> = recording.processes().iter().map(until).collect();
    let mut counts = replay.finish(&end_nanos, entries.tables(), to).map_err(write_error)?;
    counts.problems = [recording.capture.problems(), entries.problems()].concat();
    counts.payload_losses = entries.payload_losses();
    Ok(counts)
}

/// Gives what tables of the present showed at the end of a capture to a consumer, as if it had just been recorded.
///
/// # Errors
/// The consumer fails.
#[doc(hidden)]
pub fn replay_presents(
    recording: &CaptureRecording<'_>,
    presents: &mut [CapturedPresent],
    to: &mut impl ReplayConsumer,
) -> Result<(), CaptureError> {
    let mut replay = RecordingReplay::for_consumer(to, ReplayBounds::Refuse);
    let mut tables = recording.entries().into_tables();
    replay.grow(&tables);
    for CapturedPresent { ring, present, .. } in &mut *presents {
        let Some(shard) = tables.rings.origin(*ring).shard else { continue };
        to.leave_out(present, &tables.catalogs[shard.recorder_index]);
        for record in present_records(present, &tables.catalogs[shard.recorder_index]) {
            let entry = record.entry(&mut tables, *ring);
            entry.map_or(Ok(()), |entry| replay.step(&entry, to)).map_err(write_error)?;
        }
    }
    let last_nanos = presents.iter().map(|of| of.epoch_nanos).max().unwrap_or(0);
    let until = |process: &u32| recording.capture.life_of(*process).until_nanos().unwrap_or(last_nanos);
    let end_nanos: Vec<u64> = recording.processes().iter().map(until).collect();
    replay.finish(&end_nanos, &tables, to).map_err(write_error)?;
    Ok(())
}

impl RecordingReplay {
    /// Begins with a capture: takes what the first look has shown, as far as no event of the capture shows it. With
    /// `tells`, the consumer is told of each record that this makes; otherwise it finds the spans in the state.
    ///
    /// # Errors
    /// The consumer fails.
    #[doc(hidden)]
    pub fn begin(
        &mut self,
        capture: &CaptureFile,
        entries: &mut CaptureEntries,
        (to, tells): (&mut impl ReplayConsumer, bool),
    ) -> Result<(), CaptureError> {
        self.grow(&entries.tables);
        let looks = capture.looks(&entries.tables);
        let mut known = HashSet::new();
        for look in looks.iter().filter(|look| known.insert(look.recorder)) {
            // A few bytes may be an image of very many spans.
            if entries.check_kept(look.block.header.plain_bytes.saturating_mul(MADE_BYTES_PER_BYTE)).is_err() {
                continue;
            }
            let (mut present, tables) = (look.present(), &mut entries.tables);
            if tells {
                to.leave_out(&mut present, &tables.catalogs[look.index]);
            }
            let lost = Lost::new(&present, capture.first_events(tables, look.recorder));
            for mut record in present_records(&present, &tables.catalogs[look.index]) {
                if !lost.has(&mut record) {
                    continue;
                }
                let Some(entry) = record.entry(tables, look.recorder) else { continue };
                match tells {
                    true => self.step(&entry, to).map_err(write_error)?,
                    false => self.learn(look.process, &entry),
                }
            }
        }
        self.looks = Looks::new(looks);
        Ok(())
    }

    /// Takes the next look at each recorder: what was open then, and had begun when the stream ended, was open at its
    /// end.
    pub fn end_looks(&mut self, to: &mut impl ReplayConsumer) {
        let now_nanos = self.counts.last_nanos;
        std::mem::take(&mut self.looks).end(now_nanos, &mut self.replays, &mut self.parts, to);
    }
}

/// The first event that a capture has of a shard: its seqno and its time. What came before is lost.
type FirstEvents = HashMap<u32, (u64, u64)>;

impl CaptureFile {
    /// Returns the first events of all shards of a recorder. One without events has the largest seqno and time.
    fn first_events(&self, tables: &RecordingTables, recorder: u32) -> FirstEvents {
        let mut first = FirstEvents::new();
        let shard_of = |ring| tables.rings.origin(ring).shard.filter(|shard| shard.recorder == recorder);
        for block in self.event_blocks().filter(|block| (block.ring as usize) < self.rings.len()) {
            let Some(shard) = shard_of(block.ring).filter(|of| !first.contains_key(&of.shard)) else { continue };
            if let Ok(records) = block.decode(PayloadsWanted::OfTypes(&[]))
                && let Some(event) = records.events.descriptors().first()
            {
                first.insert(shard.shard, (event.seqno, event.record_epoch_nanos));
            }
        }
        first
    }
}

/// The spans and threads of a look, and the first events of the capture. They tell which parts of the look no event of
/// the capture shows.
struct Lost {
    begun: HashMap<u64, (u64, u64)>,
    /// The shards of threads.
    shards: HashMap<u32, u32>,
    first: FirstEvents,
}

impl Lost {
    fn new(present: &Present, first: FirstEvents) -> Self {
        let begun = present.spans.iter().map(|span| (span.id, span.begun_at)).collect();
        Self { begun, shards: present.threads.iter().map(|thread| (thread.id, thread.shard)).collect(), first }
    }

    /// Returns true if the event that a record stands for is not in the capture, and says to which shard it belongs.
    fn has(&self, record: &mut PresentRecord) -> bool {
        let first = |shard: u32| self.first.get(&shard).copied().unwrap_or((u64::MAX, u64::MAX));
        let ext = PerfExt::from_words(record.descriptor().content_ext);
        if record.descriptor().event_type == PerfEvent::SpanNew as u16 {
            let (shard, seqno) = self.begun.get(&ext.span_id).copied().unwrap_or_default();
            record.shard = shard as u32;
            return seqno < first(record.shard).0;
        }
        // If a thread has no cell, nobody knows which losses may be those of the thread.
        let Some(shard) = self.shards.get(&ext.thread_id) else { return false };
        record.shard = *shard;
        // The events of a ring are not quite in the order of their times, and none may count twice.
        record.epoch_nanos().saturating_add(GRACE_NANOS) < first(*shard).1
    }
}
