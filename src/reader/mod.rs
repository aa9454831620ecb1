//! Reading rings: live rings, rings of dead processes, snapshots.
//!
//! [`Reader`] opens one ring. A [`Cursor`] reads the ring's events and never waits; a [`Follower`] also waits for new
//! events. A [`RingSet`] reads several rings, with all shards of sharded recorders, as one stream in the order of time.

mod cursors;
mod end;
mod error;
mod follow;
mod gap;
mod handle;
mod info;
mod named_event;
pub(crate) mod opening;
mod ring_set;
#[cfg(feature = "snapshot")]
pub(crate) mod snapshot;
mod source;
#[cfg(any(feature = "exec", feature = "snapshot"))]
#[cfg_attr(not(feature = "exec"), allow(dead_code, reason = "a schema with starts asks for single ones"))]
mod start_table;
mod wait;

pub use crate::layout::Descriptor;
pub use crate::shm::LostPages;
pub use cursors::batch::ReadyEvent;
pub use cursors::cursor::{Cursor, Next, Seek};
pub use cursors::event_batch::EventBatch;
pub use cursors::event_batch::PayloadPlace;
pub use cursors::filter::EventFilter;
pub use cursors::payload::PayloadRead;
pub use end::RingEnd;
pub use error::{ReaderError, ReaderErrorKind};
pub use follow::{Followed, Follower};
pub use gap::{Gap, GapCause, ReadStats};
pub use handle::Reader;
pub use info::{ClockInfo, ExtensionInfo, RingInfo, RingState, WriterInfo};
pub use ring_set::OpenedShards;
pub use ring_set::options::RingSetOptions;
pub use ring_set::{RingItem, RingSet, SetRing, ShardError, shard_path};
#[cfg(feature = "snapshot")]
pub use snapshot::{SnapshotOptions, SnapshotSummary};
pub use source::options::ReaderOptions;
#[cfg(feature = "exec")]
pub(crate) use start_table::SavedStart;
pub use wait::WaitStrategy;
