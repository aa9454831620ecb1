//! Reading of perf rings: decodes events, merges shards into one stream, and replays spans.

mod catalog;
#[cfg(feature = "live")]
mod catalog_room;
mod decode;
mod id_map;
mod log_record;
mod raw;
mod record;
mod replay;
mod span;
mod stream;
mod tree;

pub use catalog::{CallSite, Catalog, CatalogLosses, Thread};
pub use decode::decode_record;
#[cfg(feature = "export")]
pub(crate) use id_map::IdMap;
#[cfg(feature = "export")]
pub(crate) use log_record::is_log_record;
#[cfg(feature = "export")]
pub(crate) use raw::RawRecord;
pub use record::{Field, Fields, FieldsProblem, PerfContent, PerfRecord, SpanId};
#[cfg(feature = "capture")]
pub(crate) use replay::RingLosses;
#[cfg(feature = "export")]
pub(crate) use replay::{GRACE_NANOS, SpanStep, TakenSlice};
pub use replay::{OpenSlice, SpanChange, SpanReplay, ThreadKey};
pub use span::{Moment, Span, SpanInstructions, SpanSlice};
pub use stream::{PerfItem, PerfReader, PerfSource, TypedEvent};
pub use tree::SpanTree;
