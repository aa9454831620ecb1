//! Transactions.

use super::error::Subject;
use super::{ConversionError, address, hash, wide};
use crate::values::{Block, Txn, TxnStart};
use alloy_consensus::transaction::Recovered;
use alloy_consensus::{
    TxEip1559, TxEip2930, TxEip4844, TxEip4844Variant, TxEip7702, TxEnvelope, TxLegacy, TxType, TypedTransaction,
};
use alloy_primitives::{Address, Bytes, Signature, TxKind};
use alloy_rpc_types_eth::{AccessList, AccessListItem, Authorization, SignedAuthorization};

/// Returns a transaction as its sender signed it, with the hash that the node has computed.
///
/// A transaction of type 0 whose chain is 0 has no chain: it is from before EIP-155.
///
/// # Errors
/// The start of the transaction, its input or a part of a list is missing (it may not have been wanted). Or the type is
/// not one of 0 to 4, a list or a creation does not belong to the type, the chain has more than 64 bits, or a price has
/// more than 128.
pub fn envelope(txn: &Txn) -> Result<TxEnvelope, ConversionError> {
    let start = start(txn)?;
    let header = &start.header;
    let signature = Signature::new(wide(header.r), wide(header.s), header.y_parity);
    Ok(TxEnvelope::new_unchecked(unsigned(txn, start)?, signature, hash(start.hash)))
}

/// Returns a transaction of a block, as nodes tell it to their clients. The sender is the one that the node has
/// computed.
///
/// The hash of the block is left out unless the block was executed to its end, and the price that was paid is left out
/// if the receipt is missing.
///
/// # Errors
/// Those of [`envelope`], or the price that was paid has more than 128 bits.
pub fn transaction(block: &Block, txn: &Txn) -> Result<alloy_rpc_types_eth::Transaction, ConversionError> {
    let price = txn.receipt.and_then(|receipt| receipt.effective_gas_price);
    Ok(alloy_rpc_types_eth::Transaction {
        inner: Recovered::new_unchecked(envelope(txn)?, address(start(txn)?.sender)),
        block_hash: block.end().map(|end| hash(end.eth_block_hash)),
        block_number: Some(block.start.eth_block_input.number),
        transaction_index: Some(txn.index),
        effective_gas_price: price.map(|price| Subject::from(txn).narrow("the price paid", price)).transpose()?,
        block_timestamp: Some(block.start.eth_block_input.timestamp),
    })
}

pub(super) fn start(txn: &Txn) -> Result<&TxnStart, ConversionError> {
    txn.start.as_ref().ok_or_else(|| Subject::from(txn).error("no TXN_HEADER_START", "what the sender signed"))
}

pub(super) fn txn_type(txn: &Txn) -> Result<TxType, ConversionError> {
    let code = start(txn)?.header.txn_type;
    let known = "type 0 (legacy), 1 (EIP-2930), 2 (EIP-1559), 3 (EIP-4844) or 4 (EIP-7702)";
    TxType::try_from(code).map_err(|_| Subject::from(txn).error(format_args!("type {code}"), known))
}

