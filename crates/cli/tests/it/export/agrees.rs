//! One recording is exported in all formats, and programs of other projects read the exports. They must agree in
//! counts, and in durations to the nanosecond.

use crate::consumers;
use crate::consumers::durations;
use crate::program::{number, run};
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::EventType as _;
use eventring::schema::exec::ExecEvent;
use eventring::schema::perf::{CallSiteKind, CallSiteLevel, CallSiteView, PerfEvent, PerfExt, ValueType};
use eventring::tracing::{PerfRecorder, RecorderLayer, RecorderSubscriber};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;
use tracing::{Dispatch, Span, info_span};
use tracing_subscriber::layer::SubscriberExt as _;

const WORKERS: u64 = 4;
const TASKS_EACH: u64 = 200;

fn event(recorder: &Recorder, event: PerfEvent, ext: PerfExt, payload: &[u8]) {
    recorder.record(event.code(), ext.to_words(), payload);
}

fn call_site(recorder: &Recorder, call_site_id: u32, kind: CallSiteKind, name: &str, fields: &[&str]) {
    let view = CallSiteView {
        kind,
        level: CallSiteLevel::Info,
        name: name.into(),
        target: "shop".into(),
        module: "".into(),
        file: "shop.rs".into(),
        line: call_site_id,
        field_names: fields.iter().map(|name| (*name).into()).collect(),
    };
    event(recorder, PerfEvent::CallSite, PerfExt { call_site_id, ..PerfExt::default() }, &view.encode());
}

/// Records tasks on each worker. A task is a span with a child span, and the worker enters the task's span twice. In
/// every tenth task, the worker exits the task's span before the child span. Then their time slices overlap without
/// nesting.
fn record(perf: &Recorder, exec: &Recorder) {
    call_site(perf, 1, CallSiteKind::Span, "task", &["number"]);
    call_site(perf, 2, CallSiteKind::Span, "step", &[]);
    call_site(perf, 3, CallSiteKind::Event, "said", &["message"]);
    call_site(perf, 4, CallSiteKind::Counter, "open", &[]);
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            scope.spawn(move || {
                for number in 0..TASKS_EACH {
                    let task = 1 + (worker * TASKS_EACH + number) * 2;
                    let thread = |id: u64| PerfExt { thread_id: 1 + id as u32, ..PerfExt::default() };
                    let of = |id, call_site_id| PerfExt { span_id: id, call_site_id, ..thread(worker) };
                    let field = [0, ValueType::U64 as u8, 8, 0].into_iter().chain(number.to_le_bytes());
                    let field: Vec<u8> = field.collect();
                    event(perf, PerfEvent::SpanNew, PerfExt { field_count: 1, ..of(task, 1) }, &field);
                    event(perf, PerfEvent::SpanEnter, of(task, 1), &[]);
                    event(perf, PerfEvent::SpanNew, PerfExt { related: task, ..of(task + 1, 2) }, &[]);
                    event(perf, PerfEvent::SpanEnter, of(task + 1, 2), &[]);
                    exec.record(ExecEvent::TxnEnd.code(), [0, 0, 0, task + 1], &[]);
                    let text: Vec<u8> = [0, ValueType::Str as u8, 2, 0, b'h', b'i'].to_vec();
                    event(perf, PerfEvent::Event, PerfExt { field_count: 1, ..of(task + 1, 3) }, &text);
                    if number % 10 == 0 {
                        // The outer span is exited before the inner span. So their time slices overlap, but do not
                        // nest.
                        event(perf, PerfEvent::SpanExit, of(task, 1), &[]);
                        event(perf, PerfEvent::SpanExit, of(task + 1, 2), &[]);
                    } else {
                        event(perf, PerfEvent::SpanExit, of(task + 1, 2), &[]);
                        event(perf, PerfEvent::SpanExit, of(task, 1), &[]);
                    }
                    event(perf, PerfEvent::SpanEnter, of(task, 1), &[]);
                    event(perf, PerfEvent::SpanExit, of(task, 1), &[]);
                    if number % 7 == 0 {
                        // The parent is closed before its child.
                        event(perf, PerfEvent::SpanClose, of(task, 1), &[]);
                        event(perf, PerfEvent::SpanClose, of(task + 1, 2), &[]);
                    } else {
                        event(perf, PerfEvent::SpanClose, of(task + 1, 2), &[]);
                        event(perf, PerfEvent::SpanClose, of(task, 1), &[]);
                    }
                    let sample = PerfExt { related: number, value_type: ValueType::U64 as u8, ..of(0, 4) };
                    event(perf, PerfEvent::Counter, sample, &[]);
                }
            });
        }
    });
}

