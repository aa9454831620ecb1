//! The types of a block that is made from execution events.

mod account;
mod txn;

pub use account::{AccountAccess, StorageAccess};
pub use txn::{AccessListEntry, CallFrame, Log, Receipt, Txn, TxnStart};

use crate::problem::Problem;
use eventring::schema::exec::{BlockEnd, BlockStart, BlockTag};

/// A block of transactions that was executed, as far as its events were there.
///
/// Nothing in it is guessed: what no event has said is `None` or missing from a list, and [`Self::problems`] says so.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Block {
    /// What was known before the execution: the payload of BLOCK_START.
    pub start: BlockStart,
    /// How the execution ended.
    pub outcome: Outcome,
    /// The transactions of which there are events, by their index. Of a complete block these are all.
    pub transactions: Vec<Txn>,
    /// The accounts that were accessed before the first transaction; empty if they were not wanted.
    pub prologue: Vec<AccountAccess>,
    /// The accounts that were accessed after the last transaction; empty if they were not wanted.
    pub epilogue: Vec<AccountAccess>,
    /// The seqno of BLOCK_START: the flow tag of the block's events.
    pub start_seqno: u64,
    /// The seqno of the last event that belongs to the block.
    pub end_seqno: u64,
    /// The time of BLOCK_START, in nanoseconds since the epoch.
    pub start_epoch_nanos: u64,
    /// The time of the last event of the block, in nanoseconds since the epoch.
    pub end_epoch_nanos: u64,
    /// When the EVM began with the transactions, if an event says so.
    pub evm_enter_epoch_nanos: Option<u64>,
    /// When the EVM had done with them, if an event says so.
    pub evm_exit_epoch_nanos: Option<u64>,
    /// True if everything that was wanted of the block is here: no event of it is missing, and each list is as long as
    /// the events say.
    pub is_complete: bool,
    /// True if a block with this id has been executed before, for example before the node was started again.
    pub is_reexecution: bool,
    /// What was wrong with the events of the block, in their order. At most [`PROBLEMS_MAX`] are kept.
    pub problems: Vec<Problem>,
}

/// The number of problems that a [`Block`] keeps at most. A block with more is not complete.
pub const PROBLEMS_MAX: usize = 64;

/// How the execution of a block ended.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub enum Outcome {
    /// No event has said so: it was lost, or the next block has begun.
    #[default]
    Unknown,
    /// The block was executed: the payload of BLOCK_END.
    Executed(Box<BlockEnd>),
    /// The block is invalid.
    Rejected {
        /// The code of the execution client; [`reject_reason`](crate::reject_reason) has its name.
        reason: u32,
    },
    /// The execution failed.
    Failed {
        /// The domain of the error's code.
        domain: u64,
        /// The error's code.
        status: i64,
    },
}

impl Block {
    /// Returns what identifies the block among those that were proposed.
    #[must_use]
    pub fn tag(&self) -> BlockTag {
        self.start.block_tag
    }

    /// Returns the number that the block has if it becomes final.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.start.block_tag.block_number
    }

    /// Returns the extra data of the header, without the zeros that fill its field.
    #[must_use]
    pub fn extra_data(&self) -> &[u8] {
        let input = &self.start.eth_block_input;
        &input.extra_data.0[..input.extra_data_length.min(32) as usize]
    }

    /// Returns what came out of the execution; `None` unless the block was executed to its end.
    #[must_use]
    pub fn end(&self) -> Option<&BlockEnd> {
        match &self.outcome {
            Outcome::Executed(end) => Some(end),
            _ => None,
        }
    }
}
