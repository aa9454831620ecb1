//! How threads spent the time in a span.

/// How threads spent the time in which they were in a span, in nanoseconds: the sums over all its slices. A slice
/// counts with the time of the spans that its thread entered inside it.
///
/// The parts add up to the busy time of the span. They come from the THREAD_TIME events of the threads, see
/// [`ThreadTime`](crate::schema::perf::ThreadTime).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TimeSpent {
    /// The threads ran on a processor.
    pub cpu_nanos: u64,
    /// The threads could have run, but had no processor.
    pub queue_nanos: u64,
    /// The threads waited for something: a lock, input, a timer.
    pub sleep_nanos: u64,
    /// Not known. There are four reasons: the thread left its processor more often than its budget allows to ask for,
    /// events were lost, the kernel does not tell queue from sleep, or an open span's thread has recorded nothing since.
    pub unmeasured_nanos: u64,
    /// False if some times are estimates: several moments without a processor were measured together, and shared out in
    /// proportion to their lengths.
    pub is_exact: bool,
}

impl TimeSpent {
    pub(super) const NONE: Self =
        Self { cpu_nanos: 0, queue_nanos: 0, sleep_nanos: 0, unmeasured_nanos: 0, is_exact: true };

    /// Times of which nothing is known.
    pub(super) fn unmeasured(nanos: u64) -> Self {
        Self { unmeasured_nanos: nanos, ..Self::NONE }
    }

    /// Returns the sum of all parts.
    #[must_use]
    pub fn total_nanos(&self) -> u64 {
        self.parts().into_iter().fold(0, u64::saturating_add)
    }

    /// Returns true if at least a part is known.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.cpu_nanos > 0 || self.queue_nanos > 0 || self.sleep_nanos > 0
    }

    fn parts(&self) -> [u64; 4] {
        [self.cpu_nanos, self.queue_nanos, self.sleep_nanos, self.unmeasured_nanos]
    }

    fn zip(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        let (a, b) = (self.parts(), other.parts());
        let [cpu_nanos, queue_nanos, sleep_nanos, unmeasured_nanos] = std::array::from_fn(|part| f(a[part], b[part]));
        Self { cpu_nanos, queue_nanos, sleep_nanos, unmeasured_nanos, is_exact: self.is_exact && other.is_exact }
    }

    /// Returns the sums of the parts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    /// Returns the parts of `busy_nanos`: what the sum lacks is not known.
    #[must_use]
    pub fn of_busy(mut self, busy_nanos: u64) -> Self {
        let rest = busy_nanos.saturating_sub(self.total_nanos());
        self.unmeasured_nanos = self.unmeasured_nanos.saturating_add(rest);
        self
    }

    /// Returns the parts without those of `inside`.
    pub(super) fn without(self, inside: Self) -> Self {
        Self { is_exact: self.is_exact, ..self.zip(inside, u64::saturating_sub) }
    }

    /// Returns the parts without their last `nanos`, in which the thread was not in the span any more.
    pub(super) fn shortened(mut self, nanos: u64) -> Self {
        let mut rest = nanos;
        for part in [&mut self.cpu_nanos, &mut self.unmeasured_nanos, &mut self.sleep_nanos, &mut self.queue_nanos] {
            let taken = rest.min(*part);
            *part -= taken;
            rest -= taken;
        }
        self
    }
}
