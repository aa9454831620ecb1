//! babeltrace2 reads the Common Trace Format traces that eventring writes: as many events as the JSON lines of the same
//! capture have, with the same fields and the same nanoseconds, and as many losses.
#![cfg(feature = "cli")]

mod babeltrace;
mod program;
mod real_data;

use babeltrace::{Ctf, CtfEvent, CtfTrace};
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::exec::{Address, U256};
use eventring::schema::{Utf8, encode_array};
use eventring::tracing::{Counter, Marker, PerfRecorder, RecorderSubscriber};
use eventring::{EventPayload, EventType, PayloadField};
use program::run;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use tracing::{Dispatch, field, info, info_span, warn};

#[derive(PayloadField, Clone, Copy, Debug, PartialEq)]
#[repr(i16)]
enum Kind {
    BelowZero = -300,
    Second = 0,
}

#[derive(EventPayload, Clone, Copy, Debug, PartialEq)]
struct Part {
    is_live: bool,
    kind: Kind,
    count: u8,
}

#[derive(EventPayload, Clone, Copy, Debug, PartialEq)]
struct Everything {
    byte: u8,
    large: u128,
    short: i16,
    numbers: [u32; 3],
    address: Address,
    double: f64,
    huge: U256,
    part: Part,
    parts: [Part; 2],
    negative: i128,
    single: f32,
    name: [Utf8; 5],
    long: i64,
    grid: [[u8; 2]; 3],
    matrix: [[u16; 2]; 2],
    kinds: [Kind; 2],
    #[event(redact)]
    key: [u8; 7],
    count: u32,
}

#[derive(EventType, Clone, Copy, Debug, PartialEq)]
#[event(content_type = 300, name = "SINK", ext(0 = order: seqno, 1 = line: index))]
#[repr(u16)]
enum Sink {
    #[event(payload = Everything, trailing(integers: i32 * count, live_parts: Part * part.count, note: Utf8))]
    Everything = 2,
    Nothing = 3,
    #[event(trailing(doubles: f64))]
    OnlyArray = 4,
    #[event(payload = Part)]
    Part = 5,
}

static QUEUE_LENGTH: Counter = Counter::new("queue length");
static RESTARTED: Marker = Marker::new("restarted");

fn everything(number: u8) -> Everything {
    let part = Part { is_live: number.is_multiple_of(2), kind: Kind::BelowZero, count: number % 3 };
    Everything {
        byte: number,
        large: u128::MAX - u128::from(number),
        short: -300,
        numbers: [1, 2, u32::MAX],
        address: Address([number; 20]),
        double: if number == 3 { f64::NAN } else { 0.1 + f64::from(number) },
        huge: U256::from_limbs([1, 2, 3, number.into()]),
        part,
        parts: [part, Part { kind: Kind::Second, ..part }],
        negative: i128::MIN,
        single: -0.25,
        name: Utf8::padded("ab\"c"),
        long: i64::MIN,
        grid: [[number, 1], [2, 3], [4, 5]],
        matrix: [[1, 2], [3, number.into()]],
        kinds: [Kind::Second, Kind::BelowZero],
        key: [1; 7],
        count: number.into(),
    }
}

/// Records typed events. Some of their payloads do not fit their types.
fn record_typed(sink: &Recorder) {
    for number in 0..8_u8 {
        let fixed = everything(number);
        let integers = encode_array(&vec![-7_i32; usize::from(number)]);
        let live = encode_array(&vec![fixed.part; usize::from(fixed.part.count)]);
        let note = "a\0b \u{1}\n\t\\ \"é\" \u{2400}".as_bytes();
        let payload = [&fixed.with_bytes(<[u8]>::to_vec)[..], &integers, &live, note].concat();
        sink.record(Sink::Everything.code(), [number.into(), u64::from(number) % 2, u64::MAX, 0], &payload);
        let part = fixed.part.with_bytes(<[u8]>::to_vec);
        sink.record(Sink::Part.code(), [0; 4], &part);
        // A kind without a name, and a truth value that does not exist.
        sink.record(Sink::Part.code(), [0; 4], &[&part[..2], &[7, 0], &part[4..]].concat());
        sink.record(Sink::Part.code(), [0; 4], &[&[9], &part[1..]].concat());
        sink.record(Sink::Nothing.code(), [0; 4], b"");
        sink.record(Sink::Nothing.code(), [0; 4], b"too long");
        sink.record(Sink::OnlyArray.code(), [0; 4], &encode_array(&[0.5_f64, f64::INFINITY, 1e300]));
        sink.record(77, [0; 4], &[number; 40]);
    }
}

