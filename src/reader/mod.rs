//! Reading rings: live rings, rings of dead processes, snapshots.
//!
//! [`Reader`] opens one ring. A [`Cursor`] reads the ring's events and never waits; a [`Follower`] reads them and
//! waits for new events. A [`RingSet`] reads several rings, with all shards of sharded recorders, as one stream in the
//! order of time.

mod batch;
mod cursor;
mod end;
mod error;
mod event_batch;
mod expected;
mod filter;
mod follow;
mod gap;
mod handle;
pub(crate) mod in_memory;
mod info;
mod named_event;
mod open;
mod payload;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
mod removed;
mod ring_set;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
mod served;
#[cfg(feature = "snapshot")]
pub(crate) mod snapshot;
mod source;
mod sparse;
#[cfg(any(feature = "exec", feature = "snapshot"))]
#[cfg_attr(not(feature = "exec"), allow(dead_code, reason = "a schema with starts asks for single ones"))]
mod start_table;
mod wait;

pub use crate::layout::Descriptor;
pub use crate::shm::LostPages;
pub use batch::ReadyEvent;
pub use cursor::{Cursor, Next, Seek};
pub use end::RingEnd;
pub use error::{ReaderError, ReaderErrorKind};
pub use event_batch::EventBatch;
pub use event_batch::PayloadPlace;
pub use filter::EventFilter;
pub use follow::{Followed, Follower};
pub use gap::{Gap, GapCause, ReadStats};
pub use handle::Reader;
pub use info::{ClockInfo, ExtensionInfo, RingInfo, RingState, WriterInfo};
pub use open::ReaderOptions;
pub use payload::PayloadRead;
pub use ring_set::OpenedShards;
pub use ring_set::{RingItem, RingSet, RingSetOptions, SetRing, ShardError, shard_path};
#[cfg(feature = "snapshot")]
pub use snapshot::{SnapshotOptions, SnapshotSummary};
#[cfg(feature = "exec")]
pub(crate) use start_table::SavedStart;
pub use wait::WaitStrategy;
