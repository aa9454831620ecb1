//! Thirty real blocks agree with the descriptions of the same blocks that were published with their recording.

use eventring::reader::Reader;
use eventring::schema::exec::Bloom256;
use eventring_exec::{Block, BlockUpdate, Blocks, CommitState, Wanted, json};
use eventring_stress::real_data;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A block, and the last state to which it came.
type LastState = (Arc<Block>, CommitState);

/// The states to which blocks came, by name, and the blocks with their last state, in the order of their execution.
fn read(blocks: Blocks) -> (BTreeMap<&'static str, u64>, Vec<LastState>) {
    let (mut states, mut all) = (BTreeMap::new(), Vec::<LastState>::new());
    for update in blocks {
        let BlockUpdate::Changed(update) = update else { panic!("{update:?}") };
        let Some(block) = update.block else { panic!("nothing is known of {:?}", update.tag) };
        *states.entry(update.state.name()).or_default() += 1;
        match all.iter_mut().find(|(known, _)| known.tag() == block.tag()) {
            Some((_, state)) => *state = update.state,
            None => all.push((block, update.state)),
        }
    }
    (states, all)
}

/// Returns a number of the oracle as our JSON has it.
fn number(value: &Value) -> Value {
    let Some(digits) = value.as_str().and_then(|text| text.strip_prefix("0x")) else { return value.clone() };
    let number = u128::from_str_radix(digits, 16).expect("no number of the recording is larger");
    if number <= 1 << 53 { (number as u64).into() } else { number.to_string().into() }
}

/// Returns a transaction of the oracle as our JSON has it, with what the oracle does not tell taken from `ours`.
fn expected_txn(oracle: &Value, ours: &Value) -> Value {
    let (envelope, receipt) = (&oracle["txn_envelope"], &oracle["receipt"]);
    let mut expected = ours.clone();
    let mut is = |name: &str, value: Value| expected[name] = value;
    is("index", oracle["txn_index"].clone());
    is("sender", oracle["sender"].clone());
    is("gas_used", oracle["txn_gas_used"].clone());
    is("status", receipt["status"].clone());
    is("cumulative_gas_used", receipt["cumulativeGasUsed"].clone());
    for (name, of_oracle) in
        [("hash", "hash"), ("input", "input"), ("to", "to"), ("type", "type"), ("r", "r"), ("s", "s")]
    {
        is(name, envelope[of_oracle].clone());
    }
    for (name, of_oracle) in
        [("gas_limit", "gasLimit"), ("nonce", "nonce"), ("value", "value"), ("chain_id", "chainId")]
    {
        if !envelope[of_oracle].is_null() {
            is(name, number(&envelope[of_oracle]));
        }
    }
    let price = if envelope["gasPrice"].is_null() { "maxFeePerGas" } else { "gasPrice" };
    is("max_fee_per_gas", number(&envelope[price]));
    if !envelope["maxPriorityFeePerGas"].is_null() {
        is("max_priority_fee_per_gas", number(&envelope["maxPriorityFeePerGas"]));
    }
    if let Some(list) = envelope["accessList"].as_array() {
        let entry = |entry: &Value| json!({ "address": entry["address"], "storage_keys": entry["storageKeys"] });
        is("access_list", list.iter().map(entry).collect());
    }
    let logs = (0..).zip(receipt["logs"].as_array().unwrap()).zip(ours["logs"].as_array().unwrap());
    let log = |((index, log), ours): ((u64, &Value), &Value)| {
        json!({
            "address": log["address"], "topics": log["topics"], "data": log["data"], "index": index,
            "block_index": ours["block_index"],
        })
    };
    assert_eq!(receipt["logs"].as_array().unwrap().len(), ours["logs"].as_array().unwrap().len());
    is("logs", logs.map(log).collect());
    expected
}

fn expected_block(oracle: &Value, ours: &Value) -> Value {
    let header = &oracle["eth_header"];
    let mut expected = ours.clone();
    let mut is = |name: &str, value: Value| expected[name] = value;
    is("number", oracle["block_tag"]["block_number"].clone());
    is("id", oracle["block_tag"]["id"].clone());
    is("hash", oracle["eth_block_hash"].clone());
    is("chain_id", oracle["chain_id"].clone());
    let names = [
        ("parent_hash", "parentHash"),
        ("ommers_hash", "sha3Uncles"),
        ("beneficiary", "miner"),
        ("transactions_root", "transactionsRoot"),
        ("difficulty", "difficulty"),
        ("gas_limit", "gasLimit"),
        ("gas_used", "gasUsed"),
        ("timestamp", "timestamp"),
        ("base_fee_per_gas", "baseFeePerGas"),
    ];
    for (name, of_oracle) in names {
        let value = &header[of_oracle];
        let is_hash = value.as_str().is_some_and(|text| text.len() >= 42);
        is(name, if is_hash { value.clone() } else { number(value) });
    }
    let texts = [
        ("extra_data", "extraData"),
        ("prev_randao", "mixHash"),
        ("nonce", "nonce"),
        ("state_root", "stateRoot"),
        ("receipts_root", "receiptsRoot"),
        ("logs_bloom", "logsBloom"),
    ];
    for (name, of_oracle) in texts {
        is(name, header[of_oracle].clone());
    }
    expected
}

