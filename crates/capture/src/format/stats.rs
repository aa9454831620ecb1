//! Counts of a capture: how many events of each ring it took, and how many it lost.

use crate::format::columns::{BlockRecords, RecordRange};
use eventring::reader::{Gap, GapCause, PayloadRead, Reader, RingEnd, RingState};
use eventring::tracing::CatalogLosses;

/// Counts of one ring's events: captured, removed, lost, skipped. In a capture's [summary](crate::CaptureSummary),
/// `events + removed + lost() + skipped()` is the number of seqnos from the first seqno of the capture to
/// `last_seqno`. In the end of a single file, `events + lost() + skipped()` is the number of seqnos from the first
/// seqno of the file to `last_seqno`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RingStats {
    /// Events in the file, or the files.
    pub events: u64,
    /// The number of events in earlier files of the capture that the capture has
    /// [removed](crate::CaptureOptions::keep_files). They do not count as lost.
    pub removed: u64,
    /// The number of events whose payload was overwritten before it could be copied.
    pub expired_payloads: u64,
    /// The number of events whose payload is left out, because the ring cannot have the payload that their descriptor
    /// names.
    pub malformed_payloads: u64,
    /// The number of events whose payload is left out, because it is larger than 64 MiB.
    pub omitted_payloads: u64,
    /// The number of sequence numbers without an event, for each cause in the order of [`GapCause::OF_RINGS`].
    pub missing_by_cause: [u64; GapCause::OF_RINGS.len()],
    /// The last seqno that the counts include, or 0 if they include no seqno.
    pub last_seqno: u64,
    /// The number of seqnos after `last_seqno` that the ring had handed out when the file ended. Their events are not
    /// in this file.
    pub unread: u64,
    /// True if the writer was alive when the capture stopped.
    pub was_live: bool,
    /// The end of the ring's recording, as the capture has seen it. `None` if the writer was alive, and in files of
    /// earlier versions.
    pub end: Option<RingEnd>,
    /// Events that became RECORD_ERROR, counted by the writer.
    pub record_errors: u64,
    /// Counts that the writer keeps in shard 0 of a perf recorder. The first three are of call sites, threads and
    /// shards for which there was no room. The last is of spans that were not recorded because too many were open.
    pub table_losses: [u64; 4],
}

impl RingStats {
    /// Returns the number of missing events, whatever the cause.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let losses = GapCause::OF_RINGS.into_iter().filter(|cause| cause.is_loss());
        losses.fold(0, |sum, cause| sum.saturating_add(self.missing_by(cause)))
    }

    /// Returns the number of captured events without their payload.
    #[must_use]
    pub fn lost_payloads(&self) -> u64 {
        self.expired_payloads.saturating_add(self.malformed_payloads).saturating_add(self.omitted_payloads)
    }

    /// Returns the number of seqnos that were skipped. No event ever had them, so nothing is lost.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.missing_by(GapCause::Skipped)
    }

    /// Returns the number of events that a filter has left out.
    #[must_use]
    pub fn filtered(&self) -> u64 {
        self.missing_by(GapCause::Filtered)
    }

    /// Returns the number of seqnos without an event, of one cause. It is 0 for [`GapCause::Damaged`], because a file
    /// is damaged after its capture has counted.
    #[must_use]
    pub fn missing_by(&self, cause: GapCause) -> u64 {
        self.missing_by_cause.get(cause as usize).copied().unwrap_or(0)
    }

    /// Counts a part of `records`.
    pub(crate) fn count(&mut self, records: &BlockRecords, part: &RecordRange) {
        // A receiver adds to counts that come from others.
        self.events = self.events.saturating_add(part.events.len() as u64);
        let events = if records.events.has_all_payloads() { 0..0 } else { part.events.clone() };
        for index in events {
            let count = match records.events.payload(index) {
                PayloadRead::Valid(_) => continue,
                PayloadRead::Malformed => &mut self.malformed_payloads,
                PayloadRead::Expired if records.events.is_left_out(index) => &mut self.omitted_payloads,
                PayloadRead::Expired => &mut self.expired_payloads,
            };
            *count = count.saturating_add(1);
        }
        records.gaps[part.gaps.clone()].iter().for_each(|placed| self.count_gap(placed.gap));
        // A gap at the end of the part has set the last seqno already.
        if let Some(last) = records.events.descriptors()[part.events.clone()].last() {
            self.last_seqno = self.last_seqno.max(last.seqno);
        }
    }

    /// Returns these counts and those of the files before together. What is no sum is that of the last file.
    pub(crate) fn after(mut self, before: &Self) -> Self {
        let counts = [
            (&mut self.events, before.events),
            (&mut self.expired_payloads, before.expired_payloads),
            (&mut self.malformed_payloads, before.malformed_payloads),
            (&mut self.omitted_payloads, before.omitted_payloads),
        ];
        let missing = self.missing_by_cause.iter_mut().zip(before.missing_by_cause);
        for (sum, before) in counts.into_iter().chain(missing) {
            *sum = sum.saturating_add(before);
        }
        self
    }

    /// Takes what is no sum from the counts of a later file.
    pub(crate) fn with_state_of(self, later: &Self) -> Self {
        let &Self { unread, was_live, end, record_errors, table_losses, .. } = later;
        Self { unread, was_live, end, record_errors, table_losses, ..self }
    }

    pub(crate) fn count_gap(&mut self, gap: Gap) {
        if let Some(missing) = self.missing_by_cause.get_mut(gap.cause as usize) {
            *missing = missing.saturating_add(gap.count);
        }
        self.last_seqno = gap.first_seqno.saturating_add(gap.count).saturating_sub(1);
    }

    /// Copies the counts that only the ring has.
    pub(crate) fn close(&mut self, reader: &Reader) {
        let info = reader.info();
        self.unread = info.last_seqno.saturating_sub(self.last_seqno);
        self.was_live = match reader.state() {
            RingState::Live | RingState::Unknown => true,
            // In these states, the ring's file cannot be read, but its writer may go on to record. The lock on the file
            // shows whether the writer lives.
            RingState::Truncated | RingState::NoMemory | RingState::Unreadable => reader.lock_owner_pid().is_some(),
            _ => false,
        };
        self.end = reader.end();
        self.record_errors = info.extension.map_or(0, |extension| extension.record_errors);
        let losses = CatalogLosses::read(reader);
        self.table_losses = [losses.call_sites, losses.threads, losses.shards, losses.spans];
    }

    /// Subtracts what was captured of a file that was removed. Its lost events stay counted as lost.
    pub(crate) fn take_away(&mut self, file: &Self) {
        self.events = self.events.saturating_sub(file.events);
        self.expired_payloads = self.expired_payloads.saturating_sub(file.expired_payloads);
        self.malformed_payloads = self.malformed_payloads.saturating_sub(file.malformed_payloads);
        self.omitted_payloads = self.omitted_payloads.saturating_sub(file.omitted_payloads);
    }
}

