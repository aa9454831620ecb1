//! The end of a capture file: why the file ended, and the counts of each ring's events.

use crate::format::stats::{CaptureStats, RingStats};
use crate::format::wire::{Bytes, put_u64};
use eventring::reader::RingEnd;

/// The reason why a capture ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EndReason {
    /// All writers had ended, or died.
    WritersEnded,
    /// The requested time was over.
    Duration,
    /// The requested size was reached.
    Size,
    /// The caller ended the capture.
    Interrupted,
    /// This file was full. The capture goes on in the next file.
    Rotated,
    /// The file of a ring was truncated, so its later events cannot be read, even if its writer goes on to record. The
    /// writers of all other rings had ended.
    Truncated,
    /// Pages of a ring's file could not be read, because there was no memory for them or because of an I/O error. The
    /// later events of this ring cannot be read, even if its writer goes on to record. The writers of all other rings
    /// had ended.
    Unreadable,
}

impl EndReason {
    const ALL: [Self; 7] = [
        Self::WritersEnded,
        Self::Duration,
        Self::Size,
        Self::Interrupted,
        Self::Rotated,
        Self::Truncated,
        Self::Unreadable,
    ];

    /// Returns true if nothing more comes from any of the rings: all writers have ended or died, or what they record
    /// cannot be read any more.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::WritersEnded | Self::Truncated | Self::Unreadable)
    }
}

/// Number of words that a ring's counts take in a file.
const RING_WORDS: usize = 19;
/// Number of words that a ring's end takes in addition, if it is known.
const END_WORDS: usize = 2;

/// Values of the word that says whether a ring's writer lived: it did not, it did, or its end follows.
const NOT_LIVE: u64 = 0;
const LIVE: u64 = 1;
const ENDED: u64 = 2;
const DIED: u64 = 3;

/// The end of a capture file.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CaptureEnd {
    /// The reason why the file ends.
    pub reason: EndReason,
    /// The time at which this file ended, in nanoseconds since the epoch.
    pub ended_epoch_nanos: u64,
    /// The number of events in this file that were compressed at a lower level than the requested one. When a capture
    /// falls behind the writers, it first compresses less.
    pub lower_level_events: u64,
    /// Counts of each ring's events in this file.
    pub stats: CaptureStats,
}

impl CaptureEnd {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_u64(&mut out, self.reason as u64);
        put_u64(&mut out, self.ended_epoch_nanos);
        put_u64(&mut out, self.lower_level_events);
        for ring in &self.stats.rings {
            let counts = [ring.events, ring.expired_payloads, ring.malformed_payloads, ring.omitted_payloads];
            let state = match ring.end {
                Some(end) if end.has_died => DIED,
                Some(_) => ENDED,
                None if ring.was_live => LIVE,
                None => NOT_LIVE,
            };
            let rest = [ring.last_seqno, ring.unread, state, ring.record_errors];
            let end = ring.end.map(|end| [end.after_epoch_nanos, end.before_epoch_nanos]);
            let words = counts
                .into_iter()
                .chain(ring.missing_by_cause)
                .chain(rest)
                .chain(ring.table_losses)
                .chain([ring.removed])
                .chain(end.into_iter().flatten());
            words.for_each(|word| put_u64(&mut out, word));
        }
        out
    }

    /// Returns the end of two files of a rotated capture together. `next` is the end of the file after this one.
    pub(crate) fn followed_by(mut self, next: &Self) -> Self {
        self.stats.add(&next.stats);
        let lower_level_events = self.lower_level_events.saturating_add(next.lower_level_events);
        Self { reason: next.reason, ended_epoch_nanos: next.ended_epoch_nanos, lower_level_events, stats: self.stats }
    }

    /// Returns the largest size in bytes of the encoded end of a file with this many rings.
    pub(crate) fn encoded_bytes(rings: usize) -> usize {
        24 + rings * 8 * (RING_WORDS + END_WORDS)
    }

    /// Decodes the end of a capture file. Returns `None` if the bytes are damaged.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Bytes::new(bytes);
        let reason = bytes.u64()?;
        let reason = EndReason::ALL.into_iter().find(|known| *known as u64 == reason)?;
        let (ended_epoch_nanos, lower_level_events) = (bytes.u64()?, bytes.u64()?);
        let mut stats = CaptureStats::default();
        while !bytes.is_empty() {
            let mut words = [0; RING_WORDS];
            for word in &mut words {
                *word = bytes.u64()?;
            }
            let [events, expired_payloads, malformed_payloads, omitted_payloads, c0, c1, c2, c3, c4, c5, ..] = words;
            let [.., last_seqno, unread, state, record_errors, call_sites, threads, shards, spans, removed] = words;
            let end = match state {
                ENDED | DIED => Some(RingEnd::between(state == DIED, bytes.u64()?, bytes.u64()?)),
                _ => None,
            };
            stats.rings.push(RingStats {
                events,
                removed,
                expired_payloads,
                malformed_payloads,
                omitted_payloads,
                missing_by_cause: [c0, c1, c2, c3, c4, c5],
                last_seqno,
                unread,
                was_live: state == LIVE,
                end,
                record_errors,
                table_losses: [call_sites, threads, shards, spans],
            });
        }
        Some(Self { reason, ended_epoch_nanos, lower_level_events, stats })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_comes_back() {
        let ring = RingStats {
            events: 1,
            removed: 15,
            expired_payloads: 2,
            malformed_payloads: 3,
            omitted_payloads: 4,
            missing_by_cause: [5, 6, 7, 100, 1, 50],
            last_seqno: 8,
            unread: 9,
            was_live: false,
            end: Some(RingEnd::between(true, 20, 21)),
            record_errors: 10,
            table_losses: [11, 12, 13, 14],
        };
        let live = RingStats { was_live: true, end: None, ..ring.clone() };
        let stats = CaptureStats { rings: vec![ring, RingStats::default(), live] };
        let end = CaptureEnd { reason: EndReason::Size, ended_epoch_nanos: 77, lower_level_events: 5, stats };
        let bytes = end.encode();
        assert_eq!(bytes.len(), CaptureEnd::encoded_bytes(3) - 2 * 16, "a ring whose end is not known takes 19 words");
        assert_eq!(CaptureEnd::decode(&bytes), Some(end.clone()));
        assert_eq!(CaptureEnd::decode(&bytes[..bytes.len() - 1]), None);
        assert_eq!((end.stats.events(), end.stats.lost(), end.stats.skipped()), (2, 38, 200));
    }
    #[test]
    fn the_files_of_a_rotated_capture_have_one_end() {
        let end = |reason, ended_epoch_nanos, lower_level_events, events| {
            let stats = CaptureStats { rings: vec![RingStats { events, ..RingStats::default() }] };
            CaptureEnd { reason, ended_epoch_nanos, lower_level_events, stats }
        };
        let both = end(EndReason::Rotated, 1, 5, 10).followed_by(&end(EndReason::Duration, 2, 7, 20));
        assert_eq!(both, end(EndReason::Duration, 2, 12, 30));
    }
}
