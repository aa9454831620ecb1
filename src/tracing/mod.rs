//! The perf ring: what a program's `tracing` spans and log records do, recorded and read.

mod builder;
mod call_sites;
mod entered;
mod fields;
mod filter;
mod layer;
mod read;
mod recorder;
mod shards;
mod slot;
mod span_cells;
mod span_map;
mod subscriber;
mod tables;
mod target;
mod thread;

pub use builder::PerfRecorderBuilder;
pub use filter::{FilterError, TargetFilter};
pub use layer::RecorderLayer;
pub use read::{
    CallSite, Catalog, CatalogLosses, ExecRecord, Field, Fields, FieldsProblem, Moment, PerfContent, PerfItem,
    PerfReader, PerfRecord, PerfSource, Slice, Span, SpanId, SpanRebuilder, SpanTree, Thread, decode_record,
};
pub use recorder::{PerfRecorder, PerfStats};
pub use slot::{PERF, PerfSlot};
pub use subscriber::{FilterHandle, RecorderSubscriber};
