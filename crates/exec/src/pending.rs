//! Blocks whose last states are awaited.

use crate::{Block, CommitState};
use eventring::schema::exec::Bytes32;
use std::collections::VecDeque;
use std::sync::Arc;

/// The number of blocks whose end is waited for at most.
const BLOCKS_MAX: usize = 256;
/// The number of blocks that are remembered after they have left: consensus may speak of them for so long.
const TAKEN_MAX: usize = 4096;

/// Blocks that were executed, in this order, whose last states are awaited. Each leaves once: when it is verified or
/// abandoned, when it has come as far as is wanted, or when 256 later ones have come.
///
/// ```
/// use eventring_exec::{Block, CommitState, PendingBlocks};
/// use std::sync::Arc;
/// let block = Arc::new(Block::default());
/// let mut pending = PendingBlocks::new(None, false);
/// pending.change(block.clone(), CommitState::Proposed);
/// assert!(pending.pop().is_none());
/// pending.change(block, CommitState::Verified);
/// assert_eq!(pending.pop().map(|(_, state)| state), Some(CommitState::Verified));
/// ```
#[derive(Debug, Default)]
pub struct PendingBlocks {
    min_stage: Option<CommitState>,
    is_live: bool,
    blocks: VecDeque<(Arc<Block>, CommitState)>,
    /// The flow tags and ids of the blocks that came last.
    taken: VecDeque<(u64, Bytes32)>,
}

impl PendingBlocks {
    /// Makes the list without blocks. With `min_stage`, blocks that do not come as far are left out. If `is_live`, blocks
    /// leave as soon as they have come so far, or at once; otherwise with their last state.
    #[must_use]
    pub fn new(min_stage: Option<CommitState>, is_live: bool) -> Self {
        Self { min_stage, is_live, blocks: VecDeque::new(), taken: VecDeque::new() }
    }

    /// Takes a block that has come to a state.
    pub fn change(&mut self, block: Arc<Block>, state: CommitState) {
        if let Some((_, known)) = self.blocks.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &block)) {
            *known = state;
            return;
        }
        let key = (block.start_seqno, block.tag().id);
        // A block that has left does not come back with its next state.
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
    pub fn pop(&mut self) -> Option<(Arc<Block>, CommitState)> {
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
            if is_wanted(self.min_stage, state) {
                return Some((block, state));
            }
        }
    }

    /// Returns the blocks that are left at the end.
    pub fn rest(self) -> impl Iterator<Item = (Arc<Block>, CommitState)> {
        let min_stage = self.min_stage;
        self.blocks.into_iter().filter(move |(_, state)| is_wanted(min_stage, *state))
    }
}

fn is_wanted(min_stage: Option<CommitState>, state: CommitState) -> bool {
    min_stage.is_none_or(|stage| state >= stage && state != CommitState::Abandoned)
}
