//! Reading: live rings, rings of dead processes, snapshots.

mod batch;
mod cursor;
mod error;
mod filter;
mod follow;
mod info;
mod merge;
mod named_event;
mod open;
mod shards;
#[cfg(feature = "snapshot")]
mod snapshot;
mod sparse;
mod wait;

pub use crate::layout::Descriptor;
pub use crate::shm::LostPages;
pub use batch::ReadyEvent;
pub use cursor::{Cursor, Gap, GapCause, Next, PayloadRead, Seek};
pub use error::{ReaderError, ReaderErrorKind};
pub use filter::EventFilter;
pub use follow::{Followed, Follower};
pub use info::{ClockInfo, ExtensionInfo, RingInfo, RingState, WriterInfo};
pub use merge::{MergedItem, Merger};
pub use open::{Reader, ReaderOptions};
#[cfg(feature = "tracing")]
pub(crate) use shards::shard_path;
pub use shards::{FoundShard, ShardFinder};
#[cfg(feature = "snapshot")]
pub use snapshot::{SnapshotOptions, SnapshotSummary};
pub use wait::WaitStrategy;
