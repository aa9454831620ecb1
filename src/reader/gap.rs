//! Gaps: runs of sequence numbers that a reader does not get, and their counts.

/// A run of sequence numbers under which this reader will never see an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gap {
    /// The first missing sequence number.
    pub first_seqno: u64,
    /// Number of missing events.
    pub count: u64,
    /// The reason why they are missing.
    pub cause: GapCause,
}

/// The reason why sequence numbers are without an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum GapCause {
    /// The events had been overwritten before the reader began, at [`Seek::Oldest`](super::Seek::Oldest) or
    /// [`Seek::Last`](super::Seek::Last), or were overwritten while the reader looked for its first event. They are no
    /// loss of this reader, because they were gone before it began.
    OverwrittenBefore,
    /// The reader was too slow: the ring went round, and the events were overwritten. Also the cause for events that
    /// were asked for by number ([`Seek::Seqno`](super::Seek::Seqno)) after they had been overwritten.
    Overwritten,
    /// The numbers were handed out, but their events were never committed: the writer was killed while it recorded
    /// them, or had not finished when the ring ended. (In capture files of version 1, this cause also stands for
    /// numbers that were given up.)
    NeverCommitted,
    /// The numbers stand for no event. Their writers gave them up, because another writer was stalled in the slot or
    /// had overtaken them, and recorded their events under later numbers. (A writer that is killed after it has given
    /// up a number records no event under a later number.)
    GivenUp,
    /// A whole shard could not be opened. In most cases the shard was made and removed again between two searches of
    /// the reader for new shards.
    NeverOpened,
}

impl GapCause {
    /// All causes.
    pub const ALL: [Self; 5] =
        [Self::OverwrittenBefore, Self::Overwritten, Self::NeverCommitted, Self::GivenUp, Self::NeverOpened];

    /// Returns true if events are missing; false for numbers that were given up and stand for no event.
    #[must_use]
    pub fn is_loss(self) -> bool {
        self != Self::GivenUp
    }

    /// Returns a short name: `overwritten_before`, `overwritten`, `never_committed`, `given_up`, `never_opened`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OverwrittenBefore => "overwritten_before",
            Self::Overwritten => "overwritten",
            Self::NeverCommitted => "never_committed",
            Self::GivenUp => "given_up",
            Self::NeverOpened => "never_opened",
        }
    }
}

impl Gap {
    /// Returns true if events are missing; false for numbers that were given up and stand for no event.
    pub fn is_loss(&self) -> bool {
        self.cause.is_loss()
    }

    /// Returns the gap that stands for all events of a shard that could not be opened. `seqnos` is the number of
    /// sequence numbers that the shard has handed out. If it is not known, the gap counts one missing event.
    pub(super) fn of_missed_shard(seqnos: Option<u64>) -> Self {
        Self { first_seqno: 1, count: seqnos.unwrap_or(1), cause: GapCause::NeverOpened }
    }
}

/// Counts of the sequence numbers that a reader has passed: read, overwritten before, lost, given up. Their sum is the
/// number of sequence numbers that the reader has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadStats {
    /// Events that were read.
    pub read: u64,
    /// Events that were gone before the reader began ([`GapCause::OverwrittenBefore`]).
    pub overwritten_before: u64,
    /// Events that this reader has lost, whatever the cause.
    pub lost: u64,
    /// Numbers that stand for no event ([`GapCause::GivenUp`]).
    pub given_up: u64,
}

impl ReadStats {
    pub(super) fn count_gap(&mut self, gap: Gap) {
        let count = match gap.cause {
            GapCause::OverwrittenBefore => &mut self.overwritten_before,
            GapCause::GivenUp => &mut self.given_up,
            GapCause::Overwritten | GapCause::NeverCommitted | GapCause::NeverOpened => &mut self.lost,
        };
        *count = count.saturating_add(gap.count);
    }

    /// Returns the sum of all numbers that were passed without reading an event.
    pub(super) fn missing(&self) -> u64 {
        self.overwritten_before.saturating_add(self.lost).saturating_add(self.given_up)
    }
}
