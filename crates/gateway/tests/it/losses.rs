//! Blocks of which events are missing, and which are executed once more.

use crate::{Served, lines};
use eventring::schema::exec::{Address, BlockTag, Bytes32, ExecEvent, TxnLog};
use eventring::schema::{EventPayload as _, EventType as _};
use serde_json::json;

/// Makes a block whose execution is cut off after its first log.
fn cut_off(served: &mut Served, number: u64) {
    served.made.block(number, number as u8, 2);
    let log = ExecEvent::TxnLog.code();
    let logs = served.made.0.iter().rposition(|(event, _)| event.event_type == log).unwrap();
    served.made.0.truncate(logs - 2);
}

#[test]
fn a_block_that_is_cut_off_is_a_gap_and_is_told_when_it_is_executed_again() {
    let mut served = Served::start();
    let kinds = ["logs", "newHeads", "monadLogs", "monadNewHeads"];
    let mut clients = kinds.map(|_| served.client());
    for (client, kind) in clients.iter_mut().zip(kinds) {
        client.subscribe(kind, &json!({}));
    }
    served.made.block(1, 1, 2);
    cut_off(&mut served, 2);
    let tag = served.made.block(2, 2, 2);
    served.made.vote(tag);
    served.record();
    let told: Vec<Vec<String>> = clients.iter_mut().map(|client| lines(&client.rest())).collect();
    assert_eq!(told[0], ["1.0", "1.1", "1.2", "1.3", "gap missing 2", "2.0", "2.1", "2.2", "2.3"]);
    assert_eq!(told[1], ["1", "gap missing 2", "2 part", "2"]);
    assert_eq!(told[2].len(), 4 + 1 + 4 + 4, "{told:?}");
    assert_eq!(told[3], ["1 Proposed", "gap missing 2", "2 Proposed part", "2 Proposed", "2 Voted"]);
    served.end();
}

#[test]
fn a_block_that_is_whole_only_when_it_is_final_is_told_then_and_one_that_is_invalid_is_no_gap() {
    let mut served = Served::start();
    let mut logs = served.client();
    logs.subscribe("logs", &json!({ "min_stage": "finalized" }));
    let mut of_heads = served.client();
    of_heads.subscribe("newHeads", &json!({ "min_stage": "finalized" }));
    cut_off(&mut served, 1);
    let start = served.made.0.len() as u64 + 1;
    served.made.block(2, 2, 1);
    // In place of its end.
    served.made.0.pop();
    served.made.reject(start);
    served.made.finalize(BlockTag { id: Bytes32([1; 32]), block_number: 1 });
    served.made.block(1, 1, 1);
    served.record();
    assert_eq!(lines(&logs.rest()), ["gap missing 1", "1.0", "1.1"]);
    assert_eq!(lines(&of_heads.rest()), ["gap missing 1", "1 part", "1"]);
    served.end();
}

#[test]
fn a_long_log_comes_whole() {
    let mut served = Served::start();
    let mut client = served.client();
    client.subscribe("logs", &json!({}));
    served.made.block(1, 1, 1);
    let code = ExecEvent::TxnLog.code();
    let (_, payload) = served.made.0.iter_mut().find(|(event, _)| event.event_type == code).unwrap();
    let log = TxnLog { index: 0, address: Address([3; 20]), topic_count: 0, data_length: 1 << 20 };
    *payload = log.with_bytes(<[u8]>::to_vec);
    payload.extend((0..1 << 20).map(|byte: u32| byte as u8));
    served.record();
    let data = client.next()["data"].take();
    assert_eq!(data.as_str().unwrap().len(), 2 + (2 << 20));
    assert!(data.as_str().unwrap().ends_with("fcfdfeff"));
    assert_eq!(client.next()["logIndex"], "0x1");
    served.end();
}
