//! Gaps: ranges of sequence numbers for which a reader gets no event, and their counts.

/// A range of sequence numbers for which this reader will never get an event.
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
    /// The events were overwritten before the reader read its first event. The reader began with the oldest events
    /// ([`Seek::Oldest`](super::Seek::Oldest)) or the last events ([`Seek::Last`](super::Seek::Last)). It was not too
    /// slow: it had no chance to read these events.
    OverwrittenBefore,
    /// The events were overwritten before the reader reached them, because it was too slow. Events that the reader
    /// asked for by number ([`Seek::Seqno`](super::Seek::Seqno)) after they had been overwritten have this cause, too.
    Overwritten,
    /// The numbers were handed out, but their events were never committed. The writer was killed while it recorded
    /// them, or the ring ended before the writer had committed them. (In capture files of version 1, this cause also
    /// covers numbers that a writer skipped.)
    NeverCommitted,
    /// The numbers stand for no event, because their writers skipped them. A writer skips a number if another writer
    /// is stalled in the slot, or if other writers have recorded a whole lap since the number was handed out. The
    /// writer then records its event under a later number. (If the writer is killed before that, the event is missing.)
    Skipped,
    /// The events are in a shard that this reader could not open. In most cases, the recorder made the shard and
    /// removed it again before the reader looked for new shards.
    NeverOpened,
    /// The events were not wanted: whoever took them from the ring had a filter. They are not lost.
    Filtered,
    /// The part of a capture file that held the events is damaged. The numbers may include some that the capture itself
    /// had lost, or that were skipped: what the file said about them is damaged, too.
    Damaged,
}

impl GapCause {
    /// All causes.
    pub const ALL: [Self; 7] = [
        Self::OverwrittenBefore,
        Self::Overwritten,
        Self::NeverCommitted,
        Self::Skipped,
        Self::NeverOpened,
        Self::Filtered,
        Self::Damaged,
    ];

    /// The causes that a capture counts and stores. [`Self::Damaged`] arises later, when the capture is read.
    pub const OF_RINGS: [Self; 6] = [
        Self::OverwrittenBefore,
        Self::Overwritten,
        Self::NeverCommitted,
        Self::Skipped,
        Self::NeverOpened,
        Self::Filtered,
    ];

    /// Returns true if events are lost. Returns false for numbers that a writer skipped, because they stand for no
    /// event, and for events that nobody wanted.
    #[must_use]
    pub fn is_loss(self) -> bool {
        !matches!(self, Self::Skipped | Self::Filtered)
    }

    /// Returns true if something may have been recorded in the gap that is not known. Returns false for numbers that a
    /// writer skipped, and for events that were never committed: a program records an event before what it says
    /// happens, and was killed meanwhile.
    ///
    /// ```
    /// use eventring::reader::GapCause;
    ///
    /// assert!(GapCause::Overwritten.may_hide_events() && GapCause::Filtered.may_hide_events());
    /// assert!(!GapCause::Skipped.may_hide_events() && !GapCause::NeverCommitted.may_hide_events());
    /// ```
    #[must_use]
    pub fn may_hide_events(self) -> bool {
        !matches!(self, Self::Skipped | Self::NeverCommitted)
    }

    /// Returns a short name: `overwritten_before`, `overwritten`, `never_committed`, `given_up`, `never_opened`,
    /// `filtered`, `damaged`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OverwrittenBefore => "overwritten_before",
            Self::Overwritten => "overwritten",
            Self::NeverCommitted => "never_committed",
            Self::Skipped => "given_up",
            Self::NeverOpened => "never_opened",
            Self::Filtered => "filtered",
            Self::Damaged => "damaged",
        }
    }
}

impl Gap {
    /// Returns true if events are missing. Returns false for numbers that a writer skipped: they stand for no event.
    pub fn is_loss(&self) -> bool {
        self.cause.is_loss()
    }

    /// Returns the gap for a shard that could not be opened. `seqnos` is how many sequence numbers the shard has
    /// handed out. If it is `None` (unknown), the gap counts one missing event.
    pub(super) fn of_missed_shard(seqnos: Option<u64>) -> Self {
        Self { first_seqno: 1, count: seqnos.unwrap_or(1), cause: GapCause::NeverOpened }
    }
}

/// Counts of the sequence numbers that a reader has passed: how many were read, overwritten before the reader began,
/// lost, and skipped. The sum of the four counts is the number of all sequence numbers that the reader has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadStats {
    /// Events that were read.
    pub read: u64,
    /// Events that were overwritten before the reader began ([`GapCause::OverwrittenBefore`]).
    pub overwritten_before: u64,
    /// Events that this reader has lost, whatever the cause.
    pub lost: u64,
    /// Numbers that stand for no event ([`GapCause::Skipped`]).
    pub skipped: u64,
}

impl ReadStats {
    pub(super) fn count_gap(&mut self, gap: Gap) {
        let count = match gap.cause {
            GapCause::OverwrittenBefore => &mut self.overwritten_before,
            GapCause::Skipped => &mut self.skipped,
            // (Only captures have gaps of the last two causes.)
            GapCause::Overwritten
            | GapCause::NeverCommitted
            | GapCause::NeverOpened
            | GapCause::Filtered
            | GapCause::Damaged => &mut self.lost,
        };
        *count = count.saturating_add(gap.count);
    }

    /// Returns how many sequence numbers the reader has passed without reading an event.
    pub(super) fn missing(&self) -> u64 {
        self.overwritten_before.saturating_add(self.lost).saturating_add(self.skipped)
    }
}
