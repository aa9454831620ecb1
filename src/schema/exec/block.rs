//! Payloads of events about blocks.

use super::bytes::{Address, Bloom256, Bytes8, Bytes32};
use super::u256::U256;
use crate::schema::payload::EventPayload;

/// A proposed block: several can be proposed for one number.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BlockTag {
    /// Identifies the proposal
    pub id: Bytes32,
    /// Number of the block if it becomes final
    pub block_number: u64,
}

/// Public key of the node that proposed a block, compressed.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BlockAuthor {
    /// Parity of the y coordinate
    pub y_parity: u8,
    /// The x coordinate
    pub x: Bytes32,
}

/// The header fields of an Ethereum block that are known before it is executed.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct EthBlockInput {
    /// Hash of the list of ommers
    pub ommers_hash: Bytes32,
    /// Account that receives the fees
    pub beneficiary: Address,
    /// Root of the transaction trie
    pub transactions_root: Bytes32,
    /// Difficulty
    pub difficulty: u64,
    /// Block number
    pub number: u64,
    /// Gas limit of the block
    pub gas_limit: u64,
    /// Seconds since the epoch
    pub timestamp: u64,
    /// Extra data, zeros after its length
    pub extra_data: Bytes32,
    /// Bytes of extra data
    pub extra_data_length: u64,
    /// Randomness of the beacon chain
    pub prev_randao: Bytes32,
    /// Nonce of the header
    pub nonce: Bytes8,
    /// Base fee, wei per gas
    pub base_fee_per_gas: U256,
    /// Root of the withdrawals trie
    pub withdrawals_root: Bytes32,
    /// Transactions in the block
    pub txn_count: u64,
}

/// Block inputs that Ethereum does not have: the state of the base-fee controller.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct MonadBlockInput {
    /// Trend of the base fee
    pub base_fee_trend: U256,
    /// Moment of the base fee
    pub base_fee_moment: U256,
}

/// Payload of BLOCK_START.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BlockStart {
    /// The proposed block
    pub block_tag: BlockTag,
    /// Consensus round in which it was proposed
    pub round: u64,
    /// Consensus epoch in which it was proposed
    pub epoch: u64,
    /// When it was proposed, nanoseconds since the Unix epoch
    pub proposal_epoch_nanos: u128,
    /// The chain
    pub chain_id: U256,
    /// Proposer of the block
    pub author: BlockAuthor,
    /// Hash of the parent block
    pub parent_eth_hash: Bytes32,
    /// Its Ethereum header
    pub eth_block_input: EthBlockInput,
    /// Its other inputs
    pub monad_block_input: MonadBlockInput,
}

/// Payload of BLOCK_REJECT.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BlockReject {
    /// Reason why the block is invalid, as a code of the execution client
    pub reason: u32,
}

/// Payload of BLOCK_END: the header fields that execution computes.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BlockEnd {
    /// Hash of the block
    pub eth_block_hash: Bytes32,
    /// Root of the state trie
    pub state_root: Bytes32,
    /// Root of the receipts trie
    pub receipts_root: Bytes32,
    /// Bloom filter over the block's logs
    pub logs_bloom: Bloom256,
    /// Gas used by the block's transactions
    pub gas_used: u64,
}

/// Payload of BLOCK_QC.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BlockQc {
    /// The proposed block
    pub block_tag: BlockTag,
    /// Consensus round of the certificate
    pub round: u64,
    /// Consensus epoch of the certificate
    pub epoch: u64,
}

/// Payload of BLOCK_FINALIZED: which proposed block.
pub type BlockFinalized = BlockTag;

/// Payload of BLOCK_VERIFIED.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BlockVerified {
    /// Number of the block
    pub block_number: u64,
}
