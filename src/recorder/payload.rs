//! The payload of a `record` call: one slice of bytes, or several slices to be joined.

use crate::ring::claim::Claim;
use crate::ring::memory::MappedMemory;
use crate::ring::writer::RingWriter;

/// The payload of one event. This is a trait and not a closure, because the compiler would store the captured variables
/// of a closure to memory in each call.
pub(super) trait Payload {
    /// Copies the payload into the claimed payload memory.
    fn fill(&self, writer: &RingWriter<MappedMemory>, claim: &Claim<'_>);
}

impl Payload for [u8] {
    #[inline(always)]
    fn fill(&self, writer: &RingWriter<MappedMemory>, claim: &Claim<'_>) {
        writer.fill(claim, 0, self);
    }
}

impl Payload for [&[u8]] {
    #[inline(always)]
    fn fill(&self, writer: &RingWriter<MappedMemory>, claim: &Claim<'_>) {
        let mut at = 0;
        for part in self {
            writer.fill(claim, at, part);
            at += part.len() as u64;
        }
    }
}

/// Returns the sum of the lengths, or `u64::MAX` if the sum overflows. It can overflow because the same slice may be
/// in `parts` many times.
#[inline(always)]
pub(super) fn total_bytes(parts: &[&[u8]]) -> u64 {
    parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.len() as u64))
}
