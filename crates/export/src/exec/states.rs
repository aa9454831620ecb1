//! The commit states of the blocks of a recording at its end.

use crate::exec::rings::ExecRings;
use eventring::schema::exec::BlockTag;
use eventring_capture::recording::{CaptureRecording, RecordingEntry};
use eventring_exec::{CommitState, CommitTracker, LastStates, Wanted};

/// An estimate of the bytes that are kept of a block.
const BLOCK_BYTES: u64 = 128;
/// The same of one that is followed: it is kept with its header.
const FOLLOWED_BYTES: u64 = 2048;

/// The last state of each block, by ring.
#[derive(Default)]
pub(crate) struct ExecStates(Vec<LastStates>);

impl ExecStates {
    /// Returns the last state of a block that was executed.
    pub(crate) fn of(&self, ring: u32, tag: BlockTag) -> CommitState {
        self.0.get(ring as usize).map_or(CommitState::Proposed, |states| states.of_block(tag))
    }
}

/// The pass that finds the states.
pub(crate) struct StatePass {
    rings: ExecRings,
    states: Vec<(CommitTracker, LastStates)>,
}

impl StatePass {
    pub(crate) fn new(recording: &CaptureRecording<'_>) -> Self {
        let rings = ExecRings::new(recording, Wanted::HEADERS);
        Self { states: (0..rings.len()).map(|_| Default::default()).collect(), rings }
    }

    pub(crate) fn event(&mut self, entry: &RecordingEntry<'_>) {
        if !self.rings.has(entry.ring) {
            return;
        }
        self.rings.take(entry);
        let (tracker, states) = &mut self.states[entry.ring as usize];
        while let Some(found) = self.rings.pop(entry.ring) {
            tracker.take(found).iter().for_each(|update| states.change(update));
        }
    }

    pub(crate) fn finish(self) -> ExecStates {
        ExecStates(self.states.into_iter().map(|(_, states)| states).collect())
    }

    pub(crate) fn kept_bytes(&self) -> u64 {
        let of_ring = |(tracker, states): &(CommitTracker, LastStates)| {
            states.len() as u64 * BLOCK_BYTES + tracker.len() as u64 * FOLLOWED_BYTES
        };
        self.states.iter().map(of_ring).sum()
    }
}
