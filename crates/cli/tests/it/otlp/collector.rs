//! Spans, log records, typed events and losses go to an OpenTelemetry collector of other people, PyPI's rotel. What it
//! passes on is what the lines of JSON say: the same spans, trees, times, values.

use crate::consumers;
use crate::fixtures::*;
use crate::http;
use crate::shop::{Order, Shop};
use std::process::ChildStdout;

const THREADS: u64 = 3;
const TREES_EACH: u64 = 40;
/// The events of the ring that loses some.
const MANY: u64 = 40_000;

fn typed_ring(path: &Path, is_small: bool) -> Recorder {
    let ring = typed_in::<Shop>(path).keep(true);
    let ring = if is_small { ring.compact(true).shifts(15, 21) } else { ring.shifts(16, 27) };
    ring.build().unwrap()
}

/// Records trees of spans, whose children run on other threads and go on after their parents.
fn record_trees(thread: u64, orders: &Recorder) {
    for number in 0..TREES_EACH {
        let id = thread * TREES_EACH + number;
        let order = info_span!("order", id, large = u64::MAX, share = 0.25, otel.kind = "server");
        let payment = order.in_scope(|| {
            record!(orders => Shop::OrderPlaced, &Order { id });
            info!(attempt = 1, "order taken");
            info_span!("payment", method = "card", paid = true)
        });
        let audit = payment.in_scope(|| tracing::debug_span!(target: "shop::audit", "audit"));
        audit.follows_from(&order);
        drop((order, payment));
        let dispatch = dispatcher::get_default(Clone::clone);
        thread::scope(|scope| {
            let other = thread::Builder::new().name(format!("auditor {thread}"));
            let work = move || {
                dispatcher::with_default(&dispatch, || {
                    audit.in_scope(|| {
                        info_span!("line").in_scope(|| record!(orders => Shop::DayEnded));
                        if number.is_multiple_of(10) {
                            error!(code = -7, "the books do not balance");
                        }
                    });
                });
            };
            other.spawn_scoped(scope, work).unwrap();
        });
    }
    warn!("done");
    record!(orders => Shop::DayEnded);
}

fn play(place: &Path) {
    let recorder = spans_in(place.join("spans")).shifts(17, 24).tables_shift(16).keep(true).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder));
    let (orders, small) = (typed_ring(&place.join("orders"), false), typed_ring(&place.join("small"), true));
    for id in 0..MANY {
        record!(small => Shop::OrderPlaced, &Order { id });
    }
    child::say("ready");
    child::wait_for_parent();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (dispatch, orders) = (&dispatch, &orders);
            scope.spawn(move || dispatcher::with_default(dispatch, || record_trees(thread, orders)));
        }
    });
    dispatcher::with_default(&dispatch, || std::mem::forget(info_span!("never closed")));
}

/// A collector, and what it has passed on.
pub(crate) struct Collector {
    child: Child,
    out: BufReader<ChildStdout>,
    pub(crate) port: u16,
}

impl Collector {
    /// Starts the collector. Returns `None` if it is not there.
    fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts a collector that keeps only the names and ids of spans.
    pub(crate) fn start_briefly() -> Option<Self> {
        Self::start_with(&["brief"])
    }

    fn start_with(arguments: &[&str]) -> Option<Self> {
        let mut command = consumers::script("otlp_collector.py")?;
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut port = String::new();
        out.read_line(&mut port).unwrap();
        Some(Self { child, out, port: port.trim().parse().expect("the collector listens") })
    }

    /// Posts the lines of an export to the collector.
    fn post(&mut self, file: &Path) {
        writeln!(self.child.stdin.as_mut().unwrap(), "post {}", file.display()).unwrap();
    }

    /// Returns everything that the collector has passed on, as soon as it is as much as expected.
    pub(crate) fn passed_on(mut self, spans: usize, logs: usize) -> Value {
        writeln!(self.child.stdin.as_mut().unwrap(), "{spans} {logs}").unwrap();
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        assert!(self.child.wait().unwrap().success());
        serde_json::from_str(&line).unwrap()
    }
}

fn hex(id: &Value) -> String {
    id.as_u64().map_or_else(String::new, |id| format!("{id:016x}"))
}

