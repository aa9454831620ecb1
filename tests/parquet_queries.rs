//! The queries of docs/QUERIES.md find in Parquet files what was recorded.
#![cfg(feature = "cli")]

mod consumers;
mod program;
mod queries;

use program::run;
use queries::REQUESTS;
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn each_query_of_the_document_finds_what_was_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (ring, capture, files, asked) = (path("shop"), path("t.evc"), path("files"), path("asked"));
    let _recorder = queries::record_requests(&ring);
    run(&["capture", &ring, "-o", &capture, "--now", "--json"]).json();
    run(&["export", &capture, "--format", "parquet", "-o", &files, "--json"]).json();
    let lines = run(&["export", &capture, "--format", "jsonl"]).json_lines();
    let spans: Vec<&Value> = lines.iter().filter(|line| line["type"] == "span").collect();
    let queries = queries::queries("QUERIES.md");
    assert_eq!(queries.len(), 11);
    std::fs::write(&asked, Value::from(queries).to_string()).unwrap();
    let answers = consumers::read_files("parquet_queries.py", &[Path::new(&files), Path::new(&asked)]);
    let Some(answers) = answers else { return };
    check(&answers, &spans);
}

/// Checks the answers, by the headings of the queries. `spans` are those that were recorded.
fn check(answers: &Value, spans: &[&Value]) {
    let rows = |heading: &str| answers[heading].as_array().unwrap_or_else(|| panic!("`{heading}` in {answers}"));
    let column = |heading: &str, name: &str| rows(heading).iter().map(|row| row[name].clone()).collect::<Vec<_>>();
    let named = |name: &'static str| spans.iter().filter(move |span| span["name"] == name);
    let closed = |name| named(name).filter(|span| span["open"] == false);

    let slow = named("request").find(|span| span["fields"]["number"] == 7).unwrap();
    let slowest = &rows("The slowest requests")[0];
    assert_eq!((&slowest["id"], slowest["fields"].to_string().contains("number")), (&slow["id"], true));
    assert!(slowest["ms"].as_f64().unwrap() >= 30.0 && slowest["busy_ms"].as_f64().unwrap() < 30.0, "{slowest}");
    let spent = "What the slowest request spent its time on";
    assert_eq!(column(spent, "name"), ["request", "query", "sqlite", "answer"]);
    assert_eq!(column(spent, "depth"), [0, 1, 2, 1]);

    let percentiles = rows("Percentiles by span");
    assert_eq!(percentiles[0]["name"], "request");
    for name in ["request", "query", "sqlite", "answer"] {
        let row = percentiles.iter().find(|row| row["name"] == name).unwrap();
        assert_eq!(row["spans"].as_u64().unwrap(), closed(name).count() as u64, "{row}");
        let order = ["p50_us", "p99_us", "max_us"].map(|column| row[column].as_f64().unwrap());
        assert!(order.is_sorted() && order[0] > 0.0, "{row}");
    }

    let self_times = rows("Self time by span");
    let of_request = self_times.iter().find(|row| row["name"] == "request").unwrap();
    let of_children = |id: &Value| -> f64 {
        spans.iter().filter(|span| span["parent"] == *id).filter_map(|span| span["duration_ns"].as_f64()).sum()
    };
    let self_nanos: f64 =
        closed("request").map(|span| span["duration_ns"].as_f64().unwrap() - of_children(&span["id"])).sum();
    assert!((of_request["self_ms"].as_f64().unwrap() - self_nanos / 1e6).abs() < 0.001, "{of_request}: {self_nanos}");

    let by_second = rows("Latency by second");
    let in_seconds: u64 = by_second.iter().map(|row| row["spans"].as_u64().unwrap()).sum();
    assert_eq!((in_seconds, &by_second[0]["second"]), (named("request").count() as u64, &json!(0)));

    let by_value = rows("Which value of a field is slow");
    assert_eq!(by_value.len(), 1);
    assert_eq!((&by_value[0]["value"], by_value[0]["spans"].as_u64()), (&json!("orders"), Some(REQUESTS + 1)));

    let errors = rows("Errors, with the spans in which they were recorded");
    assert_eq!(errors.len(), 1);
    assert_eq!((&errors[0]["message"], &errors[0]["span"]), (&json!("too late"), &json!("answer")));
    let places = rows("Log records by level and place");
    assert_eq!((&places[0]["level"], places[0]["records"].as_u64()), (&json!("INFO"), Some(REQUESTS + 1)));
    assert_eq!(places.len(), 2);

    let open = rows("What is still open, and whose end was lost");
    let still_open = |name: &str| open.iter().find(|row| row["name"] == name).map(|row| row["still_open"].clone());
    let expected = named("request").filter(|span| span["open"] == true).count();
    assert_eq!((expected, still_open("request")), (1, Some(json!(1))));
    assert_eq!(rows("How much was lost").len(), 0);

    let threads = rows("The work of each thread");
    assert_eq!((&threads[0]["thread"], threads[0]["spans"].as_u64()), (&json!("worker"), Some(spans.len() as u64)));
}
