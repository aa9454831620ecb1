//! Records of the `log` crate, which the crate `tracing-log` passes to `tracing` as events.
//!
//! An event is a `log` record if its call site has the target and the field names of `tracing-log`. All `log` records
//! of one level share one call site.
//!
//! *Normalizing* replaces the shared call site by one that names the record's place in the program, which the event's
//! fields contain (`log.file`, `log.line` and others).

use super::call_site::CallSite;
use super::record::{Field, Fields};
use crate::schema::perf::{CallSiteKind, FieldValue};
use std::sync::Arc;

/// The target of `tracing-log`'s call sites.
const TARGET: &str = "log";
/// The fields of `tracing-log`'s call sites.
const FIELD_NAMES: [&str; 5] = ["message", "log.target", "log.module_path", "log.file", "log.line"];

/// Returns true if the events of the call site are records of the `log` crate.
pub fn is_log_record(call_site: &CallSite) -> bool {
    call_site.kind == Some(CallSiteKind::Event)
        && call_site.target == TARGET
        && call_site.field_names.iter().map(|name| &**name).eq(FIELD_NAMES)
}

/// Returns the call site and the fields of an event after normalizing. For a record of the `log` crate, the call site
/// names the place in the program, and the fields that named the place are removed. Other events are returned
/// unchanged.
pub(super) fn normalize(call_site: Arc<CallSite>, fields: Fields) -> (Arc<CallSite>, Fields) {
    if !is_log_record(&call_site) {
        return (call_site, fields);
    }
    let mut place = CallSite::clone(&call_site);
    let (of_place, values): (Vec<Field>, _) = fields.values.into_iter().partition(|field| field.index > 0);
    for Field { index, value, .. } in of_place {
        match (index, value) {
            (1, FieldValue::Str(target)) => place.target = target,
            (2, FieldValue::Str(module)) => place.module = Some(module),
            (3, FieldValue::Str(file)) => place.file = Some(file),
            (4, FieldValue::U64(line)) => place.line = u32::try_from(line).ok(),
            _ => {}
        }
    }
    (Arc::new(place), Fields { values, ..fields })
}