/// Returns a value as the attribute that it becomes.
fn attribute(value: &Value) -> Value {
    match value {
        Value::Bool(_) => json!({"type": "bool_value", "value": value}),
        Value::Number(number) if number.is_i64() => json!({"type": "int_value", "value": value}),
        Value::Number(number) if number.is_u64() => json!({"type": "string_value", "value": number.to_string()}),
        Value::Number(_) => json!({"type": "double_value", "value": value}),
        _ => json!({"type": "string_value", "value": value}),
    }
}

/// Compares what the lines of JSON say with what the collector passed on. Returns the differences.
fn differences(lines: &[Value], all: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    // Names of what is compared are made only of what differs: there are very many.
    let mut check = |what: &dyn std::fmt::Display, is: &Value, expected: Value| {
        if *is != expected {
            wrong.push(format!("{what}: {is}, expected {expected}"));
        }
    };
    let of_type = |kind: &'static str| lines.iter().filter(move |line| line["type"] == kind);
    let spans: HashMap<&str, &Value> = all["spans"].list().iter().map(|span| (span["id"].text(), span)).collect();
    check(&"spans", &json!(spans.len()), json!(of_type("span").count()));
    check(&"messages of spans", &json!(all["spans"].list().len()), json!(spans.len()));
    let by_id: HashMap<String, &Value> = of_type("span").map(|line| (hex(&line["id"]), line)).collect();
    let root = |line: &Value| {
        let mut id = hex(&line["id"]);
        while let Some(parent) = by_id.get(&id).map(|line| hex(&line["parent"])).filter(|parent| !parent.is_empty()) {
            id = parent;
        }
        id
    };
    let mut events: HashMap<String, usize> = HashMap::new();
    for line in lines.iter().filter(|line| line["type"] == "event" || line["type"] == "typed_event") {
        *events.entry(hex(&line["span"])).or_default() += 1;
    }
    let mut traces: HashMap<String, &Value> = HashMap::new();
    for (id, line) in &by_id {
        let Some(span) = spans.get(id.as_str()) else {
            check(&format_args!("span {id}"), &Value::Null, (*line).clone());
            continue;
        };
        let name = |what: &str| format!("{what} of span {id}");
        check(&name("name"), &span["name"], line["name"].clone());
        check(&name("parent"), &span["parent"], json!(hex(&line["parent"])));
        check(&name("scope"), &span["scope"], line["target"].clone());
        check(&name("start"), &span["start"], line["start_ns"].clone());
        if line["open"] == false {
            check(&name("end"), &span["end"], line["end_ns"].clone());
        } else {
            check(&name("openness"), &span["attributes"]["eventring.open"], attribute(&json!(true)));
        }
        check(&name("busy time"), &span["attributes"]["eventring.busy_ns"], attribute(&line["busy_ns"]));
        check(&name("file"), &span["attributes"]["code.file.path"], attribute(&line["file"]));
        check(&name("kind"), &span["kind"], json!(if line["name"] == "order" { 2 } else { 1 }));
        for (field, value) in line["fields"].as_object().unwrap() {
            check(&name(field), &span["attributes"][field], attribute(value));
        }
        let trace = traces.entry(root(line)).or_insert(&span["trace"]);
        check(&name("trace"), &span["trace"], trace.clone());
        let links = line["follows_from"].list().iter();
        let links: Vec<Value> = links.map(|id| json!([spans[hex(id).as_str()]["trace"], hex(id)])).collect();
        check(&name("links"), &span["links"], json!(links));
        check(&name("events"), &json!(span["events"].list().len()), json!(events.get(id).copied().unwrap_or(0)));
    }
    check(&"traces", &json!(traces.values().collect::<std::collections::HashSet<_>>().len()), json!(traces.len()));
    let mut has_error = 0;
    for line in of_type("event").filter(|line| !line["span"].is_null()) {
        let span = spans[hex(&line["span"]).as_str()];
        let is_it = |event: &&Value| {
            event["time"] == line["time_ns"]
                && event["name"] == line["fields"]["message"]
                && line["fields"]
                    .as_object()
                    .unwrap()
                    .iter()
                    .all(|(name, value)| name == "message" || event["attributes"][name] == attribute(value))
                && event["attributes"]["thread.name"] == attribute(&line["thread"]["name"])
        };
        let found = span["events"].list().iter().find(is_it);
        check(&format_args!("log record {line}"), &json!(found.is_some()), json!(true));
        if line["level"] == "ERROR" {
            has_error += 1;
            check(&format_args!("status of span {}", line["span"]), &span["status"], json!(2));
        }
    }
    let failed = spans.values().filter(|span| span["status"] == 2).count();
    check(&"failed spans", &json!(failed), json!(has_error));
    let logs = all["logs"].list();
    let typed_logs: HashMap<(&str, u64), &Value> = logs
        .iter()
        .filter_map(|log| {
            let of = &log["attributes"];
            Some(((of["eventring.ring"]["value"].as_str()?, of["eventring.seqno"]["value"].as_u64()?), log))
        })
        .collect();
    let mut loose = 0;
    for line in of_type("typed_event") {
        let is_it = |event: &&Value| {
            event["time"] == line["time_ns"]
                && event["attributes"]["eventring.seqno"] == attribute(&line["seqno"])
                && line["payload"]
                    .as_object()
                    .into_iter()
                    .flatten()
                    .all(|(name, value)| event["attributes"][name] == attribute(value))
        };
        let found = if line["span"].is_null() {
            loose += 1;
            let log = typed_logs.get(&(line["ring"].text(), line["seqno"].number())).copied();
            log.filter(is_it).filter(|log| log["event_name"] == line["name"] && log["trace"] == "")
        } else {
            let of_span = spans[hex(&line["span"]).as_str()]["events"].list();
            of_span.iter().find(is_it).filter(|event| event["name"] == line["name"])
        };
        check(&format_args!("typed event {line}"), &json!(found.is_some()), json!(true));
    }
    let losses: Vec<&Value> = logs.iter().filter(|log| log["event_name"] == "eventring.lost").collect();
    check(&"losses", &json!(losses.len()), json!(of_type("loss").count()));
    for line in of_type("loss") {
        let is_it = |log: &&&Value| {
            let of = &log["attributes"];
            of["eventring.ring"] == attribute(&line["ring"])
                && of["eventring.lost.first_seqno"] == attribute(&line["first_seqno"])
                && of["eventring.lost.count"] == attribute(&line["count"])
                && of["eventring.lost.cause"] == attribute(&line["cause"])
        };
        check(&format_args!("loss {line}"), &json!(losses.iter().any(|log| is_it(&log))), json!(true));
    }
    let loose_records = of_type("event").filter(|line| line["span"].is_null()).count();
    check(&"log records", &json!(logs.len()), json!(losses.len() + loose + loose_records));
    wrong
}

