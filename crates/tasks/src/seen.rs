//! Names and fields of the records of tasks.

use eventring::schema::perf::FieldValue;
use eventring::tracing::{CallSite, Fields};

/// The target of tasks and their events.
pub const TARGET: &str = "eventring::task";

/// Returns true if the spans of a call site are tasks.
#[must_use]
pub fn is_task(site: &CallSite) -> bool {
    site.target == TARGET && site.name == "task"
}

/// Returns a field that is a number.
pub(crate) fn number(fields: &Fields, name: &str) -> Option<u64> {
    match fields.get(name)? {
        FieldValue::U64(number) => Some(*number),
        FieldValue::I64(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}
