//! The queries of docs/QUERIES.md find in Parquet files what was recorded.

use crate::consumers;
use crate::fixtures::*;
use crate::queries;
use crate::queries::REQUESTS;

/// The heading of the query that reads the tables of many captures.
const OF_MANY_CAPTURES: &str = "Each span once, from the tables of many captures";

#[test]
fn a_span_that_is_in_the_tables_of_many_captures_is_found_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (ring, capture, files, asked) = (path("shop"), path("t.evc"), path("files"), path("asked"));
    let recorder = spans_in(&ring).build().unwrap();
    let row = path("row.evc");
    let mut rotated = program!("capture", &ring, "-o", &row, "--rotate-every", "40ms").spawn().unwrap();
    in_recorder(recorder.clone(), || {
        let all = info_span!("all").entered();
        for number in 0..10_u64 {
            let long = info_span!("long", number);
            thread::sleep(Duration::from_millis(70));
            (0..20).for_each(|_| info_span!("short").in_scope(|| ()));
            drop(long);
        }
        drop(all);
    });
    run!("capture", &ring, "-o", &capture, "--now", "--json").json();
    drop(recorder);
    assert!(rotated.wait().unwrap().success());
    fs::create_dir(&files).unwrap();
    for entry in fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()) {
        if entry.starts_with("row.") {
            run!("export", &path(&entry), "--format", "parquet", "-o", &format!("{files}/{entry}"), "--json").json();
        }
    }
    let query = queries::queries("QUERIES.md").remove(OF_MANY_CAPTURES).unwrap();
    let naive = "select count(*) as n from read_parquet('*/spans.parquet', union_by_name = true)";
    fs::write(&asked, json!({"once": query, "naive": naive}).to_string()).unwrap();
    let answers = consumers::read_files("parquet_queries.py", &[Path::new(&files), Path::new(&asked)]);
    let Some(answers) = answers else { return };
    let recorded = |span: &Value| ["id", "name", "start_ns", "duration_ns"].map(|name| span[name].clone());
    let lines = run!("export", &capture, "--format", "jsonl").json_lines();
    let mut spans: Vec<_> = lines.iter().filter(|line| line["type"] == "span").map(recorded).collect();
    let once = answers["once"].list();
    let mut found: Vec<_> = once.iter().map(recorded).collect();
    spans.sort_by_key(|span| span[0].as_u64());
    found.sort_by_key(|span| span[0].as_u64());
    assert_eq!((spans.len(), &found), (211, &spans));
    // The span around all begins in the first capture, ends in the last, and is open in those between.
    // The span around all is open in each capture, and begins and ends in two of them.
    assert!(once[0]["name"] == "all" && once[0]["captures"].as_u64() > Some(2), "{}", once[0]);
    assert!(answers["naive"][0]["n"].number() > 211, "{}", answers["naive"]);
}

#[test]
fn each_query_of_the_document_finds_what_was_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (ring, capture, files, asked) = (path("shop"), path("t.evc"), path("files"), path("asked"));
    let _recorder = queries::record_requests(&ring);
    run!("capture", &ring, "-o", &capture, "--now", "--json").json();
    run!("export", &capture, "--format", "parquet", "-o", &files, "--json").json();
    let lines = run!("export", &capture, "--format", "jsonl").json_lines();
    let spans: Vec<&Value> = lines.iter().filter(|line| line["type"] == "span").collect();
    let mut queries = queries::queries("QUERIES.md");
    assert_eq!(queries.len(), 13);
    assert!(queries.remove(OF_MANY_CAPTURES).is_some());
    fs::write(&asked, Value::from(queries).to_string()).unwrap();
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
    assert!(slowest["ms"].as_f64().unwrap() >= 200.0 && slowest["busy_ms"].as_f64().unwrap() < 200.0, "{slowest}");
    let spent = "What the slowest request spent its time on";
    assert_eq!(column(spent, "name"), ["request", "query", "sqlite", "answer"]);
    assert_eq!(column(spent, "depth"), [0, 1, 2, 1]);

    let percentiles = rows("Percentiles by span");
    assert_eq!(percentiles[0]["name"], "request");
    for name in ["request", "query", "sqlite", "answer"] {
        let row = percentiles.iter().find(|row| row["name"] == name).unwrap();
        assert_eq!(row["spans"].number(), closed(name).count() as u64, "{row}");
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
    let in_seconds: u64 = by_second.iter().map(|row| row["spans"].number()).sum();
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
