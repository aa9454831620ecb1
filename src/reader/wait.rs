//! The ways in which a reader waits for the next event.

use std::time::{Duration, Instant};

/// The way in which a reader waits while there is no event. The shorter its pauses, the sooner it sees an event, but
/// the more it slows the writer down.
///
/// When a reader loads a cache line that a writer is about to write, the writer must fetch this line back. A reader
/// that polls without pause makes a fast writer almost three times slower. With pauses of 10 µs, the writer shows no
/// measurable loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WaitStrategy {
    /// Polling without pause. The latency is the lowest (about 0.1 µs), but the reader occupies a whole core and slows
    /// the writer down.
    Spin,
    /// Polling with 32 pause instructions between two polls. The latency is about a microsecond.
    Pause,
    /// Pauses of 10 µs at first. If nothing comes, sleeps that grow to a millisecond. The default.
    #[default]
    Adaptive,
    /// Sleeping for this long between two polls.
    Sleep(Duration),
}

/// The number of times in a row that [`WaitStrategy::Adaptive`] waits for [`REST`] without giving up the processor.
/// After that, it sleeps between polls.
const RESTS: u32 = 20;
const REST: Duration = Duration::from_micros(10);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// The minimum time between two system calls that ask whether a silent writer lives.
const LIVENESS_INTERVAL: Duration = Duration::from_millis(100);

/// Something that gives items, and can be waited for.
pub(super) trait Awaited {
    type Item;

    /// Returns the next item if it is there.
    fn look(&mut self) -> Option<Self::Item>;
    /// Makes the next call of `look` load the ring's header if it finds no item. The header shows whether there is a
    /// hole: a seqno without an event.
    fn probe(&mut self);
    /// Returns true if it is known that nothing more will come. Makes no system call, so it may return false although
    /// nothing more will come.
    fn has_known_end(&self) -> bool;
    /// Asks the operating system whether the writer lives, and returns true if nothing more will be recorded. Items
    /// that are already there can still be read.
    fn has_ended(&mut self) -> bool;
    fn waiter(&mut self) -> &mut Waiter;
}

/// The result of [`next_timeout`].
pub(super) enum Waited<T> {
    Found(T),
    TimedOut,
    /// Everything was found and nothing will come any more.
    Ended,
}

/// Returns the next item, waiting for it at most `timeout`.
#[inline]
pub(super) fn next_timeout<A: Awaited>(awaited: &mut A, timeout: Duration) -> Waited<A::Item> {
    if let Some(item) = awaited.look() {
        awaited.waiter().reset();
        return Waited::Found(item);
    }
    next_timeout_slow(awaited, timeout)
}

#[inline(never)]
fn next_timeout_slow<A: Awaited>(awaited: &mut A, timeout: Duration) -> Waited<A::Item> {
    let deadline = Instant::now().checked_add(timeout);
    loop {
        if awaited.has_known_end() {
            return Waited::Ended;
        }
        let left = deadline.map_or(timeout, |deadline| deadline.saturating_duration_since(Instant::now()));
        let is_slow_moment = awaited.waiter().wait(left);
        if awaited.waiter().has_slept() {
            awaited.probe();
        }
        if let Some(item) = awaited.look() {
            awaited.waiter().reset();
            return Waited::Found(item);
        }
        let is_over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        // Liveness is also checked at the end of the timeout. Otherwise a caller with short timeouts would never find
        // out that the writer has ended.
        if (is_slow_moment || is_over) && awaited.waiter().is_time_to_ask() && awaited.has_ended() {
            // The writer may have recorded its last events after the call of `look` above, so look once more.
            return awaited.look().map_or(Waited::Ended, Waited::Found);
        }
        if is_over {
            return Waited::TimedOut;
        }
    }
}

/// The state of a reader that waits: how many polls in a row found nothing, and when to check the writer's liveness
/// next.
#[derive(Clone, Debug)]
pub(super) struct Waiter {
    strategy: WaitStrategy,
    idle_looks: u32,
    next_liveness_check: Instant,
}

impl Waiter {
    pub(super) fn new(strategy: WaitStrategy) -> Self {
        Self { strategy, idle_looks: 0, next_liveness_check: Instant::now() }
    }

    /// Notes that an event came.
    #[inline]
    fn reset(&mut self) {
        self.idle_looks = 0;
    }

    /// Returns true if enough time has passed since the last liveness check. The caller then makes the next check.
    fn is_time_to_ask(&mut self) -> bool {
        let now = Instant::now();
        let is_time = now >= self.next_liveness_check;
        if is_time {
            self.next_liveness_check = now + LIVENESS_INTERVAL;
        }
        is_time
    }

    /// Returns true if the last [`Self::wait`] gave up the processor.
    fn has_slept(&self) -> bool {
        match self.strategy {
            WaitStrategy::Spin | WaitStrategy::Pause => false,
            WaitStrategy::Sleep(_) => true,
            WaitStrategy::Adaptive => self.idle_looks > RESTS,
        }
    }

    /// Waits a little before the next poll, but never much longer than `at_most`. The adaptive strategy waits longer
    /// from call to call. Returns true if this is a good moment for slower work, such as asking whether the writer
    /// lives.
    fn wait(&mut self, at_most: Duration) -> bool {
        self.idle_looks = self.idle_looks.saturating_add(1);
        match self.strategy {
            WaitStrategy::Spin => {
                std::hint::spin_loop();
                self.idle_looks.is_multiple_of(1 << 20)
            }
            WaitStrategy::Pause => {
                (0..32).for_each(|_| std::hint::spin_loop());
                self.idle_looks.is_multiple_of(1 << 16)
            }
            WaitStrategy::Sleep(time) => {
                std::thread::sleep(time.min(at_most));
                true
            }
            WaitStrategy::Adaptive if self.idle_looks <= RESTS => {
                let start = Instant::now();
                while start.elapsed() < REST {
                    std::hint::spin_loop();
                }
                false
            }
            WaitStrategy::Adaptive => {
                let doublings = ((self.idle_looks - RESTS) / 8).min(5);
                std::thread::sleep((Duration::from_micros(50) * (1 << doublings)).min(LONGEST_SLEEP).min(at_most));
                self.idle_looks.is_multiple_of(64)
            }
        }
    }
}
