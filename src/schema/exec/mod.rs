//! The published EXEC schema (content type 2): what happens while blocks of transactions are executed.
//!
//! [`ExecEvent`] lists the events; [`ExecPayload::decode`] decodes any payload of them; the structs are in the order of the events.
//! Names, codes, layouts and the schema hash are those of the published schema, so that rings can be exchanged with other
//! implementations. [`flow`] has the meaning of a descriptor's `content_ext`.

mod account;
mod block;
pub mod flow;
mod layout;
mod payload;
mod transaction;
mod view;

pub use self::account::{AccessContext, AccountAccess, AccountAccessListHeader, AccountState, EvmError, StorageAccess};
pub use self::block::{
    BlockAuthor, BlockEnd, BlockFinalized, BlockQc, BlockReject, BlockStart, BlockTag, BlockVerified, EthBlockInput,
    MonadBlockInput,
};
pub use self::payload::ExecPayload;
pub use self::transaction::{
    AuthListEntry, TxnAccessListEntry, TxnAuthListEntry, TxnCallFrame, TxnEvmOutput, TxnHeader, TxnHeaderStart, TxnLog,
    TxnReject,
};
pub use self::view::{TxnAccessListEntryView, TxnCallFrameView, TxnHeaderStartView, TxnLogView};

use super::{Bytes32, EventType};

/// The events of content type EXEC.
///
/// The flow tags that each event carries are said beside it: *block* is [`flow::BLOCK_SEQNO`], *txn* is [`flow::TXN_ID`], *account* is
/// [`flow::ACCOUNT_INDEX`].
#[derive(EventType, Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[event(
    content_type = 2,
    name = "EXEC",
    schema_hash = "8933f907c432c98ac0c8db62f9aa164c0c3f1672f41290e4ea3408df6c6723f3"
)]
#[repr(u16)]
pub enum ExecEvent {
    /// An event that could not be recorded.
    ///
    /// Tags: block, txn of the event it stands for.
    RecordError = 1,
    /// Execution of a proposed block begins.
    ///
    /// Tags: block (its own seqno).
    #[event(payload = BlockStart)]
    BlockStart = 2,
    /// The block is invalid; its execution ends.
    ///
    /// Tags: block.
    #[event(payload = BlockReject)]
    BlockReject = 3,
    /// The EVM begins with the block's transactions.
    ///
    /// Tags: block.
    BlockPerfEvmEnter = 4,
    /// The EVM has done with the block's transactions.
    ///
    /// Tags: block.
    BlockPerfEvmExit = 5,
    /// Execution of the block ends; what came out of it.
    ///
    /// Tags: block.
    #[event(payload = BlockEnd)]
    BlockEnd = 6,
    /// A quorum certificate for a proposed block.
    ///
    /// Tags: none.
    #[event(payload = BlockQc)]
    BlockQc = 7,
    /// A proposed block became final.
    ///
    /// Tags: none.
    #[event(payload = BlockFinalized)]
    BlockFinalized = 8,
    /// The state root of a final block was verified.
    ///
    /// Tags: none.
    #[event(payload = BlockVerified)]
    BlockVerified = 9,
    /// A transaction, with its input data and blob hashes; first of the events that describe it.
    ///
    /// Tags: block, txn.
    #[event(
        payload = TxnHeaderStart,
        trailing(data: u8 * txn_header.data_length, blob_hashes: Bytes32 * txn_header.blob_versioned_hash_length)
    )]
    TxnHeaderStart = 10,
    /// An address of the transaction's access list, with its storage keys.
    ///
    /// Tags: block, txn.
    #[event(payload = TxnAccessListEntry, trailing(storage_keys: Bytes32 * storage_key_count))]
    TxnAccessListEntry = 11,
    /// An entry of the transaction's authorization list.
    ///
    /// Tags: block, txn.
    #[event(payload = TxnAuthListEntry)]
    TxnAuthListEntry = 12,
    /// The transaction has been described.
    ///
    /// Tags: block, txn.
    TxnHeaderEnd = 13,
    /// The transaction is invalid, and with it the block.
    ///
    /// Tags: block, txn.
    #[event(payload = TxnReject)]
    TxnReject = 14,
    /// The EVM begins with the transaction.
    ///
    /// Tags: block, txn.
    TxnPerfEvmEnter = 15,
    /// The EVM has done with the transaction.
    ///
    /// Tags: block, txn.
    TxnPerfEvmExit = 16,
    /// What came out of the transaction; its logs and call frames follow.
    ///
    /// Tags: block, txn.
    #[event(payload = TxnEvmOutput)]
    TxnEvmOutput = 17,
    /// A log that the transaction emitted.
    ///
    /// Tags: block, txn.
    #[event(payload = TxnLog, trailing(topics: Bytes32 * topic_count, data: u8 * data_length))]
    TxnLog = 18,
    /// A call that the transaction made.
    ///
    /// Tags: block, txn.
    #[event(payload = TxnCallFrame, trailing(input: u8 * input_length, return_value: u8 * return_length))]
    TxnCallFrame = 19,
    /// The transaction has been executed.
    ///
    /// Tags: block, txn.
    TxnEnd = 20,
    /// How many accounts were accessed; their accesses follow.
    ///
    /// Tags: block, txn (0 outside a transaction).
    #[event(payload = AccountAccessListHeader)]
    AccountAccessListHeader = 21,
    /// An account that was accessed, before and after.
    ///
    /// Tags: block, txn (0 outside a transaction). Its index is in the payload.
    #[event(payload = AccountAccess)]
    AccountAccess = 22,
    /// A storage slot that was accessed, before and after.
    ///
    /// Tags: block, txn (0 outside a transaction), account.
    #[event(payload = StorageAccess)]
    StorageAccess = 23,
    /// An error of the EVM itself.
    ///
    /// Tags: block, txn.
    #[event(payload = EvmError)]
    EvmError = 24,
}
