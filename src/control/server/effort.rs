//! The working time of a server's thread, and the pauses that limit it to a fifth of the time in the long run. A short
//! burst of requests needs no pause.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// The time that must pass for each unit of work.
const TIME_PER_WORK: u32 = 5;
/// The time that may be owed before there are pauses: that of 50 milliseconds of work.
const FREE: Duration = Duration::from_millis(250);
/// The time that may be owed beyond that while clients have their turn: that of 5 milliseconds of work.
const TURN: Duration = Duration::from_millis(25);
/// The longest pause. It is short beside the timeout of clients. If more is owed, there are several pauses, and
/// clients have their turn after the last one.
const PAUSE_MAX: Duration = Duration::from_millis(50);
/// The largest time that is owed. It is that of 600 milliseconds of work, and no single request costs as much.
const OWED_MAX: Duration = Duration::from_secs(3);

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

    /// Returns true if the thread may answer one more request before it pauses. One request may cost much.
    pub(super) fn has_time(&mut self) -> bool {
        self.owed(Instant::now(), worked()) <= FREE + TURN
    }

    /// Returns for how long the thread must pause now.
    pub(super) fn pause(&mut self) -> Duration {
        self.owed(Instant::now(), worked()).saturating_sub(FREE).min(PAUSE_MAX)
    }

    fn owed(&mut self, now: Instant, worked: Duration) -> Duration {
        let work = worked.saturating_sub(self.worked);
        let passed = now.saturating_duration_since(self.now);
        (self.now, self.worked) = (now, worked);
        self.owed = (self.owed + work * TIME_PER_WORK).saturating_sub(passed).min(OWED_MAX);
        self.owed
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
        let (start, millis) = (Instant::now(), Duration::from_millis);
        // A request may be cheap, or cost more than all that is free.
        for request in [1, 15, 400].map(millis) {
            let mut effort = Effort { owed: Duration::ZERO, now: start, worked: Duration::ZERO };
            assert!(effort.owed(start + millis(50), millis(50)) <= FREE);
            let (mut now, mut work) = (start + millis(50), millis(50));
            while work < millis(50) + request * 1000 {
                if effort.owed(now, work) <= FREE + TURN {
                    (now, work) = (now + request, work + request);
                } else {
                    now += (effort.owed(now, work) - FREE).min(PAUSE_MAX);
                }
            }
            let part = work.as_secs_f64() / (now - start).as_secs_f64();
            assert!((0.19..0.22).contains(&part), "{request:?}: {part}");
            assert!(effort.owed(now + OWED_MAX, work) <= FREE);
        }
    }
}
