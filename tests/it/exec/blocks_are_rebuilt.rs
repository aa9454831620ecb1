//! Thirty real blocks are rebuilt from a published recording of their events. They agree with the descriptions of the
//! same blocks that were published with the recording.

use eventring::reader::{Next, PayloadRead, Reader, Seek};
use eventring_stress::real_data;

use eventring::schema::exec::{Address, Bytes32, FlowTags, U256};
use eventring::schema::exec::{BlockEnd, BlockStart, ExecEvent, ExecPayload, TxnEvmOutput, TxnHeaderStart};
use serde_json::Value;
use std::collections::BTreeMap;

/// A block, rebuilt from its events.
struct Block {
    start: BlockStart,
    end: Option<BlockEnd>,
    transactions: BTreeMap<u64, Transaction>,
}

#[derive(Default)]
struct Transaction {
    start: Option<(TxnHeaderStart, Vec<u8>)>,
    output: Option<TxnEvmOutput>,
    /// Logs by index.
    logs: BTreeMap<u32, Log>,
    call_frames: u32,
}

struct Log {
    address: Address,
    topics: Vec<Bytes32>,
    data: Vec<u8>,
}

/// Reads all events of a ring and rebuilds its blocks. The key of each block is the seqno of its BLOCK_START event.
fn rebuild(reader: &Reader) -> BTreeMap<u64, Block> {
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Oldest);
    let mut blocks: BTreeMap<u64, Block> = BTreeMap::new();
    let mut buffer = Vec::new();
    while let Next::Event(event) = cursor.next() {
        let PayloadRead::Valid(payload) = cursor.payload(&event, &mut buffer) else { panic!("{event:?}") };
        let payload = ExecPayload::decode(event.event_type, payload).unwrap();
        let tags = FlowTags::from_ext(event.content_ext);
        if let ExecPayload::BlockStart(start) = payload {
            assert_eq!(tags.block_seqno, event.seqno);
            blocks.insert(event.seqno, Block { start, end: None, transactions: BTreeMap::new() });
            continue;
        }
        let Some(block) = blocks.get_mut(&tags.block_seqno) else {
            // This event names no BLOCK_START. Only consensus events may do so, because they are about a block as a
            // whole. The test skips them.
            assert!(matches!(
                payload,
                ExecPayload::BlockQc(_) | ExecPayload::BlockFinalized(_) | ExecPayload::BlockVerified(_)
            ));
            continue;
        };
        if let ExecPayload::BlockEnd(end) = payload {
            assert!(block.end.replace(end).is_none());
        }
        let Some(index) = tags.txn_index else { continue };
        let transaction = block.transactions.entry(index).or_default();
        match payload {
            ExecPayload::TxnHeaderStart(view) => transaction.start = Some((view.fixed, view.data.as_bytes().to_vec())),
            ExecPayload::TxnEvmOutput(output) => transaction.output = Some(output),
            ExecPayload::TxnLog(view) => {
                let topics = view.topics.to_vec().unwrap();
                let log = Log { address: view.fixed.address, topics, data: view.data.as_bytes().to_vec() };
                assert!(transaction.logs.insert(view.fixed.index, log).is_none());
            }
            ExecPayload::TxnCallFrame(_) => transaction.call_frames += 1,
            _ => {}
        }
    }
    assert_eq!(cursor.read_count(), reader.info().last_seqno);
    blocks
}

fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{digits}")
}

fn quantity(number: U256) -> String {
    format!("{number:#x}")
}

