//! The commit states of blocks.

use crate::builder::ChainEvent;
use crate::values::Block;
use eventring::schema::exec::{BlockTag, Bytes32};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The default of [`CommitTracker::numbers_max`].
const NUMBERS_MAX: usize = 1024;
/// The number of proposals of one number that are remembered at most.
const PROPOSALS_MAX: usize = 64;

/// How far a proposed block has come. A block may skip states: a node that lags behind consensus records no vote.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommitState {
    /// It has been executed.
    Proposed,
    /// It has a quorum certificate.
    Voted,
    /// It is final.
    Finalized,
    /// It is final, and its state was verified.
    Verified,
    /// Another block of its number became final.
    Abandoned,
}

impl CommitState {
    /// Returns the name in JSON, for example `proposed`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Voted => "voted",
            Self::Finalized => "finalized",
            Self::Verified => "verified",
            Self::Abandoned => "abandoned",
        }
    }
}

impl fmt::Display for CommitState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CommitState {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let all = [Self::Proposed, Self::Voted, Self::Finalized, Self::Verified, Self::Abandoned];
        let found = all.into_iter().find(|state| state.name().eq_ignore_ascii_case(text));
        found.ok_or("expected proposed, voted, finalized, verified or abandoned")
    }
}

/// A block that has come to another state.
#[derive(Clone, PartialEq, Debug)]
pub struct Update {
    /// The block. Its id is zero if only a number was verified of which no final block is known.
    pub tag: BlockTag,
    /// The state that it has now.
    pub state: CommitState,
    /// The block as it was executed; `None` if its execution was not seen, or too long ago.
    pub block: Option<Arc<Block>>,
    /// True if the block is told for the first time: it has just been executed.
    pub is_new: bool,
}

/// Follows blocks from their execution to their end. It does no input or output, and its memory is bounded: it
/// remembers the highest numbers, whatever becomes of them.
///
/// ```
/// use eventring::schema::exec::{BlockTag, Bytes32};
/// use eventring_exec::{Block, CommitState, CommitTracker};
/// use std::sync::Arc;
///
/// let block = |id: u8| {
///     let mut block = Block::default();
///     block.start.block_tag = BlockTag { id: Bytes32([id; 32]), block_number: 7 };
///     Arc::new(block)
/// };
/// let mut tracker = CommitTracker::new();
/// tracker.propose(block(1));
/// tracker.propose(block(2));
/// let updates = tracker.finalize(block(2).tag());
/// let states: Vec<CommitState> = updates.iter().map(|update| update.state).collect();
/// assert_eq!(states, [CommitState::Finalized, CommitState::Abandoned]);
/// assert_eq!(tracker.verify(7)[0].tag, block(2).tag());
/// ```
#[derive(Debug)]
pub struct CommitTracker {
    numbers: BTreeMap<u64, Vec<Proposal>>,
    numbers_max: usize,
    repeated: u64,
}

#[derive(Debug)]
struct Proposal {
    id: Bytes32,
    state: CommitState,
    block: Option<Arc<Block>>,
}

impl Default for CommitTracker {
    fn default() -> Self {
        Self::new()
    }
}

impl CommitTracker {
    /// Makes a tracker that knows no blocks.
    #[must_use]
    pub fn new() -> Self {
        Self { numbers: BTreeMap::new(), numbers_max: NUMBERS_MAX, repeated: 0 }
    }

    /// Sets how many block numbers are remembered; at least 1. Default: 1,024.
    #[must_use]
    pub fn numbers_max(self, numbers_max: usize) -> Self {
        Self { numbers_max: numbers_max.max(1), ..self }
    }

