//! Spans without an end: `forward` sends of each what `export` writes of the same rings, whether a thread was in the
//! span to the end, or none was, or its close was lost.

use crate::fixtures::*;
use crate::http::Collector;
use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;

/// Spans, by their ids.
type Spans = BTreeMap<Vec<u8>, Value>;

/// Records spans that are not closed. With `is_lossy`, the close of one is lost.
fn play(place: &Path, is_lossy: bool) {
    let perf = spans_in(place.join("spans")).shifts(15, 21).tables_shift(16).shards(2);
    let recorder = perf.prefault(false).keep(true).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    child::say("ready");
    child::wait_for_parent();
    dispatcher::with_default(&dispatch, || {
        let request = info_span!("request", path = "/");
        let (idle, visited) = request.in_scope(|| (info_span!("idle"), info_span!("visited", n = 1)));
        visited.in_scope(|| info!("inside"));
        visited.follows_from(&idle);
        let closed = info_span!("closed elsewhere");
        thread::scope(|scope| {
            scope.spawn(|| {
                dispatcher::with_default(&dispatch, || {
                    // At first, the threads may share a shard.
                    while recorder.shard_count() < 2 {
                        info_span!("work").in_scope(|| ());
                    }
                    drop(closed);
                    // More than the shard of this thread holds.
                    (0..if is_lossy { 20_000 } else { 10 }).for_each(|_| info_span!("work").in_scope(|| ()));
                });
            });
        });
        std::mem::forget(request.entered());
        error!("the end comes");
        std::mem::forget((idle, visited));
    });
    child::say("recorded");
    child::wait_for_parent();
}

fn keep(spans: &mut Spans, request: ExportTraceServiceRequest) {
    for scope in request.resource_spans.into_iter().flat_map(|process| process.scope_spans) {
        for span in scope.spans {
            let known = spans.insert(span.span_id.clone(), serde_json::to_value(&span).unwrap());
            assert!(known.is_none(), "a span was sent twice: {known:?}");
        }
    }
}

fn sent(collector: &Collector) -> Spans {
    let mut spans = Spans::new();
    for (head, body) in collector.taken() {
        if head.starts_with("post /v1/traces ") {
            let mut bytes = Vec::new();
            GzDecoder::new(&body[..]).read_to_end(&mut bytes).unwrap();
            keep(&mut spans, ExportTraceServiceRequest::decode(&bytes[..]).unwrap());
        }
    }
    spans
}

fn exported(ring: &str) -> Spans {
    let run = run!("export", ring, "--format", "otlp-json", "-o", "-").ends(0);
    let mut spans = Spans::new();
    for line in run.out.lines().filter(|line| line.starts_with("{\"resourceSpans\"")) {
        keep(&mut spans, serde_json::from_str(line).unwrap());
    }
    spans
}

/// Returns the names of the spans that have an attribute which is true.
fn names_with(spans: &Spans, attribute: &str) -> Vec<String> {
    let is_it = |span: &&Value| {
        span["attributes"].list().iter().any(|of| of["key"] == attribute && of["value"]["boolValue"] == true)
    };
    let mut names: Vec<String> = spans.values().filter(is_it).map(|span| span["name"].text().to_owned()).collect();
    names.sort_unstable();
    names
}

/// Takes the end of an open span, and the time that threads were in it, which goes until then.
fn take_open_end(span: &mut Value) -> u64 {
    let attributes = span["attributes"].as_array_mut().unwrap();
    if !attributes.iter().any(|of| of["key"] == "eventring.open") {
        return 0;
    }
    attributes.retain(|of| of["key"] != "eventring.busy_ns");
    span["endTimeUnixNano"].take().text().parse().unwrap()
}

#[test]
fn open_spans_that_are_forwarded_are_those_that_are_exported() {
    let test = plays!(|part| play(&child::place(), part == "lossy"));
    for is_lossy in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let ring = place(&directory, "spans");
        let mut writer = Talk::told(test, if is_lossy { "lossy" } else { "whole" }, directory.path(), "ready");
        let collector = Collector::start();
        let to = collector.address();
        let start = || live!("forward", &ring, "--to", &to, "--host", "shop-1", "--json");
        // What is lost while a forwarder reads is not what is lost for an export at the end.
        let live = (!is_lossy).then(start);
        writeln!(writer.child.stdin.as_ref().unwrap()).unwrap();
        assert_eq!(writer.hear(), "recorded");
        thread::sleep(Duration::from_millis(300));
        assert!(writer.end().success());
        let forwarded = live.unwrap_or_else(start).end().ends(0);
        let counts = forwarded.said();
        let (sent, known) = (sent(&collector), exported(argument(&ring)));
        // The tables of the present know more than a forwarder has read.
        let _ = fs::remove_file(eventring::internal::now_path(&ring));
        let exported = exported(argument(&ring));
        let of = |spans: &Spans| (names_with(spans, "eventring.open"), names_with(spans, "eventring.end_lost"));
        let (open, end_lost) = of(&sent);
        if is_lossy {
            assert!(open.contains(&"request".to_owned()), "{open:?}");
            assert!(end_lost.contains(&"closed elsewhere".to_owned()), "{open:?} {end_lost:?}");
            let all = ["idle", "request", "visited"].map(str::to_owned).to_vec();
            assert_eq!(of(&known), (all, vec!["closed elsewhere".to_owned()]));
        } else {
            assert_eq!((open, end_lost), (["idle", "request", "visited"].map(str::to_owned).to_vec(), Vec::new()));
            assert_eq!(counts["open_spans"], json!(3));
        }
        assert_eq!(of(&sent), of(&exported));
        for (id, span) in &exported {
            let [mut sent, mut span] = [sent.get(id), Some(span)].map(|span| span.unwrap().clone());
            // The forwarder saw the program alive after its last event. Who exports the rings later did not.
            let [end, known_later] = [&mut sent, &mut span].map(take_open_end);
            assert!(end >= known_later && (!is_lossy || end == known_later), "{end} {known_later}");
            assert_eq!(sent, span, "lossy: {is_lossy}");
        }
        assert_eq!(sent.len(), exported.len(), "lossy: {is_lossy}");
    }
}
