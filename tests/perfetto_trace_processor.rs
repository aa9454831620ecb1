//! The trace_processor of Perfetto reads the traces that eventring writes: it finds the slices, arguments, flows,
//! instants, counters and losses that the recording has, and nothing that it calls an error.
#![cfg(feature = "cli")]

mod consumers;
mod program;

use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::EventType as _;
use eventring::schema::exec::ExecEvent;
use eventring::tracing::{Counter, PerfRecorder, RecorderSubscriber};
use program::run;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};
use tracing::{Dispatch, Span, field, info, info_span, warn};

/// The number of typed events. Its ring has 2^15 slots, so the first of them are lost.
const TYPED_EVENTS: u64 = (1 << 15) + 700;

static QUEUE_LENGTH: Counter = Counter::new("queue length");

/// Waits until the clock has gone on, so that no slice is without length.
fn moment() {
    let began = Instant::now();
    while began.elapsed() < Duration::from_micros(2) {}
}

/// Runs something on a new thread, which records, too. Returns its result.
fn on_thread<T: Send>(name: &str, dispatch: &Dispatch, run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let body = || tracing::dispatcher::with_default(dispatch, run);
        std::thread::Builder::new().name(name.into()).spawn_scoped(scope, body).unwrap().join().unwrap()
    })
}

/// Records spans that nest, that overlap, and that move between threads; fields of all types; log records and a
/// counter.
fn record(recorder: &PerfRecorder, dispatch: &Dispatch) -> Span {
    let request = info_span!(
        "request",
        int = i64::MIN,
        uint = 1_u64 << 40,
        float = 0.25,
        yes = true,
        no = false,
        wide = i128::MIN,
        text = "a text",
        empty = "",
        debug = ?Some("é"),
        late = field::Empty
    );
    request.in_scope(|| {
        moment();
        for number in 0..20_u64 {
            // These texts repeat, so most of them are interned.
            let step = info_span!("step", number, kind = if number % 3 == 0 { "read" } else { "write" });
            step.in_scope(|| {
                moment();
                info!(number, "step {number} is done");
                moment();
            });
            QUEUE_LENGTH.sample_to(recorder, number);
            QUEUE_LENGTH.sample_to(recorder, -0.5);
        }
        request.record("late", "now");
        moment();
    });
    // A child that another thread enters first, then this one.
    let child = request.in_scope(|| info_span!("child", of = "request"));
    let moved = on_thread("helper", dispatch, || {
        child.in_scope(moment);
        let job = info_span!("job");
        job.in_scope(moment);
        job
    });
    child.in_scope(moment);
    let after = info_span!("after");
    after.follows_from(&moved);
    after.follows_from(&request);
    on_thread("last", dispatch, || after.in_scope(moment));
    // Two slices that overlap without nesting.
    let (first, second) = (info_span!("first"), info_span!("second"));
    let first_entered = first.enter();
    moment();
    let second_entered = second.enter();
    moment();
    drop(first_entered);
    moment();
    drop(second_entered);
    warn!(parent: None, "in no span");
    let open = info_span!("open");
    std::mem::forget(open.clone().entered());
    open
}

/// A span slice: the id of its span, its name, and its times. The end is `None` if the slice is open.
type SpanSlice = (u64, String, u64, Option<u64>);

/// Returns the span slices of the JSON lines.
fn recorded_slices(lines: &[Value]) -> BTreeSet<SpanSlice> {
    let spans = lines.iter().filter(|line| line["type"] == "span");
    let slices = spans.flat_map(|span| {
        span["slices"].as_array().unwrap().iter().map(|slice| {
            let name = span["name"].as_str().unwrap().to_owned();
            (span["id"].as_u64().unwrap(), name, slice["start_ns"].as_u64().unwrap(), slice["end_ns"].as_u64())
        })
    });
    slices.collect()
}

