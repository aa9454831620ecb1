//! The blocks to which the events of execution rings belong.

use eventring::exec::KnownBlocks;
use eventring::reader::{Descriptor, PayloadRead};
use eventring_capture::recording::CaptureRecording;

/// The known blocks of each ring. Only rings of execution events have blocks.
pub struct RingBlocks<'r> {
    recording: &'r CaptureRecording<'r>,
    blocks: Vec<KnownBlocks>,
}

impl<'r> RingBlocks<'r> {
    pub fn new(recording: &'r CaptureRecording<'r>) -> Self {
        let rings = 0..recording.capture.rings().len() as u32;
        Self { recording, blocks: rings.map(|ring| recording.capture.known_blocks(ring)).collect() }
    }

    /// Returns the number of the block of an event. Returns `None` if it is not known, or if the ring has no blocks.
    pub fn number_of(&mut self, ring: u32, descriptor: &Descriptor, payload: PayloadRead<'_>) -> Option<u64> {
        if !self.recording.ring(ring).is_exec() {
            return None;
        }
        self.blocks[ring as usize].block_number_of(descriptor, || payload)
    }

    pub fn kept_bytes(&self) -> u64 {
        self.blocks.iter().map(KnownBlocks::kept_bytes).fold(0, u64::saturating_add)
    }
}
