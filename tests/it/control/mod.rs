mod fork;
mod hostile;
mod hostile_overrides;
mod imports;

use crate::fixtures::*;

fn anonymous(name: &str) -> Recorder {
    let description = ContentDescription::new(300, name);
    Recorder::builder(description).anonymous().shifts(16, 27).prefault(false).build().unwrap()
}

/// Waits until `is_so`, at most a minute. Returns how long it took.
fn wait_until(mut is_so: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    wait_while(|| !is_so());
    start.elapsed()
}
