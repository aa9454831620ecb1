//! Perf rings: recording the spans and log records that a program makes with `tracing`, and reading them.
//!
//! # Recording
//! A program that already uses `tracing` needs one line in its `main`:
//!
//! ```no_run
//! eventring::tracing::init("my-app");
//! ```
//!
//! A service can call [`try_init_from_env`] instead of `init`. Then an environment variable switches recording on. If
//! recording cannot begin, the service gets an error and can continue.
//!
//! [`init`](fn@init) installs a [`RecorderSubscriber`], which only records. A program that needs other layers (`fmt`,
//! OpenTelemetry, …) adds a [`RecorderLayer`] to its stack of layers instead.
//!
//! Subscriber and layer record to a [`PerfRecorder`], which has several rings (*shards*). Threads share a ring only if
//! there are more threads than rings.
//!
//! Each step in the life of a span is an event in a ring: its creation (with fields, parent and call site), each enter
//! and exit, further fields, links to spans that it follows from, and the drop of its last handle.
//!
//! Log records, the start and end of threads, the samples of [`Counter`]s, and the marks of [`Marker`]s are recorded,
//! too.
//!
//! A typed event that is recorded inside a span carries the id of this span
//! ([`current_span_id`](crate::global::current_span_id)).
//!
//! Recording normally takes no lock and does not allocate. Exceptions:
//!
//! - The first event of a thread takes locks, and may create a ring.
//! - The first event of a call site takes a lock.
//! - Memory is allocated for another open span, or another span on a thread's span stack, if there is no room left.
//!
//! Only `Debug` and `Display` values are formatted, and their text is cut at a limit. This formatting can be switched
//! off. [`PerfRecorder`] explains the memory that recording takes.
//!
//! # Reading
//! [`PerfReader`] opens all rings of a recorder, even after the recorder has ended. It decodes the events to
//! [`PerfRecord`]s, in the order of time. It can merge rings of typed events into this order.
//!
//! [`SpanReplay`] makes spans and span slices from the records, one record at a time. [`SpanTree`] holds all spans of a
//! recording.

pub mod context;
pub(crate) mod filter;
mod read;
pub(crate) mod record;
mod span_id;
mod trace_context;

/// What the macros of this crate expand to.
#[doc(hidden)]
pub mod for_macros {
    pub use super::record::fields::args::{ArgAsIs, ArgFormatted, ArgOf, FormattedArg};
    pub use super::record::fields::values::{AnyOf, FieldEncoder, FieldValues, LogText, RecordedAsDebug, RecordedAsIs};
    pub use super::record::log::{checked, log};
    pub use super::record::macro_sites::site::{MacroSite, field_name};
    #[cfg(feature = "macros")]
    pub use eventring_macros::__log_text;
    pub use tracing_core::callsite::Identifier;
    pub use tracing_core::field::{FieldSet, debug, display};
    pub use tracing_core::{Kind, Metadata};
}

pub use tracing_core::Level;

pub use filter::filter::{FilterError, TargetFilter};
pub use filter::filter_handle::FilterHandle;
pub use filter::filter_override::FilterOverride;
pub use read::RawRecord;
pub use read::RingLosses;
pub use read::{
    CallSite, Catalog, CatalogLosses, Field, Fields, FieldsProblem, OpenSlice, PerfContent, PerfItem, PerfReader,
    PerfRecord, PerfSource, Span, SpanChange, SpanInstructions, SpanReplay, SpanSlice, SpanTree, Thread, ThreadKey,
    TimeOnThread, TimeSpent, TypedEvent, decode_record,
};
// For this project's own crates.
#[doc(hidden)]
pub use read::{GRACE_NANOS, IdMap, SpanStep, TakenSlice, is_log_record};
pub use record::counter::{Counter, CounterValue, Marker};
pub use record::fields::args::LogValue;
pub use record::fields::values::RecordedValue;
pub use record::init::setup_error::{SetupError, SetupErrorKind};
pub use record::init::{Recording, init, try_init, try_init_from_env, try_init_with};
pub use record::layer::RecorderLayer;
pub use record::perf_recorder::builder::PerfRecorderBuilder;
pub use record::perf_recorder::global::PERF;
pub use record::perf_recorder::handle::{PerfRecorder, PerfStats};
#[cfg(all(feature = "otel-context", target_os = "linux", target_arch = "x86_64", not(eventring_unsupported)))]
pub use record::perf_recorder::otel_context::publish as publish_otel_context;
pub use record::scope::Scope;
pub use record::subscriber::RecorderSubscriber;
pub use record::threads::instruction_count::InstructionSource;
pub use record::trigger::{trigger, trigger_on_panic};
pub use span_id::SpanId;
