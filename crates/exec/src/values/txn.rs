//! Transactions.

use super::AccountAccess;
use eventring::schema::exec::{Address, Bloom256, Bytes32, TxnAuthListEntry, TxnCallFrame, TxnHeader, U256};

/// A transaction of a block.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Txn {
    /// The index in the block, from 0.
    pub index: u64,
    /// What the sender signed; `None` if the event was lost.
    pub start: Option<TxnStart>,
    /// The EIP-2930 access list.
    pub access_list: Vec<AccessListEntry>,
    /// The EIP-7702 authorization list.
    pub authorization_list: Vec<TxnAuthListEntry>,
    /// The outcome; `None` if the event was lost, or if the transaction was rejected.
    pub receipt: Option<Receipt>,
    /// The logs, by their index; empty if they were not wanted.
    pub logs: Vec<Log>,
    /// The calls, in pre-order; `None` if they were not wanted.
    pub call_frames: Option<Vec<CallFrame>>,
    /// The accounts that were accessed; `None` if they were not wanted.
    pub accesses: Option<Vec<AccountAccess>>,
    /// When the EVM began with the transaction, in nanoseconds since the epoch, if an event says so.
    pub enter_epoch_nanos: Option<u64>,
    /// When the EVM had done with it, if an event says so.
    pub exit_epoch_nanos: Option<u64>,
    /// Why the transaction is invalid, as a code of the execution client; [`reject_reason`](crate::txn_reject_reason)
    /// has its name.
    pub rejected: Option<u32>,
}

/// The first event of a transaction.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TxnStart {
    /// The hash of the transaction.
    pub hash: Bytes32,
    /// The address of the signer.
    pub sender: Address,
    /// What was signed, without the lists and the data.
    pub header: TxnHeader,
    /// The input data; empty if it was not wanted.
    pub input: Vec<u8>,
    /// The EIP-4844 blob hashes.
    pub blob_versioned_hashes: Vec<Bytes32>,
}

/// An entry of an access list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccessListEntry {
    /// The index in the list.
    pub index: u32,
    /// The account.
    pub address: Address,
    /// Its storage keys.
    pub storage_keys: Vec<Bytes32>,
}

/// The outcome of a transaction.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Receipt {
    /// True if the transaction succeeded.
    pub status: bool,
    /// The gas that this transaction used.
    pub gas_used: u64,
    /// The gas that this transaction and those before it used. Computed; `None` if the receipt of an earlier one is
    /// missing.
    pub cumulative_gas_used: Option<u64>,
    /// The number of logs that the transaction emitted.
    pub log_count: u32,
    /// The number of call frames that were recorded. It may be 0 although there were calls: the node need not trace
    /// them.
    pub call_frame_count: u32,
    /// The bloom filter over the logs. Computed; all zero unless the logs are wanted and here.
    pub logs_bloom: Bloom256,
    /// The price that was paid, wei per gas. Computed from the fees and the base fee; `None` without the start of the
    /// transaction.
    pub effective_gas_price: Option<U256>,
    /// The contract that was created. Computed from sender and nonce.
    pub contract_address: Option<Address>,
}

/// A log that a transaction emitted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Log {
    /// The index among the logs of the transaction.
    pub index: u32,
    /// The index among the logs of the block. Computed; `None` if logs of earlier transactions are missing.
    pub block_index: Option<u64>,
    /// The contract that emitted it.
    pub address: Address,
    /// At most four topics.
    pub topics: Vec<Bytes32>,
    /// The data.
    pub data: Vec<u8>,
}

/// A call that a transaction made.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CallFrame {
    /// The call, without its bytes. `depth` is 0 for the transaction itself.
    pub call: TxnCallFrame,
    /// What was passed.
    pub input: Vec<u8>,
    /// What was returned.
    pub return_value: Vec<u8>,
}
