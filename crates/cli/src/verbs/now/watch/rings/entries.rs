//! The source of the entries of a watch: live rings, or a capture.

use eventring::reader::{RingSet, SetRing};
use eventring_capture::recording::{CaptureEntries, RecordingTables, RingEntries};

/// The source of the entries.
pub(super) enum Entries {
    Rings(Box<RingEntries>),
    Capture(Box<CaptureEntries>),
}

impl Entries {
    /// Returns the set of the rings; `None` if they are in a capture.
    pub(super) fn set(&self) -> Option<&RingSet> {
        match self {
            Self::Rings(entries) => Some(entries.set()),
            Self::Capture(_) => None,
        }
    }

    /// Returns the rings of the set. A capture has none.
    pub(super) fn set_rings(&self) -> &[SetRing] {
        self.set().map_or(&[], RingSet::rings)
    }

    pub(super) fn tables(&self) -> &RecordingTables {
        match self {
            Self::Rings(entries) => entries.tables(),
            Self::Capture(entries) => entries.tables(),
        }
    }

    /// Returns the problems that were found in a capture so far.
    pub(super) fn problems(&self) -> &[String] {
        match self {
            Self::Rings(_) => &[],
            Self::Capture(entries) => entries.problems(),
        }
    }

    /// Returns how many events of a capture were not selected because their payload was lost.
    pub(super) fn untested(&self) -> u64 {
        match self {
            Self::Rings(_) => 0,
            Self::Capture(entries) => entries.untested(),
        }
    }
}
