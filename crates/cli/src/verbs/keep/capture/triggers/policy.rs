//! The limits of triggers: which occurrences get a file.

use crate::verbs::keep::capture::trigger_args::{MaxInTime, TriggerArgs};
use std::collections::VecDeque;
use std::time::Duration;

/// The limits that the command line sets.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// The time after an occurrence that fired, during which further ones of the same condition get no file.
    pub(super) debounce: Duration,
    /// The largest number of files in any time of this length.
    pub(super) max: Option<MaxInTime>,
    /// The largest number of files.
    pub(super) files_max: Option<u64>,
    /// The largest size of all files together, in bytes.
    pub(super) bytes_max: Option<u64>,
}

impl Limits {
    /// Returns the limits of the options.
    pub(super) fn of(args: &TriggerArgs) -> Self {
        Self { debounce: args.debounce, max: args.max, files_max: args.max_files, bytes_max: args.max_bytes }
    }
}

/// The fate of an occurrence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TriggerVerdict {
    /// A file is written.
    Fires,
    /// The condition fired shortly before, or has fired already at a later time.
    Debounced,
    /// A limit of files or bytes is reached.
    Suppressed,
}

/// The counts of what became of all occurrences.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct TriggerCounts {
    pub(super) fired: u64,
    pub(super) debounced: u64,
    pub(super) suppressed: u64,
}

/// The judge of occurrences.
pub(super) struct Policy {
    limits: Limits,
    /// For each condition, the time of the last occurrence that fired.
    last_fired: Vec<Option<u64>>,
    /// The times of files within the time of [`Limits::max`].
    recent: VecDeque<u64>,
    written_bytes: u64,
    counts: TriggerCounts,
}

impl Policy {
    pub(super) fn new(limits: Limits, conditions: usize) -> Self {
        let last_fired = vec![None; conditions];
        Self { limits, last_fired, recent: VecDeque::new(), written_bytes: 0, counts: TriggerCounts::default() }
    }

    /// Judges an occurrence of the condition with this index, at this time in nanoseconds since the epoch. Times may
    /// come a little out of order.
    pub(super) fn judge(&mut self, condition: usize, epoch_nanos: u64) -> TriggerVerdict {
        let debounce = nanos(self.limits.debounce);
        let is_close = |last: u64| debounce > 0 && (epoch_nanos.abs_diff(last) < debounce || epoch_nanos < last);
        if self.last_fired[condition].is_some_and(is_close) {
            self.counts.debounced += 1;
            return TriggerVerdict::Debounced;
        }
        let verdict = self.judge_single(epoch_nanos);
        if verdict == TriggerVerdict::Fires {
            self.last_fired[condition] = Some(epoch_nanos);
        }
        verdict
    }

    /// Judges an occurrence that is not debounced, such as the death of a program.
    pub(super) fn judge_single(&mut self, epoch_nanos: u64) -> TriggerVerdict {
        if self.is_full(epoch_nanos) {
            self.counts.suppressed += 1;
            return TriggerVerdict::Suppressed;
        }
        self.recent.push_back(epoch_nanos);
        self.counts.fired += 1;
        TriggerVerdict::Fires
    }

    fn is_full(&mut self, epoch_nanos: u64) -> bool {
        let Limits { max, files_max, bytes_max, .. } = self.limits;
        if let Some(MaxInTime { time, .. }) = max {
            while self.recent.front().is_some_and(|first| epoch_nanos.saturating_sub(*first) >= nanos(time)) {
                self.recent.pop_front();
            }
        } else {
            self.recent.clear();
        }
        max.is_some_and(|max| self.recent.len() as u64 >= max.files)
            || files_max.is_some_and(|files| self.counts.fired >= files)
            || bytes_max.is_some_and(|bytes| self.written_bytes >= bytes)
    }

    /// Counts an occurrence that fired, and gets no file after all.
    pub(super) fn suppress(&mut self) {
        self.counts.fired -= 1;
        self.counts.suppressed += 1;
    }

    /// Counts the bytes of a file that was written.
    pub(super) fn count_bytes(&mut self, bytes: u64) {
        self.written_bytes = self.written_bytes.saturating_add(bytes);
    }

    pub(super) fn counts(&self) -> TriggerCounts {
        self.counts
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn limits(debounce: u64) -> Limits {
        Limits { debounce: Duration::from_secs(debounce), max: None, files_max: None, bytes_max: None }
    }

    #[test]
    fn a_condition_fires_again_only_after_the_debounce_time_and_others_are_not_concerned() {
        let mut policy = Policy::new(limits(5), 2);
        assert_eq!(policy.judge(0, 10 * SECOND), TriggerVerdict::Fires);
        assert_eq!(policy.judge(0, 14 * SECOND), TriggerVerdict::Debounced);
        assert_eq!(policy.judge(1, 14 * SECOND), TriggerVerdict::Fires);
        // It came late.
        assert_eq!(policy.judge(0, 9 * SECOND), TriggerVerdict::Debounced);
        assert_eq!(policy.judge(0, 15 * SECOND), TriggerVerdict::Fires);
        assert_eq!(policy.counts(), TriggerCounts { fired: 3, debounced: 2, suppressed: 0 });
        // Without a debounce time, one that comes late fires, too.
        let mut policy = Policy::new(limits(0), 1);
        assert_eq!([10, 9, 10].map(|nanos| policy.judge(0, nanos)), [TriggerVerdict::Fires; 3]);
    }

    #[test]
    fn limits_of_files_and_bytes_suppress() {
        let mut policy = Policy::new(Limits { files_max: Some(1), ..limits(0) }, 1);
        assert_eq!([policy.judge(0, 1), policy.judge(0, 2)], [TriggerVerdict::Fires, TriggerVerdict::Suppressed]);
        let mut policy = Policy::new(Limits { bytes_max: Some(100), ..limits(0) }, 1);
        policy.count_bytes(99);
        assert_eq!(policy.judge(0, 1), TriggerVerdict::Fires);
        policy.count_bytes(1);
        assert_eq!(policy.judge(0, 2), TriggerVerdict::Suppressed);
    }

    proptest! {
        #[test]
        fn no_time_of_the_given_length_has_more_files_and_every_occurrence_is_counted(
            gaps in prop::collection::vec(0_u64..30, 1..200), debounce in 0_u64..10, files in 0_u64..5, time in 1_u64..60,
        ) {
            let max = Some(MaxInTime { files, time: Duration::from_secs(time) });
            let mut policy = Policy::new(Limits { max, ..limits(debounce) }, 1);
            let mut now = 1000;
            let mut fired: Vec<u64> = Vec::new();
            for gap in &gaps {
                now += gap;
                if policy.judge(0, now * SECOND) == TriggerVerdict::Fires {
                    fired.push(now);
                }
            }
            for first in &fired {
                let in_time = fired.iter().filter(|it| (*first..first + time).contains(it)).count() as u64;
                prop_assert!(in_time <= files);
            }
            prop_assert!(fired.windows(2).all(|pair| pair[1] - pair[0] >= debounce));
            let counts = policy.counts();
            prop_assert_eq!(counts.fired, fired.len() as u64);
            prop_assert_eq!(counts.fired + counts.debounced + counts.suppressed, gaps.len() as u64);
        }
    }
}
