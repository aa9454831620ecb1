//! `eventring profile` of real processes. Most of it needs root and tracefs.

mod by_span;
mod children;
mod faults;
mod foreign_paths;
mod holders;
mod moment;
mod of_users;
mod perf;
mod roles;
mod running;
mod sched;
mod service;
mod stacks;

use crate::fixtures::*;
use crate::triggers::of_program;

/// A profile of this executable while it played a part.
struct Profiled {
    summary: Value,
    /// The events of all rings.
    events: Vec<Value>,
    /// The text that the part has printed.
    said: String,
}

/// Returns the command that profiles this executable while it plays `part` of `test`.
fn profiling(test: &str, part: &str, file: &Path, options: &[&str]) -> Command {
    let place = file.with_extension("ring");
    of_program(&play(test, part, &place), program!("profile", &place, "-o", file, "--json", options, "--"))
}

/// Profiles this executable. Returns `None`, and says so, if the kernel does not tell everything here.
fn profile(test: &str, part: &str, options: &[&str]) -> Option<Profiled> {
    let (directory, [file]) = places(["p.evc"]);
    let profiled = profiled(&finish(profiling(test, part, &file, options)), &file);
    assert_eq!(names_in(directory.path()), ["p.evc"], "rings were left");
    crate::ask::schemas::check(&[("profile", profiled.summary.clone())]);
    if profiled.summary["missing"] != json!([]) {
        eventring_stress::missing(format_args!("root, tracefs and perf_event_open: {}", profiled.summary["missing"]));
        return None;
    }
    Some(profiled)
}

fn profiled(ended: &Run, file: &Path) -> Profiled {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let summary = ended.said();
    let events = run!("watch", file, "--json").json_lines();
    Profiled { summary, events, said: ended.err.clone() }
}

impl Profiled {
    /// Returns the payloads of the events of a type, with their times.
    fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (u64, &'a Value)> {
        // The program's own ring may have events of the same name.
        let is_ours = |event: &Value| {
            ["-sched", "-stacks"].iter().any(|end| event["ring"].as_str().is_none_or(|ring| ring.ends_with(end)))
        };
        let events = self.events.iter().filter(move |event| event["name"] == name && is_ours(event));
        events.map(|event| (event["ts_ns"].number(), &event["payload"]))
    }

    /// Returns the numbers after a word that the part has said.
    fn numbers(&self, word: &str) -> Vec<u64> {
        let line = self.said.lines().find_map(|line| line.trim().strip_prefix(&format!("talk: {word} ")));
        let line = line.unwrap_or_else(|| panic!("{word}: {}", self.said));
        line.split_whitespace().map(|number| number.parse().unwrap()).collect()
    }
}