/// Records spans, log records, samples and marks, on two threads.
fn record_spans(recorder: &PerfRecorder, dispatch: &Dispatch) {
    let record = || {
        let request = info_span!(
            "request",
            int = i64::MIN,
            uint = u64::MAX,
            float = 0.25,
            nan = f64::NAN,
            yes = true,
            wide = i128::MIN,
            text = "a\0text \"quoted\" \\ \n",
            http.method = "GET",
            http_method = "second",
            debug = ?Some("é"),
            r#struct = 1,
            _first = 2,
            first = 3,
            late = field::Empty
        );
        let long = "x".repeat(70_000);
        request.in_scope(|| {
            info!(number = 1, "said {}", "it");
            warn!(long = long.as_str(), "a long value");
            QUEUE_LENGTH.sample_to(recorder, 12);
            QUEUE_LENGTH.sample_to(recorder, -0.5);
            RESTARTED.mark_to(recorder, "a\0mark");
            request.record("late", "now");
        });
        let after = info_span!("after");
        after.follows_from(&request);
        after.in_scope(|| {});
    };
    tracing::dispatcher::with_default(dispatch, record);
    std::thread::scope(|scope| {
        let on_worker = || tracing::dispatcher::with_default(dispatch, record);
        let worker = std::thread::Builder::new().name("wörker \"1\"".into());
        worker.spawn_scoped(scope, on_worker).unwrap();
    });
}

/// Returns a field's name as docs/CLI.md says. `taken` are the names of the fields before.
fn identifier(name: &str, taken: &[String]) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let numbered = (2..).map(|number| format!("{plain}_{number}"));
    let is_free =
        |name: &String| taken.iter().all(|taken| taken.trim_start_matches('_') != name.trim_start_matches('_'));
    std::iter::once(plain.clone()).chain(numbered).find(is_free).unwrap()
}

/// Checks that a value of a trace is the one of the JSON lines.
fn assert_same(expected: &Value, found: &Ctf) {
    let is_same = match (expected, found) {
        (Value::String(text), Ctf::Text(found)) => text.replace('\0', "\u{2400}") == *found,
        // JSON has no such numbers.
        (Value::String(text), Ctf::Number(found)) => text.to_lowercase() == found.to_lowercase(),
        (Value::String(text), Ctf::Label(label, _)) => Some(text) == label.as_ref(),
        (Value::Bool(is_true), Ctf::Number(found)) => *found == u8::from(*is_true).to_string(),
        (Value::Number(number), Ctf::Number(found)) if number.is_f64() => {
            // babeltrace2 prints six digits.
            let (number, found) = (number.as_f64().unwrap(), found.parse::<f64>().unwrap());
            (number - found).abs() <= 1e-5 * number.abs()
        }
        (Value::Number(number), Ctf::Number(found)) => number.to_string() == *found,
        (Value::Number(number), Ctf::Label(None, found)) => number.to_string() == *found,
        (Value::Null, Ctf::Number(found)) => ["nan", "-nan", "inf", "-inf"].contains(&found.as_str()),
        (Value::Null, Ctf::Text(found)) => found == "<redacted>",
        (Value::Array(elements), Ctf::List(found)) => {
            elements.iter().zip(found).for_each(|(element, found)| assert_same(element, found));
            elements.len() == found.len()
        }
        (Value::Object(members), Ctf::Struct(found)) => {
            let found: Vec<_> =
                found.iter().filter(|(name, _)| !(name.starts_with('_') && name.ends_with("_length"))).collect();
            let mut taken = Vec::new();
            for ((name, value), (found_name, found)) in members.iter().zip(&found) {
                let name = identifier(name, &taken);
                assert_eq!(&name, found_name);
                taken.push(name);
                assert_same(value, found);
            }
            members.len() == found.len()
        }
        _ => false,
    };
    assert!(is_same, "expected {expected}, found {found:?}");
}

