//! Following a live ring: waiting for its events, and noticing when its writer ends.

use super::cursors::cursor::{Cursor, Next};
use super::gap::Gap;
use super::wait::{self, Awaited, WaitStrategy, Waited, Waiter};
use crate::layout::Descriptor;
use std::time::Duration;

/// A cursor that waits for events. [`Follower::new`] makes it.
///
/// While no event comes, the follower asks the operating system up to ten times a second whether the writer lives.
#[derive(Debug)]
pub struct Follower {
    cursor: Cursor,
    waiter: Waiter,
}

/// The result of [`Follower::next_timeout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// The next event.
    Event(Descriptor),
    /// A range of missing events. The cursor has passed them: its position is after the gap.
    Gap(Gap),
    /// Nothing came within the timeout.
    TimedOut,
    /// The end of the ring: everything has been read, and nothing more will come. The writer has ended or died, the
    /// ring is a snapshot, or a part of its file cannot be read. [`Reader::state`](super::Reader::state) says which.
    Ended,
}

impl Follower {
    /// Makes a follower that begins where `cursor` stands.
    pub fn new(cursor: Cursor, strategy: WaitStrategy) -> Self {
        Self { cursor, waiter: Waiter::new(strategy) }
    }

    /// Returns the next event or gap. Waits for it at most `timeout`.
    #[inline]
    pub fn next_timeout(&mut self, timeout: Duration) -> Followed {
        match wait::next_timeout(self, timeout) {
            Waited::Found(found) => found,
            Waited::TimedOut => Followed::TimedOut,
            Waited::Ended => Followed::Ended,
        }
    }

    /// Returns the next event or gap. Waits for it without a limit. Returns [`Followed::Ended`] when the ring has
    /// ended and everything has been read.
    pub fn next_blocking(&mut self) -> Followed {
        loop {
            match self.next_timeout(Duration::from_secs(3600)) {
                Followed::TimedOut => {}
                found => return found,
            }
        }
    }

    /// Returns the cursor.
    pub fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// Returns the cursor, so that the caller can change its position with [`Cursor::seek`].
    pub fn cursor_mut(&mut self) -> &mut Cursor {
        &mut self.cursor
    }
}

impl Awaited for Follower {
    type Item = Followed;

    #[inline]
    fn look(&mut self) -> Option<Followed> {
        match self.cursor.next() {
            Next::Event(descriptor) => Some(Followed::Event(descriptor)),
            Next::Gap(gap) => Some(Followed::Gap(gap)),
            Next::NotReady => None,
        }
    }

    fn probe(&mut self) {
        self.cursor.probe();
    }

    fn has_known_end(&self) -> bool {
        self.cursor.is_known_to_be_finished()
    }

    fn has_ended(&mut self) -> bool {
        // A ring in the state `Unknown` counts as live, because its writer may live.
        !self.cursor.reader().state().may_be_written()
    }

    fn waiter(&mut self) -> &mut Waiter {
        &mut self.waiter
    }
}
