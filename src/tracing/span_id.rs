//! The id of a span.

use std::fmt;
use std::num::NonZeroU64;

/// The id of a span. A process never gives the same id to two spans.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SpanId(NonZeroU64);

impl SpanId {
    /// Returns the span id with this number. Returns `None` for 0, which in a ring means that there is no span.
    #[must_use]
    pub const fn new(id: u64) -> Option<Self> {
        match NonZeroU64::new(id) {
            Some(id) => Some(Self(id)),
            None => None,
        }
    }

    /// Returns the number, as in the ring.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
