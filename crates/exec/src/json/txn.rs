//! Transactions.

use super::account::{self, AccountJson};
use super::parts::{Bytes, Number, Text};
use crate::names::txn_reject_reason;
use crate::values::{CallFrame, Log, Receipt, Txn, TxnStart};
use eventring::schema::exec::TxnAuthListEntry;
use schemars::JsonSchema;
use serde::Serialize;

/// A transaction of a block.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Transaction")]
pub struct TxnJson<'a> {
    index: Number,
    /// Null, as all that the sender signed, if the event was lost.
    hash: Option<Text<'a>>,
    sender: Option<Text<'a>>,
    /// Null also if a contract is created.
    to: Option<Text<'a>>,
    status: Option<u8>,
    gas_used: Option<Number>,
    #[serde(flatten)]
    receipt: Option<ReceiptJson<'a>>,
    #[serde(flatten)]
    signed: Option<SignedJson<'a>>,
    access_list: Vec<AccessJson<'a>>,
    authorization_list: Vec<AuthorizationJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected: Option<RejectionJson>,
    logs: Vec<LogJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_frames: Option<Vec<FrameJson<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accesses: Option<Vec<AccountJson<'a>>>,
}

/// The outcome of a transaction, if its event is there.
#[derive(Serialize, JsonSchema)]
struct ReceiptJson<'a> {
    /// Null if the receipt of an earlier transaction is missing.
    cumulative_gas_used: Option<Number>,
    effective_gas_price: Option<Number>,
    /// The contract that was created.
    contract_address: Option<Text<'a>>,
    logs_bloom: Text<'a>,
}

/// What the sender signed, if its event is there.
#[derive(Serialize, JsonSchema)]
struct SignedJson<'a> {
    r#type: u8,
    chain_id: Number,
    nonce: Number,
    gas_limit: Number,
    max_fee_per_gas: Number,
    max_priority_fee_per_gas: Number,
    max_fee_per_blob_gas: Number,
    value: Number,
    input: Bytes<'a>,
    y_parity: u8,
    r: String,
    s: String,
    blob_versioned_hashes: Vec<Text<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Access")]
struct AccessJson<'a> {
    address: Text<'a>,
    storage_keys: Vec<Text<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Authorization")]
struct AuthorizationJson<'a> {
    chain_id: Number,
    address: Text<'a>,
    nonce: Number,
    y_parity: u8,
    r: String,
    s: String,
    /// Null if nobody has signed it.
    authority: Option<Text<'a>>,
    is_valid_authority: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Rejection")]
struct RejectionJson {
    reason: u32,
    name: Option<&'static str>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Log")]
struct LogJson<'a> {
    address: Text<'a>,
    topics: Vec<Text<'a>>,
    data: Bytes<'a>,
    /// That among the logs of the transaction.
    index: u32,
    /// That among the logs of the block; null if logs of earlier transactions are missing.
    block_index: Option<Number>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Frame")]
struct FrameJson<'a> {
    index: u32,
    /// 0 for the transaction itself.
    depth: Number,
    opcode: u8,
    caller: Text<'a>,
    call_target: Text<'a>,
    value: Number,
    gas: Number,
    gas_used: Number,
    evmc_status: i32,
    input: Bytes<'a>,
    r#return: Bytes<'a>,
}

impl<'a> TxnJson<'a> {
    pub(super) fn new(txn: &'a Txn) -> Self {
        let start = txn.start.as_ref();
        let called = start.map(|start| &start.header).filter(|header| !header.is_contract_creation);
        let access_list = txn.access_list.iter();
        Self {
            index: txn.index.into(),
            hash: start.map(|start| Text(&start.hash)),
            sender: start.map(|start| Text(&start.sender)),
            to: called.map(|header| Text(&header.to)),
            status: txn.receipt.map(|receipt| receipt.status.into()),
            gas_used: txn.receipt.map(|receipt| receipt.gas_used.into()),
            receipt: txn.receipt.as_ref().map(ReceiptJson::new),
            signed: start.map(SignedJson::new),
            access_list: access_list
                .map(|entry| AccessJson { address: Text(&entry.address), storage_keys: texts(&entry.storage_keys) })
                .collect(),
            authorization_list: txn.authorization_list.iter().map(AuthorizationJson::new).collect(),
            rejected: txn.rejected.map(|reason| RejectionJson { reason, name: txn_reject_reason(reason) }),
            logs: txn.logs.iter().map(LogJson::new).collect(),
            call_frames: txn.call_frames.as_ref().map(|frames| frames.iter().map(FrameJson::new).collect()),
            accesses: txn.accesses.as_deref().map(account::all),
        }
    }
}

impl<'a> ReceiptJson<'a> {
    fn new(receipt: &'a Receipt) -> Self {
        Self {
            cumulative_gas_used: receipt.cumulative_gas_used.map(Number::from),
            effective_gas_price: receipt.effective_gas_price.map(Number::from),
            contract_address: receipt.contract_address.as_ref().map(|address| Text(address)),
            logs_bloom: Text(&receipt.logs_bloom),
        }
    }
}

impl<'a> SignedJson<'a> {
    fn new(start: &'a TxnStart) -> Self {
        let header = &start.header;
        Self {
            r#type: header.txn_type,
            chain_id: header.chain_id.into(),
            nonce: header.nonce.into(),
            gas_limit: header.gas_limit.into(),
            max_fee_per_gas: header.max_fee_per_gas.into(),
            max_priority_fee_per_gas: header.max_priority_fee_per_gas.into(),
            max_fee_per_blob_gas: header.max_fee_per_blob_gas.into(),
            value: header.value.into(),
            input: Bytes(&start.input),
            y_parity: header.y_parity.into(),
            r: format!("{:#x}", header.r),
            s: format!("{:#x}", header.s),
            blob_versioned_hashes: texts(&start.blob_versioned_hashes),
        }
    }
}

impl<'a> AuthorizationJson<'a> {
    fn new(entry: &'a TxnAuthListEntry) -> Self {
        let signed = &entry.entry;
        Self {
            chain_id: signed.chain_id.into(),
            address: Text(&signed.address),
            nonce: signed.nonce.into(),
            y_parity: signed.y_parity.into(),
            r: format!("{:#x}", signed.r),
            s: format!("{:#x}", signed.s),
            authority: entry.is_valid_authority.then_some(Text(&entry.authority)),
            is_valid_authority: entry.is_valid_authority,
        }
    }
}

impl<'a> LogJson<'a> {
    fn new(log: &'a Log) -> Self {
        Self {
            address: Text(&log.address),
            topics: texts(&log.topics),
            data: Bytes(&log.data),
            index: log.index,
            block_index: log.block_index.map(Number::from),
        }
    }
}

impl<'a> FrameJson<'a> {
    fn new(frame: &'a CallFrame) -> Self {
        let call = &frame.call;
        Self {
            index: call.index,
            depth: call.depth.into(),
            opcode: call.opcode,
            caller: Text(&call.caller),
            call_target: Text(&call.call_target),
            value: call.value.into(),
            gas: call.gas.into(),
            gas_used: call.gas_used.into(),
            evmc_status: call.evmc_status,
            input: Bytes(&frame.input),
            r#return: Bytes(&frame.return_value),
        }
    }
}

fn texts<T: std::fmt::Display>(all: &[T]) -> Vec<Text<'_>> {
    all.iter().map(|one| Text(one)).collect()
}