/// The stats of all rings of a capture, by index.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CaptureStats {
    /// The counts of each ring.
    pub rings: Vec<RingStats>,
}

impl CaptureStats {
    /// Returns the number of events of all rings.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.rings.iter().fold(0, |sum, ring| sum.saturating_add(ring.events))
    }

    /// Returns the number of events in files that the capture has removed, for all rings together.
    #[must_use]
    pub fn removed(&self) -> u64 {
        self.rings.iter().fold(0, |sum, ring| sum.saturating_add(ring.removed))
    }

    /// Subtracts the captured events of a file that was removed. Its lost events stay counted as lost.
    pub(crate) fn take_away(&mut self, file: &Self) {
        self.rings.iter_mut().zip(&file.rings).for_each(|(total, file)| total.take_away(file));
    }

    /// Adds the counts of the next file to the counts of the files before it.
    pub(crate) fn add(&mut self, file: &Self) {
        self.rings.resize(file.rings.len().max(self.rings.len()), RingStats::default());
        for (total, file) in self.rings.iter_mut().zip(&file.rings) {
            *total = file.clone().after(total);
        }
    }

    /// Returns the number of missing events of all rings.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.rings.iter().fold(0, |sum, ring| sum.saturating_add(ring.lost()))
    }

    /// Returns the number of events that were lost since the capture began: the missing events without those that had
    /// been overwritten before.
    #[must_use]
    pub fn lost_since(&self) -> u64 {
        self.lost().saturating_sub(self.missing_by(GapCause::OverwrittenBefore))
    }

    /// Returns the number of captured events without their payload, for all rings together.
    #[must_use]
    pub fn lost_payloads(&self) -> u64 {
        self.rings.iter().fold(0, |sum, ring| sum.saturating_add(ring.lost_payloads()))
    }

    /// Returns the number of seqnos that were skipped, for all rings together.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.missing_by(GapCause::Skipped)
    }

    /// Returns the number of events that a filter has left out, of all rings together.
    #[must_use]
    pub fn filtered(&self) -> u64 {
        self.missing_by(GapCause::Filtered)
    }

    /// Returns the number of seqnos that are missing for this cause, for all rings together.
    #[must_use]
    pub fn missing_by(&self, cause: GapCause) -> u64 {
        self.rings.iter().fold(0, |sum, ring| sum.saturating_add(ring.missing_by(cause)))
    }
}
