//! The items that a ring set returns, such as events and gaps.

use super::super::error::ReaderError;
use super::super::gap::Gap;
use crate::layout::Descriptor;

/// An item of a [`RingSet`](super::RingSet).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingItem {
    /// The next event of all rings. Call [`RingSet::payload`](super::RingSet::payload) for its payload.
    Event {
        /// Index of its ring in [`RingSet::rings`](super::RingSet::rings).
        ring: usize,
        /// The event.
        event: Descriptor,
    },
    /// A ring has lost events.
    Gap {
        /// Index of the ring.
        ring: usize,
        /// The missing events.
        gap: Gap,
    },
}

/// A shard that a recorder has made, but that the reader cannot open. When the recorder has ended, a [`RingItem::Gap`]
/// says how many events the shard held.
#[derive(Debug)]
#[non_exhaustive]
pub struct ShardError {
    /// Index of the recorder's shard 0 in the set.
    pub recorder: usize,
    /// Index of the shard, from 1.
    pub shard: u32,
    /// The reason.
    pub error: ReaderError,
}
