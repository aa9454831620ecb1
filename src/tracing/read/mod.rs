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
mod slice;
mod span;
mod stream;
mod text;
mod time_spent;
mod trace_ids;
mod tree;

pub use call_site::{CallSite, Thread};
pub use catalog::{Catalog, CatalogLosses};
pub use decode::decode_record;
pub use id_map::IdMap;
pub use log_record::is_log_record;
pub use raw::RawRecord;
pub use record::{Field, Fields, FieldsProblem, PerfContent, PerfRecord};
pub use replay::{GRACE_NANOS, RingLosses, SpanChange, SpanReplay, SpanStep};
pub use slice::{OpenSlice, SpanInstructions, TakenSlice, ThreadKey};
pub use span::{Span, SpanSlice, TimeOnThread};
pub use stream::{PerfItem, PerfReader, PerfSource, TypedEvent};
pub use time_spent::TimeSpent;
pub use tree::SpanTree;
