//! Small recorders of spans in anonymous memory, and what they have recorded.

use eventring::tracing::{PerfReader, PerfRecord, PerfRecorder, PerfRecorderBuilder};
use eventring_stress::reference;

pub fn small() -> PerfRecorderBuilder {
    PerfRecorder::builder().anonymous().shifts(15, 21).tables_shift(16).prefault(false)
}

pub fn recorder() -> PerfRecorder {
    small().build().unwrap()
}

/// Returns all records of all shards.
pub fn records(recorder: &PerfRecorder) -> Vec<PerfRecord> {
    reference::records(&mut PerfReader::from_shards(recorder.open_readers().unwrap()))
}
