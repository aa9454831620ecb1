//! Headers and logs as Ethereum nodes write them: names in camel case, numbers as hex.

use eventring::schema::Hex;
use eventring::schema::exec::Bytes32;
use eventring_exec::{Block, CommitState, Log, Txn};
use serde_json::{Map, Value, json};
use std::fmt::Display;

/// Returns a header. With a state, the block's id and the state stand before it.
pub(crate) fn header(block: &Block, state: Option<CommitState>) -> Value {
    let mut object = before(block, state);
    let (start, input, end) = (&block.start, &block.start.eth_block_input, block.end());
    let mut put = |name: &str, value: Value| _ = object.insert(name.into(), value);
    put("hash", end.map(|end| text(&end.eth_block_hash)).into());
    put("parentHash", text(&start.parent_eth_hash));
    put("sha3Uncles", text(&input.ommers_hash));
    put("miner", text(&input.beneficiary));
    put("stateRoot", end.map(|end| text(&end.state_root)).into());
    put("transactionsRoot", text(&input.transactions_root));
    put("receiptsRoot", end.map(|end| text(&end.receipts_root)).into());
    put("logsBloom", end.map(|end| text(&end.logs_bloom)).into());
    put("difficulty", number(input.difficulty));
    put("number", number(input.number));
    put("gasLimit", number(input.gas_limit));
    put("gasUsed", end.map(|end| number(end.gas_used)).into());
    put("timestamp", number(input.timestamp));
    put("extraData", hex(block.extra_data()));
    put("mixHash", text(&input.prev_randao));
    put("nonce", text(&input.nonce));
    put("baseFeePerGas", format!("{:#x}", input.base_fee_per_gas).into());
    let later = block.later_fields();
    if later.withdrawals {
        put("withdrawalsRoot", text(&input.withdrawals_root));
    }
    if later.blobs {
        put("blobGasUsed", number(0));
        put("excessBlobGas", number(0));
        put("parentBeaconBlockRoot", text(&Bytes32::ZERO));
    }
    if later.requests {
        put("requestsHash", text(&Bytes32::ZERO));
    }
    if !block.is_complete {
        put("complete", false.into());
        put("problems", block.problems.iter().map(eventring_exec::json::problem).collect());
    }
    Value::Object(object)
}

/// Returns a log. With a state, the block's id and the state stand before it.
pub(crate) fn log(block: &Block, txn: &Txn, log: &Log, state: Option<CommitState>, removed: bool) -> Value {
    let mut object = before(block, state);
    let fields = json!({
        "address": text(&log.address), "topics": log.topics.iter().map(text).collect::<Vec<_>>(), "data": hex(&log.data),
        "blockHash": block.end().map(|end| text(&end.eth_block_hash)), "blockNumber": number(block.start.eth_block_input.number),
        "blockTimestamp": number(block.start.eth_block_input.timestamp),
        "transactionHash": txn.start.as_ref().map(|start| text(&start.hash)), "transactionIndex": number(txn.index),
        "logIndex": log.block_index.map(number), "removed": removed,
    });
    if let Value::Object(fields) = fields {
        object.extend(fields);
    }
    Value::Object(object)
}

fn before(block: &Block, state: Option<CommitState>) -> Map<String, Value> {
    let mut object = Map::new();
    if let Some(state) = state {
        let mut name = state.name().to_owned();
        name[..1].make_ascii_uppercase();
        object.insert("blockId".into(), text(&block.tag().id));
        object.insert("commitState".into(), name.into());
    }
    object
}

/// Returns a number as hex.
pub(crate) fn number(number: u64) -> Value {
    format!("{number:#x}").into()
}

fn text(value: &impl Display) -> Value {
    value.to_string().into()
}

fn hex(bytes: &[u8]) -> Value {
    format!("0x{}", Hex(bytes)).into()
}
