//! 10,000 tasks on tokio's threads, or as many as `EVENTRING_TOKIO_TASKS` says. The span view of the export has each
//! task once, with its true time. The thread view has each time slice that a thread spent in a task.

use crate::fixtures::*;
use crate::program::now_nanos;
use eventring_export::{Format, View, export, summarize};

const TASKS_AT_ONCE: u64 = 1_000;

/// Returns the number of tasks, some thousands.
fn tasks() -> u64 {
    let tasks = std::env::var("EVENTRING_TOKIO_TASKS").map_or(10_000, |tasks| tasks.parse().unwrap());
    tasks / TASKS_AT_ONCE * TASKS_AT_ONCE
}

/// Runs the tasks. Returns a map from the number of each task to two times: one before the task made its span, and one
/// after the span ended.
fn run_tasks() -> HashMap<u64, (u64, u64)> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    runtime.block_on(async {
        let mut times = HashMap::new();
        for batch in 0..tasks() / TASKS_AT_ONCE {
            let mut tasks = Vec::new();
            for number in batch * TASKS_AT_ONCE..(batch + 1) * TASKS_AT_ONCE {
                tasks.push(tokio::spawn(async move {
                    let before = now_nanos();
                    let work = async {
                        tokio::task::yield_now().await;
                        if number % 1000 == 7 {
                            tokio::time::sleep(Duration::from_millis(5)).await;
                        }
                    };
                    work.instrument(info_span!("task", number)).await;
                    (number, (before, now_nanos()))
                }));
            }
            for task in tasks {
                let (number, time) = task.await.unwrap();
                times.insert(number, time);
            }
        }
        times
    })
}

fn slices(capture: &CaptureFile, view: View) -> Vec<Value> {
    let mut out = Vec::new();
    export(capture, Format::Chrome, view, &mut out).unwrap();
    let trace: Value = serde_json::from_slice(&out).unwrap();
    let Value::Array(events) = trace["traceEvents"].clone() else { panic!("no events") };
    // What threads did is on tracks of their own.
    events.into_iter().filter(|event| event["ph"] == "X" && event["cat"] != "scheduler").collect()
}

fn nanos(micros: &Value) -> u64 {
    (micros.as_f64().unwrap() * 1000.0).round() as u64
}

#[test]
fn every_task_is_there_once_with_its_true_time_and_every_slice_of_a_thread() {
    alone!();
    /// The tolerance between the recorder's clock and the system's clock. The clocks agree within a microsecond, but
    /// other programs can interrupt the test between two readings.
    const CLOCK_NANOS: u64 = 20_000;
    let tasks = tasks();
    let dir = tempfile::tempdir().unwrap();
    let ring = dir.path().join("tasks");
    let recorder = spans_in(&ring).shifts(21, 26).keep(true).build().unwrap();
    let times = in_recorder(recorder.clone(), || {
        subscriber::set_global_default(RecorderSubscriber::new(recorder.clone())).unwrap();
        run_tasks()
    });
    let file = dir.path().join("t.evc");
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let captured = run!("capture", &text(&ring), "-o", &text(&file), "--now", "--json").json();
    assert_eq!(captured["lost"], 0, "{captured}");

    let capture = CaptureFile::open(&file).unwrap();
    let summary = summarize(&capture).unwrap();
    assert_eq!((summary.spans.len(), summary.spans[0].count, summary.spans[0].open), (1, tasks, 0));

    let spans = slices(&capture, View::Span);
    assert_eq!(spans.len() as u64, tasks);
    let mut walls: HashMap<u64, (u64, u64)> = HashMap::new();
    for span in &spans {
        let number = span["args"]["number"].number();
        let (before, after) = times[&number];
        let duration = nanos(&span["dur"]);
        // A task sleeps for 5 ms within its span if its number is 7 modulo 1000.
        assert!(number % 1000 != 7 || duration >= 5_000_000, "{span}");
        assert!(duration <= after - before + CLOCK_NANOS, "{span} {before} {after}");
        let id = span["args"]["span_id"].number();
        assert!(walls.insert(id, (nanos(&span["ts"]), duration)).is_none(), "{span} is there twice");
    }
    assert_eq!(walls.values().map(|(_, duration)| duration).sum::<u64>(), summary.spans[0].total_nanos);

    let of_threads = slices(&capture, View::Thread);
    let mut busy = 0;
    let mut of_span: HashMap<u64, u64> = HashMap::new();
    let mut by_thread: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
    for slice in &of_threads {
        let (start, duration) = (nanos(&slice["ts"]), nanos(&slice["dur"]));
        let id = slice["args"]["span_id"].number();
        let (created, wall) = walls[&id];
        assert!(start >= created && start + duration <= created + wall, "{slice}");
        *of_span.entry(id).or_default() += 1;
        busy += duration;
        by_thread.entry(slice["tid"].number()).or_default().push((start, start + duration));
    }
    assert_eq!(busy, summary.spans[0].busy_nanos);
    // Each poll of a task enters its span, and each enter gives a slice. Each task is polled at least twice, before
    // and after it yields. (Dropping the task enters the span once more.)
    assert!(of_span.len() as u64 == tasks && of_span.values().all(|slices| *slices >= 2));
    assert!(by_thread.len() <= 5, "tracks: {}", by_thread.len());
    for slices in by_thread.values_mut() {
        slices.sort_unstable();
        assert!(slices.windows(2).all(|pair| pair[0].1 <= pair[1].0), "no thread is in two tasks at the same time");
    }
}
