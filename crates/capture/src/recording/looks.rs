//! Copies of the tables of the present in a capture. A capture may store such a copy, called a *look*, while it runs. A
//! look shows which spans were open at its time, even if the events with which the spans began were lost.

use super::present::{PresentRecord, present_records};
use super::replay::{RecordingReplay, write_error};
use super::{CaptureEntries, RecordingTables, ReplayConsumer};
use crate::error::CaptureError;
use crate::format::block;
use crate::format::columns::PayloadsWanted;
use crate::format::header::{BlockKind, BlockRef};
use crate::read::file::CaptureFile;
use eventring::now::{Presence, Present};
use eventring::schema::perf::{PerfEvent, PerfExt};
use eventring::tracing::{GRACE_NANOS, SpanId, ThreadKey};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::sync::Arc;

/// The estimated bytes that are kept for each byte of an image.
const MADE_BYTES_PER_BYTE: u64 = 8;

/// The looks that the stream has not reached, in the order of time.
#[derive(Default)]
pub(super) struct Looks {
    next: VecDeque<Look>,
    /// The time of the first of them, in nanoseconds since the epoch.
    pub(super) next_nanos: Option<u64>,
}

struct Look {
    /// The index of the recorder's shard 0, that of the recorder, and that of its process.
    recorder: u32,
    index: usize,
    process: usize,
    file: Arc<File>,
    block: BlockRef,
}

impl Looks {
    fn new(next: VecDeque<Look>) -> Self {
        Self { next_nanos: next.front().map(Look::nanos), next }
    }
}

impl Look {
    fn nanos(&self) -> u64 {
        self.block.header.first_nanos
    }

    /// Returns what it has shown; nothing if it is damaged.
    fn present(&self) -> Present {
        let image = block::content(&self.file, &self.block).unwrap_or_default();
        Present::of_image(&image).unwrap_or_default()
    }
}

/// The first event that a capture has of a shard: its seqno and its time. What came before is lost.
type FirstEvents = HashMap<u32, (u64, u64)>;

impl CaptureFile {
    /// Returns the looks at tables of all files, in the order of time. There are none if a part is selected.
    fn looks(&self, tables: &RecordingTables) -> VecDeque<Look> {
        let files = self.all_files().filter(|_| self.choice.is_none());
        let looks = files.flat_map(|file| {
            let blocks = file.blocks.iter().filter(|block| block.header.kind == BlockKind::Present);
            blocks.filter(|block| block.header.ring < file.place.rings).filter_map(|block| {
                let recorder = file.place.first + block.header.ring;
                let origin = tables.rings.origin(recorder);
                let shard = origin.shard.filter(|shard| shard.recorder == recorder)?;
                let (index, process) = (shard.recorder_index, origin.process_index);
                Some(Look { recorder, index, process, file: file.file.clone(), block: *block })
            })
        });
        let mut looks: Vec<Look> = looks.collect();
        looks.sort_by_key(Look::nanos);
        // A file often begins as the one before ends.
        looks.dedup_by_key(|look| (look.recorder, look.nanos()));
        looks.into()
    }

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

    /// Takes the looks that the stream has reached: what they have shown was open then, whatever was lost before.
    #[cold]
    pub(super) fn take_looks(&mut self, until_nanos: u64, to: &mut impl ReplayConsumer) {
        while self.looks.next.front().is_some_and(|look| look.nanos() <= until_nanos)
            && let Some(look) = self.looks.next.pop_front()
        {
            self.see_open(&look, look.nanos(), to);
        }
        self.looks.next_nanos = self.looks.next.front().map(Look::nanos);
    }

    /// Takes the next look at each recorder: what was open then, and had begun when the stream ended, was open at its
    /// end.
    pub fn end_looks(&mut self, to: &mut impl ReplayConsumer) {
        let now_nanos = self.counts.last_nanos;
        let mut known = HashSet::new();
        for look in std::mem::take(&mut self.looks).next {
            if known.insert(look.recorder) {
                self.see_open(&look, now_nanos.min(look.nanos()), to);
            }
        }
    }

    fn see_open(&mut self, look: &Look, nanos: u64, to: &mut impl ReplayConsumer) {
        let Some(replay) = self.replays.get_mut(look.process) else { return };
        let present = look.present();
        for span in &present.spans {
            let inside = match span.presence {
                Presence::Inside(thread_id, since) if since <= nanos => Some(thread_id),
                _ => None,
            };
            let inside = inside.map(|thread_id| ThreadKey { recorder: look.recorder, thread_id });
            SpanId::new(span.id).into_iter().for_each(|id| replay.see_open(id, inside, nanos));
        }
        self.parts.each(|part| part.looked(look.process, &present, nanos));
        to.looked(look.process, &present, nanos);
    }
}

/// What of a look no event of the capture shows.
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
        // Of a thread without a cell, nobody knows which losses may be its.
        let Some(shard) = self.shards.get(&ext.thread_id) else { return false };
        record.shard = *shard;
        // The events of a ring are not quite in the order of their times, and none may count twice.
        record.epoch_nanos().saturating_add(GRACE_NANOS) < first(*shard).1
    }
}
