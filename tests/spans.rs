//! Small recorders of spans in anonymous memory, and what they have recorded.

use eventring::tracing::{PerfReader, PerfRecord, PerfRecorder, PerfRecorderBuilder};
use eventring_stress::reference;

/// Begins the configuration of a small recorder, which records only what a test asks for.
pub fn small() -> PerfRecorderBuilder {
    PerfRecorder::builder().anonymous().shifts(15, 21).tables_shift(16).prefault(false).thread_time(0.0)
}

pub fn recorder() -> PerfRecorder {
    small().build().unwrap()
}

/// Returns all records of all shards.
pub fn records(recorder: &PerfRecorder) -> Vec<PerfRecord> {
    reference::records(&mut PerfReader::from_shards(recorder.open_readers().unwrap()))
}
