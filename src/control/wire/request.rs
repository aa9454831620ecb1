//! The messages that a client sends.

use super::bytes::{Body, BodyParts};
use super::fault::WireFault;
use super::message::WireMessage;

/// A request of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ClientRequest {
    /// The first request of each client. `program` is the client's name for messages.
    Hello { program: String },
    /// Asks for all files that the server serves.
    List,
    /// Asks for a descriptor of a served file. The file must have this content type and this schema hash, unless they
    /// are 0.
    Import { id: u64, content_type: u16, schema_hash: [u8; 32] },
    /// Asks to be told of files that the server serves from now on, and of those that it no longer serves.
    Follow,
    /// Asks to switch on what a directive names.
    Override { life: OverrideLife, directive: String },
    /// Revokes all filter overrides with this directive, also those of other clients of the same user.
    Revoke { directive: String },
    /// Asks what is on, and who wants it.
    State,
}

/// The time for which a filter override lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OverrideLife {
    /// The life of the client.
    Client,
    /// A number of milliseconds, whether the client lives or not.
    Millis(u64),
    /// Life without an end, until the filter override is revoked or the program ends.
    Kept,
}

mod kind {
    pub(super) const HELLO: u16 = 1;
    pub(super) const LIST: u16 = 2;
    pub(super) const IMPORT: u16 = 3;
    pub(super) const FOLLOW: u16 = 4;
    pub(super) const OVERRIDE: u16 = 5;
    pub(super) const REVOKE: u16 = 6;
    pub(super) const STATE: u16 = 7;
}

impl WireMessage for ClientRequest {
    fn kind(&self) -> u16 {
        match self {
            Self::Hello { .. } => kind::HELLO,
            Self::List => kind::LIST,
            Self::Import { .. } => kind::IMPORT,
            Self::Follow => kind::FOLLOW,
            Self::Override { .. } => kind::OVERRIDE,
            Self::Revoke { .. } => kind::REVOKE,
            Self::State => kind::STATE,
        }
    }

    fn put(&self, body: &mut Body) {
        match self {
            Self::Hello { program } => body.text(program),
            Self::List | Self::Follow | Self::State => {}
            Self::Import { id, content_type, schema_hash } => {
                body.u64(*id);
                body.u16(*content_type);
                body.array(schema_hash);
            }
            Self::Override { life, directive } => {
                let (code, millis) = match life {
                    OverrideLife::Client => (0, 0),
                    OverrideLife::Millis(millis) => (1, *millis),
                    OverrideLife::Kept => (2, 0),
                };
                body.u16(code);
                body.u64(millis);
                body.text(directive);
            }
            Self::Revoke { directive } => body.text(directive),
        }
    }

    fn take(kind: u16, parts: &mut BodyParts<'_>) -> Result<Option<Self>, WireFault> {
        Ok(Some(match kind {
            kind::HELLO => Self::Hello { program: parts.text()? },
            kind::LIST => Self::List,
            kind::IMPORT => Self::Import { id: parts.u64()?, content_type: parts.u16()?, schema_hash: parts.array()? },
            kind::FOLLOW => Self::Follow,
            kind::OVERRIDE => {
                let life = match (parts.u16()?, parts.u64()?) {
                    (0, 0) => OverrideLife::Client,
                    (1, millis) => OverrideLife::Millis(millis),
                    (2, 0) => OverrideLife::Kept,
                    _ => return Err(WireFault::Value("the life of a filter override is not known")),
                };
                Self::Override { life, directive: parts.text()? }
            }
            kind::REVOKE => Self::Revoke { directive: parts.text()? },
            kind::STATE => Self::State,
            _ => return Ok(None),
        }))
    }
}
