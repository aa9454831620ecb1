//! The hooks of tokio's unstable features. Tokio calls them for every task, also for tasks that other crates spawn.

use crate::record::{NewTask, task_span};
use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Builder;
use tokio::task::Id;
use tracing::Span;

/// The number of parts of the map, so that workers seldom wait for each other.
const PARTS: usize = 64;

thread_local! {
    static IS_WRAPPED: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, this thread spawns a task that has a span already.
pub(crate) struct Wrapped {
    before: bool,
}

impl Wrapped {
    pub(crate) fn new() -> Self {
        Self { before: IS_WRAPPED.replace(true) }
    }
}

impl Drop for Wrapped {
    fn drop(&mut self) {
        IS_WRAPPED.set(self.before);
    }
}

type Part = Mutex<HashMap<Id, Arc<Span>>>;

/// The spans of the tasks of a runtime.
struct Tasks {
    parts: Vec<Part>,
    hasher: RandomState,
}

impl Tasks {
    fn part(&self, id: Id) -> MutexGuard<'_, HashMap<Id, Arc<Span>>> {
        let at = self.hasher.hash_one(id) as usize % PARTS;
        self.parts[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, id: Id) -> Option<Arc<Span>> {
        self.part(id).get(&id).cloned()
    }
}

pub(crate) fn install(builder: &mut Builder) {
    let parts = (0..PARTS).map(|_| Part::default()).collect();
    let tasks = Arc::new(Tasks { parts, hasher: RandomState::new() });
    let (spawned, before, after, ended) = (tasks.clone(), tasks.clone(), tasks.clone(), tasks);
    builder
        .on_task_spawn(move |task| {
            if IS_WRAPPED.get() {
                return;
            }
            let spawned_at = task.spawned_at();
            let name = format!("{}:{}", spawned_at.file(), spawned_at.line());
            if let Some(span) = task_span(NewTask { name: &name, kind: "hooked", spawned_at }) {
                spawned.part(task.id()).insert(task.id(), Arc::new(span));
            }
        })
        .on_before_task_poll(move |task| {
            if let Some(span) = before.get(task.id()) {
                span.with_subscriber(|(id, subscriber)| subscriber.enter(id));
            }
        })
        .on_after_task_poll(move |task| {
            if let Some(span) = after.get(task.id()) {
                span.with_subscriber(|(id, subscriber)| subscriber.exit(id));
            }
        })
        .on_task_terminate(move |task| {
            let span = ended.part(task.id()).remove(&task.id());
            drop(span);
        });
}
