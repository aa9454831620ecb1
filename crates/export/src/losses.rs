//! Losses as intervals of time. All losses of a ring between the same two events make one interval.

use eventring::reader::{Gap, GapCause};
use eventring_capture::recording::CaptureRecording;

/// All events of one ring that were lost between two events that were not lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    pub ring: u32,
    /// The time of the ring's last event before the loss, in nanoseconds since the epoch.
    pub from_nanos: u64,
    /// The time of the first event after the loss.
    pub until_nanos: u64,
    pub(super) first_seqno: u64,
    pub(super) count: u64,
    /// The number of lost events for each cause. The causes are in the order of [`GapCause::ALL`].
    pub by_cause: [u64; GapCause::ALL.len()],
}

impl Loss {
    /// Returns the title of the loss: `12 events lost`, or `12 events overwritten before`.
    pub fn title(&self) -> String {
        let are_past = self.by_cause[GapCause::OverwrittenBefore as usize] == self.count;
        let what = if are_past { "overwritten before" } else { "lost" };
        format!("{} {} {what}", self.count, if self.count == 1 { "event" } else { "events" })
    }

    /// Returns each cause of the loss, with the number of events that were lost by this cause.
    pub(super) fn causes(&self) -> impl Iterator<Item = (GapCause, u64)> {
        GapCause::ALL.into_iter().zip(self.by_cause).filter(|(_, count)| *count > 0)
    }
}

/// Collects losses from the entries of a recording.
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

    pub(super) fn gap(&mut self, ring: u32, Gap { first_seqno, count, cause }: Gap) {
        let from_nanos = self.last_nanos[ring as usize].unwrap_or(0);
        let loss = self.pending[ring as usize].get_or_insert(Loss {
            ring,
            from_nanos,
            until_nanos: 0,
            first_seqno,
            count: 0,
            by_cause: [0; GapCause::ALL.len()],
        });
        loss.count = loss.count.saturating_add(count);
        let by_cause = &mut loss.by_cause[cause as usize];
        *by_cause = by_cause.saturating_add(count);
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        self.losses.len() as u64 * 2 * size_of::<Loss>() as u64
    }

    /// Returns all losses. `first_nanos` and `last_nanos` are the times of the first and the last event of all rings
    /// together.
    pub(super) fn finish(mut self, recording: &CaptureRecording<'_>, first_nanos: u64, last_nanos: u64) -> Vec<Loss> {
        for mut loss in self.pending.into_iter().flatten() {
            loss.until_nanos = last_nanos;
            self.losses.push(loss);
        }
        let length_nanos = last_nanos.saturating_sub(first_nanos);
        for loss in &mut self.losses {
            loss.until_nanos = loss.until_nanos.max(loss.from_nanos);
            if loss.from_nanos == 0 {
                // The ring lost its first events, so the loss began when the ring was made. That may be a week ago. If
                // the loss were drawn with its full length, everything else would be far too small in a viewer. So the
                // loss is drawn at most as long as the whole recording.
                let created = recording.ring(loss.ring).created_epoch_nanos;
                let earliest = loss.until_nanos.saturating_sub(length_nanos.max(1));
                loss.from_nanos = created.clamp(earliest, loss.until_nanos);
            }
        }
        self.losses.sort_by_key(|loss| (loss.ring, loss.from_nanos));
        self.losses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eventring_capture::fixtures::CaptureFixture;

    #[test]
    fn a_loss_is_of_the_past_only_if_all_of_it_is_and_does_not_end_before_it_begins() {
        let capture = CaptureFixture::new().open();
        let recording = CaptureRecording::new(&capture).unwrap();
        let gap = |count, cause| Gap { first_seqno: 1, count, cause };
        let loss = |gaps: &[Gap], until_nanos| {
            let mut collector = LossCollector::new(1);
            collector.event(0, 2000);
            gaps.iter().for_each(|gap| collector.gap(0, *gap));
            collector.event(0, until_nanos);
            let [loss] = &collector.finish(&recording, 1000, 3000)[..] else { panic!() };
            (loss.title(), loss.from_nanos, loss.until_nanos)
        };
        let (past, lost) = (gap(1, GapCause::OverwrittenBefore), gap(2, GapCause::Overwritten));
        assert_eq!(loss(&[past], 2500), ("1 event overwritten before".into(), 2000, 2500));
        assert_eq!(loss(&[past, past], 2500).0, "2 events overwritten before");
        assert_eq!(loss(&[past, lost], 2500).0, "3 events lost");
        assert_eq!(loss(&[lost], 1500), ("2 events lost".into(), 2000, 2000));
    }
}
