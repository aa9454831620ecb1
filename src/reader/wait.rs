//! How a reader waits for the next event.

use std::time::{Duration, Instant};

/// How a reader waits when there is no event: the trade between its latency and the writer's cache lines.
///
/// Looking at a cache line that a writer is about to write makes the writer fetch it back: a reader that polls without
/// pause makes a fast writer almost three times slower. A pause of 10 µs costs it nothing measurable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WaitStrategy {
    /// Polls without pause: the lowest latency (about 0.1 µs), a whole core, and a burden on the writer.
    Spin,
    /// Polls with some pause instructions in between: about a microsecond.
    Pause,
    /// Rests for some 10 µs at first, then sleeps longer and longer, up to a millisecond, while nothing comes. The default.
    #[default]
    Adaptive,
    /// Sleeps for this long between looks.
    Sleep(Duration),
}

/// Looks in a row that rest without giving up the processor.
const RESTS: u32 = 20;
const REST: Duration = Duration::from_micros(10);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// The state of one wait: how often nothing was found in a row.
#[derive(Clone, Debug)]
pub(super) struct Waiter {
    strategy: WaitStrategy,
    idle_looks: u32,
}

impl Waiter {
    pub(super) fn new(strategy: WaitStrategy) -> Self {
        Self { strategy, idle_looks: 0 }
    }

    /// An event came.
    pub(super) fn reset(&mut self) {
        self.idle_looks = 0;
    }

    /// Whether the last [`Self::wait`] gave up the processor.
    pub(super) fn has_slept(&self) -> bool {
        match self.strategy {
            WaitStrategy::Spin | WaitStrategy::Pause => false,
            WaitStrategy::Sleep(_) => true,
            WaitStrategy::Adaptive => self.idle_looks > RESTS,
        }
    }

    /// Waits a little, longer from call to call, and never much longer than `at_most`. Gives true when this is a good moment for slower questions (is the writer
    /// alive?).
    pub(super) fn wait(&mut self, at_most: Duration) -> bool {
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
