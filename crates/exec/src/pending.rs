//! Blocks that wait for their next commit states.

use crate::blocks::{BlockUpdate, Blocks};
use crate::commit::{CommitState, Update};
use crate::values::Block;
use eventring::schema::exec::{BlockTag, Bytes32};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The number of blocks that are waited for at most.
const BLOCKS_MAX: usize = 256;
/// The number of blocks that are remembered after they have left: consensus may speak of them for so long.
const TAKEN_MAX: usize = 4096;

/// Blocks of a chain that goes on, which leave as soon as they have come as far as is wanted. Each leaves once; one of
/// which something was missing leaves once more if it is executed again and whole. A block that does not come so far
/// holds up no other one, and is forgotten when 256 later ones wait.
///
/// ```
/// use eventring_exec::{Block, CommitState, PendingBlocks};
/// use std::sync::Arc;
/// let block = Arc::new(Block::default());
/// let mut pending = PendingBlocks::new(Some(CommitState::Finalized));
/// pending.change(block.clone(), CommitState::Proposed);
/// assert!(pending.pop().is_none());
/// pending.change(block, CommitState::Finalized);
/// assert_eq!(pending.pop().map(|(_, state)| state), Some(CommitState::Finalized));
/// ```
#[derive(Debug, Default)]
pub struct PendingBlocks {
    min_stage: Option<CommitState>,
    blocks: VecDeque<(Arc<Block>, CommitState)>,
    /// The ids of the blocks that came last, and whether they were complete.
    taken: VecDeque<(Bytes32, bool)>,
}

impl PendingBlocks {
    /// Makes the list without blocks. Without a state, blocks leave at once.
    #[must_use]
    pub fn new(min_stage: Option<CommitState>) -> Self {
        Self { min_stage, blocks: VecDeque::new(), taken: VecDeque::new() }
    }

    /// Takes a block that has come to a state.
    pub fn change(&mut self, block: Arc<Block>, state: CommitState) {
        let id = block.tag().id;
        if let Some((known, known_state)) = self.blocks.iter_mut().find(|(known, _)| known.tag().id == id) {
            (*known, *known_state) = (block, state);
            return;
        }
        // A block that has left does not come back with its next state.
        if self.taken.iter().any(|(taken, was_complete)| *taken == id && (*was_complete || !block.is_complete)) {
            return;
        }
        self.blocks.push_back((block, state));
        if self.blocks.len() > BLOCKS_MAX {
            self.blocks.pop_front();
        }
    }

    /// Returns a block whose turn it is.
    pub fn pop(&mut self) -> Option<(Arc<Block>, CommitState)> {
        if self.min_stage.is_some() {
            self.blocks.retain(|(_, state)| *state != CommitState::Abandoned);
        }
        let has_come = |(_, state): &(Arc<Block>, CommitState)| self.min_stage.is_none_or(|stage| *state >= stage);
        let at = self.blocks.iter().position(has_come)?;
        let (block, state) = self.blocks.remove(at)?;
        self.taken.push_back((block.tag().id, block.is_complete));
        if self.taken.len() > TAKEN_MAX {
            self.taken.pop_front();
        }
        Some((block, state))
    }
}

/// The last states of the blocks of something that has an end. It is read twice: first the headers, to learn the
/// states, then the blocks. So each block comes once, in the order of execution, with the state to which it came at
/// last.
///
/// ```no_run
/// use eventring_exec::{Blocks, ExecEvents, LastStates, Wanted, stored_events};
/// let read = || -> Result<ExecEvents, Box<dyn std::error::Error>> { Ok(stored_events("archive".as_ref())??) };
/// let mut states = LastStates::from_blocks(Blocks::of_events(read()?, Wanted::HEADERS));
/// for update in Blocks::of_events(read()?, Wanted::ALL) {
///     if let Some((block, state)) = states.take(update) {
///         println!("{} {state}", block.number());
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct LastStates(HashMap<Bytes32, LastState>);

#[derive(Debug)]
struct LastState {
    state: CommitState,
    /// The executions that have not been taken yet.
    executions: u64,
}

impl LastStates {
    /// Reads all news. What is wanted of the blocks does not matter.
    #[must_use]
    pub fn from_blocks(blocks: Blocks) -> Self {
        let mut states = Self::default();
        blocks.for_each(|update| states.learn(&update));
        states
    }

    /// Learns from news of the first reading.
    pub fn learn(&mut self, update: &BlockUpdate) {
        match update {
            BlockUpdate::Changed(update) => self.change(update),
            BlockUpdate::Reexecuted(block) => self.known(block.tag().id).executions += 1,
            BlockUpdate::Problem(_) => {}
        }
    }

    /// Learns that a block has come to another state.
    pub fn change(&mut self, update: &Update) {
        let known = self.known(update.tag.id);
        known.executions += u64::from(update.is_new);
        known.state = update.state;
    }

    /// Returns the last state of a block that was executed.
    #[must_use]
    pub fn of_block(&self, tag: BlockTag) -> CommitState {
        self.0.get(&tag.id).map_or(CommitState::Proposed, |known| known.state)
    }

    /// Returns the number of blocks of which something is known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if nothing is known of any block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn known(&mut self, id: Bytes32) -> &mut LastState {
        self.0.entry(id).or_insert(LastState { state: CommitState::Proposed, executions: 0 })
    }

    /// Takes news of the second reading. Returns the block, if it is told here. An execution of which something is
    /// missing is left out if the block was executed again.
    pub fn take(&mut self, update: BlockUpdate) -> Option<(Arc<Block>, CommitState)> {
        let (block, is_told) = match update {
            BlockUpdate::Changed(update) if update.is_new => (update.block?, true),
            BlockUpdate::Reexecuted(block) => (block, false),
            BlockUpdate::Changed(_) | BlockUpdate::Problem(_) => return None,
        };
        let Some(known) = self.0.get_mut(&block.tag().id) else { return Some((block, CommitState::Proposed)) };
        known.executions = known.executions.saturating_sub(1);
        let state = known.state;
        (is_told && (block.is_complete || known.executions == 0)).then_some((block, state))
    }
}
