//! The notifications for clients, and what earlier notifications reported about a block.

use crate::render::Number;
use eventring::schema::exec::BlockTag;
use eventring_exec::{Block, CommitState, Outcome, Problem, Update, json};
use serde::{Serialize, Serializer};
use std::collections::{HashMap, VecDeque};

/// The number of blocks of which it is remembered what was told.
const STANDINGS_MAX: usize = 4096;

/// A notification for clients.
#[derive(Debug)]
pub(crate) enum Notification {
    /// A block has come to another state.
    State(StateChange),
    /// Events are missing.
    Gap(Gap),
}

/// A block that has come to another state, and what was told of it before.
#[derive(Debug)]
pub(crate) struct StateChange {
    pub(crate) update: Update,
    pub(crate) earlier: Standing,
}

/// What was told of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Standing {
    /// As a block of which everything is known.
    pub(crate) whole: Stages,
    /// As a block, whole or not.
    pub(crate) any: Stages,
}

/// The places in the history at which a block was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Stages {
    /// For each state but the last, where the block was first told as having come as far as that.
    first: [Option<u64>; 4],
    pub(crate) last: Option<u64>,
}

impl Stages {
    pub(crate) fn first(&self, stage: CommitState) -> Option<u64> {
        self.first.get(stage as usize).copied().flatten()
    }

    fn learn(&mut self, state: CommitState, place: u64) {
        for first in self.first.iter_mut().take(state as usize + 1) {
            first.get_or_insert(place);
        }
        self.last = Some(place);
    }
}

/// The [`Standing`] of each block of late.
#[derive(Debug, Default)]
pub(crate) struct Standings {
    of_block: HashMap<BlockTag, Standing>,
    in_order: VecDeque<BlockTag>,
}

impl Standings {
    /// Takes what is told at this place. Returns what was told of the block before.
    pub(crate) fn learn(&mut self, update: &Update, place: u64) -> Standing {
        let tag = update.tag;
        let Some(block) = &update.block else { return Standing::default() };
        if !self.of_block.contains_key(&tag) {
            self.in_order.push_back(tag);
            if self.in_order.len() > STANDINGS_MAX
                && let Some(oldest) = self.in_order.pop_front()
            {
                self.of_block.remove(&oldest);
            }
        }
        let standing = self.of_block.entry(tag).or_default();
        let earlier = *standing;
        if update.state != CommitState::Abandoned {
            standing.any.learn(update.state, place);
            if block.is_complete {
                standing.whole.learn(update.state, place);
            }
        }
        earlier
    }
}

/// Returns the gap that is in a block. A block that was rejected is not complete, but that alone is no gap.
pub(crate) fn gap_in(block: &Block) -> Option<Gap> {
    if block.is_complete {
        return None;
    }
    let is_executed = !matches!(block.outcome, Outcome::Rejected { .. } | Outcome::Failed { .. });
    let is_loss = |problem: &&Problem| match problem {
        Problem::Gap { .. } | Problem::Expired { .. } | Problem::RecordError { .. } | Problem::TooLarge { .. } => true,
        problem => is_executed && !problem.is_harmless(),
    };
    let problem = block.problems.iter().find(is_loss)?;
    Some(Gap {
        block_number: Some(Number(block.number())),
        block_id: Some(block.tag().id.to_string()),
        ..Gap::outside(problem)
    })
}

/// Missing events, as clients are told of them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Gap {
    #[serde(flatten, serialize_with = "as_json")]
    problem: Problem,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_number: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_id: Option<String>,
}

fn as_json<S: Serializer>(problem: &Problem, serializer: S) -> Result<S::Ok, S::Error> {
    json::problem(problem).serialize(serializer)
}

impl Gap {
    /// Returns a gap outside of any block.
    pub(crate) fn outside(problem: &Problem) -> Self {
        Self { problem: *problem, block_number: None, block_id: None }
    }
}
