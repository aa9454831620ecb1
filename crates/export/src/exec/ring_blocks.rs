//! The block of each event of an execution ring.

use eventring::exec::KnownBlocks;
use eventring::tracing::SpanStep;
use eventring_capture::recording::{EntryContent, RecordingEntry, ReplayPart, ReplayParts, ReplayState};
use eventring_capture::{CaptureFile, CapturedRing};

/// The known blocks of each ring of a capture that has execution events: a part of a replay.
pub struct RingBlocks {
    blocks: Vec<Option<KnownBlocks>>,
    /// The number of the block of the last event, if it is known.
    number: Option<u64>,
}

impl RingBlocks {
    pub fn new(capture: &CaptureFile) -> Self {
        let rings = capture.rings().iter().zip(0..);
        let blocks = rings.map(|(ring, index)| ring.is_exec().then(|| capture.known_blocks(index))).collect();
        Self { blocks, number: None }
    }

    /// Asks for the part, if the capture has execution events.
    pub fn follow(capture: &CaptureFile, parts: &mut ReplayParts) {
        if capture.rings().iter().any(CapturedRing::is_exec) {
            parts.ask(|| Self::new(capture));
        }
    }

    /// Returns the number of the block of the event that the replay has come to. Returns `None` if it is not known, or
    /// if the ring has no blocks.
    pub fn last_number(&self) -> Option<u64> {
        self.number
    }
}

impl ReplayPart for RingBlocks {
    fn entry(&mut self, entry: &RecordingEntry<'_>, _: &SpanStep, _: ReplayState<'_>) {
        let EntryContent::Typed { descriptor, payload } = &entry.content else { return };
        let blocks = self.blocks.get_mut(entry.ring as usize).and_then(Option::as_mut);
        self.number = blocks.and_then(|blocks| blocks.block_number_of(descriptor, || *payload));
    }

    fn kept_bytes(&self) -> u64 {
        self.blocks.iter().flatten().map(KnownBlocks::kept_bytes).fold(0, u64::saturating_add)
    }
}