fn id(event: &CtfEvent, name: &str) -> Value {
    let field = event.context.get(name).unwrap_or_else(|| &event.fields[name]);
    Some(field.number()).filter(|id| *id != 0).map_or(Value::Null, Value::from)
}

fn thread(event: &CtfEvent) -> Value {
    let name = Some(event.context["procname"].text()).filter(|name| !name.is_empty());
    json!({ "id": event.context["thread_id"].number(), "tid": event.context["vtid"].number(), "name": name })
}

/// Checks what the description of a call site says, and the fields.
fn assert_described(line: &Value, event: &CtfEvent, fields: &Ctf) {
    for name in ["name", "target", "level", "file", "line"] {
        assert_same(&line[name], &event.fields[name]);
    }
    assert_same(&line["fields"], fields);
}

type Lines<'l> = BTreeMap<&'static str, Vec<&'l Value>>;

/// Returns the fields of a span: those with which it began, and those that it got later.
fn merged_fields(new: &CtfEvent, records: &[&CtfEvent]) -> Ctf {
    let Ctf::Struct(mut fields) = new.fields["fields"].clone() else { panic!("{new:?}") };
    for record in records {
        let Ctf::Struct(later) = &record.fields["fields"] else { panic!("{record:?}") };
        for (name, value) in later {
            match fields.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => *known = value.clone(),
                None => fields.push((name.clone(), value.clone())),
            }
        }
    }
    Ctf::Struct(fields)
}

/// Checks all spans. Those of the trace have been closed, unless they have no close in the lines either.
fn assert_same_spans(lines: &Lines<'_>, trace: &CtfTrace) {
    let mut by_span: BTreeMap<(&str, u64), Vec<&CtfEvent>> = BTreeMap::new();
    for event in trace.events.iter().filter(|event| event.name.starts_with("span_")) {
        by_span.entry((&event.name, event.context["span_id"].number())).or_default().push(event);
    }
    assert_eq!(by_span.keys().filter(|(name, _)| *name == "span_new").count(), lines["span"].len());
    for span in &lines["span"] {
        let of = |name: &'static str| by_span.get(&(name, span["id"].as_u64().unwrap())).map_or(&[][..], Vec::as_slice);
        let [new] = of("span_new") else { panic!("{span}") };
        assert_eq!((json!(new.nanos), id(new, "parent_id")), (span["start_ns"].clone(), span["parent"].clone()));
        let closes: Vec<u64> = of("span_close").iter().map(|event| event.nanos).collect();
        assert_eq!(json!(closes.first()), span["end_ns"]);
        let slices = of("span_enter")
            .iter()
            .zip(of("span_exit"))
            .map(|(enter, exit)| json!({ "thread": thread(enter), "start_ns": enter.nanos, "end_ns": exit.nanos }));
        assert_eq!(json!(slices.collect::<Vec<_>>()), span["slices"]);
        let follows = of("span_follows_from").iter().map(|event| id(event, "follows_id"));
        assert_eq!(json!(follows.collect::<Vec<_>>()), span["follows_from"]);
        assert_described(span, new, &merged_fields(new, of("span_record")));
    }
}

fn assert_same_records(lines: &Lines<'_>, trace: &CtfTrace) {
    for (kind, name) in [("event", "log_record"), ("counter", "counter"), ("marker", "marker")] {
        let found: Vec<&CtfEvent> = trace.events.iter().filter(|event| event.name == name).collect();
        assert_eq!(found.len(), lines[kind].len(), "{kind}");
        for (line, event) in lines[kind].iter().zip(found) {
            assert_eq!(line["time_ns"], event.nanos);
            assert_eq!((&line["thread"], &line["span"]), (&thread(event), &id(event, "span_id")));
            match kind {
                "event" => {
                    assert_described(line, event, &event.fields["fields"]);
                    assert_eq!(line.get("cut").is_some(), event.fields.contains_key("cut"), "{line}");
                    line.get("cut").iter().for_each(|cut| assert_same(cut, &event.fields["cut"]));
                }
                "counter" => assert_same(&line["value"], &event.fields["value"]),
                _ => assert_same(&line["text"], &event.fields["text"]),
            }
        }
    }
}

