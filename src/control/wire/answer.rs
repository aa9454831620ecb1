//! The messages that a server sends.

use super::bytes::{Body, BodyParts};
use super::fault::WireFault;
use super::message::WireMessage;
use crate::control::error::ControlErrorKind;

/// A message of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// The answer to the first request: the process that serves, whether this client may switch, and how many
    /// other clients there are.
    Welcome { pid: u32, program: String, may_switch: bool, clients: u32 },
    /// A served file, as one of the answers to [`List`](super::ClientRequest::List).
    File(ServedInfo),
    /// The last of several answers. `count` is the number of things that were listed, or that a request has changed.
    End { count: u64 },
    /// A descriptor of a served file comes with this message.
    Imported { id: u64, bytes: u64 },
    /// The filter override with this number is in force. `note` says what the client should know about it, or is empty.
    Granted { filter_override: u64, note: String },
    /// The directives of the configuration, and the directives in force.
    State { configured: String, effective: String },
    /// A filter override that is in force, as one of the answers to [`State`](super::ClientRequest::State).
    Override(OverrideInfo),
    /// A domain, as one of the answers to [`State`](super::ClientRequest::State).
    Domain(SwitchedDomain),
    /// The server serves this file now. It is sent without a request, with the number 0.
    Added(ServedInfo),
    /// The server no longer serves this file. It is sent without a request, with the number 0.
    Removed { id: u64 },
    /// The request is refused.
    Refused { kind: ControlErrorKind, text: String },
}

/// A served file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ServedInfo {
    /// The number of the file at this server. No two files of a server ever have the same. It is 0 until the file is on
    /// the server's list.
    pub(crate) id: u64,
    pub(crate) name: String,
    /// The path of the file, or an empty text if it is anonymous memory.
    pub(crate) path: String,
    pub(crate) content_type: u16,
    pub(crate) content_name: String,
    pub(crate) schema_hash: [u8; 32],
    pub(crate) bytes: u64,
    /// The number that the shards of one recorder share, or 0.
    pub(crate) shard_group: u64,
    pub(crate) shard_index: u32,
}

/// A domain that a part of the program can switch.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct SwitchedDomain {
    pub(crate) name: String,
    pub(crate) is_enabled: bool,
    /// True if the configuration forbids the domain, so that no filter override switches it on.
    pub(crate) is_forbidden: bool,
}

/// A filter override that is in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OverrideInfo {
    pub(crate) pid: u32,
    /// The user of the client.
    pub(crate) uid: u32,
    /// The time at which the filter override ends, in nanoseconds since the epoch, or 0 if no time ends it.
    pub(crate) until_epoch_nanos: u64,
    pub(crate) directive: String,
}

mod kind {
    pub(super) const WELCOME: u16 = 0x8001;
    pub(super) const FILE: u16 = 0x8002;
    pub(super) const END: u16 = 0x8003;
    pub(super) const IMPORTED: u16 = 0x8004;
    pub(super) const GRANTED: u16 = 0x8005;
    pub(super) const STATE: u16 = 0x8006;
    pub(super) const OVERRIDE: u16 = 0x8007;
    pub(super) const DOMAIN: u16 = 0x8008;
    pub(super) const ADDED: u16 = 0x8009;
    pub(super) const REMOVED: u16 = 0x800a;
    pub(super) const REFUSED: u16 = 0x800b;
}

impl WireMessage for Answer {
    fn kind(&self) -> u16 {
        match self {
            Self::Welcome { .. } => kind::WELCOME,
            Self::File(_) => kind::FILE,
            Self::End { .. } => kind::END,
            Self::Imported { .. } => kind::IMPORTED,
            Self::Granted { .. } => kind::GRANTED,
            Self::State { .. } => kind::STATE,
            Self::Override(_) => kind::OVERRIDE,
            Self::Domain(_) => kind::DOMAIN,
            Self::Added(_) => kind::ADDED,
            Self::Removed { .. } => kind::REMOVED,
            Self::Refused { .. } => kind::REFUSED,
        }
    }

