//! Records of the `log` crate, which come through `tracing-log`.
//!
//! `tracing-log` has one call site for each level, and puts the place of a record in the program into fields of the
//! event. `tracing-log` calls it *normalizing* to move that place back to the call site. Its names for these fields
//! have been the same since 2018.

use super::catalog::CallSite;
use super::record::{Field, Fields};
use crate::schema::perf::{CallSiteKind, FieldValue};
use std::sync::Arc;

/// The target of `tracing-log`'s call sites.
const TARGET: &str = "log";
/// The fields of `tracing-log`'s call sites.
const FIELD_NAMES: [&str; 5] = ["message", "log.target", "log.module_path", "log.file", "log.line"];

/// Returns the place that a `log` record names as its call site, and the remaining fields. Other events are returned
/// unchanged.
pub(super) fn normalize(call_site: Arc<CallSite>, fields: Fields) -> (Arc<CallSite>, Fields) {
    let is_log_record = call_site.kind == Some(CallSiteKind::Event)
        && call_site.target == TARGET
        && call_site.field_names.iter().map(|name| &**name).eq(FIELD_NAMES);
    if !is_log_record {
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
