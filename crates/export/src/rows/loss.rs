//! Events that were lost.

use super::row;
use eventring::reader::Gap;

row! {
    /// A range of events of a ring that were lost.
    pub struct LossRow<'a> {
        /// The number of the ring's process in the recording.
        process: u32 => U32,
        /// The name of the ring.
        ring: Option<&'a str> => Word,
        /// The first seqno that was lost.
        first_seqno: u64 => U64,
        /// How many.
        count: u64 => U64,
        /// Why: a name of a [`GapCause`](eventring::reader::GapCause).
        cause: Option<&'a str> => Word,
        /// The time of the last event before it, in any ring. A loss before the first event has none.
        seen_ns: Option<u64> => Amount,
    }
}

impl<'a> LossRow<'a> {
    /// Makes the row of a loss.
    #[must_use]
    pub fn new(process: u32, ring: &'a str, Gap { first_seqno, count, cause }: Gap, seen_ns: Option<u64>) -> Self {
        Self { process, ring: Some(ring), first_seqno, count, cause: Some(cause.name()), seen_ns }
    }
}
