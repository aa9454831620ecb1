//! Contexts of remote callers: stored with spans, passed on, and read back with the same ids.

use crate::fixtures::*;
use eventring::tracing::context::{ProcessIds, RemoteContext, TraceIds, inject, inject_current};
use tracing::Span;
use tracing::dispatcher::with_default;
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry;

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
const STATE: &str = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE";

/// Returns a subscriber, a layer, and a layer under a filter, each with a recorder of its own.
fn all_kinds() -> [(PerfRecorder, Dispatch); 3] {
    let recorders = [recorder(), recorder(), recorder()];
    let [first, second, third] = recorders.clone();
    let filter = eventring::tracing::FilterHandle::new("trace".parse().unwrap());
    let dispatches = [
        Dispatch::new(RecorderSubscriber::new(first)),
        Dispatch::new(registry().with(RecorderLayer::new(second))),
        Dispatch::new(registry().with(RecorderLayer::new(third).filtered(&filter))),
    ];
    let mut pairs = recorders.into_iter().zip(dispatches);
    std::array::from_fn(|_| pairs.next().unwrap())
}

/// Returns the spans by name, with what makes their ids, as a reader of the ring finds them.
fn read(recorder: &PerfRecorder) -> (SpanTree, HashMap<String, TraceIds>) {
    let readers = recorder.open_readers().unwrap();
    let (created, writer) = {
        let extension = readers[0].info().extension.unwrap();
        (extension.created_epoch_nanos, extension.writer)
    };
    let ids = ProcessIds::new(writer.pid, &writer.program_name, created);
    let tree = SpanTree::from_records(&reference::records(&mut PerfReader::from_shards(readers)));
    let by_name = tree.iter().map(|span| (span.name(), ids.of(span))).collect();
    (tree, by_name)
}

fn headers_of(span: &Span) -> HashMap<String, String> {
    let mut headers = HashMap::new();
    assert!(inject(span, |name, value| assert!(headers.insert(name.to_owned(), value.to_owned()).is_none())));
    headers
}

fn parent_of(ids: &TraceIds, flags: u8) -> String {
    RemoteContext::new(ids.trace_id, ids.span_id, flags).unwrap().to_string()
}

#[test]
fn the_ids_in_headers_are_those_that_readers_find_also_below_a_remote_caller() {
    for (recorder, dispatch) in all_kinds() {
        let (mut sent, caller) = (HashMap::new(), RemoteContext::parse(CALLER, Some(STATE)).unwrap());
        with_default(&dispatch, || {
            let own = info_span!("own", n = 1);
            let own_child = own.in_scope(|| info_span!("own child"));
            let request = info_span!("request", path = "/");
            assert!(caller.attach(&request));
            assert!(!caller.attach(&request), "it has a caller already");
            let child = request.in_scope(|| info_span!("child"));
            let grandchild = info_span!(parent: &child, "grandchild", n = 2);
            let spans = [("own", &own), ("own child", &own_child), ("request", &request), ("child", &child)];
            for (name, span) in spans.into_iter().chain([("grandchild", &grandchild)]) {
                sent.insert(name, headers_of(span));
            }
            let mut current = HashMap::new();
            child.in_scope(|| inject_current(|name, value| drop(current.insert(name.to_owned(), value.to_owned()))));
            assert_eq!(current, sent["child"]);
            assert!(!inject_current(|_, _| panic!("there is no current span")));
        });
        let (tree, ids) = read(&recorder);
        for (name, headers) in &sent {
            let is_remote = !name.starts_with("own");
            // The flag is the caller's. A trace that begins here is recorded.
            assert_eq!(headers["traceparent"], parent_of(&ids[*name], u8::from(!is_remote)), "{name}");
            assert_eq!(headers.get("tracestate").map(String::as_str), is_remote.then_some(STATE), "{name}");
            assert_eq!(ids[*name].trace_id == caller.trace_id(), is_remote, "{name}");
        }
        let parents = [("own child", "own"), ("child", "request"), ("grandchild", "child")];
        for (name, parent) in parents {
            assert_eq!(ids[name].parent_span_id, Some(ids[parent].span_id), "{name}");
        }
        assert_eq!((ids["own"].parent_span_id, ids["request"].parent_span_id), (None, Some(caller.span_id())));
        let request = tree.iter().find(|span| span.name() == "request").unwrap();
        let text = |name: &str| request.fields.get(name).map(ToString::to_string);
        assert_eq!(text("path").as_deref(), Some("/"));
        assert_eq!(text("eventring.traceparent").as_deref(), Some(CALLER));
        assert_eq!(text("eventring.tracestate").as_deref(), Some(STATE));
    }
}

#[test]
fn a_span_inside_a_span_can_have_a_caller_of_its_own() {
    for (recorder, dispatch) in all_kinds() {
        let caller = RemoteContext::parse(CALLER, None).unwrap().with_sampled(true);
        let mut sent = HashMap::new();
        with_default(&dispatch, || {
            let _server = info_span!("server").entered();
            let request = info_span!("request");
            assert!(caller.attach(&request));
            let child = request.in_scope(|| info_span!("child"));
            sent = headers_of(&child);
        });
        let (_, ids) = read(&recorder);
        assert_eq!(sent["traceparent"], parent_of(&ids["child"], 1));
        assert_eq!(ids["request"].parent_span_id, Some(caller.span_id()));
        assert_ne!(ids["server"].trace_id, caller.trace_id());
    }
}

#[test]
fn a_span_that_is_not_recorded_has_no_context() {
    let caller = RemoteContext::parse(CALLER, None).unwrap();
    let never = |_: &str, _: &str| panic!("there is nothing to write");
    for (recorder, dispatch) in all_kinds() {
        recorder.set_enabled(false);
        with_default(&dispatch, || {
            let span = info_span!("unrecorded");
            assert!(!caller.attach(&span) && !inject(&span, never) && !inject(&Span::none(), never));
        });
        assert!(read(&recorder).1.is_empty());
    }
    assert!(!caller.attach(&info_span!("without a subscriber")));
}

#[test]
fn scopes_are_in_the_trace_of_the_span_around_them() {
    eventring_stress::alone!();
    let recorder = recorder();
    assert!(eventring::tracing::PERF.install(recorder.clone()).is_ok());
    let mut sent = String::new();
    with_default(&Dispatch::new(RecorderSubscriber::global()), || {
        let request = info_span!("request");
        assert!(RemoteContext::parse(CALLER, None).unwrap().attach(&request));
        request.in_scope(|| {
            let _scope = eventring::scope!("scope");
            assert!(inject_current(|_, value| sent = value.to_owned()));
        });
    });
    assert_eq!(sent, parent_of(&read(&recorder).1["scope"], 0));
}
