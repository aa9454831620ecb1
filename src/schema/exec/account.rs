//! Payloads of events about accounts and their storage.

use super::bytes::{Address, Bytes32};
use super::u256::U256;
use crate::schema::fields::field::PayloadField;
use crate::schema::payload::EventPayload;

/// When an account was accessed.
#[derive(PayloadField, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum AccessContext {
    /// Before the block's first transaction.
    #[default]
    BlockPrologue = 0,
    /// In a transaction.
    Transaction = 1,
    /// After the block's last transaction.
    BlockEpilogue = 2,
}

/// Payload of ACCOUNT_ACCESS_LIST_HEADER.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct AccountAccessListHeader {
    /// ACCOUNT_ACCESS events that follow
    pub entry_count: u32,
    /// When the accounts were accessed
    pub access_context: AccessContext,
}

/// An account as it was.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct AccountState {
    /// Nonce
    pub nonce: u64,
    /// Balance, wei
    pub balance: U256,
    /// Hash of the code
    pub code_hash: Bytes32,
}

/// Payload of ACCOUNT_ACCESS.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct AccountAccess {
    /// Index in the access list
    pub index: u32,
    /// The account
    pub address: Address,
    /// When it was accessed
    pub access_context: AccessContext,
    /// True if the account's balance changed
    pub is_balance_modified: bool,
    /// True if the account's nonce changed
    pub is_nonce_modified: bool,
    /// The account before
    pub prestate: AccountState,
    /// Its balance after, wei, if it changed
    pub modified_balance: U256,
    /// Its nonce after, if it changed
    pub modified_nonce: u64,
    /// STORAGE_ACCESS events of its storage that follow
    pub storage_key_count: u32,
    /// STORAGE_ACCESS events of its transient storage that follow
    pub transient_count: u32,
}

/// Payload of STORAGE_ACCESS.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StorageAccess {
    /// The account
    pub address: Address,
    /// Index among the account's storage accesses
    pub index: u32,
    /// When it was accessed
    pub access_context: AccessContext,
    /// True if the value changed
    pub modified: bool,
    /// True for transient storage
    pub transient: bool,
    /// The storage key
    pub key: Bytes32,
    /// The value before
    pub start_value: Bytes32,
    /// The value after
    pub end_value: Bytes32,
}

/// Payload of EVM_ERROR.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct EvmError {
    /// Component whose code this is
    pub domain_id: u64,
    /// Status code of the component
    pub status_code: i64,
}
