//! How many events each ring gave to a capture, and how many it lost.

use super::item::LossCause;
use super::wire::{Bytes, put_u64};
use crate::reader::{Reader, RingState};
use crate::tracing::CatalogLosses;

/// What became of one ring's events. `events + lost()` is the number of seqnos from the ring's first to `last_seqno`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RingAccount {
    /// Events in the capture.
    pub events: u64,
    /// Events whose payload was overwritten before it could be copied.
    pub expired_payloads: u64,
    /// Events whose descriptor names a payload that the ring cannot have.
    pub malformed_payloads: u64,
    /// Events whose payload was too large to keep.
    pub omitted_payloads: u64,
    /// Lost events by cause, in the order of [`LossCause::ALL`].
    pub lost_by_cause: [u64; 3],
    /// The last seqno that is accounted for, 0 if none is.
    pub last_seqno: u64,
    /// Events that the ring had already handed out when the capture stopped and that belong to the time after it.
    pub unread: u64,
    /// Whether the writer lived when the capture stopped.
    pub was_live: bool,
    /// Events that became RECORD_ERROR, as the writer counted them.
    pub record_errors: u64,
    /// Shard 0 of a perf recorder: call sites, threads and shards that found no room, and spans that were not recorded because too many were
    /// open, as the writer counted them.
    pub table_losses: [u64; 4],
}

impl RingAccount {
    /// Events that are missing, whatever the cause.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost_by_cause.iter().fold(0, |sum, lost| sum.saturating_add(*lost))
    }

    pub(super) fn count_gap(&mut self, first_seqno: u64, count: u64, cause: LossCause) {
        let lost = &mut self.lost_by_cause[cause as usize];
        *lost = lost.saturating_add(count);
        self.last_seqno = first_seqno.saturating_add(count).saturating_sub(1);
    }

    /// Asks the ring for what only it knows.
    pub(super) fn close(&mut self, reader: &Reader) {
        let info = reader.info();
        self.unread = info.last_seqno.saturating_sub(self.last_seqno);
        self.was_live = matches!(reader.state(), RingState::Live | RingState::Unknown);
        self.record_errors = info.extension.map_or(0, |extension| extension.record_errors);
        let losses = CatalogLosses::of(reader);
        self.table_losses = [losses.call_sites, losses.threads, losses.shards, losses.spans];
    }
}

/// The account of all rings of a capture, by index.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CaptureAccount {
    /// One for each ring.
    pub rings: Vec<RingAccount>,
}

impl CaptureAccount {
    /// Events of all rings.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.rings.iter().map(|ring| ring.events).sum()
    }

    /// Events that are missing, of all rings.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.rings.iter().fold(0, |sum, ring| sum.saturating_add(ring.lost()))
    }

    /// As [`Self::lost`], of one cause.
    #[must_use]
    pub fn lost_by(&self, cause: LossCause) -> u64 {
        self.rings.iter().fold(0, |sum, ring| sum.saturating_add(ring.lost_by_cause[cause as usize]))
    }
}

/// Why a capture ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EndReason {
    /// All writers had ended, or died.
    WritersEnded,
    /// The time asked for was over.
    Duration,
    /// The size asked for was reached.
    Size,
    /// The caller wanted an end.
    Interrupted,
    /// This file was full and another one goes on.
    Rotated,
}

impl EndReason {
    const ALL: [Self; 5] = [Self::WritersEnded, Self::Duration, Self::Size, Self::Interrupted, Self::Rotated];
}

/// How a capture file ends.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CaptureEnd {
    /// Why.
    pub reason: EndReason,
    /// When, nanoseconds since the epoch.
    pub ended_epoch_nanos: u64,
    /// What became of each ring's events in this file.
    pub account: CaptureAccount,
}

impl CaptureEnd {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_u64(&mut out, self.reason as u64);
        put_u64(&mut out, self.ended_epoch_nanos);
        for ring in &self.account.rings {
            let counts = [ring.events, ring.expired_payloads, ring.malformed_payloads, ring.omitted_payloads];
            let rest = [ring.last_seqno, ring.unread, ring.was_live.into(), ring.record_errors];
            let words = counts.into_iter().chain(ring.lost_by_cause).chain(rest).chain(ring.table_losses);
            words.for_each(|word| put_u64(&mut out, word));
        }
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Bytes::new(bytes);
        let reason = bytes.u64()?;
        let reason = EndReason::ALL.into_iter().find(|known| *known as u64 == reason)?;
        let ended_epoch_nanos = bytes.u64()?;
        let mut account = CaptureAccount::default();
        while !bytes.is_empty() {
            let mut words = [0; 15];
            for word in &mut words {
                *word = bytes.u64()?;
            }
            let [events, expired_payloads, malformed_payloads, omitted_payloads, before, overwritten, never, ..] =
                words;
            let [.., last_seqno, unread, was_live, record_errors, call_sites, threads, shards, spans] = words;
            account.rings.push(RingAccount {
                events,
                expired_payloads,
                malformed_payloads,
                omitted_payloads,
                lost_by_cause: [before, overwritten, never],
                last_seqno,
                unread,
                was_live: was_live != 0,
                record_errors,
                table_losses: [call_sites, threads, shards, spans],
            });
        }
        Some(Self { reason, ended_epoch_nanos, account })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_comes_back() {
        let ring = RingAccount {
            events: 1,
            expired_payloads: 2,
            malformed_payloads: 3,
            omitted_payloads: 4,
            lost_by_cause: [5, 6, 7],
            last_seqno: 8,
            unread: 9,
            was_live: true,
            record_errors: 10,
            table_losses: [11, 12, 13, 14],
        };
        let account = CaptureAccount { rings: vec![ring.clone(), RingAccount::default(), ring] };
        let end = CaptureEnd { reason: EndReason::Size, ended_epoch_nanos: 77, account };
        let bytes = end.encode();
        assert_eq!(CaptureEnd::decode(&bytes), Some(end.clone()));
        assert_eq!(CaptureEnd::decode(&bytes[..bytes.len() - 1]), None);
        assert_eq!((end.account.events(), end.account.lost()), (2, 36));
    }
}
