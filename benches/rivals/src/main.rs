//! The cost of recording and reading with eventring and with other recorders, measured in one run.
//!
//! `cargo bench --manifest-path benches/rivals/Cargo.toml` prints a table and writes `rivals.json` to the target
//! directory. With `-- --quick` it takes about a minute. With `-- recording scanning` it measures only these two parts,
//! and writes `rivals-recording-scanning.json`.
//!
//! The cases take turns, one short batch each. The table shows the median and the 5th percentile of a case's batches.
//! Below the table are the results that have a target: from the medians and, in brackets, from the 5th percentiles.
//! Numbers of different runs cannot be compared. See `docs/COST.md`.

#![allow(missing_docs, clippy::undocumented_unsafe_blocks, clippy::multiple_unsafe_ops_per_block)]
// The measurements write one file, into the target directory.
#![allow(clippy::disallowed_methods)]

#[cfg(feature = "allocations")]
mod allocating;
mod clock;
mod cross_core;
mod domains;
mod floors;
mod interleave;
mod ipc;
mod percentiles;
mod recording;
mod reference;
mod scan_floors;
mod scanning;
mod spans;
#[cfg(feature = "tasks")]
mod tasks;
mod third_party;
#[path = "../../threads/mod.rs"]
mod threads;

use interleave::{FASTEST, fastest};
use std::collections::BTreeMap;

/// Nanoseconds per operation, by the name of the case. The value of a name that [`fastest`] has made is the 5th
/// percentile; all other values are medians.
pub type Medians = BTreeMap<String, f64>;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let rounds = if quick { 15 } else { 101 };
    let parts: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    for part in &parts {
        assert!(part == "ipc" || PARTS.iter().any(|(name, _)| name == part), "no part is named {part}");
    }
    let is_wanted = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    let mut medians = Medians::new();
    // This part forks. So it comes first, while the process still has only one thread.
    if is_wanted("ipc") {
        medians.extend(ipc::measure(if quick { 5_000 } else { 50_000 }));
    }
    for (part, measure) in PARTS {
        if is_wanted(part) {
            medians.extend(measure(rounds));
        }
    }
    print(&medians);
    // The file name contains the names of the parts that were chosen. So `rivals.json` always has the results of a
    // whole run.
    let name: String = parts.iter().map(|part| format!("-{part}")).collect();
    write_json(&medians, &format!("rivals{name}.json"));
}

type Measure = fn(usize) -> Medians;

/// The parts that can be chosen on the command line, without `ipc`, which runs before these parts.
const PARTS: &[(&str, Measure)] = &[
    ("recording", recording::measure),
    ("clock", clock::measure),
    ("domains", domains::measure),
    ("scanning", scanning::measure),
    ("cross_core", cross_core::measure),
    ("spans", spans::measure),
    #[cfg(feature = "allocations")]
    ("allocating", allocating::measure),
    #[cfg(feature = "tasks")]
    ("tasks", tasks::measure),
    ("third_party", third_party::measure),
    ("percentiles", percentiles::measure),
];

fn print(medians: &Medians) {
    println!("{:<44} {:>10} {:>13}", "name", "ns", "fastest 5 %");
    for (name, nanos) in medians.iter().filter(|(name, _)| !name.ends_with(FASTEST)) {
        let fastest = medians.get(&fastest(name)).map(|nanos| format!("{nanos:.2}"));
        println!("{name:<44} {nanos:>10.2} {:>13}", fastest.unwrap_or_default());
    }
    println!();
    for (ours, theirs, target) in TARGETS {
        let ratio = |of: fn(&str) -> String| Some(medians.get(&of(ours))? / medians.get(&of(theirs))?);
        if let Some(found) = ratio(str::to_string) {
            print_verdict(&format!("{ours} / {theirs}"), found, ratio(fastest), *target, "");
        }
    }
    for (name, target) in NANOS_TARGETS {
        if let Some(nanos) = medians.get(*name) {
            print_verdict(name, *nanos, medians.get(&fastest(name)).copied(), *target, " ns");
        }
    }
}

