//! Records the spans and log records of `tracing` with one line of set-up.
//!
//! ```console
//! $ cargo run --example quickstart
//! $ eventring watch quickstart        # in another terminal, while it runs
//! ```
//!
//! The rings are removed when the program ends normally, unless `EVENTRING_KEEP=1` is set in its environment. After a
//! crash the rings stay.

use std::thread::sleep;
use std::time::Duration;
use tracing::{info, info_span, warn};

fn main() {
    // This is the line of set-up. From here on, spans and log records at level INFO and above are recorded in rings
    // with the name `quickstart`. `EVENTRING_FILTER=debug` in the environment chooses another level.
    if let Err(error) = eventring::tracing::try_init("quickstart") {
        // A program can go on without a recording. Then a span costs as much as without a subscriber.
        eprintln!("{error}");
    }

    for request in 1..=20 {
        // The rest is plain `tracing`. A span lasts until its guard is dropped.
        let _span = info_span!("request", request).entered();
        answer(request);
    }
    println!("answered 20 requests");
}

fn answer(request: u32) {
    let _span = info_span!("answer").entered();
    sleep(Duration::from_millis(5));
    match request % 10 {
        0 => warn!(request, "the answer is late"),
        _ => info!(request, "answered"),
    }
}