/// Checks the typed events of one ring. `words` are the keys of its extension words.
fn assert_same_typed(lines: &[&Value], trace: &CtfTrace, ring: &str, words: &[&str]) {
    let of_ring = |event: &&CtfEvent| event.context["ring"] == Ctf::Text(ring.into());
    let found: BTreeMap<u64, &CtfEvent> =
        trace.events.iter().filter(of_ring).map(|event| (event.context["seqno"].number(), event)).collect();
    let lines: Vec<&&Value> = lines.iter().filter(|line| line["ring"] == ring).collect();
    assert_eq!(found.len(), lines.len());
    for line in lines {
        let event = found[&line["seqno"].as_u64().unwrap()];
        assert_eq!((&line["time_ns"], &line["name"]), (&json!(event.nanos), &json!(event.name)));
        assert_eq!((&line["code"], &line["span"]), (&json!(event.context["code"].number()), &id(event, "span_id")));
        for word in words {
            let none = json!(-1);
            assert_same(if line[word].is_null() { &none } else { &line[word] }, &event.context[*word]);
        }
        if let Some(ext) = line.get("content_ext") {
            assert_same(ext, &event.context["content_ext"]);
        }
        match event.fields.get("payload_json") {
            Some(text) => assert_eq!(serde_json::from_str::<Value>(text.text()).unwrap(), line["payload"]),
            None if line["payload"].is_null() => {
                assert_eq!(event.fields["payload_problem"], Ctf::Text("expired".into()));
            }
            None => {
                assert!(!line["payload"].to_string().contains("malformed"), "{line}");
                // The fields are a map here, so both sides are put in the order of names.
                let sorted: BTreeMap<String, Value> =
                    line["payload"].as_object().unwrap().clone().into_iter().collect();
                assert_same(&sorted.into_iter().collect(), &Ctf::Struct(event.fields.clone().into_iter().collect()));
            }
        }
    }
}

/// Exports a capture as lines and as a trace, and has babeltrace2 read the trace. Returns `None` if it is missing.
fn exported(capture: &str, trace: &Path) -> Option<(Vec<Value>, CtfTrace)> {
    let lines = run(&["export", capture, "--format", "jsonl"]).json_lines();
    let counts = run(&["export", capture, "--format", "ctf", "-o", trace.to_str().unwrap(), "--json"]).json();
    assert_eq!(counts["problems"], json!([]));
    let trace = babeltrace::read(trace)?;
    assert!(trace.is_read, "{}", trace.errors);
    assert!(trace.events.iter().is_sorted_by_key(|event| event.nanos));
    Some((lines, trace))
}

fn by_type(lines: &[Value]) -> Lines<'_> {
    let kinds = ["span", "event", "counter", "marker", "typed_event", "loss"];
    kinds.map(|kind| (kind, lines.iter().filter(|line| line["type"] == kind).collect())).into()
}

#[test]
fn babeltrace_finds_what_was_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (ring, sink_ring, capture) = (path("shop"), path("sink"), path("t.evc"));
    let recorder = PerfRecorder::builder().config(&ring).prefault(false).keep(true).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    let sink = Recorder::builder(ContentDescription::of::<Sink>()).config(&sink_ring).compact(true).shifts(15, 21);
    let sink = sink.prefault(false).keep(true).build().unwrap();
    record_spans(&recorder, &dispatch);
    record_typed(&sink);
    run(&["capture", &ring, &sink_ring, "-o", &capture, "--now", "--json"]).json();
    drop((dispatch, recorder, sink));

    let Some((lines, trace)) = exported(&capture, &dir.path().join("t.ctf")) else { return };
    let lines = by_type(&lines);
    assert_eq!(["span", "event", "counter", "marker"].map(|kind| lines[kind].len()), [4, 4, 4, 2]);
    assert_eq!((lines["typed_event"].len(), trace.discarded.len()), (64, 0));
    assert_same_spans(&lines, &trace);
    assert_same_records(&lines, &trace);
    assert_eq!(lines["event"].iter().filter(|line| line.get("cut").is_some()).count(), 2, "the long values");
    assert_same_typed(&lines["typed_event"], &trace, "sink", &["order_seqno", "line_index"]);
    let as_json = trace.events.iter().filter(|event| event.fields.contains_key("payload_json"));
    assert_eq!(as_json.count(), 24, "payloads that do not fit their types");
}