fn ring<E: eventring::EventType>(path: &Path) -> Recorder {
    let builder = Recorder::builder(ContentDescription::from_event_type::<E>()).config(path).shifts(16, 27);
    builder.prefault(false).keep(true).build().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn counts_and_durations_are_the_same_in_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (perf, exec) = (ring::<PerfEvent>(&path("shop")), ring::<ExecEvent>(&path("shop-exec")));
    record(&perf, &exec);
    drop((perf, exec));

    let captured =
        run(&["capture", text(&path("shop")), text(&path("shop-exec")), "-o", text(&path("t.evc")), "--json"]);
    let captured = captured.json();
    let tasks = WORKERS * TASKS_EACH;
    assert_eq!(captured["reason"], "writers_ended");
    assert_eq!(captured["lost"], 0);
    assert_eq!(captured["events"], 4 + tasks * 13);

    let lines = run(&["export", text(&path("t.evc")), "--format", "jsonl"]);
    assert_eq!(lines.code, Some(0), "{}", lines.err);
    let lines = lines.json_lines();
    let count = |what: &str| lines.iter().filter(|line| line["type"] == what).count() as u64;
    assert_eq!(
        (count("span"), count("event"), count("typed_event"), count("counter")),
        (2 * tasks, tasks, tasks, tasks)
    );
    let mut walls: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut slices_of: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for span in lines.iter().filter(|line| line["type"] == "span") {
        let id = span["id"].as_u64().unwrap();
        walls.insert(id, vec![span["duration_ns"].as_u64().unwrap()]);
        let slices = span["slices"].as_array().unwrap().iter();
        let mut nanos: Vec<u64> =
            slices.map(|slice| slice["end_ns"].as_u64().unwrap() - slice["start_ns"].as_u64().unwrap()).collect();
        nanos.sort_unstable();
        slices_of.insert(id, nanos);
    }
    assert_eq!(slices_of.values().map(Vec::len).sum::<usize>() as u64, 3 * tasks);

    let summary = run(&["summary", text(&path("t.evc")), "--json"]).json();
    let of = |name: &str, what: &str| {
        let spans = summary["spans"].as_array().unwrap();
        spans.iter().find(|span| span["name"] == name).unwrap()[what].as_u64().unwrap()
    };
    let total = |times: &BTreeMap<u64, Vec<u64>>, odd| -> u64 {
        times.iter().filter(|(id, _)| *id % 2 == odd).flat_map(|(_, nanos)| nanos).sum()
    };
    assert_eq!((of("task", "count"), of("step", "count")), (tasks, tasks));
    assert_eq!((of("task", "total_ns"), of("step", "total_ns")), (total(&walls, 1), total(&walls, 0)));
    assert_eq!((of("task", "busy_ns"), of("step", "busy_ns")), (total(&slices_of, 1), total(&slices_of, 0)));
    assert_eq!(of("task", "max_ns"), *walls.iter().filter(|(id, _)| *id % 2 == 1).map(|(_, w)| &w[0]).max().unwrap());

    for (quantile, what) in [(50, "p50_ns"), (90, "p90_ns"), (99, "p99_ns")] {
        let mut tasks: Vec<u64> = walls.iter().filter(|(id, _)| *id % 2 == 1).map(|(_, walls)| walls[0]).collect();
        tasks.sort_unstable();
        let exact = tasks[(tasks.len() * quantile).div_ceil(100) - 1];
        assert!(of("task", what).abs_diff(exact) <= exact / 100 + 1, "{what}: {} is not {exact}", of("task", what));
    }

    let folded = run(&["export", text(&path("t.evc")), "--format", "folded", "--view", "span"]);
    let selves: u64 = folded.out.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(selves, of("task", "self_ns") + of("step", "self_ns"));

    let otlp = run(&["export", text(&path("t.evc")), "--format", "otlp-json", "-o", "-"]);
    assert_eq!(otlp.code, Some(0), "{}", otlp.err);
    let (mut of_otlp, mut events, mut typed) = (BTreeMap::new(), 0, 0);
    for request in otlp.json_lines() {
        let scopes = request["resourceSpans"].as_array().unwrap().iter();
        let scopes = scopes.flat_map(|of_process| of_process["scopeSpans"].as_array().unwrap());
        for span in scopes.flat_map(|scope| scope["spans"].as_array().unwrap()) {
            let nanos = |what: &str| span[what].as_str().unwrap().parse::<u64>().unwrap();
            let id = u64::from_str_radix(span["spanId"].as_str().unwrap(), 16).unwrap();
            of_otlp.insert(id, vec![nanos("endTimeUnixNano") - nanos("startTimeUnixNano")]);
            for event in span["events"].as_array().unwrap() {
                match event["name"].as_str() {
                    Some("hi") => events += 1,
                    other => typed += u64::from(other == Some("TXN_END")),
                }
            }
        }
    }
    assert_eq!((of_otlp, events, typed), (walls.clone(), tasks, tasks));

    for (view, expected) in [("span", &walls), ("thread", &slices_of)] {
        for (format, script) in [("perfetto", "perfetto_slices.py"), ("chrome", "chrome_slices.py")] {
            let (file, capture) = (path(&format!("{view}.{format}")), path("t.evc"));
            let arguments = ["export", text(&capture), "--format", format, "--view", view, "-o", text(&file), "--json"];
            let counts = run(&arguments).json();
            assert_eq!((&counts["spans"], &counts["slices"]), (&(2 * tasks).into(), &(3 * tasks).into()));
            let Some(trace) = consumers::read(script, &file) else { continue };
            assert_eq!(&durations(&trace), expected, "{format} {view}");
            assert_eq!(trace["open"].as_array().unwrap().len(), 0);
            assert_eq!(trace["counters"], tasks);
            let instants = trace["instants"].as_array().unwrap();
            assert_eq!(instants.len() as u64, 2 * tasks);
            let of_exec = instants.iter().filter(|instant| instant["name"] == "TXN_END");
            assert_eq!(of_exec.clone().count() as u64, tasks);
            if format == "perfetto" {
                for instant in of_exec {
                    let inside = instant["inside"].as_array().unwrap();
                    assert_eq!(inside.last(), Some(&instant["args"]["span_id"]), "{instant}");
                }
            }
        }
    }
}

