//! The published EXEC schema (content type 2): events about the execution of blocks and their transactions.
//!
//! [`ExecEvent`] lists the events, and [`ExecPayload::decode`] decodes their payloads. [`FlowTags`] decodes the
//! extension words of a descriptor. The module [`eventring::exec`](crate::exec) helps to record events.
//!
//! Names, codes, layouts and the schema hash are those of the original C implementation, so that other programs can
//! read the rings.

mod account;
mod block;
mod bytes;
pub(crate) mod flow;
mod transaction;
mod u256;

pub use self::account::{AccessContext, AccountAccess, AccountAccessListHeader, AccountState, EvmError, StorageAccess};
pub use self::block::{
    BlockAuthor, BlockEnd, BlockFinalized, BlockQc, BlockReject, BlockStart, BlockTag, BlockVerified, EthBlockInput,
    MonadBlockInput,
};
pub use self::bytes::{Address, Bloom256, Bytes8, Bytes32, ParseBytesError};
pub use self::flow::FlowTags;
pub use self::transaction::{
    AuthListEntry, TxnAccessListEntry, TxnAuthListEntry, TxnCallFrame, TxnEvmOutput, TxnHeader, TxnHeaderStart, TxnLog,
    TxnReject,
};
pub use self::u256::U256;

use super::payload::EventType;

/// The events of content type EXEC.
///
/// The documentation of each event lists the extension words that the event has; [`FlowTags`] reads them. In every
/// event, word 3 also holds the id of the span in which the event was recorded.
#[derive(EventType, Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[event(
    content_type = 2,
    own_schema,
    name = "EXEC",
    schema_hash = "8933f907c432c98ac0c8db62f9aa164c0c3f1672f41290e4ea3408df6c6723f3",
    ext(0 = block: seqno, 1 = txn: index, 2 = account_index),
    payloads(ExecPayload: Clone, Copy, PartialEq, Eq, Debug)
)]
#[repr(u16)]
pub enum ExecEvent {
    /// An event that could not be recorded.
    ///
    /// Words: block, txn of the event it stands for.
    #[event(carries(block, txn))]
    RecordError = 1,
    /// Execution of a proposed block begins.
    ///
    /// Words: block (its own seqno).
    #[event(carries(), payload = BlockStart)]
    BlockStart = 2,
    /// The block is invalid; its execution ends.
    ///
    /// Words: block.
    #[event(carries(block), payload = BlockReject)]
    BlockReject = 3,
    /// The EVM begins with the block's transactions.
    ///
    /// Words: block.
    #[event(carries(block))]
    BlockPerfEvmEnter = 4,
    /// The EVM has done with the block's transactions.
    ///
    /// Words: block.
    #[event(carries(block))]
    BlockPerfEvmExit = 5,
    /// Execution of the block ends; what came out of it.
    ///
    /// Words: block.
    #[event(carries(block), payload = BlockEnd)]
    BlockEnd = 6,
    /// A quorum certificate for a proposed block.
    ///
    /// Words: none.
    #[event(carries(), payload = BlockQc)]
    BlockQc = 7,
    /// A proposed block became final.
    ///
    /// Words: none.
    #[event(carries(), payload = BlockFinalized)]
    BlockFinalized = 8,
    /// The state root of a final block was verified.
    ///
    /// Words: none.
    #[event(carries(), payload = BlockVerified)]
    BlockVerified = 9,
    /// A transaction, with its input data and blob hashes; first of the events that describe it.
    ///
    /// Words: block, txn.
    #[event(
        carries(block, txn),
        payload = TxnHeaderStart,
        trailing(data: u8 * txn_header.data_length, blob_hashes: Bytes32 * txn_header.blob_versioned_hash_length)
    )]
    TxnHeaderStart = 10,
    /// An address of the transaction's access list, with its storage keys.
    ///
    /// Words: block, txn.
    #[event(carries(block, txn), payload = TxnAccessListEntry, trailing(storage_keys: Bytes32 * storage_key_count))]
    TxnAccessListEntry = 11,
    /// An entry of the transaction's authorization list.
    ///
    /// Words: block, txn.
    #[event(carries(block, txn), payload = TxnAuthListEntry)]
    TxnAuthListEntry = 12,
    /// The transaction has been described.
    ///
    /// Words: block, txn.
    #[event(carries(block, txn))]
    TxnHeaderEnd = 13,
    /// The transaction is invalid, and with it the block.
    ///
    /// Words: block, txn.
    #[event(carries(block, txn), payload = TxnReject)]
    TxnReject = 14,
    /// The EVM begins with the transaction.
    ///
    /// Words: block, txn.
    #[event(carries(block, txn))]
    TxnPerfEvmEnter = 15,
    /// The EVM has done with the transaction.
    ///
    /// Words: block, txn.
    #[event(carries(block, txn))]
    TxnPerfEvmExit = 16,
    /// Outcome of the transaction; its logs and call frames follow.
    ///
    /// Words: block, txn.
    #[event(carries(block, txn), payload = TxnEvmOutput)]
    TxnEvmOutput = 17,
    /// A log that the transaction emitted.
    ///
    /// Words: block, txn.
    #[event(carries(block, txn), payload = TxnLog, trailing(topics: Bytes32 * topic_count, data: u8 * data_length))]
    TxnLog = 18,
    /// A call that the transaction made.
    ///
    /// Words: block, txn.
    #[event(carries(block, txn), payload = TxnCallFrame, trailing(input: u8 * input_length, return_value: u8 * return_length))]
    TxnCallFrame = 19,
    /// The transaction has been executed.
    ///
    /// Words: block, txn.
    #[event(carries(block, txn))]
    TxnEnd = 20,
    /// Number of accounts that were accessed; their accesses follow.
    ///
    /// Words: block, txn (0 outside a transaction).
    #[event(carries(block, txn), payload = AccountAccessListHeader)]
    AccountAccessListHeader = 21,
    /// An account that was accessed, before and after.
    ///
    /// Words: block, txn (0 outside a transaction). The account's index is in the payload, not in a word.
    #[event(carries(block, txn), payload = AccountAccess)]
    AccountAccess = 22,
    /// A storage slot that was accessed, before and after.
    ///
    /// Words: block, txn (0 outside a transaction), account.
    #[event(payload = StorageAccess)]
    StorageAccess = 23,
    /// An error of the EVM itself.
    ///
    /// Words: block, txn.
    #[event(carries(block, txn), payload = EvmError)]
    EvmError = 24,
}
