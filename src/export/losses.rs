//! When events were lost.

use super::recording::Recording;
use crate::reader::GapCause as LossCause;
use std::collections::{HashMap, HashSet};

/// Events of one ring that were lost between two that were not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Loss {
    pub(super) ring: u32,
    /// Time of the last event before, and of the first one after, nanoseconds since the epoch.
    pub(super) from_nanos: u64,
    pub(super) until_nanos: u64,
    pub(super) first_seqno: u64,
    pub(super) count: u64,
    /// In the order of [`LossCause::ALL`].
    pub(super) by_cause: [u64; 5],
}

impl Loss {
    /// `12 events lost`.
    pub(super) fn title(&self) -> String {
        format!("{} {} lost", self.count, if self.count == 1 { "event" } else { "events" })
    }

    /// Whether events were lost that had been recorded: all, but those that their writer did not live to commit.
    pub(super) fn is_of_overwritten(&self) -> bool {
        self.causes().any(|(cause, _)| cause != LossCause::NeverCommitted)
    }

    /// The causes that there were.
    pub(super) fn causes(&self) -> impl Iterator<Item = (LossCause, u64)> {
        LossCause::ALL.into_iter().zip(self.by_cause).filter(|(_, count)| *count > 0)
    }
}

/// Collects losses while the events go by.
pub(super) struct LossCollector {
    last_nanos: Vec<Option<u64>>,
    pending: Vec<Option<Loss>>,
    losses: Vec<Loss>,
}

impl LossCollector {
    pub(super) fn new(rings: usize) -> Self {
        Self { last_nanos: vec![None; rings], pending: vec![None; rings], losses: Vec::new() }
    }

    pub(super) fn event(&mut self, ring: u32, epoch_nanos: u64) {
        let index = ring as usize;
        if let Some(mut loss) = self.pending[index].take() {
            loss.until_nanos = epoch_nanos;
            self.losses.push(loss);
        }
        self.last_nanos[index] = Some(epoch_nanos);
    }

    pub(super) fn gap(&mut self, ring: u32, first_seqno: u64, count: u64, cause: LossCause) {
        let from_nanos = self.last_nanos[ring as usize].unwrap_or(0);
        let loss = self.pending[ring as usize].get_or_insert(Loss {
            ring,
            from_nanos,
            until_nanos: 0,
            first_seqno,
            count: 0,
            by_cause: [0; 5],
        });
        loss.count = loss.count.saturating_add(count);
        let by_cause = &mut loss.by_cause[cause as usize];
        *by_cause = by_cause.saturating_add(count);
    }

    /// All losses. `first_nanos` and `last_nanos` are the times of the first and the last event of all rings.
    pub(super) fn finish(mut self, recording: &Recording<'_>, first_nanos: u64, last_nanos: u64) -> Vec<Loss> {
        for mut loss in self.pending.into_iter().flatten() {
            loss.until_nanos = last_nanos;
            self.losses.push(loss);
        }
        let length_nanos = last_nanos.saturating_sub(first_nanos);
        for loss in &mut self.losses {
            loss.until_nanos = loss.until_nanos.max(loss.from_nanos);
            if loss.from_nanos == 0 {
                // Lost before the first event that there is: since the ring was made. But a ring that was made a week ago must
                // not make everything else too small to be seen.
                let created = recording.ring(loss.ring).created_epoch_nanos;
                let earliest = loss.until_nanos.saturating_sub(length_nanos.max(1));
                loss.from_nanos = created.clamp(earliest, loss.until_nanos);
            }
        }
        self.losses.sort_by_key(|loss| (loss.ring, loss.from_nanos));
        self.losses
    }
}

/// Until when events were lost, nanoseconds since the epoch. An event that was never committed counts for none: its thread was recording it when the
/// program died, and was in the same spans until then.
#[derive(Default)]
pub(super) struct LostUntil {
    /// In each ring.
    ring: HashMap<u32, u64>,
    /// In any perf ring of a process.
    process: HashMap<u32, u64>,
    /// In those perf rings of it of which nothing is left: anybody can have recorded there.
    unseen: HashMap<u32, u64>,
}

impl LostUntil {
    pub(super) fn new(recording: &Recording<'_>, losses: &[Loss], seen_rings: &HashSet<u32>) -> Self {
        let mut lost = Self::default();
        for loss in losses.iter().filter(|loss| loss.is_of_overwritten() && recording.ring(loss.ring).is_perf()) {
            let process = recording.ring(loss.ring).process;
            let raise = |until: &mut u64| *until = loss.until_nanos.max(*until);
            raise(lost.ring.entry(loss.ring).or_default());
            raise(lost.process.entry(process).or_default());
            if !seen_rings.contains(&loss.ring) {
                raise(lost.unseen.entry(process).or_default());
            }
        }
        lost
    }

    pub(super) fn of_process(&self, process: u32) -> u64 {
        self.process.get(&process).copied().unwrap_or(0)
    }

    /// Of what a thread recorded, which was seen in these rings.
    pub(super) fn of_thread(&self, process: u32, rings: &[u32]) -> u64 {
        let unseen = self.unseen.get(&process).copied().unwrap_or(0);
        rings.iter().filter_map(|ring| self.ring.get(ring).copied()).fold(unseen, u64::max)
    }
}
