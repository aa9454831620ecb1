//! The kind of a task. Tasks are of one kind if they were spawned at the same place in the source, and their names
//! differ only in the values of numbers (`conn-7`, `conn-12`).

use crate::names::Names;
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{Catalog, RawRecord, SpanId};
use eventring_tasks::is_task;
use std::collections::HashMap;

/// The kinds of the tasks that have not ended, as places among the names.
#[derive(Default)]
pub(crate) struct TaskKinds(HashMap<(usize, SpanId), Option<usize>>);

impl TaskKinds {
    /// Notes the kind of a task of a process, if the record is that of its spawn.
    #[inline]
    pub(crate) fn see(&mut self, process: usize, record: &RawRecord<'_>, catalog: &Catalog, names: &mut Names) {
        if record.event != Some(PerfEvent::SpanNew) {
            return;
        }
        let Some(site) = catalog.known_call_site(record.ext.call_site_id).filter(|site| is_task(site)) else { return };
        let Some(id) = record.span() else { return };
        let fields = record.fields(site);
        let text = |name: &str| fields.get(name).map(ToString::to_string).unwrap_or_default();
        let name = match (without_numbers(&text("name")).as_str(), text("spawned_at")) {
            ("", place) => format!("a task spawned at {place}"),
            (name, place) => format!("task {name}, spawned at {place}"),
        };
        self.0.insert((process, id), names.place_of_task(name));
    }

    /// Takes the kind of a task that is over: its place among the names, if there was room for it.
    pub(crate) fn take(&mut self, process: usize, id: SpanId) -> Option<Option<usize>> {
        self.0.remove(&(process, id))
    }

    pub(crate) fn kept_bytes(&self) -> u64 {
        self.0.len() as u64 * 48
    }
}

/// Returns a name with `#` for each number in it: tasks for connections, say, are numbered.
fn without_numbers(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c.is_ascii_digit() {
            true if out.ends_with('#') => {}
            true => out.push('#'),
            false => out.push(c),
        }
    }
    out
}
