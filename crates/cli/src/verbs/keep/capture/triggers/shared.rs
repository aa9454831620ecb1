//! The state that the threads of a watch share: the end of the watch, the files that wait, the commands, and their
//! messages.

use super::manifest::{Shot, WrittenFile};
use eventring::recorder::Clock;
use eventring_capture::EndReason;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The largest number of commands that run or wait. Those for further files are left out, and counted.
pub(super) const PENDING_MAX: usize = 1000;

/// The end of a watch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WatchEnd {
    pub(super) reason: EndReason,
    /// The time of the end, in nanoseconds since the epoch.
    epoch_nanos: u64,
    pub(super) elapsed: Duration,
}

impl WatchEnd {
    /// Makes the end of a watch that ends now.
    pub(super) fn now(reason: EndReason, started: Instant) -> Self {
        Self { reason, epoch_nanos: Clock::global().now_epoch_nanos(), elapsed: started.elapsed() }
    }

    /// Returns the time after which nothing counts, in nanoseconds since the epoch. Returns `None` if the programs have
    /// ended: then all counts.
    pub(super) fn until_nanos(self) -> Option<u64> {
        (self.reason != EndReason::WritersEnded).then_some(self.epoch_nanos)
    }
}

/// The times of the shots that wait for their files, oldest first.
#[derive(Default)]
pub(super) struct WaitingShots(Mutex<VecDeque<u64>>);

impl WaitingShots {
    /// Adds a shot. Returns false if too many wait already.
    pub(super) fn add(&self, epoch_nanos: u64, most: usize) -> bool {
        let mut waiting = self.lock();
        let has_room = waiting.len() < most;
        if has_room {
            waiting.push_back(epoch_nanos);
        }
        has_room
    }

    /// Returns the number of shots that wait, with the one whose file is being written.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Notes that the oldest shot has its file, or will have none.
    pub(super) fn done(&self) {
        self.lock().pop_front();
    }

    /// Returns the beginning of the time that the oldest shot's file shall hold.
    pub(super) fn oldest_nanos(&self, before: Duration) -> Option<u64> {
        let before_nanos = u64::try_from(before.as_nanos()).unwrap_or(u64::MAX);
        self.lock().front().map(|first| first.saturating_sub(before_nanos))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<u64>> {
        // A poisoned lock may be used: no code panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A message of the writer to the watch.
pub(super) enum WriterMessage {
    Written(Box<WrittenFile>),
    Failed(Box<Shot>, anyhow::Error),
    /// An occurrence gets no file, because the files before it have reached the largest size of all.
    Suppressed,
    /// An occurrence gets no file, because the end of the watch does not wait for it.
    LeftOut,
    /// A command has ended, or was left out.
    ActionEnded(ActionEnd),
}

/// State that the commands of a watch share with its files.
#[derive(Default)]
pub(super) struct ActionState {
    /// The number of commands that run or wait.
    pending: Mutex<usize>,
    /// A value if no further command is to be started.
    pub(super) is_hurried: OnceLock<()>,
    /// A value if those that run are not to be waited for.
    pub(super) is_interrupted: OnceLock<()>,
}

impl ActionState {
    /// Adds a command. Returns false if too many run or wait already.
    pub(super) fn add(&self) -> bool {
        let mut pending = self.pending();
        let has_room = *pending < PENDING_MAX;
        *pending += usize::from(has_room);
        has_room
    }

    /// Returns the number of commands that run or wait.
    pub(super) fn len(&self) -> usize {
        *self.pending()
    }

    pub(super) fn pending(&self) -> MutexGuard<'_, usize> {
        // A poisoned lock may be used: no code panics while it holds this lock.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The fate of a command. What did not go well has a message.
pub(super) enum ActionEnd {
    Done,
    Failed(String),
    /// Killed command: it has run longer than `--exec-timeout`.
    TimedOut(String),
    /// Command that was not started, or not waited for.
    LeftOut(String),
}
