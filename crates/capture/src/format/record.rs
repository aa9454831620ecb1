//! The records of a capture: events and gaps.

use eventring::reader::{Descriptor, GapCause, PayloadRead};

/// An event or a gap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturedRecord {
    /// Index of its ring in the capture.
    pub ring: u32,
    /// The event or gap.
    pub content: CapturedContent,
}

/// The content of a [`CapturedRecord`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CapturedContent {
    /// An event.
    Event {
        /// Its descriptor, as in the ring, except that `payload_buf_offset` is 0: the place in the ring's buffer means
        /// nothing outside of the ring.
        descriptor: Descriptor,
        /// Its payload.
        payload: CapturedPayload,
    },
    /// A run of seqnos for which the capture has no events.
    Gap {
        /// The first missing seqno.
        first_seqno: u64,
        /// Number of missing events.
        count: u64,
        /// The reason why the events are missing. [`GapCause::OverwrittenBefore`] means that they were overwritten
        /// before the capture began.
        cause: GapCause,
    },
}

/// The payload of a captured event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CapturedPayload {
    /// Exactly the bytes that were recorded.
    Valid(Vec<u8>),
    /// The payload was overwritten before it could be copied.
    Expired,
    /// The descriptor names a payload that its ring cannot have.
    Malformed,
    /// The payload is larger than 64 MiB, the limit for payloads in a capture.
    Omitted,
}

impl CapturedPayload {
    /// Returns the payload in the form in which a ring's reader returns payloads. An omitted payload counts as
    /// expired.
    #[must_use]
    pub fn as_read(&self) -> PayloadRead<'_> {
        match self {
            Self::Valid(bytes) => PayloadRead::Valid(bytes),
            Self::Expired | Self::Omitted => PayloadRead::Expired,
            Self::Malformed => PayloadRead::Malformed,
        }
    }
}

/// The sort time of one ring's records. The records of all rings are merged in the order of their sort times. The sort
/// time never falls from one record of a ring to the next, so these records stay in the order of their seqnos.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SortKey(u64);

impl SortKey {
    pub(crate) fn event(&mut self, epoch_nanos: u64) -> u64 {
        self.0 = self.0.max(epoch_nanos);
        self.0
    }

    pub(crate) fn gap(self) -> u64 {
        self.0
    }
}
