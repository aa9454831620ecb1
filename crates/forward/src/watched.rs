//! The caller of a forwarder, who gets progress and may end it.

use super::forwarder::ForwardProgress;
use eventring_capture::batches::Batch;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The time for which a batch is still sent after the caller has ended the forwarding.
const TIME_AT_END: Duration = Duration::from_secs(5);

/// The state of a forwarder, and the caller who watches it.
pub(super) struct Watched<'p> {
    progress: &'p mut dyn FnMut(&ForwardProgress) -> ControlFlow<()>,
    pub(super) state: ForwardProgress,
    /// The time at which the caller ended the forwarding.
    ended: Option<Instant>,
}

impl<'p> Watched<'p> {
    pub(super) fn new(progress: &'p mut dyn FnMut(&ForwardProgress) -> ControlFlow<()>) -> Self {
        Self { progress, state: ForwardProgress::default(), ended: None }
    }

    /// Tells the caller the state. Returns what the caller asks for.
    pub(super) fn ask(&mut self) -> ControlFlow<()> {
        let asked = (self.progress)(&self.state);
        if asked.is_break() {
            self.ended.get_or_insert_with(Instant::now);
        }
        asked
    }

    /// Notes what stands in the way of a batch, or that nothing does any more.
    pub(super) fn note(&mut self, problem: Option<&str>) {
        if self.state.problem.as_deref() != problem {
            self.state.problem = problem.map(str::to_owned);
        }
    }

    /// Asks the caller. Returns true if a batch that waits shall wait no longer.
    pub(super) fn is_given_up(&mut self) -> bool {
        let _ = self.ask();
        self.ended.is_some_and(|ended| ended.elapsed() > TIME_AT_END)
    }

    /// Counts a batch that was sent.
    pub(super) fn count(&mut self, bytes: &[u8], batch: &Batch<'_>) {
        self.state.batches += 1;
        self.state.events += batch.events();
        self.state.lost += batch.lost();
        self.state.overwritten_before += batch.overwritten_before();
        self.state.filtered += batch.filtered();
        self.state.bytes += bytes.len() as u64;
    }
}
