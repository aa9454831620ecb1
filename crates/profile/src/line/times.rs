//! Lists of intervals of time that do not overlap, in order.

/// Times: of each, its first and its last nanosecond.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(Vec<(u64, u64)>);

impl Times {
    /// Joins times that overlap or touch.
    pub(crate) fn joined(mut times: Vec<(u64, u64)>) -> Self {
        times.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (from, to) in times {
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        Self(joined)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().copied()
    }

    /// Returns true if one of the times overlaps with this one.
    pub(crate) fn overlap(&self, from: u64, to: u64) -> bool {
        self.0.get(self.next_of(from)).is_some_and(|time| time.0 <= to)
    }

    /// Returns how much of a time lies in none of these.
    pub(crate) fn left_out_of(&self, from: u64, to: u64) -> u64 {
        let times = self.0[self.next_of(from)..].iter().take_while(|time| time.0 < to);
        let within: u64 = times.map(|time| time.1.min(to).saturating_sub(time.0.max(from))).sum();
        to.saturating_sub(from).saturating_sub(within)
    }

    /// Returns the index of the first time that does not end before this nanosecond.
    pub(crate) fn next_of(&self, nanos: u64) -> usize {
        self.0.partition_point(|time| time.1 < nanos)
    }
}