/// Returns what the sender signed.
fn unsigned(txn: &Txn, start: &TxnStart) -> Result<TypedTransaction, ConversionError> {
    let (txn_type, subject, header) = (txn_type(txn)?, Subject::from(txn), &start.header);
    check_lists(txn, start, txn_type)?;
    let chain_id = subject.narrow("the chain", header.chain_id)?;
    let price = subject.narrow("the price", header.max_fee_per_gas)?;
    let tip = || subject.narrow("the tip", header.max_priority_fee_per_gas);
    let (nonce, gas_limit, value) = (header.nonce, header.gas_limit, wide(header.value));
    let input = Bytes::copy_from_slice(&start.input);
    let to = if header.is_contract_creation { TxKind::Create } else { TxKind::Call(address(header.to)) };
    // The newer types cannot create contracts.
    let callee = || -> Result<Address, ConversionError> {
        let error = || subject.error(format_args!("a creation of type {}", header.txn_type), "a call");
        to.into_to().ok_or_else(error)
    };
    Ok(match txn_type {
        TxType::Legacy => {
            let chain_id = (chain_id != 0).then_some(chain_id);
            TxLegacy { chain_id, nonce, gas_price: price, gas_limit, to, value, input }.into()
        }
        TxType::Eip2930 => {
            let access_list = access_list(txn);
            TxEip2930 { chain_id, nonce, gas_price: price, gas_limit, to, value, access_list, input }.into()
        }
        TxType::Eip1559 => TypedTransaction::Eip1559(TxEip1559 {
            chain_id,
            nonce,
            gas_limit,
            max_fee_per_gas: price,
            max_priority_fee_per_gas: tip()?,
            to,
            value,
            access_list: access_list(txn),
            input,
        }),
        TxType::Eip4844 => TypedTransaction::Eip4844(TxEip4844Variant::TxEip4844(TxEip4844 {
            chain_id,
            nonce,
            gas_limit,
            max_fee_per_gas: price,
            max_priority_fee_per_gas: tip()?,
            to: callee()?,
            value,
            access_list: access_list(txn),
            blob_versioned_hashes: start.blob_versioned_hashes.iter().map(|blob| hash(*blob)).collect(),
            max_fee_per_blob_gas: subject.narrow("the price of blobs", header.max_fee_per_blob_gas)?,
            input,
        })),
        TxType::Eip7702 => TypedTransaction::Eip7702(TxEip7702 {
            chain_id,
            nonce,
            gas_limit,
            max_fee_per_gas: price,
            max_priority_fee_per_gas: tip()?,
            to: callee()?,
            value,
            access_list: access_list(txn),
            authorization_list: authorization_list(txn),
            input,
        }),
    })
}

/// Returns an error if a list or the input is not whole, or if a list does not belong to the type.
fn check_lists(txn: &Txn, start: &TxnStart, txn_type: TxType) -> Result<(), ConversionError> {
    let (subject, header) = (Subject::from(txn), &start.header);
    let (bytes, length) = (start.input.len(), header.data_length);
    if bytes != length as usize {
        return Err(subject.error(format_args!("{bytes} bytes of input"), format_args!("{length}")));
    }
    let accesses = txn.access_list.iter().map(|entry| entry.index);
    subject.whole("entries of the access list", accesses, header.access_list_count)?;
    let authorizations = txn.authorization_list.iter().map(|entry| entry.index);
    subject.whole("entries of the authorization list", authorizations, header.auth_list_count)?;
    let (blobs, count) = (start.blob_versioned_hashes.len(), header.blob_versioned_hash_length);
    if blobs != count as usize {
        return Err(subject.error(format_args!("{blobs} blob hashes"), format_args!("{count}")));
    }
    let foreign = [
        ("an access list", txn_type == TxType::Legacy && !txn.access_list.is_empty()),
        ("an authorization list", txn_type != TxType::Eip7702 && !txn.authorization_list.is_empty()),
        ("blob hashes", txn_type != TxType::Eip4844 && !start.blob_versioned_hashes.is_empty()),
    ];
    match foreign.iter().find(|(_, is_there)| *is_there) {
        Some((what, _)) => Err(subject.error(format_args!("{what}"), format_args!("none in type {}", header.txn_type))),
        None => Ok(()),
    }
}

fn access_list(txn: &Txn) -> AccessList {
    let entries = txn.access_list.iter().map(|entry| AccessListItem {
        address: address(entry.address),
        storage_keys: entry.storage_keys.iter().map(|key| hash(*key)).collect(),
    });
    AccessList(entries.collect())
}

fn authorization_list(txn: &Txn) -> Vec<SignedAuthorization> {
    let entries = txn.authorization_list.iter().map(|entry| {
        let signed = &entry.entry;
        let (chain_id, address) = (wide(signed.chain_id), address(signed.address));
        let inner = Authorization { chain_id, address, nonce: signed.nonce };
        SignedAuthorization::new_unchecked(inner, signed.y_parity.into(), wide(signed.r), wide(signed.s))
    });
    entries.collect()
}
