//! The open blocks of all rings, and the rows that earlier blocks have used.

use super::collected::Collected;
use crate::exec::rings::ExecRings;
use crate::slices::track_rows::TrackRows;
use eventring::exec::KnownBlocks;
use eventring_capture::recording::{CaptureRecording, RecordingEntry};
use eventring_exec::Wanted;

/// The blocks of all rings of execution events.
pub(in crate::trace_builder) struct Chains {
    pub(super) rings: ExecRings,
    /// The chain of each ring. Only those that `rings` has are used.
    pub(super) chains: Vec<Chain>,
}

/// The blocks of one ring. One block is open at a time, and is drawn when it is over.
#[derive(Default)]
pub(super) struct Chain {
    pub(super) open: Option<Collected>,
    /// A block whose BLOCK_START was not read.
    pub(super) without_start: Option<Collected>,
    /// The flow tag of the block that was over last.
    pub(super) over_tag: u64,
    /// The blocks that the capture knows beside its events.
    pub(super) known: KnownBlocks,
    pub(super) block_rows: TrackRows,
    pub(super) txn_rows: TrackRows,
}

impl Chains {
    pub(in crate::trace_builder) fn new(recording: &CaptureRecording<'_>) -> Self {
        let mut wanted = Wanted::ALL;
        // Accesses are counted, and not drawn one by one.
        (wanted.input, wanted.accesses) = (false, false);
        let chain = |ring| Chain { known: recording.capture.known_blocks(ring), ..Chain::default() };
        let chains = (0..recording.capture.rings().len() as u32).map(chain).collect();
        Self { rings: ExecRings::new(recording, wanted), chains }
    }

    pub(in crate::trace_builder) fn has(&self, ring: u32) -> bool {
        self.rings.has(ring)
    }

    /// Returns the number of rings that have blocks.
    pub(in crate::trace_builder) fn count(&self) -> usize {
        self.rings.count()
    }

    /// Takes seqnos that never had an event.
    pub(in crate::trace_builder) fn seqnos(&mut self, entry: &RecordingEntry<'_>) {
        self.rings.seqnos(entry);
    }

    /// Takes a loss. The open block says so when it is drawn; others are drawn as losses of the ring.
    pub(in crate::trace_builder) fn gap(&mut self, entry: &RecordingEntry<'_>) {
        self.rings.take(entry);
        while self.rings.pop(entry.ring).is_some() {}
    }

    pub(in crate::trace_builder) fn kept_bytes(&self) -> u64 {
        let of_chain = |chain: &Chain| {
            let blocks = chain.open.iter().chain(&chain.without_start).map(|block| block.bytes);
            let rows = chain.block_rows.kept_bytes() + chain.txn_rows.kept_bytes();
            blocks.fold(rows, u64::saturating_add)
        };
        self.chains.iter().map(of_chain).fold(self.rings.kept_bytes(), u64::saturating_add)
    }
}
