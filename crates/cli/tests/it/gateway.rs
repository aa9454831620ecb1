//! `eventring gateway`, asked by a WebSocket client of others.

use crate::consumers::script;
use crate::program::{Live, argument, directory, place, run};
use eventring_stress::real_data;
use serde_json::Value;

/// Two invented blocks with events of every type; the second one is rejected.
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/all-exec-events.snapshot.zst");

#[test]
fn a_client_is_told_each_block_and_log_and_a_client_that_does_not_read_delays_nobody() {
    let Some(mut client) = script("gateway_client.py") else { return };
    let (recording, finals) = match real_data::path("emn-30b-15m.snapshot.zst") {
        Some(recording) => (recording, "30"),
        None => (KEPT.into(), "1"),
    };
    let dir = directory();
    let ring = place(&dir, "node");
    run(&["replay", argument(&recording), "--ring", argument(&ring), "--json"]).json();
    let mut gateway = Live::start(&["gateway", argument(&ring), "--listen", "127.0.0.1:0", "--from-oldest", "--json"]);
    let address = gateway.json_line()["listening"].as_str().unwrap().to_owned();
    let output = client.args([address.as_str(), finals, "5"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();

    let blocks = run(&["blocks", argument(&recording), "--json"]).json_lines();
    let heads = told["heads"].as_array().unwrap();
    assert_eq!(heads.len(), blocks.len());
    let hex = |value: &Value| value.as_u64().map_or(Value::Null, |number| format!("{number:#x}").into());
    for (head, block) in heads.iter().zip(&blocks) {
        assert_eq!((&head["hash"], &head["parentHash"]), (&block["hash"], &block["parent_hash"]));
        assert_eq!((&head["number"], &head["gasUsed"]), (&hex(&block["number"]), &hex(&block["gas_used"])));
        assert_eq!((&head["logsBloom"], &head["extraData"]), (&block["logs_bloom"], &block["extra_data"]));
    }
    let logs: Vec<[&Value; 3]> = blocks
        .iter()
        .flat_map(|block| block["transactions"].as_array().unwrap())
        .flat_map(|txn| txn["logs"].as_array().unwrap().iter().map(|log| [&txn["hash"], &log["data"], &log["topics"]]))
        .collect();
    let told_logs = told["logs"].as_array().unwrap();
    let found: Vec<[&Value; 3]> =
        told_logs.iter().map(|log| [&log["transactionHash"], &log["data"], &log["topics"]]).collect();
    assert_eq!(found.len(), logs.len());
    assert_eq!(found, logs);
    assert!(told_logs.iter().all(|log| log["removed"] == false));
    assert_eq!(told["monad_head"], serde_json::json!(["blockId", "commitState", "hash"]));
    if finals == "30" {
        let states = serde_json::json!({ "Proposed": 30, "Voted": 30, "Finalized": 30, "Verified": 29 });
        assert_eq!((&told["states"], &told["monad_logs"]), (&states, &(4 * 8299 - 191).into()));
    }
    // Whoever asks for what is not remembered is told so, and who was there goes on where it was.
    let gaps = told["gaps"].as_array().unwrap();
    assert!(gaps.iter().filter(|gap| gap.get("reason").is_some()).count() == 4, "{gaps:?}");
    let later: Vec<&Value> = heads[heads.len() / 2 + 1..].iter().map(|head| &head["hash"]).collect();
    assert_eq!(told["later"].as_array().unwrap().iter().collect::<Vec<_>>(), later);
    assert!(told["errors"][0].as_str().unwrap().contains("expected newHeads, logs"), "{told}");
    gateway.interrupt();
    let stats = gateway.json_line();
    assert_eq!(stats["clients"], 7);
}

#[test]
fn an_address_that_cannot_be_had_and_a_ring_of_spans_are_refused() {
    let dir = directory();
    let ring = place(&dir, "node");
    run(&["replay", KEPT, "--ring", argument(&ring), "--json"]).json();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = run(&["gateway", argument(&ring), "--listen", &address]);
    assert!(
        refused.code == Some(1) && refused.err.contains("name an address of this host that is free"),
        "{refused:?}"
    );
    let spans = place(&dir, "spans");
    let _recorder = eventring::tracing::PerfRecorder::builder().config(argument(&spans)).build().unwrap();
    assert_eq!(run(&["gateway", argument(&spans)]).code, Some(8));
}
