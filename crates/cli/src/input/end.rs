//! The end of a program in JSON.

use eventring::reader::RingEnd;
use schemars::JsonSchema;
use serde::Serialize;

/// The times between which a recording ended; null if it has not, or if that is not known.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EndTimes {
    ended_after_ns: Option<u64>,
    ended_before_ns: Option<u64>,
}

impl From<Option<RingEnd>> for EndTimes {
    fn from(end: Option<RingEnd>) -> Self {
        let (ended_after_ns, ended_before_ns) = end.map(|end| (end.after_epoch_nanos, end.before_epoch_nanos)).unzip();
        Self { ended_after_ns, ended_before_ns }
    }
}
