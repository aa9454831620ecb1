//! Numbers in JSON: span ids are never rounded, even by programs that read all numbers as doubles, such as JavaScript
//! and jq. NaN and the infinities have the forms that docs/CLI.md describes.

use crate::fixtures::*;
use eventring::tracing::RecorderLayer;
use eventring_export::{Format, View, export};
use std::collections::HashSet;
use tracing_subscriber::prelude::*;

const SPANS: usize = 5_500;

/// Returns the number that a program gets if it reads the id into a double.
fn as_double(id: u64) -> u64 {
    id as f64 as u64
}

/// Collects all numbers with these names, at any depth.
fn numbers(value: &Value, names: &[&str], found: &mut HashSet<u64>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if names.contains(&name.as_str()) {
                    found.extend(member.as_u64());
                    found.extend(member.as_array().into_iter().flatten().filter_map(Value::as_u64));
                }
                numbers(member, names, found);
            }
        }
        Value::Array(members) => members.iter().for_each(|member| numbers(member, names, found)),
        _ => {}
    }
}

#[track_caller]
fn check(what: &str, lines: &[Value], names: &[&str]) -> HashSet<u64> {
    let mut ids = HashSet::new();
    lines.iter().for_each(|line| numbers(line, names, &mut ids));
    assert!(ids.len() >= SPANS, "{what}: {} ids", ids.len());
    let doubles: HashSet<u64> = ids.iter().map(|id| as_double(*id)).collect();
    assert_eq!(ids.len() - doubles.len(), 0, "{what}: ids that a double takes for another one");
    assert_eq!(ids, doubles, "{what}");
    assert!(ids.iter().all(|id| *id < 1 << 53), "{what}");
    ids
}

#[test]
fn a_double_holds_every_span_id_of_every_export_and_of_watch() {
    let directory = program::directory();
    let [by_subscriber, by_layer] = ["subscriber", "layer"].map(|name| {
        let ring = program::place(&directory, name);
        let recorder = spans_in(&ring).shifts(17, 22).tables_shift(16).keep(true).build().unwrap();
        let dispatch = if name == "layer" {
            Dispatch::new(tracing_subscriber::registry().with(RecorderLayer::new(recorder.clone())))
        } else {
            Dispatch::new(RecorderSubscriber::new(recorder.clone()))
        };
        dispatcher::with_default(&dispatch, || {
            for _ in 0..SPANS / 2 {
                let outer = info_span!("outer").entered();
                let inner = info_span!("inner");
                inner.follows_from(&outer);
                inner.in_scope(|| info!("hello"));
            }
        });
        drop((dispatch, recorder));
        let file = program::place(&directory, &format!("{name}.evc"));
        run!("capture", &ring, "-o", &file, "--now", "--json").json();
        let capture = CaptureFile::open(&file).unwrap();
        let exported = |format, view| {
            let mut out = Vec::new();
            export(&capture, format, view, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let lines = |text: &str| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();

        let jsonl = lines(&exported(Format::Jsonl, View::Thread));
        let ids = check("jsonl", &jsonl, &["id", "parent", "span", "follows_from"]);
        for view in [View::Thread, View::Span] {
            let chrome = serde_json::from_str(&exported(Format::Chrome, view)).unwrap();
            check("chrome", &[chrome], &["span_id", "parent_id", "parent", "id", "span"]);
        }
        let watched = run!("watch", &ring, "--from", "oldest", "--json");
        let watched = lines(&watched.out);
        check("watch", &watched, &["span", "span_id", "parent", "follows"]);
        let mut first_words = HashSet::new();
        for line in &watched {
            first_words.extend(line["ext"][0].as_u64().filter(|id| *id != 0));
        }
        assert!(first_words.len() >= SPANS && first_words.iter().all(|id| as_double(*id) == *id));

        // This is the control: time stamps are larger than 2^53, so doubles round some of them. `as_double` must show
        // this.
        let mut times = HashSet::new();
        watched.iter().for_each(|line| numbers(line, &["ts_ns"], &mut times));
        assert!(times.iter().any(|nanos| as_double(*nanos) != *nanos));
        ids.into_iter().filter(|id| *id > 1 << 20).collect::<HashSet<u64>>()
    });
    assert!(by_subscriber.is_disjoint(&by_layer));
}

#[test]
fn nan_and_infinities_have_the_forms_that_cli_md_describes() {
    let directory = program::directory();
    let ring = program::place(&directory, "ring");
    let recorder = spans_in(&ring).shifts(15, 21).tables_shift(16).shards(1).keep(true).build().unwrap();
    in_recorder(recorder, || {
        drop(info_span!("floats", nan = f64::NAN, inf = f64::INFINITY, less = f64::NEG_INFINITY, half = 0.5));
    });
    let watched = run!("watch", ring, "--type", "SPAN_NEW", "--json").json_lines();
    let expected = json!({ "nan": null, "inf": null, "less": null, "half": 0.5 });
    assert_eq!(watched[0]["payload"]["fields"], expected, "{watched:?}");
    let expected = json!({ "nan": "NaN", "inf": "inf", "less": "-inf", "half": 0.5 });
    let lines = run!("export", ring, "--format", "jsonl", "-o", "-").json_lines();
    let span = lines.iter().find(|line| line["type"] == "span").unwrap();
    assert_eq!(span["fields"], expected, "{span}");
    let trace = run!("export", ring, "--format", "chrome", "--view", "span", "-o", "-").json();
    let slices = trace["traceEvents"].list();
    let args = slices.iter().map(|slice| &slice["args"]).find(|args| args["half"] == 0.5).unwrap();
    assert!(["nan", "inf", "less"].iter().all(|name| args[*name] == expected[*name]), "{args}");
}
