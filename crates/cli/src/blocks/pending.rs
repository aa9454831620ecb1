//! Blocks that were executed and are not shown yet.

use eventring::schema::exec::Bytes32;
use eventring_exec::{Block, CommitState};
use std::collections::VecDeque;
use std::sync::Arc;

/// The number of blocks whose end is waited for at most.
const BLOCKS_MAX: usize = 256;
/// The number of blocks that are remembered after they were shown: consensus may speak of them for so long.
const TAKEN_MAX: usize = 4096;

/// Blocks, in the order of their execution, with their states. A block is shown once.
pub(super) struct Pending {
    min_stage: Option<CommitState>,
    is_live: bool,
    blocks: VecDeque<(Arc<Block>, CommitState)>,
    /// The flow tags and ids of the blocks that came last.
    taken: VecDeque<(u64, Bytes32)>,
}

impl Pending {
    pub(super) fn new(min_stage: Option<CommitState>, is_live: bool) -> Self {
        Self { min_stage, is_live, blocks: VecDeque::new(), taken: VecDeque::new() }
    }

    /// Takes a block that has come to a state.
    pub(super) fn change(&mut self, block: Arc<Block>, state: CommitState) {
        if let Some((_, known)) = self.blocks.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &block)) {
            *known = state;
            return;
        }
        let key = (block.start_seqno, block.tag().id);
        // A block that has been shown already is not shown with its next state.
        if self.taken.iter().rev().any(|taken| *taken == key) {
            return;
        }
        self.taken.push_back(key);
        if self.taken.len() > TAKEN_MAX {
            self.taken.pop_front();
        }
        self.blocks.push_back((block, state));
    }

    /// Returns a block whose turn it is.
    pub(super) fn pop(&mut self) -> Option<(Arc<Block>, CommitState)> {
        loop {
            let (_, state) = self.blocks.front()?;
            let is_settled = matches!(state, CommitState::Verified | CommitState::Abandoned);
            let is_ready = match self.min_stage {
                _ if is_settled || self.blocks.len() > BLOCKS_MAX => true,
                Some(stage) => self.is_live && *state >= stage,
                None => self.is_live,
            };
            if !is_ready {
                return None;
            }
            let (block, state) = self.blocks.pop_front()?;
            if self.wants(state) {
                return Some((block, state));
            }
        }
    }

    /// Returns the blocks that are left at the end.
    pub(super) fn rest(self) -> impl Iterator<Item = (Arc<Block>, CommitState)> {
        let min_stage = self.min_stage;
        self.blocks.into_iter().filter(move |(_, state)| is_wanted(min_stage, *state))
    }

    fn wants(&self, state: CommitState) -> bool {
        is_wanted(self.min_stage, state)
    }
}

fn is_wanted(min_stage: Option<CommitState>, state: CommitState) -> bool {
    min_stage.is_none_or(|stage| state >= stage && state != CommitState::Abandoned)
}
