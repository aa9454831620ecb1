//! The trace_processor of Perfetto reads the traces that eventring writes: it finds the slices, arguments, flows,
//! instants, counters and losses that the recording has, and nothing that it calls an error.

use crate::consumers;
use crate::consumers::trace::Trace;
use crate::program::run;
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::EventType as _;
use eventring::schema::exec::ExecEvent;
use eventring::tracing::{Counter, PerfRecorder, RecorderSubscriber};
use serde_json::Value;
use std::collections::BTreeMap;
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

#[test]
fn trace_processor_finds_what_was_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (ring, typed, capture, trace) = (path("shop"), path("typed"), path("t.evc"), path("trace"));
    let recorder = PerfRecorder::builder().config(&ring).prefault(false).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    let exec = Recorder::builder(ContentDescription::from_event_type::<ExecEvent>())
        .config(&typed)
        .compact(true)
        .shifts(15, 21);
    let exec = exec.prefault(false).build().unwrap();
    let open = on_thread("main-thread", &dispatch, || record(&recorder, &dispatch));
    (0..TYPED_EVENTS).for_each(|txn| _ = exec.record(ExecEvent::TxnEnd.code(), [0, txn, 0, 0], &[]));
    let captured = run(&["capture", &ring, &typed, "-o", &capture, "--now", "--json"]).json();
    drop(open);
    let lost = captured["lost"].as_u64().unwrap();
    assert!(lost >= 700, "{captured}");

    let lines = run(&["export", &capture, "--format", "jsonl"]).json_lines();
    run(&["export", &capture, "-o", &trace, "--json"]).json();
    let Some(answers) = consumers::read("trace_processor.py", Path::new(&trace)) else { return };
    let found = Trace { answers: &answers, lines: &lines };
    let all = found.slices();
    found.check_import();
    assert!(found.check_slices() > 20);
    found.check_args();

    let name = |id: &Value| all.iter().find(|slice| slice["id"] == *id).unwrap()["name"].as_str().unwrap();
    let flows = answers["flows"].as_array().unwrap().iter();
    let mut flows: Vec<_> = flows.map(|flow| (name(&flow["begin"]), name(&flow["end"]))).collect();
    flows.sort_unstable();
    assert_eq!(flows, [("job", "after"), ("request", "after"), ("request", "child")]);

    assert_eq!(found.check_log_records(), BTreeMap::from([("INFO".to_owned(), 20), ("WARN".to_owned(), 1)]));
    let typed = all.iter().filter(|slice| slice["dur"] == 0 && slice["name"] == "TXN_END").count();
    assert_eq!((typed, typed as u64), (found.of_type("typed_event").count(), TYPED_EVENTS - lost));
    assert_eq!(found.check_counters(), 40);

    assert_eq!(found.check_losses(), lost);
    let losses: Vec<_> = all.iter().filter(|slice| !slice["args"]["debug.first_seqno"].is_null()).collect();
    assert_eq!(losses.len(), 1);
    assert_eq!(answers["processes"].as_array().unwrap().len(), 1, "{}", answers["processes"]);
}
