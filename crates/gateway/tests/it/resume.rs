//! Clients that go on where they were.

use crate::{Served, lines};
use serde_json::{Value, json};

fn told(served: &Served, kind: &str, options: Value) -> Vec<String> {
    let mut client = served.client();
    client.subscribe(kind, &options);
    lines(&client.rest())
}

/// Blocks 10 to 13: the states of each follow those of the next one.
fn chain() -> Served {
    let mut served = Served::start();
    let mut tags = Vec::new();
    for number in 10..=13 {
        tags.push(served.made.block(number, number as u8, 1));
        if let [.., earlier, last] = tags[..] {
            served.made.vote(earlier);
            served.made.finalize(earlier);
            served.made.verify(last.block_number - 1);
        }
    }
    served.record();
    // All of it has been told.
    while told(&served, "newHeads", json!({ "resume_from": { "number": 13 } })) != [""; 0] {}
    served
}

#[test]
fn what_follows_the_last_thing_seen_comes_and_no_other() {
    let served = chain();
    let resume = |kind: &str, options: Value, place: Value| {
        let mut options = options;
        options["resume_from"] = place;
        told(&served, kind, options)
    };
    assert_eq!(resume("newHeads", json!({}), json!({ "number": 11 })), ["12", "13"]);
    assert_eq!(resume("newHeads", json!({ "min_stage": "finalized" }), json!({ "number": 11 })), ["12"]);
    assert_eq!(resume("logs", json!({ "min_stage": "finalized" }), json!({ "number": "0xb" })), ["12.0", "12.1"]);
    assert_eq!(resume("logs", json!({}), json!({ "number": 12, "index": 0 })), ["12.1", "13.0", "13.1"]);
    let states = ["13 Proposed", "12 Voted", "12 Finalized", "12 Verified"];
    // Of the block itself, all later states.
    assert_eq!(resume("monadNewHeads", json!({}), json!({ "number": 12, "commitState": "Proposed" }))[3..], states);
    assert_eq!(resume("monadNewHeads", json!({}), json!({ "number": 12 })).len(), 7);
    assert_eq!(
        resume("monadNewHeads", json!({}), json!({ "number": 12, "commitState": "Finalized" })),
        ["12 Verified"]
    );
    let logs = resume("monadLogs", json!({}), json!({ "number": 12, "index": 0 }));
    assert_eq!(logs[0], "12.1 Proposed");
    for state in ["Voted", "Finalized", "Verified"] {
        assert_eq!(logs.iter().filter(|line| line.starts_with("12.") && line.ends_with(state)).count(), 2, "{logs:?}");
    }
    let logs = resume("monadLogs", json!({}), json!({ "number": 12, "index": 0, "commitState": "Finalized" }));
    assert_eq!(logs, ["12.1 Finalized", "12.0 Verified", "12.1 Verified"]);
    // By the hash, which is all that a client of `logs` knows.
    let (id, hash) = (format!("0x{}", "0c".repeat(32)), format!("0x{}", "f3".repeat(32)));
    for id in [id, hash] {
        assert_eq!(resume("newHeads", json!({}), json!({ "number": 12, "id": id })), ["13"]);
    }
    let all = resume("newHeads", json!({}), json!({ "number": 12, "id": format!("0x{}", "77".repeat(32)) }));
    assert_eq!(all, ["gap unknown place -", "10", "11", "12", "13"]);
    served.end();
}

#[test]
fn what_was_told_of_an_abandoned_block_is_taken_back_after_a_reconnection() {
    let mut served = Served::start();
    let mut present = served.client();
    present.subscribe("logs", &json!({}));
    served.made.block(10, 10, 1);
    let fork = served.made.block(11, 111, 1);
    served.record();
    assert_eq!(lines(&present.rest()), ["10.0", "10.1", "11.0", "11.1"]);
    drop(present);
    // Whoever comes now has not been told of the fork, so nothing is taken back.
    let mut late = served.client();
    late.subscribe("logs", &json!({}));
    let mut of_states = served.client();
    of_states.subscribe("monadLogs", &json!({}));
    served.made.vote(fork);
    let tag = served.made.block(11, 11, 1);
    served.made.finalize(tag);
    served.record();
    assert_eq!(lines(&late.rest()), ["11.0", "11.1"]);
    let expected = ["11.0 Voted", "11.1 Voted", "11.0 Proposed", "11.1 Proposed", "11.0 Finalized", "11.1 Finalized"];
    let taken_back = ["11.0 Abandoned removed", "11.1 Abandoned removed"];
    assert_eq!(lines(&of_states.rest()), [&expected[..], &taken_back].concat());
    let fork = json!({ "number": 11, "id": format!("0x{}", "6f".repeat(32)) });
    let resumed = told(&served, "logs", json!({ "resume_from": fork }));
    assert_eq!(resumed, ["11.0", "11.1", "11.0 removed", "11.1 removed"]);
    let resumed = told(&served, "logs", json!({ "resume_from": { "number": 10 } }));
    assert_eq!(resumed, ["11.0", "11.1", "11.0", "11.1", "11.0 removed", "11.1 removed"]);
    // Under this condition the fork was never told.
    let resumed = told(&served, "logs", json!({ "min_stage": "finalized", "resume_from": { "number": 10 } }));
    assert_eq!(resumed, ["11.0", "11.1"]);
    served.end();
}