    /// Returns the number of blocks that are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.numbers.values().map(Vec::len).sum()
    }

    /// Returns true if no block is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Returns how often consensus has said what it had said before. That is no error.
    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Returns the state of a block, if it is remembered.
    #[must_use]
    pub fn state(&self, tag: BlockTag) -> Option<CommitState> {
        let proposals = self.numbers.get(&tag.block_number)?;
        proposals.iter().find(|proposal| proposal.id == tag.id).map(|proposal| proposal.state)
    }

    /// Returns a block as it was executed, if it is remembered.
    #[must_use]
    pub fn block(&self, tag: BlockTag) -> Option<&Arc<Block>> {
        let proposals = self.numbers.get(&tag.block_number)?;
        proposals.iter().find(|proposal| proposal.id == tag.id)?.block.as_ref()
    }

    /// Takes what a builder has found. A problem changes nothing.
    pub fn take(&mut self, found: ChainEvent) -> Vec<Update> {
        match found {
            ChainEvent::Block(block) => self.propose(block),
            ChainEvent::Voted(qc) => self.vote(qc.block_tag),
            ChainEvent::Finalized(tag) => self.finalize(tag),
            ChainEvent::Verified(number) => self.verify(number),
            ChainEvent::Problem(_) => Vec::new(),
        }
    }

    /// Takes a block that was executed. If consensus has spoken of it before, its state is what consensus said.
    pub fn propose(&mut self, block: Arc<Block>) -> Vec<Update> {
        let tag = block.tag();
        let proposals = self.proposals(tag.block_number);
        let another_is_final = proposals.iter().any(|other| other.id != tag.id && is_final(other.state));
        let first = if another_is_final { CommitState::Abandoned } else { CommitState::Proposed };
        let proposal = find_or_add(proposals, tag.id, first);
        proposal.block = Some(block.clone());
        vec![Update { tag, state: proposal.state, block: Some(block), is_new: true }]
    }

    /// Takes a quorum certificate for a block.
    pub fn vote(&mut self, tag: BlockTag) -> Vec<Update> {
        let proposals = self.proposals(tag.block_number);
        let proposal = find_or_add(proposals, tag.id, CommitState::Proposed);
        if proposal.state != CommitState::Proposed {
            self.repeated += 1;
            return Vec::new();
        }
        vec![proposal.come_to(tag, CommitState::Voted)]
    }

    /// Takes the news that a block is final. All others of its number are abandoned.
    pub fn finalize(&mut self, tag: BlockTag) -> Vec<Update> {
        let proposals = self.proposals(tag.block_number);
        let proposal = find_or_add(proposals, tag.id, CommitState::Proposed);
        if is_final(proposal.state) {
            self.repeated += 1;
            return Vec::new();
        }
        let mut updates = vec![proposal.come_to(tag, CommitState::Finalized)];
        let others = proposals.iter_mut().filter(|other| other.id != tag.id && other.state != CommitState::Abandoned);
        updates.extend(others.map(|other| other.come_to(BlockTag { id: other.id, ..tag }, CommitState::Abandoned)));
        updates
    }

    /// Takes the news that the state of the final block with this number was verified.
    pub fn verify(&mut self, number: u64) -> Vec<Update> {
        let proposals = self.numbers.get_mut(&number);
        let found = proposals.and_then(|all| all.iter_mut().find(|proposal| is_final(proposal.state)));
        match found {
            Some(proposal) if proposal.state == CommitState::Verified => {
                self.repeated += 1;
                Vec::new()
            }
            Some(proposal) => {
                let tag = BlockTag { id: proposal.id, block_number: number };
                vec![proposal.come_to(tag, CommitState::Verified)]
            }
            None => {
                let tag = BlockTag { id: Bytes32::ZERO, block_number: number };
                vec![Update { tag, state: CommitState::Verified, block: None, is_new: false }]
            }
        }
    }

    fn proposals(&mut self, number: u64) -> &mut Vec<Proposal> {
        if !self.numbers.contains_key(&number) && self.numbers.len() >= self.numbers_max {
            self.numbers.pop_first();
        }
        self.numbers.entry(number).or_default()
    }
}

impl Proposal {
    fn come_to(&mut self, tag: BlockTag, state: CommitState) -> Update {
        self.state = state;
        Update { tag, state, block: self.block.clone(), is_new: false }
    }
}

fn is_final(state: CommitState) -> bool {
    matches!(state, CommitState::Finalized | CommitState::Verified)
}

fn find_or_add(proposals: &mut Vec<Proposal>, id: Bytes32, state: CommitState) -> &mut Proposal {
    let at = proposals.iter().position(|proposal| proposal.id == id).unwrap_or_else(|| {
        if proposals.len() >= PROPOSALS_MAX {
            // The final one is needed longest.
            let at = proposals.iter().position(|proposal| !is_final(proposal.state)).unwrap_or(0);
            proposals.remove(at);
        }
        proposals.push(Proposal { id, state, block: None });
        proposals.len() - 1
    });
    &mut proposals[at]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(id: u8, block_number: u64) -> BlockTag {
        BlockTag { id: Bytes32([id; 32]), block_number }
    }

    fn block(id: u8, number: u64) -> Arc<Block> {
        let mut block = Block::default();
        block.start.block_tag = tag(id, number);
        Arc::new(block)
    }

    fn states(updates: &[Update]) -> Vec<(u8, CommitState, bool)> {
        updates.iter().map(|update| (update.tag.id.0[0], update.state, update.block.is_some())).collect()
    }

    #[test]
    fn states_may_be_skipped_repeated_and_come_before_the_block() {
        use CommitState as S;
        let mut tracker = CommitTracker::new();
        assert_eq!(states(&tracker.propose(block(1, 5))), [(1, S::Proposed, true)]);
        assert_eq!(states(&tracker.finalize(tag(1, 5))), [(1, S::Finalized, true)]);
        // A late vote, and a second end of the same block, change nothing.
        assert_eq!((tracker.vote(tag(1, 5)), tracker.finalize(tag(1, 5)), tracker.repeated()), (vec![], vec![], 2));
        assert_eq!(states(&tracker.verify(5)), [(1, S::Verified, true)]);
        assert_eq!((tracker.verify(5), tracker.finalize(tag(1, 5)), tracker.repeated()), (vec![], vec![], 4));
        // The node lags behind: the block is final before it is executed.
        assert_eq!(states(&tracker.finalize(tag(2, 6))), [(2, S::Finalized, false)]);
        assert_eq!(states(&tracker.propose(block(2, 6))), [(2, S::Finalized, true)]);
        // A fork that comes too late.
        assert_eq!(states(&tracker.propose(block(3, 6))), [(3, S::Abandoned, true)]);
        assert_eq!(states(&tracker.verify(9)), [(0, S::Verified, false)]);
    }

    #[test]
    fn forks_are_abandoned_and_memory_is_bounded() {
        let mut tracker = CommitTracker::new().numbers_max(3);
        for id in 1..=200 {
            tracker.propose(block(id, 5));
        }
        assert_eq!(tracker.finalize(tag(200, 5)).len(), PROPOSALS_MAX);
        for number in 6..100 {
            tracker.propose(block(1, number));
        }
        assert_eq!((tracker.numbers.len(), tracker.state(tag(1, 99))), (3, Some(CommitState::Proposed)));
        assert_eq!(tracker.state(tag(200, 5)), None);
    }
}