/// Records a span that one thread enters, and another one exits and closes, as if a guard were held while a task moves
/// to another thread. The first thread never exits the span and goes on. Also records normal spans.
fn record_moved(dispatch: &Dispatch) {
    let (to_other, from_first) = mpsc::channel::<Span>();
    let (to_first, from_other) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let _default = tracing::dispatcher::set_default(dispatch);
            let moved = from_first.recv().unwrap();
            moved.with_subscriber(|(id, dispatch)| dispatch.exit(id));
            std::thread::sleep(Duration::from_millis(2));
            drop(moved);
            to_first.send(()).unwrap();
        });
        scope.spawn(move || {
            let _default = tracing::dispatcher::set_default(dispatch);
            let moved = info_span!("moved");
            moved.with_subscriber(|(id, dispatch)| dispatch.enter(id));
            info_span!("inside").in_scope(|| std::thread::sleep(Duration::from_millis(1)));
            to_other.send(moved).unwrap();
            from_other.recv().unwrap();
            std::thread::sleep(Duration::from_millis(6));
            info_span!(parent: None, "normal").in_scope(|| std::thread::sleep(Duration::from_millis(1)));
        });
    });
}

fn named<'v>(all: &'v [Value], kind: &str, name: &str) -> &'v Value {
    let mut found = all.iter().filter(|it| it[kind] == name || it[kind]["stringValue"] == name);
    let first = found.next().unwrap_or_else(|| panic!("no {name}: {all:#?}"));
    assert!(found.next().is_none(), "{name} is there twice: {all:#?}");
    first
}

