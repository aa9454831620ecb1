//! A block as JSON. Byte strings are hex with `0x`. A number is a JSON number if a double can hold it exactly, and
//! otherwise a decimal text.

mod account;
mod parts;
mod problem;
mod txn;

pub use parts::{Bytes, Text};
pub use problem::ProblemJson;
pub use txn::TxnJson;

use crate::commit::CommitState;
use crate::problem::Problem;
use crate::values::{Block, Outcome};
use account::AccountJson;
use parts::Number;
use schemars::JsonSchema;
use serde::Serialize;

/// A block. Bytes are hex with `0x`; a number is a text if a double does not hold it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Block")]
pub struct BlockJson<'a> {
    number: Number,
    id: Text<'a>,
    hash: Option<Text<'a>>,
    round: Number,
    epoch: Number,
    timestamp: Number,
    gas_used: Option<Number>,
    /// Null if it is not known.
    state: Option<CommitState>,
    /// True if everything that was wanted of the block is here.
    complete: bool,
    reexecution: bool,
    problems: Vec<ProblemJson>,
    outcome: OutcomeWord,
    chain_id: Number,
    parent_hash: Text<'a>,
    ommers_hash: Text<'a>,
    beneficiary: Text<'a>,
    transactions_root: Text<'a>,
    withdrawals_root: Text<'a>,
    difficulty: Number,
    gas_limit: Number,
    extra_data: Bytes<'a>,
    prev_randao: Text<'a>,
    nonce: Text<'a>,
    base_fee_per_gas: Number,
    state_root: Option<Text<'a>>,
    receipts_root: Option<Text<'a>>,
    logs_bloom: Option<Text<'a>>,
    start_seqno: Number,
    end_seqno: Number,
    start_ns: Text<'a>,
    end_ns: Text<'a>,
    txn_count: Number,
    /// The transactions.
    pub transactions: Vec<TxnJson<'a>>,
    /// Accounts that were accessed before the first transaction.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prologue: Vec<AccountJson<'a>>,
    /// Accounts that were accessed after the last transaction.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    epilogue: Vec<AccountJson<'a>>,
}

/// How an execution ended.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Outcome")]
enum OutcomeWord {
    Unknown,
    Executed,
    Rejected,
    Failed,
}

/// Returns a block, and its state if it is known, as JSON.
pub fn block(block: &Block, state: Option<CommitState>) -> BlockJson<'_> {
    let (start, input) = (&block.start, &block.start.eth_block_input);
    let end = block.end();
    BlockJson {
        number: Number::from(block.number()),
        id: Text(&start.block_tag.id),
        hash: end.map(|end| Text(&end.eth_block_hash)),
        round: start.round.into(),
        epoch: start.epoch.into(),
        timestamp: input.timestamp.into(),
        gas_used: end.map(|end| end.gas_used.into()),
        state,
        complete: block.is_complete,
        reexecution: block.is_reexecution,
        problems: block.problems.iter().map(problem).collect(),
        outcome: match block.outcome {
            Outcome::Unknown => OutcomeWord::Unknown,
            Outcome::Executed(_) => OutcomeWord::Executed,
            Outcome::Rejected { .. } => OutcomeWord::Rejected,
            Outcome::Failed { .. } => OutcomeWord::Failed,
        },
        chain_id: start.chain_id.into(),
        parent_hash: Text(&start.parent_eth_hash),
        ommers_hash: Text(&input.ommers_hash),
        beneficiary: Text(&input.beneficiary),
        transactions_root: Text(&input.transactions_root),
        withdrawals_root: Text(&input.withdrawals_root),
        difficulty: input.difficulty.into(),
        gas_limit: input.gas_limit.into(),
        extra_data: Bytes(block.extra_data()),
        prev_randao: Text(&input.prev_randao),
        nonce: Text(&input.nonce),
        base_fee_per_gas: input.base_fee_per_gas.into(),
        state_root: end.map(|end| Text(&end.state_root)),
        receipts_root: end.map(|end| Text(&end.receipts_root)),
        logs_bloom: end.map(|end| Text(&end.logs_bloom)),
        start_seqno: block.start_seqno.into(),
        end_seqno: block.end_seqno.into(),
        start_ns: Text(&block.start_epoch_nanos),
        end_ns: Text(&block.end_epoch_nanos),
        txn_count: input.txn_count.into(),
        transactions: block.transactions.iter().map(TxnJson::new).collect(),
        prologue: account::all(&block.prologue),
        epilogue: account::all(&block.epilogue),
    }
}

/// Returns a problem as JSON: its `kind`, a `text`, and its numbers.
pub fn problem(problem: &Problem) -> ProblemJson {
    ProblemJson::new(problem)
}
