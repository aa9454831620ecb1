//! The records of a capture: events and gaps.

use super::format::PAYLOAD_BYTES_MAX;
use super::wire::{Bytes, put_u16, put_u32, put_u64};
use crate::layout::limits::DESCRIPTOR_WORDS;
use crate::reader::{Descriptor, Gap, GapCause, PayloadRead};

/// An event or a gap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturedRecord {
    /// Index of its ring in the capture.
    pub ring: u32,
    /// The event or gap.
    pub content: CapturedContent,
}

/// The content of a [`CapturedRecord`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CapturedContent {
    /// An event.
    Event {
        /// Its descriptor, as in the ring.
        descriptor: Descriptor,
        /// Its payload.
        payload: CapturedPayload,
    },
    /// A run of seqnos for which the capture has no events.
    Gap {
        /// The first missing seqno.
        first_seqno: u64,
        /// Number of missing events.
        count: u64,
        /// The reason why the events are missing. [`GapCause::OverwrittenBefore`] means that they were overwritten
        /// before the capture began.
        cause: GapCause,
    },
}

/// The payload of a captured event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CapturedPayload {
    /// Exactly the bytes that were recorded.
    Valid(Vec<u8>),
    /// The payload was overwritten before it could be copied.
    Expired,
    /// The descriptor names a payload that its ring cannot have.
    Malformed,
    /// The payload is larger than 64 MiB, the limit for payloads in a capture.
    Omitted,
}

impl CapturedPayload {
    /// Returns the payload in the form in which a ring's reader returns payloads. An omitted payload counts as
    /// expired.
    #[must_use]
    pub fn as_read(&self) -> PayloadRead<'_> {
        match self {
            Self::Valid(bytes) => PayloadRead::Valid(bytes),
            Self::Expired | Self::Omitted => PayloadRead::Expired,
            Self::Malformed => PayloadRead::Malformed,
        }
    }
}

const VALID: u8 = 1;
const EXPIRED: u8 = 2;
const MALFORMED: u8 = 3;
const OMITTED: u8 = 4;
const GAP: u8 = 5;

/// Size of an encoded gap.
pub(super) const GAP_BYTES: usize = 24;

/// Returns the size of an encoded event.
pub(super) fn event_bytes(payload: PayloadRead<'_>) -> usize {
    let payload_bytes = payload.valid().map_or(0, <[u8]>::len);
    8 + 8 * DESCRIPTOR_WORDS + if payload_bytes > PAYLOAD_BYTES_MAX { 0 } else { payload_bytes }
}

/// Encodes an event. `ring` is the index of its ring. The index fits 16 bits, because a capture has at most
/// `RINGS_MAX` rings.
pub(super) fn put_event(out: &mut Vec<u8>, ring: u32, descriptor: &Descriptor, payload: PayloadRead<'_>) {
    let (tag, bytes): (u8, &[u8]) = match payload {
        PayloadRead::Valid(bytes) if bytes.len() > PAYLOAD_BYTES_MAX => (OMITTED, &[]),
        PayloadRead::Valid(bytes) => (VALID, bytes),
        PayloadRead::Expired => (EXPIRED, &[]),
        PayloadRead::Malformed => (MALFORMED, &[]),
    };
    out.extend([tag, 0]);
    put_u16(out, ring as u16);
    put_u32(out, bytes.len() as u32);
    descriptor.to_words().into_iter().for_each(|word| put_u64(out, word));
    out.extend(bytes);
}

/// Encodes a gap.
pub(super) fn put_gap(out: &mut Vec<u8>, ring: u32, gap: Gap) {
    // The cause's code is its index in [`GapCause::ALL`].
    out.extend([GAP, gap.cause as u8]);
    put_u16(out, ring as u16);
    put_u32(out, 0);
    put_u64(out, gap.first_seqno);
    put_u64(out, gap.count);
}

/// Decodes the next record; returns `None` if it is damaged.
pub(super) fn take_record(bytes: &mut Bytes<'_>) -> Option<CapturedRecord> {
    let (tag, cause) = (bytes.u8()?, bytes.u8()?);
    let ring = u32::from(bytes.u16()?);
    let payload_bytes = bytes.u32()? as usize;
    if tag == GAP {
        let (first_seqno, count) = (bytes.u64()?, bytes.u64()?);
        let cause = *GapCause::ALL.get(usize::from(cause))?;
        return Some(CapturedRecord { ring, content: CapturedContent::Gap { first_seqno, count, cause } });
    }
    let mut words = [0; DESCRIPTOR_WORDS];
    for word in &mut words {
        *word = bytes.u64()?;
    }
    let payload = bytes.take(payload_bytes)?;
    let payload = match tag {
        VALID => CapturedPayload::Valid(payload.to_vec()),
        EXPIRED => CapturedPayload::Expired,
        MALFORMED => CapturedPayload::Malformed,
        OMITTED => CapturedPayload::Omitted,
        _ => return None,
    };
    Some(CapturedRecord {
        ring,
        content: CapturedContent::Event { descriptor: Descriptor::from_words(words), payload },
    })
}

/// The sort time of one ring's records. The records of all rings are merged in the order of their sort times. The sort
/// time never falls from one record of a ring to the next, so these records stay in the order of their seqnos.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SortKey(u64);

impl SortKey {
    pub(super) fn event(&mut self, epoch_nanos: u64) -> u64 {
        self.0 = self.0.max(epoch_nanos);
        self.0
    }

    pub(super) fn gap(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back_and_shortened_ones_are_refused() {
        let descriptor = Descriptor::from_words([1, 2, 3, 4, 5, 6, 7, 8]);
        let mut bytes = Vec::new();
        put_event(&mut bytes, 9, &descriptor, PayloadRead::Valid(b"abc"));
        let first_bytes = bytes.len();
        assert_eq!(first_bytes, event_bytes(PayloadRead::Valid(b"abc")));
        put_event(&mut bytes, 8, &descriptor, PayloadRead::Expired);
        put_event(&mut bytes, 8, &descriptor, PayloadRead::Malformed);
        let events_bytes = bytes.len();
        put_gap(&mut bytes, 7, Gap { first_seqno: 100, count: 5, cause: GapCause::NeverOpened });
        assert_eq!(bytes.len() - events_bytes, GAP_BYTES);
        let mut rest = Bytes::new(&bytes);
        let event = |ring, payload| CapturedRecord { ring, content: CapturedContent::Event { descriptor, payload } };
        assert_eq!(take_record(&mut rest), Some(event(9, CapturedPayload::Valid(b"abc".to_vec()))));
        assert_eq!(take_record(&mut rest), Some(event(8, CapturedPayload::Expired)));
        assert_eq!(take_record(&mut rest), Some(event(8, CapturedPayload::Malformed)));
        let gap = CapturedContent::Gap { first_seqno: 100, count: 5, cause: GapCause::NeverOpened };
        assert_eq!(take_record(&mut rest), Some(CapturedRecord { ring: 7, content: gap }));
        assert!(rest.is_empty());
        for end in 0..first_bytes {
            assert_eq!(take_record(&mut Bytes::new(&bytes[..end])), None, "{end}");
        }
    }
}
