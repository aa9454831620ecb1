//! The indices and names of the fields that hold the context of a span's caller.

use std::sync::{Arc, LazyLock};

/// The index of the field with `traceparent`.
pub(in crate::tracing) const PARENT_INDEX: u8 = 254;
/// The index of the field with `tracestate`.
pub(in crate::tracing) const STATE_INDEX: u8 = 255;

/// The names of the fields at [`PARENT_INDEX`] and [`STATE_INDEX`].
static NAMES: LazyLock<[Arc<str>; 2]> =
    LazyLock::new(|| ["eventring.traceparent".into(), "eventring.tracestate".into()]);

/// Returns the name of a field whose call site has no name for it.
pub(in crate::tracing) fn field_name(index: u8) -> Option<&'static Arc<str>> {
    NAMES.get(usize::from(index.checked_sub(PARENT_INDEX)?))
}
