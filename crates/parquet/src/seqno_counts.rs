//! The counts of each ring's seqnos, as a replay of its events finds them.

use eventring::reader::{Gap, GapCause, PayloadRead};
use eventring_capture::recording::{CaptureRecording, EntryContent};

/// The counts of one ring's seqnos. [`Self::read`] and the sum of [`Self::missing_by_cause`] are together the number of
/// the seqnos from [`Self::first_seqno`] to [`Self::last_seqno`], unless a part of a capture was selected.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SeqnoCounts {
    /// The name of the ring.
    pub name: String,
    /// The first seqno that is counted.
    pub first_seqno: u64,
    /// The last seqno that is counted, or the one before the first.
    pub last_seqno: u64,
    /// Events that were read.
    pub read: u64,
    /// Events of `read` without their payload.
    pub lost_payloads: u64,
    /// Seqnos without an event, for each cause in the order of [`GapCause::ALL`].
    pub missing_by_cause: [u64; GapCause::ALL.len()],
}

impl SeqnoCounts {
    /// Returns the number of seqnos without an event, of one cause.
    #[must_use]
    pub fn missing_by(&self, cause: GapCause) -> u64 {
        self.missing_by_cause.get(cause as usize).copied().unwrap_or(0)
    }

    /// Returns the number of lost events, whatever the cause.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let losses = GapCause::ALL.into_iter().filter(|cause| cause.is_loss());
        losses.fold(0, |sum, cause| sum.saturating_add(self.missing_by(cause)))
    }

    /// Adds the counts of the next batch of the same ring.
    pub fn add(&mut self, later: &Self) {
        self.last_seqno = self.last_seqno.max(later.last_seqno);
        self.read = self.read.saturating_add(later.read);
        self.lost_payloads = self.lost_payloads.saturating_add(later.lost_payloads);
        for (sum, more) in self.missing_by_cause.iter_mut().zip(later.missing_by_cause) {
            *sum = sum.saturating_add(more);
        }
    }

    /// Begins to count the seqnos of each ring.
    pub(super) fn of_rings(recording: &CaptureRecording<'_>) -> Vec<Self> {
        let counts = recording.capture.rings().iter().map(|ring| Self {
            name: ring.name.clone(),
            first_seqno: ring.first_seqno,
            last_seqno: ring.first_seqno.saturating_sub(1),
            ..Self::default()
        });
        counts.collect()
    }

    pub(super) fn count(&mut self, content: &EntryContent<'_>) {
        let payload = match content {
            EntryContent::Gap(Gap { first_seqno, count, cause }) => {
                if let Some(missing) = self.missing_by_cause.get_mut(*cause as usize) {
                    *missing = missing.saturating_add(*count);
                }
                self.last_seqno = self.last_seqno.max(first_seqno.saturating_add(*count).saturating_sub(1));
                return;
            }
            EntryContent::Perf { record, .. } => {
                self.last_seqno = self.last_seqno.max(record.descriptor.seqno);
                record.payload
            }
            EntryContent::Typed { descriptor, payload } => {
                self.last_seqno = self.last_seqno.max(descriptor.seqno);
                *payload
            }
        };
        self.read += 1;
        self.lost_payloads += u64::from(!matches!(payload, PayloadRead::Valid(_)));
    }
}