fn assert_header(block: &Block, expected: &Value) {
    let (start, end) = (&block.start, block.end.as_ref().unwrap());
    let input = &start.eth_block_input;
    assert_eq!(end.eth_block_hash.to_string(), expected["eth_block_hash"]);
    let header = &expected["eth_header"];
    let text = |name: &str| header[name].as_str().unwrap();
    let number = |name: &str| header[name].as_u64().unwrap();
    assert_eq!(
        (input.number, input.gas_limit, end.gas_used),
        (number("number"), number("gasLimit"), number("gasUsed"))
    );
    assert_eq!((input.timestamp, end.logs_bloom.to_string()), (number("timestamp"), text("logsBloom").to_owned()));
    assert_eq!(
        (end.state_root.to_string(), end.receipts_root.to_string()),
        (text("stateRoot").into(), text("receiptsRoot").into())
    );
    assert_eq!(
        (start.parent_eth_hash.to_string(), input.beneficiary.to_string()),
        (text("parentHash").into(), text("miner").into())
    );
    assert_eq!(input.transactions_root.to_string(), text("transactionsRoot"));
    assert_eq!(
        (input.prev_randao.to_string(), input.nonce.to_string()),
        (text("mixHash").into(), text("nonce").into())
    );
    assert_eq!(quantity(input.base_fee_per_gas), text("baseFeePerGas"));
    assert_eq!(quantity(input.difficulty.into()), text("difficulty"));
    assert_eq!(hex(&input.extra_data.0[..input.extra_data_length as usize]), text("extraData"));
    assert_eq!(
        (start.chain_id, input.txn_count),
        (expected["chain_id"].as_u64().unwrap().into(), block.transactions.len() as u64)
    );
}

/// Compares a rebuilt transaction with its published description. Returns the gas that the transaction used.
fn assert_transaction(transaction: &Transaction, index: u64, gas_before: u64, expected: &Value) -> u64 {
    let (start, data) = transaction.start.as_ref().unwrap();
    let output = transaction.output.as_ref().unwrap();
    assert_eq!(expected["txn_index"], index);
    assert_eq!(start.sender.to_string(), expected["sender"]);
    let envelope = &expected["txn_envelope"];
    assert_eq!(start.txn_hash.to_string(), envelope["hash"]);
    let header = &start.txn_header;
    assert_eq!((&envelope["nonce"], &envelope["gasLimit"]), (&header.nonce.into(), &header.gas_limit.into()));
    assert_eq!((&envelope["type"], &envelope["input"]), (&header.txn_type.into(), &hex(data).into()));
    assert_eq!(
        (quantity(header.value), quantity(header.r)),
        (envelope["value"].as_str().unwrap().into(), envelope["r"].as_str().unwrap().into())
    );
    match envelope["to"].as_str() {
        Some(to) => assert_eq!((header.to.to_string().as_str(), header.is_contract_creation), (to, false)),
        None => assert!(header.is_contract_creation),
    }
    let receipt = &expected["receipt"];
    assert_eq!((receipt["status"] == 1, &expected["txn_gas_used"]), (output.status, &output.gas_used.into()));
    assert_eq!(receipt["cumulativeGasUsed"], gas_before + output.gas_used);
    let logs = receipt["logs"].as_array().unwrap();
    assert_eq!((transaction.logs.len(), output.log_count as usize), (logs.len(), logs.len()));
    assert_eq!(transaction.call_frames, output.call_frame_count);
    for ((at, (log_index, log)), expected) in transaction.logs.iter().enumerate().zip(logs) {
        assert_eq!(*log_index as usize, at);
        assert_eq!(
            (log.address.to_string(), hex(&log.data)),
            (expected["address"].as_str().unwrap().into(), expected["data"].as_str().unwrap().into())
        );
        let topics: Vec<Value> = log.topics.iter().map(|topic| topic.to_string().into()).collect();
        assert_eq!(expected["topics"], Value::from(topics));
    }
    output.gas_used
}

#[test]
fn thirty_blocks_agree_with_the_oracle_in_every_hash_receipt_and_log() {
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

    let blocks = rebuild(&Reader::open_typed::<ExecEvent>(recording).unwrap());
    assert_eq!(blocks.len(), 30);
    let (mut transactions, mut logs) = (0, 0);
    for block in blocks.values() {
        let expected = by_id[block.start.block_tag.id.to_string().as_str()];
        assert_eq!(expected["block_tag"]["block_number"], block.start.block_tag.block_number);
        assert_header(block, expected);
        let of_block = expected["transactions"].as_array().unwrap();
        assert_eq!(block.transactions.len(), of_block.len());
        let mut gas_used = 0;
        for ((index, transaction), expected) in block.transactions.iter().zip(of_block) {
            gas_used += assert_transaction(transaction, *index, gas_used, expected);
            logs += transaction.logs.len();
        }
        assert_eq!(gas_used, block.end.unwrap().gas_used);
        transactions += of_block.len();
    }
    assert_eq!((transactions, logs), (6187, 8299));
}