#[test]
fn a_span_that_moved_to_another_thread_has_the_same_times_in_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    for kind in ["subscriber", "layer"] {
        let (ring, capture) = (path(kind), path(&format!("{kind}.evc")));
        let recorder = PerfRecorder::builder().config(&ring).shifts(15, 21).prefault(false).keep(true).build().unwrap();
        let dispatch = match kind {
            "subscriber" => Dispatch::new(RecorderSubscriber::new(recorder.clone())),
            _ => Dispatch::new(tracing_subscriber::registry().with(RecorderLayer::new(recorder.clone()))),
        };
        record_moved(&dispatch);
        drop((dispatch, recorder));
        assert_eq!(run(&["capture", text(&ring), "-o", text(&capture), "--json"]).json()["lost"], 0);
        let export = |format: &str, view: &str| {
            let file = path(&format!("{kind}.{view}.{format}"));
            let export = ["export", text(&capture), "--format", format, "--view", view, "-o", text(&file), "--force"];
            let run = run(&export);
            assert_eq!(run.code, Some(0), "{run:?}");
            file
        };

        let lines: Vec<Value> = run(&["export", text(&capture), "--format", "jsonl"]).json_lines();
        let spans: Vec<Value> = lines.into_iter().filter(|line| line["type"] == "span").collect();
        let mut busy = BTreeMap::new();
        for (name, is_moved) in [("moved", true), ("inside", false), ("normal", false)] {
            let span = named(&spans, "name", name);
            assert_eq!((&span["open"], &span["may_have_losses"]), (&false.into(), &false.into()), "{kind} {span:#}");
            let [slice] = span["slices"].as_array().unwrap().as_slice() else { panic!("{kind} {span:#}") };
            assert_eq!(slice["exit_missing"], if is_moved { true.into() } else { Value::Null }, "{kind} {span:#}");
            assert_eq!(slice["end_ns"] == span["end_ns"], is_moved, "{kind} {span:#}");
            busy.insert(name, number(&slice["end_ns"]) - number(&slice["start_ns"]));
            assert_eq!(number(&span["busy_ns"]), busy[name], "{kind} {name}");
            assert!(busy[name] <= number(&span["duration_ns"]), "{kind} {name}");
        }

        let summary = run(&["summary", text(&capture), "--json"]).json();
        let otlp = run(&["export", text(&capture), "--format", "otlp-json", "-o", "-"]).json_lines();
        let otlp: Vec<Value> = otlp
            .iter()
            .flat_map(|request| request["resourceSpans"].as_array().unwrap())
            .flat_map(|of_process| of_process["scopeSpans"].as_array().unwrap())
            .flat_map(|scope| scope["spans"].as_array().unwrap().clone())
            .collect();
        let chrome: Value = serde_json::from_slice(&std::fs::read(export("chrome", "thread")).unwrap()).unwrap();
        let chrome: Vec<Value> = chrome["traceEvents"].as_array().unwrap().clone();
        let slices: Vec<Value> = chrome.into_iter().filter(|event| event["ph"] == "X" || event["ph"] == "B").collect();
        let folded = |view: &str, name: &str| {
            let lines = std::fs::read_to_string(export("folded", view)).unwrap();
            let of_name = lines.lines().filter_map(|line| line.rsplit_once(' '));
            let of_name =
                of_name.filter(|(stack, _)| stack.ends_with(name)).map(|(_, nanos)| nanos.parse::<u64>().unwrap());
            of_name.sum::<u64>()
        };
        let perfetto = consumers::read("perfetto_slices.py", &export("perfetto", "thread")).map(|it| durations(&it));
        for (name, busy) in &busy {
            let span = named(&spans, "name", name);
            let counted = named(summary["spans"].as_array().unwrap(), "name", name);
            let totals = [&counted["busy_ns"], &counted["total_ns"], &counted["count"]].map(number);
            assert_eq!(totals, [*busy, number(&span["duration_ns"]), 1], "{kind} {name}");
            let of_otlp = named(&otlp, "name", name);
            let attributes = of_otlp["attributes"].as_array().unwrap();
            let of_busy = &named(attributes, "key", "eventring.busy_ns")["value"]["intValue"];
            assert_eq!(of_busy, &busy.to_string(), "{kind} {of_otlp}");
            let is_marked = attributes.iter().any(|attribute| attribute["key"] == "eventring.exit_missing");
            assert_eq!(is_marked, *name == "moved", "{kind} {of_otlp}");
            let slice = named(&slices, "name", name);
            let nanos = (slice["dur"].as_f64().unwrap() * 1000.0).round() as u64;
            assert_eq!((&slice["ph"], nanos), (&"X".into(), *busy), "{kind} {slice}");
            assert_eq!(slice["args"]["exit"] == "missing", *name == "moved", "{kind} {slice}");
            assert!(folded("span", name) <= number(&span["duration_ns"]), "{kind} {name}");
            if let Some(perfetto) = &perfetto {
                assert_eq!(perfetto[&number(&span["id"])], [*busy], "{kind} {name}");
            }
        }
        assert_eq!(folded("thread", "moved"), busy["moved"] - busy["inside"], "{kind}");
        assert_eq!(folded("thread", "normal"), busy["normal"], "{kind}");
        let opened = run(&["open", text(&ring), "--json"]).json();
        assert_eq!(opened["spans"].as_array().unwrap().len(), 0, "{kind} {opened:#}");
    }
}
