//! Payloads of events about transactions.

use super::bytes::{Address, Bytes32};
use super::u256::U256;
use crate::schema::payload::EventPayload;

/// Content of the transaction that the sender signed.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TxnHeader {
    /// EIP-2718 type of the transaction
    pub txn_type: u8,
    /// The chain
    pub chain_id: U256,
    /// Nonce of the sender
    pub nonce: u64,
    /// Gas that may be used
    pub gas_limit: u64,
    /// Most wei per gas
    pub max_fee_per_gas: U256,
    /// Most wei per gas for the beneficiary
    pub max_priority_fee_per_gas: U256,
    /// Wei to transfer
    pub value: U256,
    /// Called account; zeros when a contract is created
    pub to: Address,
    /// True if a contract is created
    pub is_contract_creation: bool,
    /// Signature, r
    pub r: U256,
    /// Signature, s
    pub s: U256,
    /// Signature, parity of y
    pub y_parity: bool,
    /// Most wei per blob gas
    pub max_fee_per_blob_gas: U256,
    /// Bytes of input data
    pub data_length: u32,
    /// Versioned blob hashes
    pub blob_versioned_hash_length: u32,
    /// Entries of the access list
    pub access_list_count: u32,
    /// Entries of the authorization list
    pub auth_list_count: u32,
}

/// Payload of TXN_HEADER_START; followed by the input data and the blob hashes.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TxnHeaderStart {
    /// Hash of the transaction
    pub txn_hash: Bytes32,
    /// Address of the signer
    pub sender: Address,
    /// Signed content
    pub txn_header: TxnHeader,
}

/// Payload of TXN_ACCESS_LIST_ENTRY; followed by the storage keys.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TxnAccessListEntry {
    /// Index in the access list
    pub index: u32,
    /// The account
    pub address: Address,
    /// Storage keys that follow
    pub storage_key_count: u32,
}

/// An EIP-7702 authorization as it was signed.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct AuthListEntry {
    /// The chain; 0 for any
    pub chain_id: U256,
    /// Address of the code that the authority takes
    pub address: Address,
    /// Nonce of the authority
    pub nonce: u64,
    /// Signature, parity of y
    pub y_parity: bool,
    /// Signature, r
    pub r: U256,
    /// Signature, s
    pub s: U256,
}

/// Payload of TXN_AUTH_LIST_ENTRY.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TxnAuthListEntry {
    /// Index in the authorization list
    pub index: u32,
    /// Signed content
    pub entry: AuthListEntry,
    /// Address of the signer
    pub authority: Address,
    /// True if the signature is valid
    pub is_valid_authority: bool,
}

/// Payload of TXN_REJECT.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TxnReject {
    /// Reason why the transaction is invalid, as a code of the execution client
    pub reason: u32,
}

/// Payload of TXN_EVM_OUTPUT: the content of the transaction's receipt.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TxnEvmOutput {
    /// True if the transaction succeeded
    pub status: bool,
    /// TXN_LOG events that follow
    pub log_count: u32,
    /// Gas used
    pub gas_used: u64,
    /// TXN_CALL_FRAME events that follow
    pub call_frame_count: u32,
}

/// Payload of TXN_LOG; followed by the topics and the data.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TxnLog {
    /// Index among the transaction's logs
    pub index: u32,
    /// The contract that emitted it
    pub address: Address,
    /// Topics that follow
    pub topic_count: u8,
    /// Bytes of data that follow
    pub data_length: u32,
}

/// Payload of TXN_CALL_FRAME; followed by the input and the return value.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TxnCallFrame {
    /// Index among the transaction's call frames
    pub index: u32,
    /// Address of the caller
    pub caller: Address,
    /// Address of the called account
    pub call_target: Address,
    /// EVM opcode of the call
    pub opcode: u8,
    /// Wei transferred
    pub value: U256,
    /// Gas the call was given
    pub gas: u64,
    /// Gas it used
    pub gas_used: u64,
    /// Result of the call, as an EVMC status code
    pub evmc_status: i32,
    /// Depth of the call; 0 for the transaction itself
    pub depth: u64,
    /// Bytes of input that follow
    pub input_length: u64,
    /// Bytes of return value that follow
    pub return_length: u64,
}
