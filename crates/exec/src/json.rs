//! A block as JSON: byte strings as hex with `0x`, numbers as numbers where a double holds them, and otherwise as
//! decimal texts.

use crate::problem::Problem;
use crate::values::{AccountAccess, Block, CallFrame, Log, Outcome, StorageAccess, Txn};
use crate::{CommitState, reject_reason, txn_reject_reason};
use eventring::schema::Hex;
use eventring::schema::exec::U256;
use serde_json::{Map, Value, json};
use std::fmt::Display;

/// The integers up to here are the same as a double.
const EXACT_MAX: u64 = 1 << 53;

/// Returns a block, and its state if it is known, as JSON.
pub fn block(block: &Block, state: Option<CommitState>) -> Value {
    let (start, input) = (&block.start, &block.start.eth_block_input);
    let end = block.end();
    let mut object = json!({
        "number": number(block.number()), "id": text(&block.tag().id), "hash": end.map(|end| text(&end.eth_block_hash)),
        "round": number(start.round), "epoch": number(start.epoch), "timestamp": number(input.timestamp),
        "gas_used": end.map(|end| number(end.gas_used)), "state": state.map(CommitState::name),
        "complete": block.is_complete, "reexecution": block.is_reexecution,
        "problems": block.problems.iter().map(problem).collect::<Vec<_>>(),
        "outcome": outcome(&block.outcome),
        "chain_id": wide(start.chain_id), "parent_hash": text(&start.parent_eth_hash),
        "ommers_hash": text(&input.ommers_hash), "beneficiary": text(&input.beneficiary),
        "transactions_root": text(&input.transactions_root), "withdrawals_root": text(&input.withdrawals_root),
        "difficulty": number(input.difficulty), "gas_limit": number(input.gas_limit), "extra_data": hex(block.extra_data()),
        "prev_randao": text(&input.prev_randao), "nonce": text(&input.nonce),
        "base_fee_per_gas": wide(input.base_fee_per_gas),
        "state_root": end.map(|end| text(&end.state_root)), "receipts_root": end.map(|end| text(&end.receipts_root)),
        "logs_bloom": end.map(|end| text(&end.logs_bloom)),
        "start_seqno": number(block.start_seqno), "end_seqno": number(block.end_seqno),
        "start_ns": number_text(block.start_epoch_nanos), "end_ns": number_text(block.end_epoch_nanos),
        "txn_count": number(input.txn_count),
        "transactions": block.transactions.iter().map(txn).collect::<Vec<_>>(),
    });
    for (name, list) in [("prologue", &block.prologue), ("epilogue", &block.epilogue)] {
        if !list.is_empty() {
            object[name] = list.iter().map(account).collect();
        }
    }
    object
}

fn outcome(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Unknown => "unknown".into(),
        Outcome::Executed(_) => "executed".into(),
        Outcome::Rejected { .. } => "rejected".into(),
        Outcome::Failed { .. } => "failed".into(),
    }
}

/// Returns a problem as JSON: its `kind`, a `text`, and its numbers.
pub fn problem(problem: &Problem) -> Value {
    let fields = match *problem {
        Problem::Gap { first_seqno, count } => vec![("first_seqno", number(first_seqno)), ("count", number(count))],
        Problem::Expired { seqno }
        | Problem::Malformed { seqno }
        | Problem::Duplicate { seqno }
        | Problem::TooLarge { seqno } => vec![("seqno", number(seqno))],
        Problem::OutOfRange { seqno, what, index } => {
            vec![("seqno", number(seqno)), ("what", what.name().into()), ("index", number(index))]
        }
        Problem::Missing { what, txn, expected, found } => vec![
            ("what", what.name().into()),
            ("txn", txn.map(number).into()),
            ("expected", number(expected)),
            ("found", number(found)),
        ],
        Problem::RecordError { seqno, txn, dropped_type } => {
            vec![("seqno", number(seqno)), ("txn", txn.map(number).into()), ("dropped_type", dropped_type.into())]
        }
        Problem::Rejected { txn, reason } => {
            let name = if txn.is_some() { txn_reject_reason(reason) } else { reject_reason(reason) };
            vec![("txn", txn.map(number).into()), ("reason", reason.into()), ("name", name.into())]
        }
        Problem::Failed { txn, domain, status } => {
            vec![("txn", txn.map(number).into()), ("domain", number(domain)), ("status", status.into())]
        }
        Problem::Unfilled { first_number, last_number } => {
            vec![("first_number", number(first_number)), ("last_number", number(last_number))]
        }
        Problem::Reexecuted { earlier_seqno } => vec![("earlier_seqno", number(earlier_seqno))],
        Problem::Unknown { seqno, code } => vec![("seqno", number(seqno)), ("code", code.into())],
        Problem::NoStart { seqno, block_seqno } => {
            vec![("seqno", number(seqno)), ("block_seqno", number(block_seqno))]
        }
    };
    let mut object = json!({ "kind": problem.kind(), "text": problem.to_string() });
    fields.into_iter().for_each(|(name, value)| object[name] = value);
    object
}

