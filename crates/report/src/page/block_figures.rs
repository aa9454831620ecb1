//! The figures of blocks of execution events.

use super::block_bars::BlockBars;
use eventring_capture::recording::{CaptureRecording, RecordingEntry};
use eventring_exec::{ChainEvent, ChainSummary, Wanted};
use eventring_export::exec::rings::ExecRings;

/// The figures of the blocks of all rings of a capture.
pub(crate) struct BlockFigures {
    rings: ExecRings,
    pub(crate) summary: ChainSummary,
    pub(super) bars: BlockBars,
}

impl BlockFigures {
    pub(super) fn new(recording: &CaptureRecording<'_>) -> Self {
        let mut wanted = Wanted::ALL;
        wanted.input = false;
        let rings = ExecRings::new(recording, wanted);
        Self { rings, summary: ChainSummary::default(), bars: BlockBars::default() }
    }

    pub(super) fn seqnos(&mut self, entry: &RecordingEntry<'_>) {
        self.rings.seqnos(entry);
    }

    pub(super) fn entry(&mut self, entry: &RecordingEntry<'_>) {
        if self.rings.has(entry.ring) {
            self.rings.take(entry);
            self.add_found(entry.ring);
        }
    }

    /// Takes the blocks that are open at the end.
    pub(super) fn end(&mut self) {
        self.rings.end();
        (0..self.rings.len()).for_each(|ring| self.add_found(ring));
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        self.rings.kept_bytes()
    }

    fn add_found(&mut self, ring: u32) {
        while let Some(found) = self.rings.pop(ring) {
            if let ChainEvent::Block(block) = found {
                self.summary.add(&block);
                self.bars.add(&block);
            }
        }
    }
}
