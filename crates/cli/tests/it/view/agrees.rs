//! The page of `eventring view` finds, in a browser without a network, what was recorded: its trace_processor has the
//! slices, durations, arguments, flows, counters and losses that `summary` and the JSON lines of `export` have.

use crate::consumers;
use crate::consumers::trace::Trace;
use crate::fixtures::*;
use eventring::tracing::Counter;
use eventring_export::summarize;
use tokio::sync::Notify;

/// Shows a capture in a browser. Returns what its trace_processor says, and all JSON lines of the capture. With `keys`,
/// only these arguments of slices are asked for.
fn shown(file: &str, keys: &[&str]) -> Option<(Value, Vec<Value>)> {
    let ui = consumers::perfetto_ui()?;
    let mut view = live!("view", file, "--no-browser", "--json", "--ui", &ui);
    let url = view.json_line()["url"].text().to_owned();
    let asked: Vec<&Path> = [&[url.as_str(), "everything"], keys].concat().into_iter().map(Path::new).collect();
    let answers = consumers::read_files("view_page.py", &asked);
    if answers.is_none() {
        view.interrupt();
    }
    view.end().ends(0);
    let lines = run!("export", file, "--format", "jsonl").json_lines();
    let answers = answers?;
    let servers = answers["servers"].list();
    assert!(servers.len() == 1 && servers[0].text().starts_with("127.0.0.1:"), "{servers:?}");
    Some((answers, lines))
}

/// The counts and times of the spans of one name: count, total and busy time of those that were seen whole, and how
/// many were open, lost their end, or lost their beginning.
type Figures = [u64; 6];

/// Checks the figures of each span name and target against those of `summary`.
fn check_summary(found: &Trace<'_>, file: &str) -> BTreeMap<(String, String), Figures> {
    let mut drawn: BTreeMap<(String, String), Figures> = BTreeMap::new();
    for slice in
        found.slices().iter().filter(|slice| slice["title"] == "spans" && slice["args"]["debug.level"].is_null())
    {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let figures = drawn.entry((text(&slice["name"]), text(&slice["category"]))).or_default();
        let arg = |name: &str| slice["args"][name][1].as_str();
        match (slice["dur"].as_i64().unwrap(), arg("debug.end"), arg("debug.start")) {
            (-1, ..) => figures[3] += 1,
            (_, Some(_), _) => figures[4] += 1,
            (_, _, Some(_)) => figures[5] += 1,
            (duration, None, None) => {
                figures[0] += 1;
                figures[1] += duration.unsigned_abs();
                figures[2] += arg("debug.busy_ns").unwrap().parse::<u64>().unwrap();
            }
        }
    }
    let summary = summarize(&CaptureFile::open(Path::new(file)).unwrap()).unwrap();
    let of_summary = summary.spans.into_iter().map(|span| {
        let figures = [span.count, span.total_nanos, span.busy_nanos, span.open, span.end_lost, span.incomplete];
        ((span.name, span.target), figures)
    });
    let of_summary: BTreeMap<_, _> = of_summary.collect();
    assert_eq!(drawn, of_summary);
    drawn
}

/// Checks the counters that follow from all events: their sums are those of the recording.
fn check_meters(found: &Trace<'_>, events: u64) {
    let rate = found.counter("events a second");
    let grain_nanos = rate.windows(2).map(|pair| pair[1].0 - pair[0].0).min().unwrap();
    let counted = rate.iter().map(|(_, rate)| rate * grain_nanos as f64 / 1e9).sum::<f64>();
    assert!((counted - events as f64).abs() < 0.5, "{counted} of {events} events");
    let open = found.of_type("span").filter(|span| span["open"] == true || span["end_lost"] == true).count();
    assert_eq!(found.counter("open spans").last().map(|(_, spans)| *spans), Some(open as f64));
    let laps = found.counter("ring laps a second");
    assert!(laps.len() == rate.len() && laps.iter().any(|(_, laps)| *laps > 0.0), "{laps:?}");
}

#[test]
fn the_page_has_the_numbers_of_the_http_service() {
    let directory = directory();
    let file = place(&directory, "shop.evc").to_str().unwrap().to_owned();
    let service = Path::new(PROGRAM).with_file_name("examples").join("http_service");
    assert!(service.exists(), "build it: cargo build --workspace --examples");
    let ring = place(&directory, "shop").to_str().unwrap().to_owned();
    let ended = Command::new(service).args(["--requests", "2000", "--keep", "--ring", &ring]).status().unwrap();
    assert!(ended.success());
    let captured = run!("capture", &ring, "-o", &file, "--now", "--json").json();
    assert_eq!(captured["lost"], 0, "{captured}");
    let Some((answers, mut lines)) = shown(&file, &[]) else { return };
    let found = Trace { answers: &answers, lines: &lines };
    found.check_import();
    // 16 customers and 2,000 requests, and the queries and SQLite calls in them.
    assert!(found.check_whole_spans() > 2_016 + 4_000);
    assert!(found.check_slices() > 6_000);
    found.check_args();
    assert!(found.check_log_records().values().sum::<usize>() > 0);
    assert_eq!(found.check_losses(), 0);
    assert_eq!(found.flows(), found.expected_flows());
    check_summary(&found, &file);
    check_meters(&found, captured["events"].number());

    // One nanosecond more in one slice of the lines, and the comparison fails.
    let slices = lines.iter_mut().filter(|line| line["name"] == "query").map(|line| &mut line["slices"][0]);
    let end = &mut slices.last().unwrap()["end_ns"];
    *end = json!(end.number() + 1);
    let changed = Trace { answers: &answers, lines: &lines };
    let check = std::panic::AssertUnwindSafe(|| changed.check_slices());
    assert!(std::panic::catch_unwind(check).is_err());
}

