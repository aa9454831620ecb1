//! News about blocks, and the event with which reading begins.

use crate::commit::Update;
use crate::problem::Problem;
use crate::values::Block;
use eventring::schema::exec::Bytes32;
use std::sync::Arc;

/// News about blocks.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum BlockUpdate {
    /// A block was executed, or consensus has decided about one.
    Changed(Update),
    /// A block was executed that had been executed before, and of which everything is known: the node was started
    /// again.
    Reexecuted(Arc<Block>),
    /// Something is wrong outside of any block.
    Problem(Problem),
}

/// Where to begin in a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Start {
    /// The oldest event in the ring.
    Oldest,
    /// The block that is executed next.
    Newest,
    /// The last execution of a block with this number.
    Number(u64),
    /// The last execution of the block with this id.
    Id(Bytes32),
    /// After the block with this number, which the caller knows to be final: at the first news of consensus after its
    /// BLOCK_START.
    AfterFinalized(u64),
}

/// The result of [`Blocks::next_timeout`](crate::Blocks::next_timeout).
#[derive(Clone, PartialEq, Debug)]
pub enum NextUpdate {
    /// News.
    Update(BlockUpdate),
    /// Nothing came within the timeout.
    TimedOut,
    /// The ring has ended, or the file: no more news will come.
    Ended,
}
