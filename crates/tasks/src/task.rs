//! One task: its counts and times.

use super::answer::{TaskView, WokenBy};
use super::latency::Latencies;
use super::phase::{Phase, TaskState};
use eventring::tracing::{CallSite, SpanId};
use std::sync::Arc;

/// What is counted of a task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) name: String,
    pub(crate) spawned_at: String,
    pub(crate) kind: String,
    pub(crate) polls: u64,
    pub(crate) wakes: u64,
    busy_nanos: u64,
    longest_poll_nanos: u64,
    latencies: Latencies,
    /// The span in which the thread was that woke the task last.
    pub(crate) woken_by: Option<(SpanId, Option<Arc<CallSite>>)>,
    pub(crate) is_unwakeable: bool,
}

impl Tally {
    /// Counts the time of a phase that has ended.
    pub(crate) fn add(&mut self, phase: &Phase, end_nanos: u64) {
        let nanos = phase.nanos_until(end_nanos);
        match phase.state {
            TaskState::Running => {
                self.busy_nanos = self.busy_nanos.saturating_add(nanos);
                self.longest_poll_nanos = self.longest_poll_nanos.max(nanos);
            }
            TaskState::Woken if !phase.is_first => self.latencies.add(nanos),
            _ => {}
        }
    }

    pub(crate) fn kept_bytes(&self) -> u64 {
        self.latencies.kept_bytes()
    }
}

impl Tally {
    /// Makes what is shown. `end_nanos` is the time until which a poll that is under way lasts. If not `is_certain`, a
    /// task that has not ended may do something else.
    pub(crate) fn view(
        mut self,
        phase: &Phase,
        id: SpanId,
        pid: u32,
        span: Option<String>,
        end_nanos: u64,
        is_certain: bool,
    ) -> TaskView {
        let is_known = is_certain || phase.state.is_over();
        if is_known && phase.state == TaskState::Running {
            self.add(phase, end_nanos);
        }
        let named = |(id, site): (SpanId, Option<Arc<CallSite>>)| WokenBy {
            id: id.get(),
            name: site.map_or_else(|| format!("span {id}"), |site| site.name.clone()),
        };
        TaskView {
            id: id.get(),
            pid,
            name: self.name,
            spawned_at: self.spawned_at,
            kind: self.kind,
            state: if is_known { phase.state } else { TaskState::Unknown },
            unknown_since_epoch_nanos: (!is_known).then_some(phase.told_nanos),
            is_unwakeable: self.is_unwakeable && is_known,
            polls: self.polls,
            wakes: self.wakes,
            busy_nanos: self.busy_nanos,
            longest_poll_nanos: self.longest_poll_nanos,
            scheduled_p99_nanos: self.latencies.p99(),
            span: span.filter(|_| is_known),
            woken_by: self.woken_by.map(named),
        }
    }
}
