//! A payload on its way to its place: one slice, or several in a row.

use crate::ring::memory::MappedMemory;
use crate::ring::writer::{RingWriter, SlotClaim};

/// What is recorded in the ordinary case. A trait, for a closure would be called, and its captures put into memory.
pub(super) trait Payload {
    /// Copies the payload to its place.
    fn fill(&self, writer: &RingWriter<MappedMemory>, claim: &SlotClaim<'_>);
}

impl Payload for [u8] {
    #[inline(always)]
    fn fill(&self, writer: &RingWriter<MappedMemory>, claim: &SlotClaim<'_>) {
        writer.fill_in_lane(claim, 0, self);
    }
}

impl Payload for [&[u8]] {
    #[inline(always)]
    fn fill(&self, writer: &RingWriter<MappedMemory>, claim: &SlotClaim<'_>) {
        let mut at = 0;
        for part in self {
            writer.fill_in_lane(claim, at, part);
            at += part.len() as u64;
        }
    }
}

/// The sum of the lengths; a slice may stand in `parts` several times, so that it can exceed the address space.
#[inline(always)]
pub(super) fn total_bytes(parts: &[&[u8]]) -> u64 {
    parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.len() as u64))
}
