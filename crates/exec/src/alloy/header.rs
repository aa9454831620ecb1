//! The header of a block.

use super::error::Subject;
use super::{ConversionError, address, hash};
use crate::values::Block;
use alloy_primitives::{B64, B256, Bloom, Bytes, U256};
use eventring::schema::exec::BlockEnd;

/// Returns the header that the hash of a block is made of.
///
/// [`LaterFields`](crate::LaterFields) are in it if the hash proves them, so its `hash_slow` is the block's hash.
///
/// # Errors
/// The block was not executed to its end, or the base fee has more than 64 bits.
pub fn consensus_header(block: &Block) -> Result<alloy_consensus::Header, ConversionError> {
    said(block, end(block)?)
}

/// Returns the header of a block, as nodes tell it to their clients. The total difficulty and the size are left out.
///
/// # Errors
/// Those of [`consensus_header`].
pub fn header(block: &Block) -> Result<alloy_rpc_types_eth::Header, ConversionError> {
    let inner = consensus_header(block)?;
    let hash = hash(end(block)?.eth_block_hash);
    Ok(alloy_rpc_types_eth::Header { hash, inner, total_difficulty: None, size: None })
}

fn end(block: &Block) -> Result<&BlockEnd, ConversionError> {
    block.end().ok_or_else(|| Subject::from(block).error("no BLOCK_END", "a block that was executed to its end"))
}

/// Returns what the events say.
fn said(block: &Block, end: &BlockEnd) -> Result<alloy_consensus::Header, ConversionError> {
    let (input, later) = (&block.start.eth_block_input, block.later_fields());
    Ok(alloy_consensus::Header {
        parent_hash: hash(block.start.parent_eth_hash),
        ommers_hash: hash(input.ommers_hash),
        beneficiary: address(input.beneficiary),
        state_root: hash(end.state_root),
        transactions_root: hash(input.transactions_root),
        receipts_root: hash(end.receipts_root),
        logs_bloom: Bloom::new(end.logs_bloom.0),
        difficulty: U256::from(input.difficulty),
        number: input.number,
        gas_limit: input.gas_limit,
        gas_used: end.gas_used,
        timestamp: input.timestamp,
        extra_data: Bytes::copy_from_slice(block.extra_data()),
        mix_hash: hash(input.prev_randao),
        nonce: B64::new(input.nonce.0),
        base_fee_per_gas: Some(Subject::from(block).narrow("the base fee", input.base_fee_per_gas)?),
        withdrawals_root: later.withdrawals.then(|| hash(input.withdrawals_root)),
        blob_gas_used: later.blobs.then_some(0),
        excess_blob_gas: later.blobs.then_some(0),
        parent_beacon_block_root: later.blobs.then_some(B256::ZERO),
        requests_hash: later.requests.then_some(B256::ZERO),
        ..Default::default()
    })
}