#[test]
fn babeltrace_finds_what_a_service_has_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let capture = dir.path().join("t.evc").to_str().unwrap().to_owned();
    let ring = dir.path().join("shop").to_str().unwrap().to_owned();
    // `cargo test` builds the examples, unless its options select a single test.
    let service = Path::new(program::PROGRAM).with_file_name("examples").join("http_service");
    assert!(service.exists(), "{service:?} is missing; build it: cargo build --examples --features cli");
    let of_service = [service.to_str().unwrap(), "--requests", "400", "--ring", &ring];
    let captured = run(&[&["capture", &ring, "-o", &capture, "--"][..], &of_service].concat());
    assert_eq!(captured.code, Some(0), "{captured:?}");
    let Some((lines, trace)) = exported(&capture, &dir.path().join("t.ctf")) else { return };
    let lines = by_type(&lines);
    assert!(lines["span"].len() > 800 && lines["event"].len() > 20);
    assert_same_spans(&lines, &trace);
    let mut lines = lines;
    // Events of the same nanosecond may come in another order.
    let order = |line: &Value| (line["time_ns"].as_u64(), line["thread"]["id"].as_u64());
    lines.get_mut("event").unwrap().sort_by_key(|line| order(line));
    assert_same_records(&lines, &trace);
}

#[test]
fn babeltrace_finds_execution_events() {
    let dir = tempfile::tempdir().unwrap();
    let snapshots = [Some(program::KEPT.into()), real_data::path("emn-1b-15m.snapshot")];
    for (index, snapshot) in snapshots.into_iter().flatten().enumerate() {
        let trace = dir.path().join(index.to_string());
        let Some((lines, trace)) = exported(snapshot.to_str().unwrap(), &trace) else { return };
        let lines = by_type(&lines);
        let ring = snapshot.file_name().unwrap().to_str().unwrap();
        assert!(lines["typed_event"].len() > 20 && lines["typed_event"].len() == trace.events.len());
        assert_eq!(lines["typed_event"][0]["ring"], ring);
        let words = ["block_seqno", "txn_index", "account_index", "block_number"];
        assert_same_typed(&lines["typed_event"], &trace, ring, &words);
    }
}

#[test]
fn babeltrace_counts_what_was_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let sink = Recorder::builder(ContentDescription::of::<Sink>()).config(path("sink")).compact(true).shifts(15, 21);
    let sink = sink.prefault(false).keep(true).build().unwrap();
    // The ring has 2^15 slots, and 2 MiB for payloads: the first events are lost, and payloads of others.
    (0..1_u64 << 15).for_each(|number| _ = sink.record(Sink::OnlyArray.code(), [0; 4], &[number as u8; 96]));
    (0..700).for_each(|_| _ = sink.record(Sink::Nothing.code(), [0; 4], b""));
    drop(sink);
    let Some((lines, trace)) = exported(&path("sink"), &dir.path().join("t.ctf")) else { return };
    let lines = by_type(&lines);
    let lost: u64 = lines["loss"].iter().map(|line| line["count"].as_u64().unwrap()).sum();
    assert!(lost >= 700 && lines["typed_event"].len() as u64 == (1 << 15) + 700 - lost);
    assert_eq!(trace.discarded, BTreeMap::from([("stream_0".to_owned(), lost)]));
    let expired = trace.events.iter().filter(|event| event.fields.contains_key("payload_problem")).count();
    assert!(expired > 0 && expired < trace.events.len(), "{expired}");
    assert_same_typed(&lines["typed_event"], &trace, "sink", &["order_seqno", "line_index"]);
}
