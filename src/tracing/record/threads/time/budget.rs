//! What measuring a thread's times may cost.

/// The most that a thread may save up, in nanoseconds: enough for some 250 questions in a row.
const SAVED_NANOS_MAX: u64 = 500_000;

/// How long a thread is not asked at most, in nanoseconds, whatever it has spent.
const NOT_ASKED_NANOS_MAX: u64 = 100_000_000;

/// The budget of a thread. It grows with time, and shrinks by what each measurement costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// The share of the thread's time, in millionths.
    millionths: u32,
    /// What may be spent now, in billionths of a millisecond: nanoseconds times a million.
    saved: i64,
    at_epoch_nanos: u64,
    /// When the kernel was last asked.
    asked_epoch_nanos: u64,
}

impl Budget {
    pub(super) const fn new(millionths: u32, epoch_nanos: u64) -> Self {
        let saved = (SAVED_NANOS_MAX * MILLION) as i64;
        Self { millionths, saved, at_epoch_nanos: epoch_nanos, asked_epoch_nanos: epoch_nanos }
    }

    /// Returns true if the kernel is asked now.
    pub(super) fn allows(&mut self, epoch_nanos: u64) -> bool {
        let passed = epoch_nanos.saturating_sub(self.at_epoch_nanos);
        self.at_epoch_nanos = self.at_epoch_nanos.max(epoch_nanos);
        let earned = passed.saturating_mul(self.millionths.into()).min(SAVED_NANOS_MAX * MILLION);
        self.saved = self.saved.saturating_add(earned as i64).min((SAVED_NANOS_MAX * MILLION) as i64);
        let is_asked = self.saved > 0 || epoch_nanos.saturating_sub(self.asked_epoch_nanos) >= NOT_ASKED_NANOS_MAX;
        if is_asked {
            self.asked_epoch_nanos = epoch_nanos;
        }
        is_asked
    }

    pub(super) fn spend(&mut self, nanos: u64) {
        // A thread with many THREAD_SWITCHED must not pay for them for minutes.
        let least = -((SAVED_NANOS_MAX * MILLION) as i64);
        self.saved = self.saved.saturating_sub_unsigned(nanos.saturating_mul(MILLION)).max(least);
    }
}

/// Returns a share in millionths: from 0 to a million.
pub(super) fn millionths(share: f64) -> u32 {
    if share > 0.0 { (share * 1e6).ceil().min(1e6) as u32 } else { 0 }
}

const MILLION: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_thread_spends_its_share_what_it_has_saved_and_one_question(
            millionths in 1_u32..20_000,
            steps in prop::collection::vec((0_u64..100_000, 500_u64..5_000), 1..500),
        ) {
            let mut budget = Budget::new(millionths, 0);
            let (mut now, mut spent, mut last) = (0, 0, 0);
            for (passed, cost) in steps {
                now += passed;
                if budget.allows(now) {
                    budget.spend(cost);
                    spent += cost;
                    last = cost;
                }
                let earned = now * u64::from(millionths) / MILLION + now / NOT_ASKED_NANOS_MAX * 5_000;
                prop_assert!(spent <= SAVED_NANOS_MAX + earned + last, "{spent} {earned}");
            }
        }
    }

    #[test]
    fn a_thread_that_spends_all_on_switches_is_asked_ten_times_a_second() {
        let mut budget = Budget::new(5_000, 0);
        // 60,000 switches a second.
        let asked = (0..600_000_u64).filter(|step| {
            let is_asked = budget.allows(step * 16_667);
            budget.spend(if is_asked { 2_500 } else { 100 });
            is_asked
        });
        let asked = asked.count();
        assert!((100..=600).contains(&asked), "{asked}");
    }

    #[test]
    fn any_share_is_one_in_millionths() {
        assert_eq!([f64::NAN, -1.0, 0.0, 1e-9, 0.005, 7.0].map(millionths), [0, 0, 0, 1, 5000, 1_000_000]);
    }

    #[test]
    fn a_thread_that_seldom_switches_is_always_asked() {
        let mut budget = Budget::new(5_000, 0);
        for now in (0..1_000).map(|step| step * 1_000_000) {
            assert!(budget.allows(now));
            budget.spend(2_500);
        }
        // Ten times as often, at most a quarter of the questions is allowed in the long run.
        let allowed = (0..100_000_u64).filter(|step| {
            let allows = budget.allows(1_000_000_000 + step * 100_000);
            budget.spend(if allows { 2_500 } else { 0 });
            allows
        });
        let allowed = allowed.count();
        assert!((19_500..=20_500).contains(&allowed), "{allowed}");
    }
}
