//! The trace of a span that began in another process.

use std::fmt;
use std::num::NonZeroU128;

/// The id of a trace. `{}` prints it as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TraceId(NonZeroU128);

impl TraceId {
    /// The id 1.
    pub(crate) const MIN: Self = Self(NonZeroU128::MIN);

    /// Returns the id with this number; its first byte is the most significant one. Returns `None` for 0, which is no
    /// id.
    #[must_use]
    pub const fn new(id: u128) -> Option<Self> {
        match NonZeroU128::new(id) {
            Some(id) => Some(Self(id)),
            None => None,
        }
    }

    /// Returns the id as a number.
    #[must_use]
    pub const fn get(self) -> u128 {
        self.0.get()
    }

    /// Returns the bytes of the id, as protocols have them.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.get().to_be_bytes()
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A trace that began in another process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RemoteTrace {
    /// The id of the trace.
    pub trace_id: TraceId,
    /// The flags of `traceparent`. Bit 0 says that the caller records the trace ("sampled").
    pub flags: u8,
}
