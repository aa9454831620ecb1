//! Counts of events over the time of a recording, collected before its end is known.

/// The number of parts into which the time is divided, at most. There are at least half as many, unless the recording
/// is shorter than that in nanoseconds.
const PARTS_MAX: usize = 320;

/// The number of events in each part of the time. All parts are equally long. When an event lies after the last part,
/// each two parts become one.
pub(super) struct Activity {
    pub(super) counts: Vec<u64>,
    /// The time at which the first part begins.
    pub(super) first_nanos: u64,
    pub(super) part_nanos: u64,
}

impl Default for Activity {
    fn default() -> Self {
        Self { counts: Vec::new(), first_nanos: 0, part_nanos: 1 }
    }
}

impl Activity {
    /// Returns the largest number of events a second that a part has.
    pub(super) fn rate_max(&self) -> f64 {
        self.counts.iter().copied().max().unwrap_or(0) as f64 * 1e9 / self.part_nanos as f64
    }

    /// Counts an event. One that is earlier than the first event counts as one of the first part.
    pub(super) fn add(&mut self, epoch_nanos: u64) {
        if self.counts.is_empty() {
            self.first_nanos = epoch_nanos;
        }
        let since = epoch_nanos.saturating_sub(self.first_nanos);
        while since / self.part_nanos >= PARTS_MAX as u64 {
            self.counts = self.counts.chunks(2).map(|two| two.iter().sum()).collect();
            self.part_nanos *= 2;
        }
        let part = (since / self.part_nanos) as usize;
        if self.counts.len() <= part {
            self.counts.resize(part + 1, 0);
        }
        self.counts[part] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_counted_in_the_part_of_its_time_however_long_the_recording_becomes() {
        let mut activity = Activity::default();
        for event in 0..1000_u64 {
            activity.add(5_000 + event * 10);
        }
        activity.add(4_999);
        // 10,000 ns are 312 parts of 32 ns and a half.
        assert_eq!((activity.part_nanos, activity.counts.len()), (32, 313));
        assert_eq!(activity.counts.iter().sum::<u64>(), 1001);
        // The events at 0, 10, 20, 30 and the early one; then those at 40, 50 and 60.
        assert_eq!(activity.counts[..2], [5, 3]);
        activity.add(u64::MAX);
        assert_eq!((activity.counts[0], activity.counts.iter().sum::<u64>()), (1001, 1002));
        assert!((PARTS_MAX / 2..=PARTS_MAX).contains(&activity.counts.len()), "{}", activity.counts.len());
    }
}
