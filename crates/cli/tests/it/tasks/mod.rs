//! `eventring tasks`: what it counts is what programs count themselves, and planted faults are found, also after a
//! kill.

mod believed;
mod counted;
mod counters;
mod killed;
mod outlived;
mod pictures;
mod planted;
mod server;
mod triggers;

use crate::fixtures::*;
use eventring::tracing::RecorderLayer;
use eventring_stress::child::place as handed_over;
use tokio::runtime::{Builder, Runtime};
use tracing_subscriber::layer::SubscriberExt as _;

/// What the name of a part ends with that records through a `Registry` and the layer.
pub const LAYERED: &str = "layered";

pub fn recording(shifts: (u32, u32)) {
    let recorder = spans_in(handed_over()).shifts(shifts.0, shifts.1).build().unwrap();
    if part().is_some_and(|part| part.ends_with(LAYERED)) {
        let layers = tracing_subscriber::registry().with(RecorderLayer::new(recorder));
        return subscriber::set_global_default(layers).unwrap();
    }
    subscriber::set_global_default(RecorderSubscriber::new(recorder)).unwrap();
}

pub fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

pub fn tasks(ring: &Path, more: &[&str]) -> Value {
    run!("tasks", ring, "--json", more).json()
}

/// Returns the tasks of the verb with this name.
pub fn named<'a>(answer: &'a Value, name: &str) -> Vec<&'a Value> {
    answer["tasks"].list().iter().filter(|task| task["name"] == name).collect()
}