/// Returns the spans in the order of their ids, without what differs between a host and a file.
fn ordered(all: &Value) -> Vec<Value> {
    let mut spans = all["spans"].list().clone();
    spans.sort_by_key(|span| span["id"].text().to_owned());
    for span in &mut spans {
        let resource = span["resource"].as_object_mut().unwrap();
        for name in ["host.name", "eventring.lost_events", "eventring.ring"] {
            resource.remove(name);
        }
    }
    spans
}

#[test]
fn a_collector_of_others_passes_on_the_spans_of_a_live_program_and_of_a_capture() {
    let test = plays!(play(&child::place()));
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let path = |name: &str| place.join(name);
    let rings = &["spans", "orders", "small"].map(path);
    let Some(collector) = Collector::start() else { return };
    let mut writer = Talk::told(test, "writer", place, "ready");
    let to = format!("otlp://127.0.0.1:{}", collector.port);
    let forward = live!("forward", rings, "--to", &to, "--host", "shop-1", "--json");
    assert!(writer.end().success());
    let counts = forward.end().json();
    let trees = THREADS * TREES_EACH;
    assert_eq!((&counts["spans"], &counts["open_spans"]), (&json!(trees * 4 + 1), &json!(1)), "{counts}");
    assert_eq!((&counts["rejected"], &counts["unsent"]), (&json!(0), &json!(0)), "{counts}");
    let (spans, logs) = (counts["spans"].number(), counts["log_records"].number());
    let live = collector.passed_on(spans as usize, logs as usize);
    let all_spans = live["spans"].list();
    assert!(all_spans.iter().all(|span| span["resource"]["host.name"]["value"] == "shop-1"), "{}", all_spans[0]);

    let capture = path("all.evc");
    let captured = run!("capture", rings, "-o", &capture, "--json").json();
    assert_eq!(captured["lost"], counts["lost"]);
    assert!(captured["lost"].number() > 0, "{captured}");
    let lines = run!("export", &capture, "--format", "jsonl").json_lines();
    assert_eq!(differences(&lines, &live), [""; 0]);

    // The capture has the same messages, and the collector takes them from the file, too.
    let file = path("all.otlp.json");
    run!("export", &capture, "--format", "otlp-json", "-o", &file).ends(0);
    let mut collector = Collector::start().unwrap();
    collector.post(&file);
    let posted = collector.passed_on(spans as usize, logs as usize);
    assert_eq!(differences(&lines, &posted), [""; 0]);
    // Who looks on may know that the program lived on after its last event. So the span that it never closed may last
    // longer.
    let (mut posted, mut live) = (posted, live);
    let end_of_open = |passed_on: &mut Value| {
        let spans = passed_on["spans"].as_array_mut().unwrap();
        let open = spans.iter_mut().find(|span| span["name"] == "never closed").unwrap();
        open["end"].take().number()
    };
    assert!(end_of_open(&mut live) >= end_of_open(&mut posted));
    assert_eq!(ordered(&posted), ordered(&live));

    // The controls: one wrong span each.
    for (what, wrong) in [
        ("parent", json!("0000000000000001")),
        ("start", json!(1)),
        ("trace", json!("00")),
        ("links", json!([["00", "00"]])),
    ] {
        let mut changed = live.clone();
        let spans = changed["spans"].as_array_mut().unwrap();
        let audit = spans.iter_mut().find(|span| span["name"] == "audit").unwrap();
        audit[what] = wrong;
        assert!(!differences(&lines, &changed).is_empty(), "{what}");
    }
    let mut fewer = live;
    fewer["spans"].as_array_mut().unwrap().pop();
    assert!(!differences(&lines, &fewer).is_empty());
}

