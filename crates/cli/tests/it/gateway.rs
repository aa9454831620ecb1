//! `eventring exec gateway`, asked by a WebSocket client of others.

use crate::consumers::script;
use crate::program::{Live, argument, directory, exec_ring, place, run};
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::exec::ExecEvent;
use eventring_stress::chain::Made;
use eventring_stress::real_data;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

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
    run(&["exec", "replay", argument(&recording), "--ring", argument(&ring), "--json"]).json();
    let mut gateway =
        Live::start(&["exec", "gateway", argument(&ring), "--listen", "127.0.0.1:0", "--from-oldest", "--json"]);
    let address = gateway.json_line()["listening"].as_str().unwrap().to_owned();
    let output = client.args([address.as_str(), finals, "5"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();

    let blocks = run(&["exec", "blocks", argument(&recording), "--json"]).json_lines();
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
    crate::ask::schemas::check(&[("exec gateway", stats.clone())]);
    assert_eq!(stats["clients"], 7);
}

#[test]
fn an_address_that_cannot_be_had_and_a_ring_of_spans_are_refused() {
    let dir = directory();
    let ring = place(&dir, "node");
    run(&["exec", "replay", KEPT, "--ring", argument(&ring), "--json"]).json();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = run(&["exec", "gateway", argument(&ring), "--listen", &address]);
    assert!(
        refused.code == Some(1) && refused.err.contains("name an address of this host that is free"),
        "{refused:?}"
    );
    let spans = place(&dir, "spans");
    let _recorder = eventring::tracing::PerfRecorder::builder().config(argument(&spans)).build().unwrap();
    assert_eq!(run(&["exec", "gateway", argument(&spans)]).code, Some(8));
}

#[test]
fn what_the_ring_has_lost_comes_from_the_archive_and_a_close_is_answered() {
    let Some(mut client) = script("gateway_lines.py") else { return };
    let dir = directory();
    let (ring, all, archive) = (place(&dir, "node"), place(&dir, "all"), place(&dir, "archive"));
    let recorder = exec_ring(&ring);
    let content = ContentDescription::from_event_type::<ExecEvent>();
    let large = Recorder::builder(content).config(argument(&all)).shifts(17, 26).compact(true).build().unwrap();
    let mut made = Made::default();
    let mut gateway_args = vec!["exec", "gateway", argument(&ring), "--listen", "127.0.0.1:0", "--json"];
    let missing = run(&[&gateway_args[..], &["--archive", argument(&archive)]].concat());
    assert!(missing.code != Some(0) && missing.err.contains("archive"), "{missing:?}");
    std::fs::create_dir(&archive).unwrap();
    gateway_args.extend(["--archive", argument(&archive), "--archive-wait", "20s"]);
    let mut gateway = Live::start(&gateway_args);
    let address = gateway.json_line()["listening"].as_str().unwrap().to_owned();
    let mut client = client.args([&address, "newHeads", "100"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(client.stdout.take().unwrap()).lines().map(|line| {
        let line = line.unwrap();
        serde_json::from_str::<Value>(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    });
    assert_eq!(told.next().unwrap(), "subscribed");
    let mut recorded = 0;
    for number in 1..=100 {
        let tag = made.block(number, number as u8, 24);
        made.finalize(tag);
        if number == 3 {
            recorded = made.record(0, &recorder);
            for number in 1..=3 {
                assert_eq!(told.next().unwrap()["number"], format!("{number:#x}"));
            }
        }
    }
    // The ring goes round while the gateway sleeps.
    let pid = rustix::process::Pid::from_child(&gateway.child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    made.record(recorded, &recorder);
    made.record(0, &large);
    let archived = run(&["exec", "archive", argument(&all), "-o", argument(&archive), "--json"]).json();
    assert_eq!(archived["blocks"], 100);
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    let rest: Vec<Value> = told.collect();
    let (close, rest) = rest.split_last().unwrap();
    let (gaps, heads): (Vec<&Value>, Vec<&Value>) = rest.iter().partition(|result| result.get("gap").is_some());
    assert!(gaps.iter().any(|gap| gap["gap"]["kind"] == "gap"), "{gaps:?}");
    let whole = heads.iter().filter(|head| head.get("complete").is_none());
    let numbers: Vec<&str> = whole.map(|head| head["number"].as_str().unwrap()).collect();
    assert_eq!(numbers, (4..=100).map(|number| format!("{number:#x}")).collect::<Vec<_>>());
    assert_eq!(close["close_code"], 1000);
    assert!(client.wait().unwrap().success());
    gateway.interrupt();
}
