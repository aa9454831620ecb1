//! Reading of perf rings: decodes events, merges shards into one stream, and replays spans.

mod call_site;
mod catalog;
mod catalog_limit;
mod decode;
mod id_map;
mod log_record;
mod raw;
mod record;
mod replay;
mod span;
mod stream;
mod text;
mod tree;

pub use call_site::{CallSite, Thread};
pub use catalog::{Catalog, CatalogLosses};
pub use decode::decode_record;
pub use id_map::IdMap;
pub use log_record::is_log_record;
pub use raw::RawRecord;
pub use record::{Field, Fields, FieldsProblem, PerfContent, PerfRecord, SpanId};
pub use replay::RingLosses;
pub use replay::{GRACE_NANOS, SpanInstructions, SpanStep, TakenSlice};
pub use replay::{OpenSlice, SpanChange, SpanReplay, ThreadKey};
pub use span::{Span, SpanSlice, TimeOnThread};
pub use stream::{PerfItem, PerfReader, PerfSource, TypedEvent};
pub use tree::SpanTree;
