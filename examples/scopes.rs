//! Records a hot loop: scopes instead of spans, and texts that readers format.
//!
//! ```console
//! $ EVENTRING_KEEP=1 cargo run --release --example scopes
//! $ eventring summary scopes          # counts, totals and percentiles of each scope
//! $ eventring watch scopes            # the texts, formatted
//! ```
//!
//! A span of `tracing` may move to other threads, and may be entered many times. Even a span that is entered once reads
//! the clock four times. A scope is entered once, by one thread, and reads the clock twice.

use eventring::{log, scope, scoped};

/// The whole function is a scope. Its arguments are fields; `skip` names those that are none.
#[scoped(skip(text))]
fn parse(line: usize, text: &str) -> Result<u64, std::num::ParseIntError> {
    let number = {
        let _scope = scope!("number", bytes = text.len());
        text.trim().parse::<u64>()
    };
    if let Err(error) = &number {
        // The ring gets the arguments; `eventring watch` makes the text. `error` has only `Display`, so it is formatted
        // here, into the ring.
        log::warn!("line {line}: {error} in {text:?}");
    }
    number
}

fn main() {
    if let Err(error) = eventring::tracing::try_init("scopes") {
        eprintln!("{error}");
    }
    let lines: Vec<String> = (0..10_000).map(|n| if n % 999 == 5 { format!("{n}x") } else { n.to_string() }).collect();
    // A scope lasts until its guard is dropped. Scopes and spans that begin meanwhile are its children.
    let all = scope!("all", lines = lines.len());
    let sum: u64 = lines.iter().enumerate().filter_map(|(line, text)| parse(line, text).ok()).sum();
    drop(all);
    log::info!("{} lines, sum {sum:#x}, mean {:.1}", lines.len(), sum as f64 / lines.len() as f64);
    println!("sum {sum}");
}
