//! Checking the account of a batch (its counts of events) against the events in the batch. A hostile sender may write
//! any account.

use crate::format::columns::{BlockRecords, PlacedGap};
use crate::format::header::BlockHeader;
use crate::format::ring::CapturedRing;
use crate::format::stats::RingStats;

/// Seqnos and counts of one ring in the blocks of a batch, so far.
pub(super) struct SeqnoClaims {
    next_seqno: u64,
    stats: RingStats,
}

impl SeqnoClaims {
    pub(super) fn of_ring(ring: &CapturedRing) -> Self {
        Self { next_seqno: ring.first_seqno, stats: RingStats::default() }
    }

    /// Counts a block. Returns `None` if a seqno is missing or there twice, or if its header says something else.
    pub(super) fn take(&mut self, header: &BlockHeader, records: &BlockRecords) -> Option<()> {
        let first_seqno = self.next_seqno;
        let mut gaps = records.gaps.iter().peekable();
        for (index, event) in records.events.descriptors().iter().enumerate() {
            while let Some(PlacedGap { gap, .. }) = gaps.next_if(|placed| placed.events_before <= index) {
                self.follow(gap.first_seqno, gap.count)?;
            }
            self.follow(event.seqno, 1)?;
        }
        gaps.try_for_each(|PlacedGap { gap, .. }| self.follow(gap.first_seqno, gap.count))?;
        self.stats.count(records, &records.all());
        (header.first_seqno == first_seqno && header.last_seqno == self.next_seqno - 1).then_some(())
    }

    fn follow(&mut self, first_seqno: u64, count: u64) -> Option<()> {
        let is_next = first_seqno == self.next_seqno && count > 0;
        self.next_seqno = self.next_seqno.checked_add(count)?;
        is_next.then_some(())
    }

    /// Returns true if an account says the same.
    pub(super) fn agrees(&self, stated: &RingStats) -> bool {
        let of_blocks = |stats: &RingStats| {
            let payloads = [stats.expired_payloads, stats.malformed_payloads, stats.omitted_payloads];
            (stats.events, payloads, stats.missing_by_cause)
        };
        of_blocks(&self.stats) == of_blocks(stated) && stated.last_seqno.checked_add(1) == Some(self.next_seqno)
    }
}

/// Returns true if a program can lack room for so many call sites and shards. The ids of call sites have 32 bits and
/// are given once; after a shard could not be made, no other is tried. Threads and spans without room have no limit:
/// they come and go, and need no seqno.
pub(super) fn can_lack_room(stated: &RingStats) -> bool {
    let [call_sites, _threads, shards, _spans] = stated.table_losses;
    call_sites.max(shards) <= u64::from(u32::MAX)
}
