//! The PERF schema (content type 3): events about the spans and log records of `tracing`.
//!
//! [`PerfEvent`] lists the events, [`PerfExt`] decodes the extension words of a descriptor, and [`RawFields`] decodes
//! field values. `docs/FORMAT.md`, "Perf schema", describes the bytes.

mod allocated;
mod call_site;
mod event;
mod ext;
mod field;
#[cfg(feature = "tracing")]
pub(crate) mod measured_times;
pub(crate) mod tables;
mod thread;
mod thread_time;

pub use self::allocated::Allocated;
#[cfg(feature = "allocations")]
pub(crate) use self::allocated::{COUNTER_TARGET, LIVE_PREFIX, PEAK_PREFIX};
pub use self::call_site::{CallSiteHeader, CallSiteKind, CallSiteLevel, CallSiteView};
pub use self::event::PerfEvent;
pub use self::ext::{PerfExt, flags};
pub(crate) use self::field::{ArgKind, FIELD_HEADER_BYTES, TRUNCATED, TRUNCATION_BYTES};
pub use self::field::{Cut, FieldValue, MalformedFields, NotFormatted, RawField, RawFields, ValueType};
pub use self::thread::{ThreadHeader, ThreadView};
pub use self::thread_time::ThreadTime;
