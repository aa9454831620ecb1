//! The perf ring: what a program's `tracing` spans and log records do, recorded and read.
//!
//! # Recording
//! A program that uses `tracing` already adds one line to its `main`:
//!
//! ```no_run
//! eventring::tracing::init("my-app");
//! ```
//!
//! A service that is to be switched on without a rebuild, and to go on if that fails, calls [`try_init_from_env`].
//!
//! That installs a [`RecorderSubscriber`], a complete subscriber that records and does nothing else. A program that needs other
//! layers, too (`fmt`, OpenTelemetry, …), adds a [`RecorderLayer`] to its stack. Both record to a [`PerfRecorder`]: rings that
//! threads do not share as long as there are enough of them.
//!
//! What is recorded: when each span is created, with its fields, its parent and its call site; when threads enter and exit it;
//! fields that come later; what it follows from; when its last handle is gone; log records with their fields; threads; and what a
//! program says by [`Counter`]s and [`Marker`]s. Execution events that are recorded inside a span carry its id (see
//! [`current_span_id`](crate::global::current_span_id)).
//!
//! Recording allocates nothing, formats only what is given as `Debug` or `Display` (capped, and it can be switched off), and never
//! waits; see [`PerfRecorder`] for what it keeps in memory. The first event of a thread takes locks, and may create a ring; the
//! first event of a call site takes a lock.
//!
//! # Reading
//! [`PerfReader`] opens all rings of a recorder, live or dead, and gives their events in the order of time as
//! [`PerfRecord`]s; an exec ring can be merged in. [`SpanRebuilder`] puts spans together as they close, [`SpanTree`] holds all of
//! them.

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
pub use read::{
    CallSite, Catalog, CatalogLosses, ExecRecord, Field, Fields, FieldsProblem, Moment, PerfContent, PerfItem,
    PerfReader, PerfRecord, PerfSource, Slice, Span, SpanId, SpanRebuilder, SpanTree, Thread, decode_record,
};
pub use recorder::{PerfRecorder, PerfStats};
pub use setup_error::{SetupError, SetupErrorKind};
pub use subscriber::RecorderSubscriber;
