//! babeltrace2 reads the Common Trace Format traces that eventring writes: as many events as the JSON lines of the same
//! capture have, with the same fields and the same nanoseconds, and as many losses.

use crate::babeltrace;
use crate::babeltrace::{Ctf, CtfEvent, CtfTrace};
use crate::every_kind;
use crate::fixtures::*;

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
        let of = |name: &'static str| by_span.get(&(name, span["id"].number())).map_or(&[][..], Vec::as_slice);
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
        let event = found[&line["seqno"].number()];
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
    let lines = run!("export", capture, "--format", "jsonl").json_lines();
    let counts = run!("export", capture, "--format", "ctf", "-o", trace.to_str().unwrap(), "--json").json();
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
    let Some((lines, trace)) = exported(&every_kind::capture_everything(dir.path()), &dir.path().join("t.ctf")) else {
        return;
    };
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
    let Some((lines, trace)) = exported(&every_kind::ring_with_losses(dir.path()), &dir.path().join("t.ctf")) else {
        return;
    };
    let lines = by_type(&lines);
    let lost: u64 = lines["loss"].iter().map(|line| line["count"].number()).sum();
    assert!(lost >= 700 && lines["typed_event"].len() as u64 == (1 << 15) + 700 - lost);
    // Nobody has discarded what was overwritten before the capture began.
    let before = lines["loss"].iter().filter(|line| line["cause"] == "overwritten_before");
    let before: u64 = before.map(|line| line["count"].number()).sum();
    let discarded = Some(lost - before).filter(|discarded| *discarded > 0);
    assert_eq!(trace.discarded, discarded.map(|discarded| ("stream_0".to_owned(), discarded)).into_iter().collect());
    let expired = trace.events.iter().filter(|event| event.fields.contains_key("payload_problem")).count();
    assert!(expired > 0 && expired < trace.events.len(), "{expired}");
    assert_same_typed(&lines["typed_event"], &trace, "sink", &["order_seqno", "line_index"]);
}
