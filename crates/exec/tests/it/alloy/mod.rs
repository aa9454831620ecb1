//! The conversions into types of alloy.

mod errors;
mod hostile;
mod made;
mod nodes;
mod real;
/// What the gateway tells its clients, to compare.
#[path = "../../../../gateway/src/render.rs"]
mod render;
mod strategies;

use eventring_exec::alloy::alloy_consensus::TxEnvelope;
use eventring_exec::alloy::{self, alloy_rpc_types_eth};
use eventring_exec::{Block, Log, Txn};
use serde_json::{Value, to_value};

/// Returns the hash that alloy computes from the fields and the signature.
fn computed_hash(envelope: &TxEnvelope) -> [u8; 32] {
    let (signature, unsigned) = (*envelope.signature(), envelope.clone().into_typed_transaction());
    TxEnvelope::new_unhashed(unsigned, signature).tx_hash().0
}

/// Asserts that the gateway tells the same of a block.
fn assert_same_header(block: &Block, header: &alloy_rpc_types_eth::Header) {
    assert_eq!(to_value(header).unwrap(), to_value(render::Header::new(block, None)).unwrap());
}

/// Asserts that the gateway tells the same of a log.
fn assert_same_log(block: &Block, txn: &Txn, log: &Log) {
    let of_alloy = alloy::log(block, txn, log).unwrap();
    assert_eq!(to_value(&of_alloy).unwrap(), to_value(render::Log::new(block, txn, log, None, false)).unwrap());
    let removed = alloy_rpc_types_eth::Log { removed: true, ..of_alloy };
    assert_eq!(to_value(&removed).unwrap(), to_value(render::Log::new(block, txn, log, None, true)).unwrap());
}

/// Returns a value that was written as JSON and read.
fn again<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    let json: Value = to_value(value).unwrap();
    serde_json::from_value(json).unwrap()
}
