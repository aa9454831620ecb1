//! Requests that are wrong, and many of them.

use crate::Served;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio_tungstenite::tungstenite::Message;

#[test]
fn what_is_wrong_with_a_subscription_is_said() {
    let mut served = Served::start();
    served.made.block(5, 5, 1);
    served.record();
    let mut client = served.client();
    client.subscribe("newHeads", &json!({ "resume_from": { "number": 0 } }));
    while client.next().get("number").is_none() {}
    let wrong = [
        (json!(["logs", { "adress": "0x" }]), "there is no `adress` here; there are address, topics, min_stage"),
        (json!(["newHeads", { "address": null }]), "there is no `address` here; there are min_stage, resume_from"),
        (json!(["logs", "foo"]), "the second parameter: expected an object with address"),
        (json!(["logs", {}, 1]), "at most two parameters"),
        (json!({ "0": "logs" }), "expected an array"),
        (json!(["logs", { "address": 5 }]), "address: expected hex with 0x, found 5"),
        (json!(["logs", { "topics": [1] }]), "topic: expected hex"),
        (json!(["logs", { "min_stage": "abandoned" }]), "min_stage: expected proposed, voted, finalized or verified"),
        (json!(["logs", { "min_stage": 3 }]), "min_stage: expected proposed, voted"),
        (json!(["logs", { "resume_from": 5 }]), "resume_from: expected an object with number, id, index"),
        (json!(["logs", { "resume_from": { "id": null } }]), "resume_from: expected a block's `number`"),
        (json!(["logs", { "resume_from": { "number": "5" } }]), "resume_from.number: expected a block's number"),
        (json!(["logs", { "resume_from": { "number": 5, "index": -1 } }]), "resume_from.index: expected the logIndex"),
        (json!(["logs", { "resume_from": { "number": 5, "index": 2 } }]), "block 5 has 2 logs, and none with 2"),
        (json!(["logs", { "resume_from": { "number": 5, "id": ["0x"] } }]), "resume_from.id: expected hex"),
        (json!(["logs", { "resume_from": { "number": 5, "hash": "" } }]), "resume_from: there is no `hash` here"),
        (json!(["logs", { "resume_from": { "number": 5, "commitState": "Voted" } }]), "there is no `commitState`"),
        (json!(["newHeads", { "resume_from": { "number": 5, "index": 0 } }]), "there is no `index`"),
        (
            json!(["monadLogs", { "resume_from": { "number": 5, "commitState": "x" } }]),
            "commitState: expected proposed",
        ),
    ];
    for (params, why) in wrong {
        let error = client.ask("eth_subscribe", &params).unwrap_err();
        assert!(error.contains(why), "{params}: {error}");
    }
    // The control: the last thing that could be there.
    client.subscribe("logs", &json!({ "resume_from": { "number": 5, "index": 1 } }));
    client.subscribe("logs", &json!({ "address": [], "topics": [null, []] }));
    served.end();
}

#[test]
fn an_id_comes_back_digit_for_digit_and_deep_nesting_is_no_fault_of_json() {
    let served = Served::start();
    let mut client = served.client();
    let deep = |depth: usize| ["[", "]"].map(|bracket| bracket.repeat(depth)).concat();
    let method = |params: &str| format!(r#"{{"params":{params},"id":123456789012345678901234567890,"method":"x"}}"#);
    for (request, start) in [
        (method("1"), r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"error":{"code":-32601,"#),
        (method(&deep(300)), r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"error":{"code":-32602,"#),
        (deep(300), r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"#),
        ("[".repeat(300), r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"#),
    ] {
        client.socket.send(Message::text(request)).unwrap();
        let Message::Text(answer) = client.socket.read().unwrap() else { panic!("no text") };
        assert!(answer.as_str().starts_with(start), "{answer}");
    }
    served.end();
}

#[test]
fn requests_are_answered_at_once_and_a_connection_has_a_number_of_subscriptions_and_of_addresses() {
    let served = Served::start();
    let mut client = served.client();
    let begin = Instant::now();
    for _ in 0..200 {
        let id = client.ask("eth_subscribe", &json!(["newHeads"])).unwrap();
        assert_eq!(client.ask("eth_unsubscribe", &json!([id])), Ok(true.into()));
    }
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?} for 400 requests", begin.elapsed());
    for _ in 0..63 {
        client.subscribe("newHeads", &json!({}));
    }
    let addresses: Vec<String> = (0..1300).map(|number| format!("{number:#042x}")).collect();
    client.subscribe("logs", &json!({ "address": addresses }));
    assert!(client.ask("eth_subscribe", &json!(["logs"])).unwrap_err().contains("at most 64 subscriptions"));
    let mut other = served.client();
    for _ in 0..3 {
        other.subscribe("logs", &json!({ "address": addresses }));
    }
    let many = other.ask("eth_subscribe", &json!(["logs", { "address": addresses }]));
    assert!(many.unwrap_err().contains("at most 4,096 addresses"));
    served.end();
}
