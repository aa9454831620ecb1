//! The limits of messages, and the faults that a message can have.

use std::fmt;

/// The version of the messages.
pub(crate) const VERSION: u16 = 1;
/// The largest size of a message in bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// The largest size of a text in a message in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 16 << 10;

/// Fault of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum WireFault {
    /// The message is shorter than its head says, or than its kind needs.
    Short,
    /// The message has bytes after its end.
    Long,
    /// The message is longer than any message may be.
    TooLong,
    Magic,
    Version(u16),
    Kind(u16),
    /// A value that no message of this kind has.
    Value(&'static str),
}

impl fmt::Display for WireFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("the message is too short"),
            Self::Long => f.write_str("the message has bytes after its end"),
            Self::TooLong => write!(f, "the message is too long: expected at most {MESSAGE_BYTES_MAX} bytes"),
            Self::Magic => f.write_str("the message does not begin with EVRC"),
            Self::Version(found) => {
                write!(f, "the message has version {found}, expected {VERSION}; use programs of the same version")
            }
            Self::Kind(found) => write!(f, "the message has the unknown kind {found:#06x}"),
            Self::Value(what) => write!(f, "the message has a wrong value: {what}"),
        }
    }
}
