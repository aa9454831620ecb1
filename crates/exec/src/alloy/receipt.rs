//! Receipts and logs.

use super::error::Subject;
use super::transaction::{start, txn_type};
use super::{ConversionError, address, hash};
use crate::values::{Block, Log, Txn};
use alloy_consensus::{Receipt, ReceiptEnvelope, ReceiptWithBloom, TxType};
use alloy_primitives::{Bloom, Bytes, LogData};
use alloy_rpc_types_eth::TransactionReceipt;

/// The gas of a blob (EIP-4844).
const BLOB_GAS: u64 = 1 << 17;

/// Returns the receipt of a transaction of a block, as nodes tell it to their clients.
///
/// The price of blob gas is left out, because no event says it. The created contract is left out if the transaction
/// failed. The hash of the block is left out unless the block was executed to its end.
///
/// # Errors
/// The transaction's start, its receipt, one of its logs or an earlier receipt is missing (logs may not have been
/// wanted). Or the type is not one of 0 to 4, the price that was paid has more than 128 bits, or a log has more than
/// four topics.
pub fn receipt(block: &Block, txn: &Txn) -> Result<TransactionReceipt, ConversionError> {
    let (subject, start, txn_type) = (Subject::from(txn), start(txn)?, txn_type(txn)?);
    let of_events = txn.receipt.as_ref().ok_or_else(|| subject.error("no TXN_EVM_OUTPUT", "a receipt"))?;
    let cumulative_gas_used = of_events
        .cumulative_gas_used
        .ok_or_else(|| subject.error("no cumulative gas", "the receipts of all earlier transactions"))?;
    let price = of_events.effective_gas_price.ok_or_else(|| subject.error("no price paid", "a price"))?;
    subject.whole("logs", txn.logs.iter().map(|log| log.index), of_events.log_count)?;
    let logs: Vec<_> = txn.logs.iter().map(|entry| log(block, txn, entry)).collect::<Result<_, _>>()?;
    let receipt = Receipt { status: of_events.status.into(), cumulative_gas_used, logs };
    let logs_bloom = Bloom::new(of_events.logs_bloom.0);
    let blobs = start.blob_versioned_hashes.len() as u64;
    Ok(TransactionReceipt {
        inner: ReceiptEnvelope::from_typed(txn_type, ReceiptWithBloom { receipt, logs_bloom }),
        transaction_hash: hash(start.hash),
        transaction_index: Some(txn.index),
        block_hash: block.end().map(|end| hash(end.eth_block_hash)),
        block_number: Some(block.start.eth_block_input.number),
        gas_used: of_events.gas_used,
        effective_gas_price: subject.narrow("the price paid", price)?,
        blob_gas_used: (txn_type == TxType::Eip4844).then(|| blobs.saturating_mul(BLOB_GAS)),
        blob_gas_price: None,
        from: address(start.sender),
        to: (!start.header.is_contract_creation).then(|| address(start.header.to)),
        contract_address: of_events.contract_address.map(address),
    })
}

/// Returns a log of a transaction of a block, as nodes tell it to their clients.
///
/// What no event has said is left out: the hash of the block, the hash of the transaction, or the index in the block.
/// `removed` is false.
///
/// # Errors
/// The log has more than four topics.
pub fn log(block: &Block, txn: &Txn, log: &Log) -> Result<alloy_rpc_types_eth::Log, ConversionError> {
    let topics = log.topics.iter().map(|topic| hash(*topic)).collect();
    let data = LogData::new(topics, Bytes::copy_from_slice(&log.data)).ok_or_else(|| {
        let found = format_args!("{} topics of log {}", log.topics.len(), log.index).to_string();
        Subject::from(txn).error(found, "at most 4")
    })?;
    Ok(alloy_rpc_types_eth::Log {
        inner: alloy_primitives::Log { address: address(log.address), data },
        block_hash: block.end().map(|end| hash(end.eth_block_hash)),
        block_number: Some(block.start.eth_block_input.number),
        block_timestamp: Some(block.start.eth_block_input.timestamp),
        transaction_hash: txn.start.as_ref().map(|start| hash(start.hash)),
        transaction_index: Some(txn.index),
        log_index: log.block_index,
        removed: false,
    })
}
