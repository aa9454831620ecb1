//! The cost of a span and of a log record that a level filter disables: without a subscriber, with
//! `RecorderSubscriber`, and with `RecorderLayer`. Each case runs in a separate process, because `tracing` stores the
//! enabled levels once for a process.
//!
//! A filter that can be changed is measured before, during and after a filter override. The override,
//! `[query{user=7}]=info`, enables other spans and their log records.

#![allow(missing_docs)]

use eventring::tracing::{FilterHandle, PerfRecorder, RecorderLayer, RecorderSubscriber, TargetFilter};
use std::hint::black_box;
use std::time::Instant;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;

const CASES: [&str; 4] = ["none", "recorder", "layer", "filtered"];
const ROUNDS: usize = 301;
const OPERATIONS: u64 = 100_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(case) = arguments.iter().find_map(|argument| argument.strip_prefix("case=")) {
        measure(case);
        return;
    }
    println!("{:24} {:>12} {:>18}   (ns, medians)", "", "info_span!", "info! of 2 fields");
    for case in CASES {
        let itself = std::env::current_exe().expect("the path of this program");
        let output = std::process::Command::new(itself).arg(format!("case={case}")).output().expect("a child process");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        print!("{}", String::from_utf8_lossy(&output.stdout));
    }
}

fn measure(case: &str) {
    let recorder = || PerfRecorder::builder().anonymous().build().expect("a recorder");
    let mut filter = FilterHandle::new(TargetFilter::level(LevelFilter::WARN));
    let global = match case {
        "recorder" => {
            let subscriber = RecorderSubscriber::new(recorder()).with_max_level(tracing::Level::WARN);
            filter = subscriber.filter_handle();
            tracing::subscriber::set_global_default(subscriber)
        }
        "filtered" => tracing::subscriber::set_global_default(
            tracing_subscriber::registry().with(RecorderLayer::new(recorder()).filtered(&filter)),
        ),
        "layer" => tracing::subscriber::set_global_default(
            tracing_subscriber::registry().with(LevelFilter::WARN).with(RecorderLayer::new(recorder())),
        ),
        _ => Ok(()),
    };
    global.expect("the first subscriber");
    print_costs(case);
    if matches!(case, "recorder" | "filtered") {
        let filter_override = filter.add_override("[query{user=7}]=info".parse().expect("a filter"));
        print_costs(&format!("{case}, with a filter override"));
        drop(filter_override);
        print_costs(&format!("{case}, after it"));
    }
}

fn print_costs(case: &str) {
    let spans = median(|n| drop(tracing::info_span!("off", n).entered()));
    let events = median(|n| tracing::info!(n, also = true, "off"));
    println!("{case:24} {spans:12.2} {events:18.2}");
}

fn median(operation: impl Fn(u64)) -> f64 {
    let mut nanos: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..OPERATIONS).for_each(|n| operation(black_box(n)));
            start.elapsed().as_nanos() as f64 / OPERATIONS as f64
        })
        .collect();
    nanos.sort_by(f64::total_cmp);
    nanos[ROUNDS / 2]
}
