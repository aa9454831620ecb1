//! The perf ring: what a program's `tracing` spans and log records do, recorded and read.

mod read;

pub use read::{
    CallSite, Catalog, CatalogLosses, ExecRecord, Field, Fields, FieldsProblem, Moment, PerfContent, PerfItem,
    PerfReader, PerfRecord, PerfSource, Slice, Span, SpanId, SpanRebuilder, SpanTree, Thread, decode_record,
};
