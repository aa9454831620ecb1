//! Reading perf rings: events decoded, shards merged, spans rebuilt.

mod catalog;
mod decode;
mod log_record;
mod rebuild;
mod record;
mod span;
mod stream;
mod tree;

pub use catalog::{CallSite, Catalog, CatalogLosses, Thread};
pub use decode::decode_record;
pub use rebuild::SpanRebuilder;
pub use record::{Field, Fields, FieldsProblem, PerfContent, PerfRecord, SpanId};
pub use span::{Moment, Slice, Span};
pub use stream::{ExecRecord, PerfItem, PerfReader, PerfSource};
pub use tree::SpanTree;
