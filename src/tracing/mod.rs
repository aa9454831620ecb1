//! The perf ring: a program's `tracing` spans and log records, recorded and read.
//!
//! # Recording
//! A program that already uses `tracing` adds one line to its `main`:
//!
//! ```no_run
//! eventring::tracing::init("my-app");
//! ```
//!
//! A service calls [`try_init_from_env`] instead. Then it can be recorded without a rebuild, and continues if the
//! recording fails.
//!
//! The line installs a [`RecorderSubscriber`], a complete subscriber that records and does nothing else. A program that
//! also needs other layers (`fmt`, OpenTelemetry, …) adds a [`RecorderLayer`] to its stack. Both record to a
//! [`PerfRecorder`], which has several rings: threads share a ring only if there are not enough rings.
//!
//! A span is recorded with its creation (fields, parent and call site), the enters and exits of threads, the fields
//! that are added later, the spans that it follows from, and the drop of its last handle. Log records with their
//! fields, threads, [`Counter`]s and [`Marker`]s are recorded, too. Typed events that are recorded inside a span carry
//! its id ([`current_span_id`](crate::global::current_span_id)).
//!
//! Recording does not allocate and never waits. It formats only `Debug` and `Display` values, up to a length; this can
//! be switched off. The docs of [`PerfRecorder`] have the memory that it takes. The first event of a thread takes
//! locks, and may create a ring; the first event of a call site takes a lock.
//!
//! # Reading
//! [`PerfReader`] opens all rings of a recorder, live or dead, and returns their events in the order of time as
//! [`PerfRecord`]s. Rings of typed events can be merged in. [`SpanReplay`] turns the records into spans and slices;
//! [`SpanTree`] holds all spans.

mod builder;
mod call_sites;
mod core;
mod counter;
mod directive;
mod end_of_thread;
mod fields;
mod filter;
mod filter_handle;
mod global;
mod init;
mod layer;
mod read;
mod recorder;
mod redact;
mod setup_error;
mod shards;
mod sink;
mod span_map;
mod span_slab;
mod span_stack;
mod subscriber;
mod switch;
mod tables;
mod thread;

pub use builder::PerfRecorderBuilder;
pub use counter::{Counter, CounterValue, Marker};
pub use filter::{FilterError, TargetFilter};
pub use filter_handle::FilterHandle;
pub use global::PERF;
pub use init::{
    CONFIG_VARIABLE, FILTER_VARIABLE, REDACT_VARIABLE, Recording, init, try_init, try_init_from_env, try_init_with,
};
pub use layer::RecorderLayer;
#[cfg(feature = "export")]
pub(crate) use read::RingLosses;
pub use read::{
    CallSite, Catalog, CatalogLosses, Field, Fields, FieldsProblem, Moment, OpenSlice, PerfContent, PerfItem,
    PerfReader, PerfRecord, PerfSource, Span, SpanChange, SpanId, SpanReplay, SpanSlice, SpanTree, Thread, ThreadKey,
    TypedEvent, decode_record,
};
pub use recorder::{PerfRecorder, PerfStats};
pub use setup_error::{SetupError, SetupErrorKind};
pub use subscriber::RecorderSubscriber;
