//! Answers that fit: `ask`, `--json-schema`, `--limit`, `mcp`.

mod clean;
mod faults;
mod limit;
mod mcp;
mod planted;
pub mod schemas;

use crate::fixtures::*;
use eventring_stress::random::Random;
use tracing::Span;

/// The places at which faults are planted: names of spans.
const PLACES: [&str; 3] = ["load_cart", "parse_row", "send_mail"];

/// Returns a span of a place.
fn span_at(place: usize) -> Span {
    match place % PLACES.len() {
        0 => info_span!("load_cart"),
        1 => info_span!("parse_row"),
        _ => info_span!("send_mail"),
    }
}

/// Records what a program usually does: short spans at all places, each in a request.
fn usual(seeded: &mut Random, requests: u64) {
    for _ in 0..requests {
        info_span!("request").in_scope(|| {
            for _ in 0..seeded.below(3) {
                span_at(seeded.below(3) as usize).in_scope(|| std::hint::black_box(()));
            }
        });
    }
}

/// Runs what records into a new ring of this directory. Returns the path of the ring, and the recorder, which keeps it.
fn recorded(dir: &TempDir, name: &str, record: impl FnOnce()) -> (PathBuf, PerfRecorder) {
    let ring = place(dir, name);
    let recorder = spans_in(&ring).shifts(16, 22).build().unwrap();
    in_recorder(recorder.clone(), record);
    (ring, recorder)
}

fn sleep(millis: u64) {
    thread::sleep(Duration::from_millis(millis));
}
