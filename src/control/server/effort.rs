//! The time that the thread of a server works, and the pauses that keep it small. Some work is free, so that a client
//! that asks for much at once waits for nothing. In the long run the thread works a fifth of the time.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// The time that must pass for each unit of work.
const TIME_PER_WORK: u32 = 5;
/// The time that may be owed before there are pauses: that of 50 milliseconds of work.
const FREE: Duration = Duration::from_millis(250);
/// The longest pause. It is short beside the patience of clients.
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// The work of this thread, and the time that has passed.
pub(super) struct Effort {
    /// The time that has to pass for the work that was done.
    owed: Duration,
    now: Instant,
    worked: Duration,
}

impl Effort {
    /// Begins to measure the calling thread.
    pub(super) fn begin() -> Self {
        Self { owed: Duration::ZERO, now: Instant::now(), worked: worked() }
    }

    /// Returns for how long the thread must pause now.
    pub(super) fn pause(&mut self) -> Duration {
        self.add(Instant::now(), worked())
    }

    fn add(&mut self, now: Instant, worked: Duration) -> Duration {
        let work = worked.saturating_sub(self.worked);
        let passed = now.saturating_duration_since(self.now);
        (self.now, self.worked) = (now, worked);
        self.owed = (self.owed + work * TIME_PER_WORK).saturating_sub(passed).min(FREE + PAUSE_MAX);
        self.owed.saturating_sub(FREE)
    }
}

/// Returns the processor time of this thread. It does not grow while the thread waits for a processor.
fn worked() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_work_is_free_and_in_the_long_run_a_fifth_of_the_time_is_work() {
        let start = Instant::now();
        let mut effort = Effort { owed: Duration::ZERO, now: start, worked: Duration::ZERO };
        let millis = Duration::from_millis;
        assert_eq!(effort.add(start + millis(50), millis(50)), Duration::ZERO);
        let (mut now, mut work) = (start + millis(50), millis(50));
        for _ in 0..1000 {
            (now, work) = (now + millis(1), work + millis(1));
            now += effort.add(now, work);
        }
        let part = work.as_secs_f64() / (now - start).as_secs_f64();
        assert!((0.19..0.22).contains(&part), "{part}");
        assert_eq!(effort.add(now + millis(1000), work), Duration::ZERO);
    }
}
