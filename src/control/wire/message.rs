//! The common structure of all messages: a head, and a body of parts.

use super::bytes::{Body, BodyParts};
use super::fault::{VERSION, WireFault};

/// The first bytes of each message.
const MAGIC: [u8; 4] = *b"EVRC";
const HEAD_BYTES: usize = 16;

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
