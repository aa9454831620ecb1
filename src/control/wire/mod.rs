//! The messages between a server and its clients, byte by byte. `docs/CONTROL.md` describes them.
//!
//! Each message is one packet of a SOCK_SEQPACKET socket: a head of 16 bytes and a body. All numbers are little-endian.
//! No message from the other side is trusted: a malformed message is an error, never a panic, and no message is longer
//! than [`MESSAGE_BYTES_MAX`].
//!
//! | file | idea |
//! |---|---|
//! | `bytes` | writing and reading the parts of a body |
//! | `request` | the messages that a client sends |
//! | `answer` | the messages that a server sends |

mod answer;
mod bytes;
mod request;

pub(crate) use answer::{Answer, OverrideInfo, ServedInfo};
pub(crate) use request::{ClientRequest, OverrideLife};

use super::served_file::ServedFile;
use bytes::{Body, BodyParts};
use std::fmt;

/// The first bytes of each message.
const MAGIC: [u8; 4] = *b"EVRC";
/// The version of the messages.
pub(crate) const VERSION: u16 = 1;
const HEAD_BYTES: usize = 16;
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

/// A message of one side.
pub(crate) trait WireMessage: Sized {
    /// Returns the number of the message's kind.
    fn kind(&self) -> u16;
    fn put(&self, body: &mut Body);
    /// Takes the parts of a body. Returns `Ok(None)` if there is no such kind.
    fn take(kind: u16, parts: &mut BodyParts<'_>) -> Result<Option<Self>, WireFault>;

    /// Returns the message as bytes. `number` is the number of the request that it is, or that it answers.
    fn encode(&self, number: u32) -> Vec<u8> {
        let mut body = Body::after(&[0; HEAD_BYTES]);
        self.put(&mut body);
        let mut bytes = body.into_bytes();
        let body_bytes = (bytes.len() - HEAD_BYTES) as u32;
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.kind().to_le_bytes());
        bytes[8..12].copy_from_slice(&number.to_le_bytes());
        bytes[12..16].copy_from_slice(&body_bytes.to_le_bytes());
        bytes
    }

    /// Returns the number of a message, and the message.
    fn decode(bytes: &[u8]) -> Result<(u32, Self), WireFault> {
        let mut head = BodyParts::new(bytes);
        if head.array()? != MAGIC {
            return Err(WireFault::Magic);
        }
        let (version, kind, number, body_bytes) = (head.u16()?, head.u16()?, head.u32()?, head.u32()?);
        if version != VERSION {
            return Err(WireFault::Version(version));
        }
        let body = head.rest();
        match (body.len() as u64).cmp(&u64::from(body_bytes)) {
            std::cmp::Ordering::Less => return Err(WireFault::Short),
            std::cmp::Ordering::Greater => return Err(WireFault::Long),
            std::cmp::Ordering::Equal => {}
        }
        let mut parts = BodyParts::new(body);
        let message = Self::take(kind, &mut parts)?.ok_or(WireFault::Kind(kind))?;
        if parts.rest().is_empty() { Ok((number, message)) } else { Err(WireFault::Long) }
    }
}

/// Decodes bytes as a request and as an answer, for the fuzzer. What can be decoded must come back when it is encoded,
/// and the name of a ring must be one part of a path.
pub fn decode_messages(bytes: &[u8]) {
    if let Ok((number, request)) = ClientRequest::decode(bytes) {
        assert_eq!(ClientRequest::decode(&request.encode(number)), Ok((number, request)));
    }
    if let Ok((number, answer)) = Answer::decode(bytes) {
        if let Answer::File(info) = &answer {
            let file = ServedFile::new(info.clone());
            let name = std::path::Path::new(file.name());
            assert!(name.file_name().is_some_and(|last| last == name.as_os_str()), "{name:?}");
        }
        assert_eq!(Answer::decode(&answer.encode(number)), Ok((number, answer)));
    }
}

#[cfg(test)]
mod tests;