/// The number of tasks that end, and of those that wait until the program ends.
const TASKS: u64 = 100_000;
const TASKS_AT_ONCE: u64 = 1_000;
const WAITING: u64 = 500;

static BATCHES: Counter = Counter::new("batches");

/// Work in a task's span. The task goes to another thread now and then, and makes spans there.
async fn work(number: u64) {
    tokio::task::yield_now().await;
    match number % 1_000 {
        0 => error!(number, "it failed"),
        1 => warn!(number, "it was late"),
        2 => {
            let moved = info_span!("moved", number);
            tokio::task::spawn_blocking(move || moved.in_scope(|| ())).await.unwrap();
        }
        _ => {}
    }
}

/// Runs the tasks. While those of the middle run, `capture` is stopped, so that it loses events.
async fn run_tasks(capture: Pid, recorder: &PerfRecorder, never: &Arc<Notify>) {
    let batches = TASKS / TASKS_AT_ONCE;
    for batch in 0..batches {
        match batch {
            10 => kill_process(capture, Signal::STOP).unwrap(),
            80 => kill_process(capture, Signal::CONT).unwrap(),
            _ => {}
        }
        BATCHES.sample_to(recorder, batch);
        let numbers = batch * TASKS_AT_ONCE..(batch + 1) * TASKS_AT_ONCE;
        let spawn = |number| tokio::spawn(work(number).instrument(info_span!("task", number)));
        for task in numbers.map(spawn).collect::<Vec<_>>() {
            task.await.unwrap();
        }
    }
    for number in 0..WAITING {
        let never = never.clone();
        tokio::spawn(async move { never.notified().await }.instrument(info_span!("waiting", number)));
    }
    thread::spawn(|| std::mem::forget(info_span!("entered").entered())).join().unwrap();
    // A capture takes the events that were recorded before it was asked to end.
    tokio::time::sleep(Duration::from_millis(200)).await;
}

#[test]
fn the_page_has_the_numbers_of_a_hundred_thousand_tasks_with_losses_and_open_spans() {
    alone!();
    let directory = directory();
    let [ring, file] = ["tasks", "tasks.evc"].map(|name| place(&directory, name).to_str().unwrap().to_owned());
    let recorder = spans_in(&ring).shifts(15, 21).build().unwrap();
    subscriber::set_global_default(RecorderSubscriber::new(recorder.clone())).unwrap();
    let capture = live!("capture", &ring, "-o", &file, "--json");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    let never = Arc::new(Notify::new());
    runtime.block_on(run_tasks(Pid::from_child(&capture.child), &recorder, &never));
    capture.interrupt();
    let captured: Value = serde_json::from_str(capture.end().out.lines().last().unwrap()).unwrap();
    let keys = [
        "correlation_id",
        "debug.span_id",
        "debug.open",
        "debug.end",
        "debug.start",
        "debug.busy_ns",
        "debug.target",
        "debug.level",
        "debug.count",
        "debug.first_seqno",
    ];
    let Some((answers, lines)) = shown(&file, &keys) else { return };
    let found = Trace { answers: &answers, lines: &lines };
    found.check_import();
    let lost = captured["lost"].number();
    assert!(lost > 10_000, "{captured}");
    assert_eq!(found.check_losses(), lost);
    let spans = found.check_whole_spans();
    assert!(spans > TASKS as usize / 8, "{spans}");
    assert!(found.check_slices() > spans);
    let levels = found.check_log_records();
    assert!(levels["ERROR"] > 10 && levels["WARN"] > 10, "{levels:?}");
    assert!(found.check_counters() > 10);
    let figures = check_summary(&found, &file);
    let open = |name: &str| figures.iter().find(|((of, _), _)| of == name).map(|(_, figures)| figures[3]);
    assert_eq!((open("waiting"), open("entered")), (Some(WAITING), Some(1)));
    check_meters(&found, captured["events"].number());
    // The slices of losses are red, and those of other names are not.
    let is_red = |rgb: &Value| {
        let [red, green, blue] = [0, 1, 2].map(|index| rgb[index].number());
        red > 180 && green < red / 2 && blue < red / 2
    };
    let colours = &answers["colours"];
    assert!(is_red(&colours["losses of"]) && !is_red(&colours["spans"]), "{colours}");
    let flows = found.flows();
    assert!(!flows.is_empty() && flows.iter().all(|[begin, end]| begin.1 <= end.1), "{flows:?}");
    never.notify_waiters();
}
