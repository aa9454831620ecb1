//! The payload of ALLOCATED.

use crate::schema::payload::EventPayload;

/// What a thread allocated and freed while the event's span was its innermost one, since the last ALLOCATED event of the
/// thread.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[event(name = "Allocated")]
pub struct Allocated {
    /// The number of allocations. A reallocation counts as an allocation and a free.
    pub allocations: u64,
    /// The bytes that these allocations asked for.
    pub bytes: u64,
    /// The number of frees.
    pub frees: u64,
    /// The bytes of the freed allocations.
    pub freed_bytes: u64,
}

impl Allocated {
    /// Returns the sums.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            allocations: self.allocations.saturating_add(other.allocations),
            bytes: self.bytes.saturating_add(other.bytes),
            frees: self.frees.saturating_add(other.frees),
            freed_bytes: self.freed_bytes.saturating_add(other.freed_bytes),
        }
    }

    /// Returns the name of the spans that a counter of live bytes is of, and true if it is the counter of the peak.
    /// `target` and `name` are those of the counter's call site. Returns `None` if it is another counter.
    #[must_use]
    pub fn live_counter<'n>(target: &str, name: &'n str) -> Option<(&'n str, bool)> {
        let of = |prefix| name.strip_prefix(prefix).filter(|_| target == COUNTER_TARGET);
        of(LIVE_PREFIX).map(|name| (name, false)).or_else(|| of(PEAK_PREFIX).map(|name| (name, true)))
    }

    /// Returns true if nothing was allocated or freed.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.allocations == 0 && self.frees == 0
    }
}

/// The target of the counters of live bytes.
pub(crate) const COUNTER_TARGET: &str = "eventring::alloc";
/// What the names of their call sites begin with; the name of the spans follows.
pub(crate) const LIVE_PREFIX: &str = "live bytes: ";
pub(crate) const PEAK_PREFIX: &str = "peak bytes: ";
