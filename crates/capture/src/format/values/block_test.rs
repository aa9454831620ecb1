//! A test of a block's values: whether an event of the block may fulfil a condition.

use crate::format::values::column::BlockValues;
use crate::format::values::key::NameKey;

/// A test of the values of a block. It may hold for a block without such an event, and never fails for one with it.
#[derive(Clone, PartialEq, Debug)]
pub enum BlockTest {
    /// Nothing is known: the test holds.
    May,
    /// All of these hold.
    All(Vec<Self>),
    /// One of these holds.
    Any(Vec<Self>),
    /// A log record has one of these levels, a bit each.
    Levels(u8),
    /// An event has a value of this name.
    Name(NameKey),
    /// An event has a value with one key.
    Key {
        /// The name of the value.
        name: NameKey,
        /// The key of the value.
        key: u64,
    },
    /// An event has a number in this range, with both ends.
    Number {
        /// The name of the number.
        name: NameKey,
        /// The smallest number.
        least: f64,
        /// The largest number.
        most: f64,
    },
}

impl BlockTest {
    /// Returns false if no event of the block fulfils the condition.
    pub(crate) fn may_hold(&self, values: &BlockValues<'_>) -> bool {
        // Pages are read only if the head says that it may be.
        self.may_hold_by(values, false) && self.may_hold_by(values, true)
    }

    fn may_hold_by(&self, values: &BlockValues<'_>, reads_pages: bool) -> bool {
        match self {
            Self::May => true,
            Self::All(parts) => parts.iter().all(|part| part.may_hold_by(values, reads_pages)),
            Self::Any(parts) => parts.iter().any(|part| part.may_hold_by(values, reads_pages)),
            Self::Levels(levels) => values.levels & levels != 0,
            Self::Name(name) => values.name(name.short()).is_some(),
            Self::Key { name, key } => values
                .name(name.short())
                .is_some_and(|found| found.has_others || !reads_pages || values.may_have_key(*key)),
            Self::Number { name, least, most } => {
                let Some((first, last)) = values.name(name.short()).and_then(|found| found.range) else { return false };
                first <= *most && *least <= last
            }
        }
    }
}
