//! Many clients that take nothing.

use crate::{Client, Served};
use serde_json::json;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Makes blocks with all their states, and waits until they were told.
fn execute(served: &mut Served, blocks: u64) {
    let mut client = served.client();
    client.subscribe("monadNewHeads", &json!({ "min_stage": "verified" }));
    for number in 1..=blocks {
        let tag = served.made.block(number, number as u8, 20);
        served.made.vote(tag);
        served.made.finalize(tag);
        served.made.verify(number);
        served.record();
        while client.next()["commitState"] != "Verified" {}
    }
}

/// Connects clients that ask for everything and read nothing.
fn deaf(served: &Served, clients: usize) -> Vec<Client> {
    let connect = |_| {
        let mut client = served.client();
        for _ in 0..8 {
            client.say("eth_subscribe", &json!(["monadLogs", { "resume_from": { "number": 1 } }]));
        }
        client
    };
    (0..clients).map(connect).collect()
}

fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn clients_that_never_read_take_little_memory_delay_nobody_and_cannot_hold_up_the_end() {
    let mut served = Served::start();
    execute(&mut served, 200);
    let before = memory_kib();
    let deaf = deaf(&served, 30);
    // A client that reads is served in full meanwhile.
    let mut client = served.client();
    client.subscribe("monadLogs", &json!({ "resume_from": { "number": 1 } }));
    let mut logs = 0;
    while logs < 200 * 4 * 40 - 40 {
        let told = client.next();
        assert!(told.get("logIndex").is_some(), "{told}");
        logs += 1;
    }
    let grown = memory_kib().saturating_sub(before);
    // Queues of all that each of them is told would take 600 MiB. Other tests of this process take memory, too.
    assert!(grown < 200 << 10, "{grown} KiB more");
    let half = TcpStream::connect(served.address).unwrap();
    let begin = Instant::now();
    let stats = served.end();
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    assert_eq!(stats.clients, 32);
    drop((deaf, half));
}

#[test]
fn connections_without_a_handshake_shut_nobody_out() {
    let mut served = Served::start();
    let idle: Vec<TcpStream> = (0..600).map(|_| TcpStream::connect(served.address).unwrap()).collect();
    let begin = Instant::now();
    // Only 512 are there at a time, and the oldest ones go.
    for mut stream in &idle[..600 - 512] {
        assert_eq!(std::io::Read::read(&mut stream, &mut [0]).unwrap_or(0), 0);
    }
    let mut client = served.client();
    client.subscribe("newHeads", &json!({}));
    served.made.block(1, 1, 1);
    served.record();
    assert_eq!(client.next()["number"], "0x1");
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    // After some seconds they are gone, and the client is not.
    std::thread::sleep(Duration::from_secs(6));
    for mut stream in idle {
        assert_eq!(std::io::Read::read(&mut stream, &mut [0]).unwrap_or(0), 0);
    }
    served.made.block(2, 2, 1);
    served.record();
    assert_eq!(client.next()["number"], "0x2");
    assert_eq!(served.end().clients, 1);
}

#[test]
fn a_client_that_falls_too_far_behind_is_told_how_much_it_has_lost() {
    let mut served = Served::start();
    let mut slow = served.client();
    slow.subscribe("monadLogs", &json!({}));
    execute(&mut served, 500);
    // The control: it has begun with the first block, and then something is lost.
    assert_eq!(slow.next()["blockNumber"], "0x1");
    let (mut lost, mut last) = (0, json!(null));
    while last["blockNumber"] != "0x1f4" || last["commitState"] != "Verified" || last["logIndex"] != "0x27" {
        last = slow.next();
        lost += last["lost"].as_u64().unwrap_or(0);
    }
    assert!(lost > 0);
    assert_eq!(served.end().lost, lost);
}