#[test]
fn a_collector_that_is_away_at_first_gets_everything_later() {
    let directory = tempfile::tempdir().unwrap();
    let ring = program::place(&directory, "orders");
    let orders = typed_ring(&ring, false);
    for id in 0..5000 {
        record!(orders => Shop::OrderPlaced, &Order { id });
    }
    drop(orders);
    // A port on which nobody listens yet.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let to = format!("otlp://127.0.0.1:{port}");
    let unsent = run!("forward", &ring, "--to", &to, "--timeout", "1", "--json");
    let counts = unsent.said();
    assert_eq!((unsent.code, &counts["unsent"], &counts["log_records"]), (Some(1), &json!(5000), &json!(0)));
    assert!(counts["last_error"].text().contains("/v1/logs"), "{counts}");

    // The ring comes later, too.
    let later = program::place(&directory, "later");
    let forward = live!("forward", &later, "--to", &to, "--header", "key=of all", "--wait", "--json");
    thread::sleep(Duration::from_millis(500));
    fs::rename(&ring, &later).unwrap();
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    // It first says that it is busy, then that it rejects some, then it takes all.
    let partial = [0x0a, 0x02, 0x08, 0x03];
    let answers: [(&str, &[u8]); 5] = [
        ("503 Service Unavailable\r\nretry-after: 0", b""),
        ("429 Too Many Requests", b""),
        ("200 OK", &partial),
        ("400 Bad Request", b""),
        ("200 OK", b""),
    ];
    for (status, body) in answers {
        let (mut stream, _) = listener.accept().unwrap();
        let head = http::read_request(&stream);
        assert!(head.starts_with("post /v1/logs http/1.1"), "{head}");
        assert!(head.contains("content-type: application/x-protobuf") && head.contains("key: of all"), "{head}");
        let length = body.len();
        write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n").unwrap();
        stream.write_all(body).unwrap();
    }
    let counts = forward.end().ends(1).said();
    // Three batches: 2,000 of which 3 were rejected, 2,000 that were refused, 1,000.
    assert_eq!(
        (&counts["log_records"], &counts["rejected"], &counts["unsent"]),
        (&json!(2997), &json!(2003), &json!(0))
    );
    assert!(counts["retries"].number() >= 2, "{counts}");
}
