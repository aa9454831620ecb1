//! A program with more threads than shards records with the real subscriber, and is killed in the middle of its work.
//! The capture of its rings holds every committed event and shows open spans as open. Programs of other projects load
//! the exported traces.

use crate::consumers;
use crate::fixtures::*;
use std::sync::Barrier;

const THREADS: u64 = 5;
const SHARDS: usize = 3;
/// The number of steps that a thread performs between two reports to the parent.
const STEPS_TOLD: u64 = 100;
/// The number of steps that each thread performs before it stops and waits to be killed. The rings have room for all
/// these steps.
const STEPS_MAX: u64 = 8_000;

/// Performs steps without end, in a span that is never exited.
fn work(thread: u64, barrier: &Barrier) -> ! {
    let _worker = info_span!("worker", thread).entered();
    barrier.wait();
    for n in 1..=STEPS_MAX {
        let step = info_span!("step", thread, n, rows = tracing::field::Empty);
        step.in_scope(|| tracing::debug!(n, text = ?"some text", "working"));
        step.record("rows", n * 2);
        drop(step);
        if n % STEPS_TOLD == 0 {
            say(format_args!("{thread} {n}"));
        }
    }
    loop {
        thread::park();
    }
}

fn victim() {
    let recorder = spans_in(child::place()).shifts(18, 24).shards(SHARDS).build().unwrap();
    subscriber::set_global_default(RecorderSubscriber::new(recorder)).unwrap();
    let barrier = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let barrier = &barrier;
            scope.spawn(move || -> () { work(thread, barrier) });
        }
    });
}

#[test]
fn every_committed_event_of_a_killed_program_is_captured_and_its_open_spans_are_open() {
    let test = plays!(victim());
    let (directory, [ring, capture]) = places(["victim", "t.evc"]);
    let mut talk = Talk::start(test, "victim", &ring);
    let mut reported: BTreeMap<u64, u64> = BTreeMap::new();
    while reported.len() < THREADS as usize || reported.values().any(|steps| *steps < 400) {
        let line = talk.hear();
        let (thread, steps) = line.split_once(' ').unwrap();
        reported.insert(thread.parse().unwrap(), steps.parse().unwrap());
    }
    talk.kill();
    assert!(reported.values().any(|steps| *steps < STEPS_MAX), "it was killed too late: {reported:?}");

    let captured = run!("capture", &ring, "-o", &capture, "--json").json();
    assert_eq!(captured["reason"], "writers_ended");
    let rings = captured["rings"].list();
    assert_eq!(rings.len(), SHARDS, "{captured:#}");
    for ring in rings {
        assert_eq!(number(&ring["events"]) + number(&ring["lost"]), number(&ring["last_seqno"]));
        assert_eq!(ring["lost_by_cause"]["never_committed"], ring["lost"]);
        assert_eq!((&ring["unread"], &ring["expired_payloads"]), (&0.into(), &0.into()), "{ring}");
    }
    // For each thread, at most one event is missing: the one that the thread was recording.
    assert!(number(&captured["lost"]) <= THREADS, "{captured}");

    let lines = run!("export", &capture, "--format", "jsonl").json_lines();
    let of = |what: &str, name: &str| {
        let is_wanted = |line: &&Value| line["type"] == what && line["name"] == name;
        lines.iter().filter(is_wanted).collect::<Vec<_>>()
    };
    let workers = of("span", "worker");
    assert_eq!(workers.len() as u64, THREADS);
    assert!(workers.iter().all(|worker| worker["open"] == true && worker["end_ns"].is_null()), "{workers:?}");
    let mut open = Vec::new();
    for worker in &workers {
        let thread = number(&worker["fields"]["thread"]);
        let steps: Vec<_> = of("span", "step").into_iter().filter(|step| step["parent"] == worker["id"]).collect();
        // No step of the thread is missing, and the steps are in order, up to the last one that was recorded.
        let numbers: Vec<u64> = steps.iter().map(|step| number(&step["fields"]["n"])).collect();
        assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "a step is missing in {numbers:?}");
        assert!(
            numbers.len() as u64 >= reported[&thread],
            "{} of {} steps of thread {thread}",
            numbers.len(),
            reported[&thread]
        );
        for (at, step) in steps.iter().enumerate() {
            assert_eq!(number(&step["fields"]["thread"]), thread);
            if step["open"] == true {
                assert_eq!(at, steps.len() - 1, "{step} is open");
            } else {
                assert_eq!(number(&step["fields"]["rows"]), number(&step["fields"]["n"]) * 2, "{step}");
            }
        }
        open.extend(steps.iter().chain([worker]).filter(|span| span["open"] == true).map(|span| number(&span["id"])));
    }
    open.sort_unstable();
    let logged = lines.iter().filter(|line| line["type"] == "event").count() as u64;
    assert!(logged >= reported.values().sum::<u64>(), "{logged} log records");

    let summary = run!("summary", &capture);
    let of_workers = summary.out.lines().find(|line| line.contains("worker")).unwrap_or_else(|| panic!("{summary:?}"));
    assert!(of_workers.contains(&format!("+ {THREADS} open")), "{summary:?}");
    assert!(summary.out.lines().any(|line| line.contains(" died between ")), "{summary:?}");
    let summary = run!("summary", &capture, "--json").json();
    assert_eq!(summary["programs"][0]["state"], "died");
    let workers = summary["spans"].list().iter().find(|span| span["name"] == "worker").unwrap();
    assert_eq!((&workers["count"], number(&workers["open"])), (&0.into(), THREADS));
    // A part of the capture does not make the program live.
    let part = ["--min-duration", "1ns"];
    let summary = run!("summary", &capture, &part);
    assert!(summary.out.lines().any(|line| line.contains(" died between ")), "{summary:?}");
    let exported = run!("export", &capture, "--format", "jsonl", &part).json_lines();
    assert_eq!(exported.last().unwrap()["processes"][0]["state"], "died");
    let begun = of("span", "step").iter().find_map(|step| step["start_ns"].as_u64()).unwrap().to_string();
    let window = ["--to", &begun];
    let summary = run!("summary", &capture, "--json", &window).json();
    assert_eq!(summary["programs"][0]["state"], "unknown", "the window ends before");
    run!("report", &capture, "-o", "-").shows("the program died between ");

    for (format, script) in [("perfetto", "perfetto_slices.py"), ("chrome", "chrome_slices.py")] {
        let file = directory.path().join(format);
        let arguments =
            ["export", argument(&capture), "--format", format, "--view", "span", "-o", argument(&file), "--json"];
        let counts = run(&arguments).json();
        assert_eq!(number(&counts["spans"]), (of("span", "step").len() + of("span", "worker").len()) as u64);
        let Some(trace) = consumers::read(script, &file) else { continue };
        let shown = trace["open"].list().iter().map(|slice| number(&slice["args"]["span_id"]));
        let mut shown: Vec<u64> = shown.collect();
        shown.sort_unstable();
        assert_eq!(shown, open, "{format}");
    }
}
