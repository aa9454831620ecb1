//! The result of a test, which may depend on lost payloads.

/// Whether something holds, as far as is known. What holds if both of two things do is their minimum, and what holds if
/// one of them does is their maximum.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Truth {
    /// It does not hold, whatever was lost.
    No,
    /// It depends on a lost payload.
    Indeterminate,
    /// It holds, whatever was lost.
    Yes,
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

impl std::ops::Not for Truth {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Indeterminate => Self::Indeterminate,
            Self::Yes => Self::No,
        }
    }
}