    fn put(&self, body: &mut Body) {
        match self {
            Self::Welcome { pid, program, may_switch, clients } => {
                body.u32(*pid);
                body.u16((*may_switch).into());
                body.u32(*clients);
                body.text(program);
            }
            Self::File(file) | Self::Added(file) => file.put(body),
            Self::End { count } => body.u64(*count),
            Self::Imported { id, bytes } => {
                body.u64(*id);
                body.u64(*bytes);
            }
            Self::Granted { filter_override, note } => {
                body.u64(*filter_override);
                body.text(note);
            }
            Self::State { configured, effective } => {
                body.text(configured);
                body.text(effective);
            }
            Self::Override(OverrideInfo { pid, uid, until_epoch_nanos, directive }) => {
                body.u32(*pid);
                body.u32(*uid);
                body.u64(*until_epoch_nanos);
                body.text(directive);
            }
            Self::Domain(SwitchedDomain { name, is_enabled, is_forbidden }) => {
                body.u16((*is_enabled).into());
                body.u16((*is_forbidden).into());
                body.text(name);
            }
            Self::Removed { id } => body.u64(*id),
            Self::Refused { kind, text } => {
                body.u16(kind.code());
                body.text(text);
            }
        }
    }

    fn take(kind: u16, parts: &mut BodyParts<'_>) -> Result<Option<Self>, WireFault> {
        Ok(Some(match kind {
            kind::WELCOME => {
                let (pid, may_switch, clients) = (parts.u32()?, parts.flag()?, parts.u32()?);
                Self::Welcome { pid, program: parts.text()?, may_switch, clients }
            }
            kind::FILE => Self::File(ServedInfo::take(parts)?),
            kind::END => Self::End { count: parts.u64()? },
            kind::IMPORTED => Self::Imported { id: parts.u64()?, bytes: parts.u64()? },
            kind::GRANTED => Self::Granted { filter_override: parts.u64()?, note: parts.text()? },
            kind::STATE => Self::State { configured: parts.text()?, effective: parts.text()? },
            kind::OVERRIDE => {
                let (pid, uid, until_epoch_nanos) = (parts.u32()?, parts.u32()?, parts.u64()?);
                Self::Override(OverrideInfo { pid, uid, until_epoch_nanos, directive: parts.text()? })
            }
            kind::DOMAIN => {
                let (is_enabled, is_forbidden) = (parts.flag()?, parts.flag()?);
                Self::Domain(SwitchedDomain { name: parts.text()?, is_enabled, is_forbidden })
            }
            kind::ADDED => Self::Added(ServedInfo::take(parts)?),
            kind::REMOVED => Self::Removed { id: parts.u64()? },
            kind::REFUSED => {
                let kind = ControlErrorKind::of_code(parts.u16()?);
                Self::Refused { kind, text: parts.text()? }
            }
            _ => return Ok(None),
        }))
    }
}

impl ServedInfo {
    fn put(&self, body: &mut Body) {
        body.u64(self.id);
        body.u64(self.bytes);
        body.u64(self.shard_group);
        body.u32(self.shard_index);
        body.u16(self.content_type);
        body.array(&self.schema_hash);
        [&self.name, &self.content_name, &self.path].into_iter().for_each(|text| body.text(text));
    }

    fn take(parts: &mut BodyParts<'_>) -> Result<Self, WireFault> {
        let (id, bytes, shard_group) = (parts.u64()?, parts.u64()?, parts.u64()?);
        let (shard_index, content_type, schema_hash) = (parts.u32()?, parts.u16()?, parts.array()?);
        let (name, content_name, path) = (parts.text()?, parts.text()?, parts.text()?);
        Ok(Self { id, name, path, content_type, content_name, schema_hash, bytes, shard_group, shard_index })
    }
}
