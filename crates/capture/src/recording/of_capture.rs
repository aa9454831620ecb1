//! The events of a capture, decoded.

use super::entry::{EntryContent, RecordingEntry};
use super::memory_limit::MemoryLimit;
use super::rings::{NewRing, RecordedProgram, RecordedRings, RingOrigin, ShardOrigin};
use super::tables::RecordingTables;
use crate::error::CaptureError;
use crate::format::columns::PayloadsWanted;
use crate::format::ring::{CapturedRing, RingRole};
use crate::read::events::{CaptureEvents, ContentRef, RecordRef};
use crate::read::file::CaptureFile;
use crate::read::file_block::FileBlock;
use crate::read::payloads::{self, PayloadLosses};
use eventring::schema::perf::PerfEvent;
use eventring::tracing::RawRecord;
use std::sync::Arc;

/// A capture, and the schemas of its rings.
pub struct CaptureRecording<'c> {
    /// The capture.
    pub capture: &'c CaptureFile,
    rings: Arc<RecordedRings>,
}

/// The entries of a recording in the order of time. Each entry borrows its payload until the next entry is read.
pub struct CaptureEntries {
    events: CaptureEvents,
    pub(super) tables: RecordingTables,
    /// The counts of lost payloads, by ring.
    payload_losses: Vec<PayloadLosses>,
    memory_limit: MemoryLimit,
}

impl<'c> CaptureRecording<'c> {
    /// Reads the schemas of the rings.
    ///
    /// # Errors
    /// All rings are perf rings with the schema of another version.
    pub fn new(capture: &'c CaptureFile) -> Result<Self, CaptureError> {
        capture.check_schemas(false)?;
        Ok(Self::of_rings(capture))
    }

    fn of_rings(capture: &'c CaptureFile) -> Self {
        let mut processes: Vec<u32> = capture.rings().iter().map(|ring| ring.process).collect();
        processes.sort_unstable();
        processes.dedup();
        let mut rings = RecordedRings::default();
        for process in processes {
            let first = capture.rings().iter().find(|ring| ring.process == process);
            let program = first.map(|ring| RecordedProgram::new(ring.pid, &ring.program_name));
            rings.add_process(process, program.unwrap_or_default());
        }
        for (ring, index) in capture.rings().iter().zip(0..) {
            let has_spans = ring.is_perf() && !ring.has_other_perf_schema();
            let shard = has_spans.then_some(match ring.role {
                RingRole::Shard { recorder, shard } => (recorder, shard),
                RingRole::Single => (index, 0),
            });
            rings.add(&NewRing {
                process: ring.process,
                shard,
                name: &ring.name,
                created_epoch_nanos: ring.created_epoch_nanos,
                content_type: ring.content_type,
                schema_hash: ring.schema_hash,
                schema_text: Some(ring.schema_text.as_str()).filter(|text| !text.is_empty()),
            });
        }
        Self { capture, rings: Arc::new(rings) }
    }

    /// Returns the rings by index, with what is known of each.
    pub fn rings(&self) -> &RecordedRings {
        &self.rings
    }

    /// Returns the numbers of the processes that wrote the rings, in ascending order.
    pub fn processes(&self) -> &[u32] {
        self.rings.processes()
    }

    /// Returns the entries in the order of time.
    pub fn entries(&self) -> CaptureEntries {
        self.entries_of_blocks(PayloadsWanted::All, |_| true)
    }

    /// Returns the entries of the blocks that are needed, with the payloads that are wanted.
    pub(crate) fn entries_of_blocks(
        &self,
        wanted: PayloadsWanted,
        needs: impl Fn(&FileBlock) -> bool,
    ) -> CaptureEntries {
        self.entries_from(self.capture.events_of_known_schemas(wanted, needs))
    }

    fn entries_from(&self, events: CaptureEvents) -> CaptureEntries {
        let payload_losses = self.capture.rings().iter().map(|ring| PayloadLosses::of_ring(&ring.name)).collect();
        let catalogs = self.rings.recorders().iter().map(|recorder| self.capture.catalog(*recorder)).collect();
        CaptureEntries {
            events,
            tables: RecordingTables { rings: self.rings.clone(), catalogs },
            payload_losses,
            memory_limit: MemoryLimit::new(self.capture.file_bytes()),
        }
    }

    /// Returns the ring with this index.
    pub fn ring(&self, ring: u32) -> &CapturedRing {
        &self.capture.rings()[ring as usize]
    }
}

impl CaptureEntries {
    /// Returns the entries of all rings in the order of time. The events of a perf ring with the schema of another
    /// version come as typed events.
    pub fn of_all_rings(capture: &CaptureFile) -> Self {
        CaptureRecording::of_rings(capture).entries_from(capture.events())
    }

    /// Returns what is known of the rings so far.
    pub fn tables(&self) -> &RecordingTables {
        &self.tables
    }

    /// Returns what is known of the rings in the end.
    pub fn into_tables(self) -> RecordingTables {
        self.tables
    }

    /// Returns the problems that were found so far.
    pub fn problems(&self) -> &[String] {
        self.events.problems()
    }

    /// Returns the counts of lost payloads so far, only for rings that have lost any. Events that could not be tested,
    /// because the payload was lost, are among them.
    pub fn payload_losses(&self) -> Vec<PayloadLosses> {
        let all = self.payload_losses.iter().zip(self.events.untested());
        all.map(|(shown, untested)| shown.plus(untested)).filter(|losses| losses.count() > 0).collect()
    }

    /// Returns how many events could not be tested so far, because their payload was lost.
    pub fn untested(&self) -> u64 {
        payloads::count(self.events.untested())
    }

    /// Checks the memory that is kept for the entries so far. `more_bytes` is the size of everything that the caller
    /// keeps.
    ///
    /// # Errors
    /// The size exceeds the limit of the capture.
    pub fn check_kept(&self, more_bytes: u64) -> Result<(), CaptureError> {
        self.memory_limit.check(more_bytes)
    }

    /// Returns the next entry.
    pub fn next_entry(&mut self) -> Option<RecordingEntry<'_>> {
        let RecordRef { ring, content, gap_until_nanos } = self.events.next_ref()?;
        let Self { tables, payload_losses, memory_limit, .. } = self;
        let RingOrigin { process, process_index, shard } = tables.rings.origin(ring);
        let content = match content {
            ContentRef::Gap(gap) => EntryContent::Gap(gap),
            ContentRef::Event { descriptor, payload, is_omitted } => {
                payload_losses[ring as usize].add(payload, is_omitted);
                match shard {
                    Some(ShardOrigin { recorder, shard, recorder_index }) => {
                        let record = RawRecord::new(&mut tables.catalogs[recorder_index], shard, descriptor, payload);
                        if let Some(PerfEvent::CallSite | PerfEvent::ThreadStarted) = record.event {
                            memory_limit.learn(payload.valid().map_or(0, <[u8]>::len));
                        }
                        EntryContent::Perf { recorder, record, catalog: &tables.catalogs[recorder_index] }
                    }
                    None => EntryContent::Typed { descriptor, payload },
                }
            }
        };
        Some(RecordingEntry { tables, ring, process, process_index, content, gap_until_nanos })
    }
}
