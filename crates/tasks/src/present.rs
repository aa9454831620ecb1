//! The tasks that tables of the present show at the end of a capture. The state of these tasks is certain.

use super::answer::TaskView;
use super::phase::TaskState;
use super::seen::is_task;
use eventring::now::{Presence, Present, SpanCell};
use eventring::tracing::{Catalog, IdMap};
use std::collections::{HashMap, HashSet};

/// What tables show of the tasks of some processes.
#[derive(Debug, Default)]
pub(crate) struct PresentTasks {
    /// The processes all of whose recorders have whole tables, by their index.
    pub(crate) processes: HashSet<usize>,
    /// By process id and span id.
    pub(crate) tasks: HashMap<(u32, u64), TaskView>,
    pub(crate) deadlocks: Vec<Vec<u64>>,
    pub(crate) futurelocks: Vec<u64>,
}

impl PresentTasks {
    /// Returns true if tables show the tasks of this process.
    pub(crate) fn has(&self, process: usize) -> bool {
        self.processes.contains(&process)
    }

    /// Says of a task of such a process what it does now: it has ended, if no table shows it.
    pub(crate) fn correct(&mut self, view: TaskView) -> TaskView {
        let Some(now) = self.tasks.remove(&(view.pid, view.id)) else {
            let state = if view.state.is_over() { view.state } else { TaskState::Ended };
            return TaskView { state, unknown_since_epoch_nanos: None, span: None, is_unwakeable: false, ..view };
        };
        let name = if view.name.is_empty() {
            (now.name, now.spawned_at, now.kind)
        } else {
            (view.name, view.spawned_at, view.kind)
        };
        TaskView {
            name: name.0,
            spawned_at: name.1,
            kind: name.2,
            state: now.state,
            unknown_since_epoch_nanos: None,
            is_unwakeable: now.is_unwakeable,
            polls: view.polls.max(now.polls),
            wakes: view.wakes.max(now.wakes),
            longest_poll_nanos: view.longest_poll_nanos.max(now.longest_poll_nanos),
            span: now.span,
            woken_by: now.woken_by.or(view.woken_by),
            ..view
        }
    }

    /// Returns the tasks of which no event is known.
    pub(crate) fn take_others(&mut self) -> impl Iterator<Item = TaskView> + use<> {
        let mut others: Vec<_> = std::mem::take(&mut self.tasks).into_values().collect();
        others.sort_unstable_by_key(|task| (task.pid, task.id));
        others.into_iter()
    }
}

/// Leaves out the spans that say nothing of tasks, of which there may be a million: a task says where it is by the spans
/// in it, and who wakes it by those that threads are in.
pub(crate) fn leave_out_others(present: &mut Present, catalog: &Catalog) {
    let sites: HashSet<u32> = catalog.call_sites().filter(|site| is_task(site)).map(|site| site.id).collect();
    let is_task = |span: &SpanCell| sites.contains(&span.call_site_id);
    let mut parents: IdMap<u64, (u64, bool)> = IdMap::default();
    if present.spans.iter().any(is_task) {
        parents.extend(present.spans.iter().map(|span| (span.id, (span.parent, is_task(span)))));
    }
    // In damaged tables a span can be its own ancestor.
    let is_in_task = |span: &SpanCell| {
        let mut around = std::iter::successors(parents.get(&span.id), |(parent, _)| parents.get(parent)).take(1000);
        around.any(|(_, is_task)| *is_task)
    };
    present.spans.retain(|span| matches!(span.presence, Presence::Inside(..)) || is_in_task(span));
}
