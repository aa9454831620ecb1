//! The cost of entering and exiting a span in three cases: the program publishes each thread's span for profilers, the
//! same program does not publish spans, and the program lacks the feature `otel-context`. Each round of a case runs in
//! a process of its own, and the cases take turns:
//!
//! ```console
//! $ cargo bench -p eventring-benches --bench enter --no-run                 # prints PATH
//! $ cargo bench -p eventring-benches --bench enter --features otel-context -- without=PATH
//! ```

#![allow(missing_docs)]

use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use std::process::Command;
use std::time::Instant;

const CASES: [&str; 3] = ["without", "hidden", "shown"];
/// One span again and again; two traces in turn; a child in its parent; a new trace each time.
const KINDS: [&str; 4] = ["same", "turns", "nested", "new"];
const ROUNDS: usize = 41;
const BATCHES: usize = 200;
const OPERATIONS: u32 = 4_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let argument = |name: &str| arguments.iter().find_map(|argument| argument.strip_prefix(name)?.strip_prefix('='));
    if let Some(case) = argument("case") {
        return measure(case);
    }
    let itself = std::env::current_exe().expect("the path of this program");
    let without = argument("without").map_or_else(|| itself.clone(), Into::into);
    let mut nanos: [[Vec<f64>; CASES.len()]; KINDS.len()] = Default::default();
    for _ in 0..ROUNDS {
        for (number, case) in CASES.iter().enumerate() {
            let program = if number == 0 { &without } else { &itself };
            let output = Command::new(program).arg(format!("case={case}")).output().expect("a child process");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            for (found, nanos) in String::from_utf8_lossy(&output.stdout).split_whitespace().zip(&mut nanos) {
                nanos[number].push(found.parse().expect("a number"));
            }
        }
    }
    println!(
        "{:8} {:>8} {:>8} {:>8}   (ns for an enter and an exit; medians of each round's fastest)",
        "", "without", "hidden", "shown"
    );
    for (name, nanos) in KINDS.iter().zip(nanos) {
        let [without, hidden, shown] = nanos.map(median);
        println!("{name:8} {without:8.2} {hidden:8.2} {shown:8.2}");
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Prints the fastest twentieth of the batches of each kind.
fn measure(case: &str) {
    let recorder = PerfRecorder::builder().anonymous().build().expect("a recorder");
    #[cfg(feature = "otel-context")]
    if case == "shown" {
        eventring::tracing::publish_otel_context(&recorder).expect("a mapping");
    }
    #[cfg(not(feature = "otel-context"))]
    assert!(case != "shown", "the feature `otel-context` is missing");
    tracing::subscriber::with_default(RecorderSubscriber::new(recorder), || {
        let spans = [tracing::info_span!("one"), tracing::info_span!("other")];
        let child = tracing::info_span!(parent: &spans[0], "child");
        let mut nanos: [Vec<f64>; KINDS.len()] = Default::default();
        for _ in 0..BATCHES {
            nanos[0].push(time(OPERATIONS, |_| drop(spans[0].enter())));
            nanos[1].push(time(OPERATIONS, |at| drop(spans[at % 2].enter())));
            nanos[2].push(spans[0].in_scope(|| time(OPERATIONS, |_| drop(child.enter()))));
            nanos[3].push(time(OPERATIONS, |_| drop(tracing::info_span!("new").entered())));
        }
        for mut nanos in nanos {
            nanos.sort_by(f64::total_cmp);
            println!("{}", nanos[BATCHES / 20]);
        }
    });
}

fn time(operations: u32, operation: impl Fn(usize)) -> f64 {
    let start = Instant::now();
    (0..operations as usize).for_each(operation);
    start.elapsed().as_nanos() as f64 / f64::from(operations)
}
