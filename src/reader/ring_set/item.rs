//! The items that a ring set returns, such as events and gaps.

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
