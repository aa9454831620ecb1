//! Headers and logs as Ethereum nodes write them: names in camel case, numbers as hex.

use eventring::schema::exec::Bytes32;
use eventring_exec::json::{Bytes, ProblemJson, Text, problem};
use eventring_exec::{Block, CommitState, Txn};
use serde::{Serialize, Serializer};

/// A number as hex.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number(pub(crate) u64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

/// What stands before a header or a log of which the state is told.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Before<'a> {
    block_id: Text<'a>,
    commit_state: String,
}

impl<'a> Before<'a> {
    fn new(block: &'a Block, state: CommitState) -> Self {
        let mut commit_state = state.name().to_owned();
        commit_state[..1].make_ascii_uppercase();
        Self { block_id: Text(&block.start.block_tag.id), commit_state }
    }
}

/// A header.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Header<'a> {
    #[serde(flatten)]
    before: Option<Before<'a>>,
    hash: Option<Text<'a>>,
    parent_hash: Text<'a>,
    sha3_uncles: Text<'a>,
    miner: Text<'a>,
    state_root: Option<Text<'a>>,
    transactions_root: Text<'a>,
    receipts_root: Option<Text<'a>>,
    logs_bloom: Option<Text<'a>>,
    difficulty: Number,
    number: Number,
    gas_limit: Number,
    gas_used: Option<Number>,
    timestamp: Number,
    extra_data: Bytes<'a>,
    mix_hash: Text<'a>,
    nonce: Text<'a>,
    base_fee_per_gas: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    withdrawals_root: Option<Text<'a>>,
    #[serde(flatten)]
    blobs: Option<Blobs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests_hash: Option<Text<'a>>,
    #[serde(flatten)]
    incomplete: Option<Incomplete>,
}

/// What a header has of blobs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Blobs {
    blob_gas_used: Number,
    excess_blob_gas: Number,
    parent_beacon_block_root: Text<'static>,
}

#[derive(Serialize)]
struct Incomplete {
    complete: bool,
    problems: Vec<ProblemJson>,
}

impl<'a> Header<'a> {
    /// Returns a header. With a state, the block's id and the state stand before it.
    pub(crate) fn new(block: &'a Block, state: Option<CommitState>) -> Self {
        let (start, input, end) = (&block.start, &block.start.eth_block_input, block.end());
        let later = block.later_fields();
        let zero = Number(0);
        Self {
            before: state.map(|state| Before::new(block, state)),
            hash: end.map(|end| Text(&end.eth_block_hash)),
            parent_hash: Text(&start.parent_eth_hash),
            sha3_uncles: Text(&input.ommers_hash),
            miner: Text(&input.beneficiary),
            state_root: end.map(|end| Text(&end.state_root)),
            transactions_root: Text(&input.transactions_root),
            receipts_root: end.map(|end| Text(&end.receipts_root)),
            logs_bloom: end.map(|end| Text(&end.logs_bloom)),
            difficulty: Number(input.difficulty),
            number: Number(input.number),
            gas_limit: Number(input.gas_limit),
            gas_used: end.map(|end| Number(end.gas_used)),
            timestamp: Number(input.timestamp),
            extra_data: Bytes(block.extra_data()),
            mix_hash: Text(&input.prev_randao),
            nonce: Text(&input.nonce),
            base_fee_per_gas: format!("{:#x}", input.base_fee_per_gas),
            withdrawals_root: later.withdrawals.then_some(Text(&input.withdrawals_root)),
            blobs: later.blobs.then_some(Blobs {
                blob_gas_used: zero,
                excess_blob_gas: zero,
                parent_beacon_block_root: Text(&Bytes32::ZERO),
            }),
            requests_hash: later.requests.then_some(Text(&Bytes32::ZERO)),
            incomplete: (!block.is_complete)
                .then(|| Incomplete { complete: false, problems: block.problems.iter().map(problem).collect() }),
        }
    }
}

/// A log.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Log<'a> {
    #[serde(flatten)]
    before: Option<Before<'a>>,
    address: Text<'a>,
    topics: Vec<Text<'a>>,
    data: Bytes<'a>,
    block_hash: Option<Text<'a>>,
    block_number: Number,
    block_timestamp: Number,
    transaction_hash: Option<Text<'a>>,
    transaction_index: Number,
    log_index: Option<Number>,
    removed: bool,
}

impl<'a> Log<'a> {
    /// Returns a log. With a state, the block's id and the state stand before it.
    pub(crate) fn new(
        block: &'a Block,
        txn: &'a Txn,
        log: &'a eventring_exec::Log,
        state: Option<CommitState>,
        removed: bool,
    ) -> Self {
        let input = &block.start.eth_block_input;
        Self {
            before: state.map(|state| Before::new(block, state)),
            address: Text(&log.address),
            topics: log.topics.iter().map(|topic| Text(topic)).collect(),
            data: Bytes(&log.data),
            block_hash: block.end().map(|end| Text(&end.eth_block_hash)),
            block_number: Number(input.number),
            block_timestamp: Number(input.timestamp),
            transaction_hash: txn.start.as_ref().map(|start| Text(&start.hash)),
            transaction_index: Number(txn.index),
            log_index: log.block_index.map(Number),
            removed,
        }
    }
}
