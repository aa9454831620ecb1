//! One trace across services: two of ours, and one of others between them.

mod services;

use crate::consumers;
use crate::fixtures::*;
use crate::otlp::collector::Collector;
use std::collections::HashSet;

/// A span as a collector or an export shows it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Seen {
    name: String,
    id: String,
    parent: String,
}

/// The spans of each trace.
type Traces = HashMap<String, Vec<Seen>>;

/// The spans of one request, by name: `order` calls `middle`, which is the service of others, from `pay`, and `request`
/// from `check`.
const OF_REQUEST: [&str; 8] = ["check", "middle", "order", "pay", "request", "request", "work", "work"];

fn traces<'v>(spans: impl IntoIterator<Item = &'v Value>, names: [&str; 4]) -> Traces {
    let mut traces = Traces::new();
    for span in spans {
        let [trace, id, parent, name] = names.map(|name| span[name].as_str().unwrap_or_default().to_owned());
        traces.entry(trace).or_default().push(Seen { name, id, parent });
    }
    traces
}

/// Returns the spans whose parents are not in their trace.
fn orphans(traces: &Traces) -> Vec<&Seen> {
    let of_trace = |spans: &'_ Vec<Seen>| spans.iter().map(|span| span.id.clone()).collect::<HashSet<String>>();
    let found = traces.values().flat_map(|spans| {
        let ids = of_trace(spans);
        spans.iter().filter(move |span| !span.parent.is_empty() && !ids.contains(&span.parent))
    });
    found.collect()
}

/// Returns what is wrong with the tree of a request.
fn problem_of(spans: &[Seen]) -> Option<String> {
    let mut names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    names.sort_unstable();
    let ids: HashSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    let roots = spans.iter().filter(|span| span.parent.is_empty()).count();
    let parent = |span: &Seen| spans.iter().find(|of| of.id == span.parent).map(|of| of.name.as_str());
    let is_right = spans.iter().all(|span| match span.name.as_str() {
        "order" => span.parent.is_empty(),
        "pay" | "check" => parent(span) == Some("order"),
        "middle" => parent(span) == Some("pay"),
        "request" => matches!(parent(span), Some("middle" | "check")),
        _ => parent(span) == Some("request"),
    });
    let is_whole = names == OF_REQUEST && ids.len() == spans.len() && roots == 1;
    (!is_whole || !is_right).then(|| format!("{spans:?}"))
}

fn flows(trace: &Path) -> Vec<[Value; 2]> {
    let trace: Value = serde_json::from_slice(&fs::read(trace).unwrap()).unwrap();
    let events = trace.as_array().or_else(|| trace["traceEvents"].as_array()).unwrap();
    let of_phase = |phase: &'static str| events.iter().filter(move |event| event["ph"] == phase);
    let begins: HashMap<String, &Value> = of_phase("s").map(|event| (event["id"].to_string(), &event["pid"])).collect();
    of_phase("f").map(|event| [begins[&event["id"].to_string()].clone(), event["pid"].clone()]).collect()
}

#[test]
fn services_of_ours_and_of_others_make_one_tree_of_each_request() {
    let test = test_name!();
    let requests: usize = std::env::var("EVENTRING_REQUESTS").map_or(100, |count| count.parse().unwrap());
    match child::part().as_deref() {
        Some("front") => return services::front(&child::place(), requests),
        Some("back") => return services::back(&child::place(), requests),
        _ => {}
    }
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let path = |name: &str| place.join(name);
    let Some(collector) = Collector::start_briefly() else { return };
    let Some(mut middle) = consumers::script("otel_service.py") else { return };

    let mut back = Talk::start(test, "back", place);
    let back_port = back.hear();
    let ports = [back_port.clone(), collector.port.to_string()];
    let mut middle = middle.args(ports).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut middle_port = String::new();
    BufReader::new(middle.stdout.take().unwrap()).read_line(&mut middle_port).unwrap();
    fs::write(path("ports"), format!("{} {back_port}", middle_port.trim())).unwrap();
    let mut front = Talk::told(test, "front", place, "ready");
    let to = format!("otlp://127.0.0.1:{}", collector.port);
    let (front_ring, back_ring) = (path("front"), path("back"));
    let rings = [argument(&front_ring), argument(&back_ring)];
    let forward = live!("forward", rings[0], rings[1], "--to", &to, "--json");
    assert!(front.end().success());
    drop(middle.stdin.take());
    assert!(middle.wait().unwrap().success());
    assert!(back.end().success());
    let forwarded = forward.end().said();
    assert_eq!((&forwarded["spans"], &forwarded["lost"]), (&json!(7 * requests), &json!(0)), "{forwarded}");

    // The collector of others has one tree for each request.
    let all = collector.passed_on(8 * requests, 0);
    let in_collector = traces(all["spans"].list(), ["trace", "id", "parent", "name"]);
    assert_eq!((in_collector.len(), orphans(&in_collector).len()), (requests, 0));
    assert_eq!(in_collector.values().find_map(|spans| problem_of(spans)), None);
    println!("{requests} requests, {} spans, 0 orphans", 8 * requests);

    // So have the captures of both services, but for the service that is not ours.
    let captures = ["front", "back"].map(|name| path(&format!("{name}.evc")));
    for (ring, capture) in rings.iter().zip(&captures) {
        assert_eq!(run!("capture", ring, "-o", capture, "--json").json()["lost"], 0);
    }
    let [front, back] = captures.each_ref().map(|capture| argument(capture));
    let lines = run!("export", front, back, "--format", "jsonl").json_lines();
    let spans = lines.iter().filter(|line| line["type"] == "span");
    let mut in_lines = traces(spans, ["trace_id", "span_id", "parent_span_id", "name"]);
    assert_eq!(in_lines.len(), requests);
    for (trace, spans) in &mut in_lines {
        let of_others = in_collector[trace].iter().filter(|span| span.name == "middle").cloned();
        assert_eq!(orphans(&HashMap::from([(trace.clone(), spans.clone())])).len(), 1, "the one called by others");
        spans.extend(of_others);
        assert_eq!(problem_of(spans), None);
        let same = |spans: &[Seen]| spans.iter().cloned().collect::<HashSet<Seen>>();
        assert_eq!(same(spans), same(&in_collector[trace]));
    }

    // Arrows lead from the calls to the spans of the other program, if both are in the trace.
    for (view, inputs, expected) in
        [("thread", vec![front, back], requests), ("span", vec![front, back], requests), ("thread", vec![back], 0)]
    {
        let trace = path("trace.json");
        let mut words = vec!["export"];
        words.extend(inputs);
        words.extend(["--view", view, "--format", "chrome", "--force", "-o", argument(&trace)]);
        run(&words).ends(0);
        let flows = flows(&trace);
        assert_eq!((flows.len(), flows.iter().any(|[from, to]| from == to)), (expected, false), "{view}");
    }

    // The controls: a span that is missing, one that is there twice, one with another parent.
    let of_any = in_collector.values().next().unwrap();
    let without: Vec<Seen> = of_any.iter().filter(|span| span.name != "middle").cloned().collect();
    assert_eq!(orphans(&HashMap::from([(String::new(), without.clone())])).len(), 1);
    let twice = [of_any.clone(), vec![of_any[0].clone()]].concat();
    let other = of_any.iter().map(|span| Seen { parent: of_any[0].id.clone(), ..span.clone() }).collect();
    assert!([without, twice, other].iter().all(|spans| problem_of(spans).is_some()));
}
