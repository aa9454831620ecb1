//! The queries of docs/PERFETTO.md find in a trace what was recorded.

use crate::consumers;
use crate::program::run;
use crate::queries;
use crate::queries::REQUESTS;
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::EventType as _;
use eventring::schema::exec::ExecEvent;
use serde_json::{Value, json};
use std::path::Path;

/// The number of typed events. Their ring has 2^15 slots, so the first of them are lost.
const TYPED_EVENTS: u64 = (1 << 15) + 70;

#[test]
fn each_query_of_the_document_finds_what_was_recorded_in_a_trace_of_threads_and_in_one_with_both_views() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (ring, typed, capture, trace, asked) = (path("shop"), path("typed"), path("t.evc"), path("trace"), path("q"));
    let _recorder = queries::record_requests(&ring);
    let exec = Recorder::builder(ContentDescription::from_event_type::<ExecEvent>())
        .config(&typed)
        .compact(true)
        .shifts(15, 21);
    let exec = exec.prefault(false).build().unwrap();
    (0..TYPED_EVENTS).for_each(|txn| _ = exec.record(ExecEvent::TxnEnd.code(), [0, txn, 0, 0], &[]));
    let captured = run(&["capture", &ring, &typed, "-o", &capture, "--now", "--json"]).json();
    let spans = run(&["export", &capture, "--format", "jsonl"]).json_lines();
    let spans: Vec<&Value> = spans.iter().filter(|line| line["type"] == "span").collect();
    let queries = queries::queries("PERFETTO.md");
    assert_eq!(queries.len(), 11);
    std::fs::write(&asked, Value::from(queries).to_string()).unwrap();
    for view in ["thread", "both"] {
        run(&["export", &capture, "-o", &trace, "--force", "--view", view, "--json"]).json();
        let answers = consumers::read_files("trace_processor.py", &[Path::new(&trace), Path::new(&asked)]);
        let Some(answers) = answers else { return };
        check(&answers, &spans, &captured);
    }
}

/// Checks the answers, by the headings of the queries. `spans` are those that were recorded.
fn check(answers: &Value, spans: &[&Value], captured: &Value) {
    let rows = |heading: &str| answers[heading].as_array().unwrap_or_else(|| panic!("`{heading}` in {answers}"));
    let column = |heading: &str, name: &str| rows(heading).iter().map(|row| row[name].clone()).collect::<Vec<_>>();

    let slow = spans.iter().find(|span| span["name"] == "request" && span["fields"]["number"] == 7).unwrap();
    let slowest = &rows("The slowest requests")[0];
    assert_eq!(rows("The slowest requests").len() as u64, REQUESTS);
    assert_eq!((&slowest["span"], slowest["slices"].as_u64()), (&slow["id"], Some(2)));
    let (wall, busy) = (slowest["wall_ms"].as_f64().unwrap(), slowest["busy_ms"].as_f64().unwrap());
    assert!(wall >= 200.0 && busy < wall - 199.0, "{slowest}");
    let waited = "What the slowest request waited for";
    assert_eq!(column(waited, "name"), ["request", "query", "sqlite", "answer"]);
    assert_eq!(column(waited, "depth"), [0, 1, 2, 1]);

    let percentiles = rows("Percentiles by span");
    for name in ["request", "query", "sqlite", "answer"] {
        let row = percentiles.iter().find(|row| row["name"] == name).unwrap();
        let closed = spans.iter().filter(|span| span["name"] == name && span["open"] != true);
        assert_eq!(row["count"].as_u64().unwrap(), closed.count() as u64, "{row}");
        let order = ["p50_us", "p99_us", "max_us"].map(|column| row[column].as_f64().unwrap());
        assert!(order.is_sorted() && order[0] > 0.0, "{row}");
    }
    let total_ms = |name: &str| {
        let slices =
            spans.iter().filter(|span| span["name"] == name).flat_map(|span| span["slices"].as_array().unwrap());
        let nanos = slices.map(|slice| slice["end_ns"].as_u64().unwrap() - slice["start_ns"].as_u64().unwrap());
        nanos.sum::<u64>() as f64 / 1e6
    };
    let expected = [
        ("query", total_ms("query") - total_ms("sqlite")),
        ("sqlite", total_ms("sqlite")),
        ("answer", total_ms("answer")),
    ];
    for (name, expected) in expected {
        let row = rows("Self time by span").iter().find(|row| row["name"] == name).unwrap();
        assert!((row["self_ms"].as_f64().unwrap() - expected).abs() < 1e-6, "{row}, expected {expected}");
    }
    assert_eq!(rows("Self time by span").len(), 4);
    assert_eq!(answers["Errors by span"], json!([{ "span": "answer", "message": "too late", "count": 1 }]));
    assert_eq!(column("Spans that are still open", "name"), ["request"]);
    let gap = &rows("The longest gaps of each thread")[0];
    assert_eq!((&gap["thread_name"], &gap["next_span"]), (&json!("worker"), &json!("request")));
    assert!(gap["gap_ms"].as_f64().unwrap() >= 30.0, "{gap}");
    assert_eq!(column("How busy each thread is", "thread_name"), ["worker"]);
    let requests: u64 =
        rows("Requests in each tenth of a second").iter().map(|row| row["requests"].as_u64().unwrap()).sum();
    assert_eq!(requests, REQUESTS + 1);
    let lost = rows("What was lost, and when");
    assert_eq!((lost.len(), &lost[0]["events"], &lost[0]["first_seqno"]), (1, &captured["lost"], &json!(1)));
    assert_eq!(lost[0]["track"], "losses of typed");
}