#[test]
fn thirty_blocks_and_their_transactions_equal_the_oracle_in_every_field() {
    let (Some(recording), Some(oracle)) =
        (real_data::path("emn-30b-15m.snapshot.zst"), real_data::path("emn-30b-15m.expected.json.zst"))
    else {
        return;
    };
    let oracle = zstd::decode_all(std::fs::File::open(oracle).unwrap()).unwrap();
    let oracle: Vec<Value> = serde_json::from_slice(&oracle).unwrap();
    let executed = oracle.iter().filter_map(|entry| entry.get("Executed"));
    let by_id: BTreeMap<&str, &Value> =
        executed.map(|block| (block["block_tag"]["id"].as_str().unwrap(), block)).collect();

    let (states, blocks) = read(Blocks::of_ring(&Reader::open(recording).unwrap(), Wanted::ALL).unwrap());
    let expected = [("finalized", 30), ("proposed", 30), ("verified", 29), ("voted", 30)];
    assert_eq!(states.into_iter().collect::<Vec<_>>(), expected);
    let last: Vec<CommitState> = blocks.iter().map(|(_, state)| *state).collect();
    assert_eq!(
        (last[..29].iter().all(|state| *state == CommitState::Verified), last[29]),
        (true, CommitState::Finalized)
    );

    let (mut txns, mut logs, mut frames, mut gas) = (0, 0, 0, 0);
    for (block, state) in &blocks {
        assert!(block.is_complete && block.problems.is_empty(), "{:?}", block.problems);
        let expected = by_id[block.tag().id.to_string().as_str()];
        let mut ours = serde_json::to_value(json::block(block, Some(*state))).unwrap();
        let of_block = ours["transactions"].as_array_mut().map(std::mem::take).unwrap();
        assert_eq!(ours, expected_block(expected, &ours));
        let of_oracle = expected["transactions"].as_array().unwrap();
        assert_eq!(of_block.len(), of_oracle.len());
        for (ours, oracle) in of_block.iter().zip(of_oracle) {
            assert_eq!(*ours, expected_txn(oracle, ours));
        }
        // What is computed agrees with what the node has computed.
        let mut bloom = Bloom256::ZERO;
        let mut block_index = 0;
        for txn in &block.transactions {
            let receipt = txn.receipt.unwrap();
            bloom.0.iter_mut().zip(receipt.logs_bloom.0).for_each(|(all, one)| *all |= one);
            for log in &txn.logs {
                assert_eq!(log.block_index, Some(block_index));
                block_index += 1;
            }
            frames += txn.call_frames.as_ref().unwrap().len();
        }
        assert_eq!(bloom, block.end().unwrap().logs_bloom);
        let gas_of_all = block.transactions.last().map_or(Some(0), |txn| txn.receipt?.cumulative_gas_used);
        assert_eq!(gas_of_all, block.end().map(|end| end.gas_used));
        (txns, logs, gas) = (txns + of_block.len(), logs + block_index, gas + block.end().unwrap().gas_used);
    }
    assert_eq!((blocks.len(), txns, logs, frames, gas), (30, 6187, 8299, 21_077, 456_210_323));
}

#[test]
fn what_is_not_wanted_is_not_read_and_not_missed() {
    let Some(recording) = real_data::path("emn-1b-15m.snapshot") else { return };
    let reader = Reader::open(recording).unwrap();
    let read = |wanted| read(Blocks::of_ring(&reader, wanted).unwrap()).1.remove(0).0;
    let (all, txns, headers) = (read(Wanted::ALL), read(Wanted::TRANSACTIONS), read(Wanted::HEADERS));
    assert!([&all, &txns, &headers].iter().all(|block| block.is_complete && block.start == all.start));
    assert_eq!((all.transactions.len(), txns.transactions.len(), headers.transactions.len()), (229, 229, 0));
    let accesses = |block: &Block| block.transactions.iter().filter(|txn| txn.accesses.is_some()).count();
    assert_eq!((accesses(&all), accesses(&txns)), (229, 0));
    assert!(!all.epilogue.is_empty() || !all.prologue.is_empty());
}
