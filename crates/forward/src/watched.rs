//! The caller of a forwarder: the caller gets the forwarder's progress, and may end the forwarder.

use eventring_capture::batches::Batch;
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The state of a forwarder.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ForwardProgress {
    /// Batches that the broker has stored.
    pub batches: u64,
    /// Events in them.
    pub events: u64,
    /// Events that are missing: gaps in these batches.
    pub lost: u64,
    /// The number of events among `lost` that had been overwritten before the forwarder began.
    pub overwritten_before: u64,
    /// Events that the filter has left out.
    pub filtered: u64,
    /// Bytes of these batches.
    pub bytes: u64,
    /// The number of times that a batch had to be sent again, because no answer came or the broker refused it.
    pub resent: u64,
    /// The number of times that the forwarder began anew after what the stream has, because another forwarder had sent
    /// events of this ring, or the broker had lost some.
    pub restarts: u64,
    /// The problem because of which a batch waits at this moment, if one does.
    #[serde(skip)]
    pub problem: Option<String>,
}

impl ForwardProgress {
    /// Adds the counts of another forwarder.
    pub fn add(&mut self, other: &Self) {
        self.batches += other.batches;
        self.events += other.events;
        self.lost += other.lost;
        self.overwritten_before += other.overwritten_before;
        self.filtered += other.filtered;
        self.bytes += other.bytes;
        self.resent += other.resent;
        self.restarts += other.restarts;
    }
}

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
