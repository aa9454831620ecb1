//! The position of a received batch in its stream. A receiver stores the position in its file.

use crate::format::end::CaptureEnd;
use crate::format::wire::{Bytes, put_text, put_u32, put_u64};

/// The place of a received batch in its stream, and the account of the file up to it.
pub(super) struct Place {
    pub(super) sequence: u64,
    /// The time at which the broker has stored the batch, in nanoseconds since the epoch.
    pub(super) stored_epoch_nanos: u64,
    /// The name of the stream. If not all of it is received, a space follows, and what is.
    pub(super) source: String,
    /// The indices of the rings whose writers have ended.
    pub(super) ended: Vec<u32>,
    pub(super) end: CaptureEnd,
}

impl Place {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_u64(&mut out, self.sequence);
        put_u64(&mut out, self.stored_epoch_nanos);
        put_text(&mut out, &self.source);
        put_u32(&mut out, self.ended.len() as u32);
        self.ended.iter().for_each(|ring| put_u32(&mut out, *ring));
        out.extend(self.end.encode());
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Bytes::new(bytes);
        let (sequence, stored_epoch_nanos, source) = (bytes.u64()?, bytes.u64()?, bytes.text()?);
        let count = bytes.u32()?;
        let ended: Option<Vec<u32>> = (0..count).map(|_| bytes.u32()).collect();
        let (ended, end) = (ended?, CaptureEnd::decode(bytes.rest())?);
        Some(Self { sequence, stored_epoch_nanos, source, ended, end })
    }
}