fn txn(txn: &Txn) -> Value {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| _ = object.insert(name.into(), value);
    put("index", number(txn.index));
    let header = txn.start.as_ref().map(|start| &start.header);
    let is_creation = header.is_some_and(|header| header.is_contract_creation);
    put("hash", txn.start.as_ref().map(|start| text(&start.hash)).into());
    put("sender", txn.start.as_ref().map(|start| text(&start.sender)).into());
    put("to", header.filter(|_| !is_creation).map(|header| text(&header.to)).into());
    put("status", txn.receipt.map(|receipt| u8::from(receipt.status)).into());
    put("gas_used", txn.receipt.map(|receipt| number(receipt.gas_used)).into());
    if let Some(receipt) = &txn.receipt {
        put("cumulative_gas_used", receipt.cumulative_gas_used.map(number).into());
        put("effective_gas_price", receipt.effective_gas_price.map(wide).into());
        put("contract_address", receipt.contract_address.map(|address| text(&address)).into());
        put("logs_bloom", text(&receipt.logs_bloom));
    }
    if let (Some(start), Some(header)) = (&txn.start, header) {
        put("type", header.txn_type.into());
        put("chain_id", wide(header.chain_id));
        put("nonce", number(header.nonce));
        put("gas_limit", number(header.gas_limit));
        put("max_fee_per_gas", wide(header.max_fee_per_gas));
        put("max_priority_fee_per_gas", wide(header.max_priority_fee_per_gas));
        put("max_fee_per_blob_gas", wide(header.max_fee_per_blob_gas));
        put("value", wide(header.value));
        put("input", hex(&start.input));
        put("y_parity", u8::from(header.y_parity).into());
        put("r", format!("{:#x}", header.r).into());
        put("s", format!("{:#x}", header.s).into());
        put("blob_versioned_hashes", start.blob_versioned_hashes.iter().map(text).collect());
    }
    let access_list = txn.access_list.iter().map(
        |entry| json!({ "address": text(&entry.address), "storage_keys": entry.storage_keys.iter().map(text).collect::<Vec<_>>() }),
    );
    put("access_list", access_list.collect());
    let authorizations = txn.authorization_list.iter().map(|entry| {
        let signed = &entry.entry;
        json!({
            "chain_id": wide(signed.chain_id), "address": text(&signed.address), "nonce": number(signed.nonce),
            "y_parity": u8::from(signed.y_parity), "r": format!("{:#x}", signed.r), "s": format!("{:#x}", signed.s),
            "authority": entry.is_valid_authority.then(|| text(&entry.authority)), "is_valid_authority": entry.is_valid_authority,
        })
    });
    put("authorization_list", authorizations.collect());
    if let Some(reason) = txn.rejected {
        put("rejected", json!({ "reason": reason, "name": txn_reject_reason(reason) }));
    }
    put("logs", txn.logs.iter().map(log).collect());
    if let Some(frames) = &txn.call_frames {
        put("call_frames", frames.iter().map(frame).collect());
    }
    if let Some(accesses) = &txn.accesses {
        put("accesses", accesses.iter().map(account).collect());
    }
    Value::Object(object)
}

fn log(log: &Log) -> Value {
    json!({
        "address": text(&log.address), "topics": log.topics.iter().map(text).collect::<Vec<_>>(), "data": hex(&log.data),
        "index": log.index, "block_index": log.block_index.map(number),
    })
}

fn frame(frame: &CallFrame) -> Value {
    let call = &frame.call;
    json!({
        "index": call.index, "depth": number(call.depth), "opcode": call.opcode, "caller": text(&call.caller),
        "call_target": text(&call.call_target), "value": wide(call.value), "gas": number(call.gas),
        "gas_used": number(call.gas_used), "evmc_status": call.evmc_status, "input": hex(&frame.input),
        "return": hex(&frame.return_value),
    })
}

fn account(access: &AccountAccess) -> Value {
    let account = &access.account;
    let before = &account.prestate;
    json!({
        "index": account.index, "address": text(&account.address), "nonce": number(before.nonce),
        "balance": wide(before.balance), "code_hash": text(&before.code_hash),
        "balance_after": account.is_balance_modified.then(|| wide(account.modified_balance)),
        "nonce_after": account.is_nonce_modified.then(|| number(account.modified_nonce)),
        "storage": access.storage.iter().map(slot).collect::<Vec<_>>(),
        "transient": access.transient.iter().map(slot).collect::<Vec<_>>(),
    })
}

fn slot(slot: &StorageAccess) -> Value {
    json!({
        "index": slot.index, "key": text(&slot.key), "before": text(&slot.start_value),
        "after": slot.modified.then(|| text(&slot.end_value)),
    })
}

fn text(value: &impl Display) -> Value {
    value.to_string().into()
}

fn hex(bytes: &[u8]) -> Value {
    format!("0x{}", Hex(bytes)).into()
}

/// Returns a number, as a text if a double does not hold it.
fn number(number: u64) -> Value {
    if number <= EXACT_MAX { number.into() } else { number_text(number) }
}

fn number_text(number: u64) -> Value {
    number.to_string().into()
}

fn wide(number: U256) -> Value {
    match number.limbs() {
        [low, 0, 0, 0] => self::number(low),
        _ => text(&number),
    }
}