/// Returns a span slice of trace_processor; `None` if this is an instant or a loss.
fn span_slice(slice: &Value) -> Option<SpanSlice> {
    let (start, duration) = (slice["ts"].as_u64().unwrap(), slice["dur"].as_i64().unwrap());
    let id = slice["args"]["debug.span_id"][1].as_str().filter(|_| duration != 0)?;
    let end = (duration > 0).then(|| start + duration.unsigned_abs());
    Some((id.parse().unwrap(), slice["name"].as_str().unwrap().to_owned(), start, end))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the arguments that the last slice of a span should have, as trace_processor writes them.
fn expected_args(span: &Value) -> BTreeMap<String, String> {
    let fields = span["fields"].as_object().unwrap().iter();
    let mut args: BTreeMap<String, String> =
        fields.map(|(name, value)| (format!("debug.{name}"), text(value))).collect();
    args.insert("debug.span_id".into(), text(&span["id"]));
    if !span["parent"].is_null() {
        args.insert("debug.parent_span_id".into(), text(&span["parent"]));
    }
    // Of several arguments with one name, trace_processor shows the last.
    if let Some(follows) = span["follows_from"].as_array().unwrap().last() {
        args.insert("debug.follows_from".into(), text(follows));
    }
    if span["open"] == true {
        args.insert("debug.open".into(), "true".into());
    }
    args.insert("source.file_name".into(), text(&span["file"]));
    args.insert("source.line_number".into(), text(&span["line"]));
    args
}

fn args(slice: &Value) -> BTreeMap<String, String> {
    let args = slice["args"].as_object().unwrap().iter();
    let args = args.filter(|(name, value)| *name != "source_location_iid" && !value[1].is_null());
    args.map(|(name, value)| (name.clone(), text(&value[1]))).collect()
}

/// Checks that the depth of each slice is the number of slices of its track around it.
fn assert_depths(slices: &[(&Value, SpanSlice)]) {
    for (slice, (_, _, start, end)) in slices {
        let end = end.unwrap_or(u64::MAX);
        let around = slices.iter().filter(|(other, (_, _, other_start, other_end))| {
            other["track"] == slice["track"] && *other_start < *start && other_end.unwrap_or(u64::MAX) > end
        });
        assert_eq!(slice["depth"], around.count(), "{slice}");
    }
}

#[test]
fn trace_processor_finds_what_was_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (ring, typed, capture, trace) = (path("shop"), path("typed"), path("t.evc"), path("trace"));
    let recorder = PerfRecorder::builder().config(&ring).prefault(false).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    let exec = Recorder::builder(ContentDescription::of::<ExecEvent>()).config(&typed).compact(true).shifts(15, 21);
    let exec = exec.prefault(false).build().unwrap();
    let open = on_thread("main-thread", &dispatch, || record(&recorder, &dispatch));
    (0..TYPED_EVENTS).for_each(|txn| _ = exec.record(ExecEvent::TxnEnd.code(), [0, txn, 0, 0], &[]));
    let captured = run(&["capture", &ring, &typed, "-o", &capture, "--now", "--json"]).json();
    drop(open);
    let lost = captured["lost"].as_u64().unwrap();
    assert!(lost >= 700, "{captured}");

    let lines = run(&["export", &capture, "--format", "jsonl"]).json_lines();
    let of_type = |what: &str| lines.iter().filter(move |line| line["type"] == what).collect::<Vec<_>>();
    run(&["export", &capture, "-o", &trace, "--json"]).json();
    let Some(answers) = consumers::read("trace_processor.py", Path::new(&trace)) else { return };
    assert_eq!(answers["errors"], serde_json::json!([]));
    let all = answers["slices"].as_array().unwrap();

    let slices: Vec<(&Value, SpanSlice)> = all.iter().filter_map(|slice| Some((slice, span_slice(slice)?))).collect();
    let drawn: BTreeSet<SpanSlice> = slices.iter().map(|(_, slice)| slice.clone()).collect();
    assert_eq!(drawn, recorded_slices(&lines));
    assert_eq!(slices.len(), drawn.len());
    assert_depths(&slices);
    for span in of_type("span") {
        let expected = expected_args(span);
        let of_span: Vec<_> = slices.iter().filter(|(_, slice)| span["id"] == slice.0).collect();
        for (slice, _) in &of_span {
            let args = args(slice);
            assert!(args.iter().all(|arg| expected.get(arg.0) == Some(arg.1)), "{slice} {expected:#?}");
            assert_eq!(slice["category"], span["target"]);
        }
        let last = of_span.iter().max_by_key(|(_, slice)| slice.2).unwrap();
        assert_eq!(args(last.0), expected);
    }

    let name = |id: &Value| all.iter().find(|slice| slice["id"] == *id).unwrap()["name"].as_str().unwrap();
    let flows = answers["flows"].as_array().unwrap().iter();
    let mut flows: Vec<_> = flows.map(|flow| (name(&flow["begin"]), name(&flow["end"]))).collect();
    flows.sort_unstable();
    assert_eq!(flows, [("job", "after"), ("request", "after"), ("request", "child")]);

    let instants = |name: &Value, nanos: &Value| {
        // An instant at the end of its slice is drawn one nanosecond earlier.
        let is_at = |ts: &Value| [0, 1].contains(&nanos.as_u64().unwrap().wrapping_sub(ts.as_u64().unwrap()));
        all.iter().filter(|slice| slice["dur"] == 0 && slice["name"] == *name && is_at(&slice["ts"])).count()
    };
    for event in of_type("event") {
        assert_eq!(instants(&event["fields"]["message"], &event["time_ns"]), 1, "{event}");
    }
    assert_eq!(of_type("event").len(), 21);
    let typed = all.iter().filter(|slice| slice["dur"] == 0 && slice["name"] == "TXN_END").count();
    assert_eq!((typed, typed as u64), (of_type("typed_event").len(), TYPED_EVENTS - lost));

    let counters = answers["counters"].as_array().unwrap().iter();
    let counters: Vec<_> = counters.map(|sample| (&sample["name"], &sample["ts"], sample["value"].as_f64())).collect();
    let samples = of_type("counter");
    let samples: Vec<_> =
        samples.iter().map(|sample| (&sample["name"], &sample["time_ns"], sample["value"].as_f64())).collect();
    assert_eq!((counters.len(), counters), (40, samples));

    let losses: Vec<_> = all.iter().filter(|slice| !slice["args"]["debug.first_seqno"].is_null()).collect();
    assert_eq!(losses.len(), 1);
    assert_eq!(losses[0]["args"]["debug.count"][1], lost.to_string());
    assert_eq!(answers["processes"].as_array().unwrap().len(), 1, "{}", answers["processes"]);
}
