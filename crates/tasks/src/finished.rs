//! Tasks that have ended: the first ones in the requested order are kept, and all are counted.

use super::answer::{Counts, TaskView};
use super::phase::TaskState;
use super::question::Order;
use std::collections::BTreeMap;

/// Tasks that have ended.
#[derive(Debug)]
pub(crate) struct Finished {
    order: Order,
    max: usize,
    /// By what the order compares, and then by the time of their end.
    kept: BTreeMap<(u64, u64), TaskView>,
    counts: Counts,
}

impl Finished {
    pub(crate) fn new(order: Order, max: usize) -> Self {
        Self { order, max, kept: BTreeMap::new(), counts: Counts::default() }
    }

    pub(crate) fn add(&mut self, task: TaskView) {
        self.count(&task);
        match task.state {
            TaskState::Cancelled => self.counts.cancelled += 1,
            TaskState::Panicked => self.counts.panicked += 1,
            TaskState::Ended => self.counts.ended += 1,
            _ => self.counts.done += 1,
        }
        self.kept.insert((task.rank(self.order), self.counts.tasks), task);
        if self.kept.len() > self.max {
            self.kept.pop_first();
            self.counts.not_listed += 1;
        }
    }

    /// Counts a task, whether it has ended or not.
    pub(crate) fn count(&mut self, task: &TaskView) {
        self.counts.tasks += 1;
        self.counts.unknown += u64::from(task.state == TaskState::Unknown);
        self.counts.polls += task.polls;
        self.counts.wakes += task.wakes;
    }

    pub(crate) fn finish(self) -> (Counts, impl Iterator<Item = TaskView>) {
        (self.counts, self.kept.into_values())
    }

    pub(crate) fn kept_bytes(&self) -> u64 {
        (self.kept.len() * (size_of::<TaskView>() + 128)) as u64
    }
}
