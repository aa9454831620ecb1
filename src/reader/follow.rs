//! Following a live ring: waiting for events, noticing the writer's end.

use super::cursor::{Cursor, Gap, Next};
use super::info::RingState;
use super::wait::{WaitStrategy, Waiter};
use crate::layout::Descriptor;
use std::time::{Duration, Instant};

/// How often a silent ring's writer is asked after, at most.
const LIVENESS_INTERVAL: Duration = Duration::from_millis(100);

/// A cursor that waits.
///
/// Made by [`Follower::new`]. It asks whether the writer lives only while nothing comes, a few times a second.
#[derive(Debug)]
pub struct Follower {
    cursor: Cursor,
    waiter: Waiter,
    next_liveness_check: Instant,
}

/// What [`Follower::next_timeout`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// The next event.
    Event(Descriptor),
    /// Events are missing; the cursor stands behind them.
    Gap(Gap),
    /// Nothing came in the time given.
    TimedOut,
    /// Everything has been read and nothing will come any more: the writer ended or died, the ring is a snapshot, or somebody
    /// truncated its file; [`Reader::state`](super::Reader::state) says which.
    Ended,
}

impl Follower {
    /// Follows from where `cursor` stands.
    pub fn new(cursor: Cursor, strategy: WaitStrategy) -> Self {
        Self { cursor, waiter: Waiter::new(strategy), next_liveness_check: Instant::now() }
    }

    /// The next event or gap, waiting for it at most `timeout`.
    pub fn next_timeout(&mut self, timeout: Duration) -> Followed {
        if let Some(found) = self.look() {
            return found;
        }
        let deadline = Instant::now().checked_add(timeout);
        loop {
            let left = deadline.map_or(timeout, |deadline| deadline.saturating_duration_since(Instant::now()));
            let is_slow_moment = self.waiter.wait(left);
            if self.waiter.has_slept() {
                self.cursor.look_closely();
            }
            if let Some(found) = self.look() {
                return found;
            }
            if is_slow_moment && self.has_ended() {
                // Its last events may have come since the look above.
                return self.look().unwrap_or(Followed::Ended);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                // A timeout shorter than the pace of slow moments must not hide the end.
                return if self.has_ended() { self.look().unwrap_or(Followed::Ended) } else { Followed::TimedOut };
            }
        }
    }

    /// The next event or gap, however long it takes; [`Followed::Ended`] at the end.
    pub fn next_blocking(&mut self) -> Followed {
        loop {
            match self.next_timeout(Duration::from_secs(3600)) {
                Followed::TimedOut => {}
                found => return found,
            }
        }
    }

    fn look(&mut self) -> Option<Followed> {
        let found = match self.cursor.next() {
            Next::Event(descriptor) => Followed::Event(descriptor),
            Next::Gap(gap) => Followed::Gap(gap),
            Next::NotReady => return None,
        };
        self.waiter.reset();
        Some(found)
    }

    fn has_ended(&mut self) -> bool {
        let now = Instant::now();
        if now < self.next_liveness_check {
            return false;
        }
        self.next_liveness_check = now + LIVENESS_INTERVAL;
        // A ring whose writer cannot be asked after (another pid namespace, no lock information) counts as live.
        !matches!(self.cursor.reader().state(), RingState::Live | RingState::Unknown)
    }

    /// The cursor.
    pub fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// The cursor, to seek.
    pub fn cursor_mut(&mut self) -> &mut Cursor {
        &mut self.cursor
    }
}
