//! The events that the filter and the switches of a process leave out.

use super::rings::CheckedRing;
use crate::input::programs::process;
use crate::text::format::{counted, one_line};
use eventring::control::{Process, ProcessState};
use eventring::now::NowReader;
use eventring::reader::ExtensionInfo;
use std::time::Duration;

/// The time that a server has for its answer.
const TIMEOUT: Duration = Duration::from_millis(500);

/// What is left out, and whether that is everything.
#[derive(Default)]
pub(super) struct LeftOut {
    pub sentences: Vec<String>,
    /// Sentences that say that all spans, or all typed events, are left out.
    pub everything: Vec<String>,
    pub has_no_spans: bool,
    pub has_no_typed_events: bool,
}

/// Asks the server of the process, and looks at the environment with which it was started.
pub(super) fn by_process(pid: u32, has_spans: bool) -> LeftOut {
    let mut left_out = LeftOut::default();
    let server = Process::find_timeout(&format!("pid:{pid}"), TIMEOUT).ok();
    let state = server.and_then(|found| found.first()?.state().ok());
    if let Some(state) = &state {
        left_out.add_state(state, has_spans);
    }
    let variable = |name: &str| process::variable(pid, name).ok().flatten();
    let filter = variable("EVENTRING_FILTER");
    match (&state, &filter) {
        (Some(_), _) => {}
        _ if !has_spans => {}
        (None, Some(filter)) if is_everything(filter) => {}
        (None, Some(filter)) => left_out
            .sentences
            .push(format!("spans and log records that EVENTRING_FILTER={filter} does not let through")),
        (None, None) => left_out.sentences.push(
            "what the program's own filter leaves out: what is below INFO after `init`, and nothing if it made its \
             subscriber or layer without a filter (EVENTRING_FILTER is not set, and no server could say more)"
                .to_owned(),
        ),
    }
    if let Some(filter) = filter.filter(|filter| state.is_none() && filter.split(',').all(is_off)) {
        let sentence =
            format!("EVENTRING_FILTER={filter} leaves out every span and log record; set another, such as info");
        left_out.everything.push(sentence);
        left_out.has_no_spans = true;
    }
    for (name, what) in [("EVENTRING_REDACT", "the fields"), ("EVENTRING_DOMAINS", "domains other than")] {
        if let Some(value) = variable(name).filter(|_| state.is_none() || name == "EVENTRING_REDACT") {
            left_out.sentences.push(format!("{what} {value} ({name})"));
        }
    }
    left_out
}

fn is_off(directive: &str) -> bool {
    let directive = directive.trim();
    directive.is_empty() || directive == "off" || directive.ends_with("=off")
}

/// Returns true if the filter lets everything through: `trace`, also beside directives of the same level.
fn is_everything(filter: &str) -> bool {
    let is_trace = |level: &str| level.trim().eq_ignore_ascii_case("trace");
    filter.split(',').any(is_trace) && filter.split(',').all(|of| of.rsplit('=').next().is_some_and(is_trace))
}

impl LeftOut {
    fn add_state(&mut self, state: &ProcessState, has_spans: bool) {
        let in_force = one_line(&state.effective);
        if has_spans && !in_force.is_empty() && !is_everything(&in_force) {
            let overrides = match state.overrides.len() {
                0 => String::new(),
                overrides => format!(" and {}", counted(overrides as u64, "filter override", "filter overrides")),
            };
            let configured = one_line(&state.configured);
            self.sentences.push(format!(
                "what the filter `{in_force}` does not let through (program: `{configured}`{overrides})"
            ));
        }
        if has_spans && !in_force.is_empty() && in_force.split(',').all(is_off) {
            self.everything.push(format!(
                "the filter in force is `{in_force}`, which leaves out every span and log record; `eventring enable` \
                 switches some on"
            ));
            self.has_no_spans = true;
        }
        let off: Vec<String> =
            state.domains.iter().filter(|domain| !domain.is_enabled).map(|domain| one_line(&domain.name)).collect();
        if !off.is_empty() {
            self.sentences.push(format!("events of the domains {}", off.join(", ")));
        }
        if !off.is_empty() && off.len() == state.domains.len() {
            self.everything.push("all domains of typed events are off; `eventring enable` switches some on".to_owned());
            self.has_no_typed_events = true;
        }
    }

    /// Returns true if nothing of this ring is recorded now.
    pub(super) fn is_all_of(&self, ring: &CheckedRing) -> bool {
        if ring.is_perf() { self.has_no_spans } else { self.has_no_typed_events }
    }
}

/// Returns what the ring's own header counts as not recorded.
pub(super) fn by_ring(ring: &CheckedRing) -> Vec<String> {
    let CheckedRing { ring, name, .. } = ring;
    let sum = |of: fn(&ExtensionInfo) -> u64| ring.sum(|shard| shard.extension.as_ref().map_or(0, of));
    let tables = NowReader::open_beside(&ring.reader).ok().flatten().map(|now| now.untabled()).unwrap_or_default();
    let counts = [
        (sum(|it| it.foreign_events), "event of another schema", "events of another schema"),
        (sum(|it| it.record_errors), "event that could not be recorded", "events that could not be recorded"),
        (sum(|it| it.table_overflows), "name without room in the tables", "names without room in the tables"),
        (ring.not_made, "shard that could not be made", "shards that could not be made: threads share the others"),
        (
            tables.spans,
            "span without a cell in the tables of the present",
            "spans without a cell in the tables of the present",
        ),
        (tables.threads, "thread without such a cell", "threads without such a cell"),
        (tables.tasks, "task without such a cell", "tasks without such a cell"),
        (tables.locks, "lock or wait without such a cell", "locks and waits without such a cell"),
    ];
    let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
    counts.map(|(count, one, many)| format!("{} ({})", counted(count, one, many), name)).collect()
}