/// Prints a result and its target. `found` is computed from medians, and `fastest` from 5th percentiles.
fn print_verdict(name: &str, found: f64, fastest: Option<f64>, target: f64, unit: &str) {
    let verdict = if found <= target { "" } else { "  MISSED" };
    let fastest = fastest.map(|fastest| format!("({fastest:.3})")).unwrap_or_default();
    println!("{name:<58} {found:>6.3} {fastest:>9}  target {target:.2}{unit}{verdict}");
}

/// Upper limits, in nanoseconds.
const NANOS_TARGETS: &[(&str, f64)] = &[
    ("record_disabled_over_empty", 1.0),
    ("record_domain_off_over_empty", 1.0),
    ("span_layer_0f_over_registry", 30.0),
    ("alloc_eventring_over_system", 2.0),
    ("free_eventring_over_system", 1.0),
    ("task_poll_eventring", 40.0),
    ("task_wake_eventring", 25.0),
];

/// Upper limits of ratios.
const TARGETS: &[(&str, &str, f64)] = &[
    ("record_82", "reference_82", 0.42),
    ("record_0", "reference_0", 0.40),
    ("record_4096", "reference_4096", 1.0),
    ("record_sparse", "reference_sparse", 0.40),
    ("record_domain_on", "record_without_domain", 1.1),
    ("record_2threads_exec", "reference_2threads", 1.1),
    // Two threads must record at least 1.8 times as many events per second as one thread.
    ("record_2threads_perf", "record_1thread_perf", 1.0 / 1.8),
    ("span_subscriber_0f", "span_registry_0f", 0.70),
    ("span_subscriber_2f", "span_registry_2f", 0.85),
    ("span_subscriber_2f", "span_tracing_tracy_2f", 0.25),
    ("span_subscriber_2f", "span_tracing_chrome_2f", 0.10),
    ("span_subscriber_2f", "span_tracing_perfetto_2f", 0.03),
    ("event_2f_subscriber", "reference_82", 0.75),
    ("scope_0f", "span_fastrace_0f", 0.55),
    ("scope_0f", "span_perfetto_recorder_0f", 1.1),
    ("scope_2f", "span_fastrace_0f", 0.65),
    ("scan_next", "scan_stride_64", 1.1),
    ("scan_copy82", "scan_stride_64_82", 1.1),
    ("scan_each", "scan_stride_64", 1.1),
    ("scan_each_copy82", "scan_stride_64_82", 1.1),
    ("scan_each_copy82", "scan_stride_64_any", 1.1),
    ("scan_next_cached", "scan_stride_64_cached", 1.1),
    ("scan_copy82_cached", "scan_stride_64_82_cached", 1.1),
    ("scan_each_copy82_cached", "scan_stride_64_82_cached", 1.1),
    ("ipc_p50", "reference_ipc_p50", 1.0),
    ("drag_tailed", "drag_alone", 1.1),
    ("fresh_first_million", "warm_million", 1.15),
];

fn write_json(medians: &Medians, file_name: &str) {
    let object: serde_json::Map<String, serde_json::Value> = medians
        .iter()
        .map(|(name, nanos)| {
            let name = name.strip_suffix(FASTEST).map_or_else(|| name.clone(), |name| format!("{name}_fastest"));
            (name, serde_json::json!((nanos * 100.0).round() / 100.0))
        })
        .collect();
    let text = serde_json::to_string_pretty(&object).expect("a map of numbers");
    // The bench binary is in TARGET/release/deps.
    let binary = std::env::current_exe().expect("own path");
    let target = binary.ancestors().nth(3).expect("a target directory").join(file_name);
    std::fs::write(&target, text + "\n").expect("write the numbers");
    println!("\nwritten to {}", target.display());
}
