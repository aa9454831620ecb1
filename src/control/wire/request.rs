//! The messages that a client sends.

use super::bytes::{Body, BodyParts};
use super::{WireFault, WireMessage};

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
    Wish { life: WishLife, directive: String },
    /// Takes back all wishes with this directive, also those of other clients of the same user.
    Withdraw { directive: String },
    /// Asks what is on, and who wants it.
    State,
}

/// The time for which a wish lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WishLife {
    /// The life of the client.
    Client,
    /// A number of milliseconds, whether the client lives or not.
    Millis(u64),
    /// Life without an end, until the wish is taken back or the program ends.
    Kept,
}

mod kind {
    pub(super) const HELLO: u16 = 1;
    pub(super) const LIST: u16 = 2;
    pub(super) const IMPORT: u16 = 3;
    pub(super) const FOLLOW: u16 = 4;
    pub(super) const WISH: u16 = 5;
    pub(super) const WITHDRAW: u16 = 6;
    pub(super) const STATE: u16 = 7;
}

impl WireMessage for ClientRequest {
    fn kind(&self) -> u16 {
        match self {
            Self::Hello { .. } => kind::HELLO,
            Self::List => kind::LIST,
            Self::Import { .. } => kind::IMPORT,
            Self::Follow => kind::FOLLOW,
            Self::Wish { .. } => kind::WISH,
            Self::Withdraw { .. } => kind::WITHDRAW,
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
            Self::Wish { life, directive } => {
                let (code, millis) = match life {
                    WishLife::Client => (0, 0),
                    WishLife::Millis(millis) => (1, *millis),
                    WishLife::Kept => (2, 0),
                };
                body.u16(code);
                body.u64(millis);
                body.text(directive);
            }
            Self::Withdraw { directive } => body.text(directive),
        }
    }

    fn take(kind: u16, parts: &mut BodyParts<'_>) -> Result<Option<Self>, WireFault> {
        Ok(Some(match kind {
            kind::HELLO => Self::Hello { program: parts.text()? },
            kind::LIST => Self::List,
            kind::IMPORT => Self::Import { id: parts.u64()?, content_type: parts.u16()?, schema_hash: parts.array()? },
            kind::FOLLOW => Self::Follow,
            kind::WISH => {
                let life = match (parts.u16()?, parts.u64()?) {
                    (0, 0) => WishLife::Client,
                    (1, millis) => WishLife::Millis(millis),
                    (2, 0) => WishLife::Kept,
                    _ => return Err(WireFault::Value("the life of a wish is not known")),
                };
                Self::Wish { life, directive: parts.text()? }
            }
            kind::WITHDRAW => Self::Withdraw { directive: parts.text()? },
            kind::STATE => Self::State,
            _ => return Ok(None),
        }))
    }
}
