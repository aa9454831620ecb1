//! Tracepoints: their ids, and the offsets of their fields in a record. Ids and offsets are read from tracefs.

use rustix::mount::{MountFlags, mount};
use std::fs;
use std::ops::Range;
use std::path::Path;

/// The places at which tracefs is mounted.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// A tracepoint as the running kernel has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tracepoint {
    pub(crate) id: u64,
    fields: Vec<Range<usize>>,
}

impl Tracepoint {
    /// Finds a tracepoint, like `sched/sched_switch`, with these fields. Mounts tracefs first if it is not mounted and
    /// this user may.
    pub(crate) fn find(name: &str, fields: &[&str]) -> Option<Self> {
        let read = || PLACES.iter().find_map(|place| fs::read_to_string(format!("{place}/events/{name}/format")).ok());
        let text = read().or_else(|| {
            let place = Path::new(PLACES[0]);
            mount("tracefs", place, "tracefs", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)
                .ok()?;
            read()
        });
        Self::parse(&text?, fields)
    }

    /// Reads the text of a file `format`, which must have all the fields.
    fn parse(text: &str, names: &[&str]) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let of_name = |name: &&str| text.lines().filter_map(field).find_map(|(its, at)| (its == *name).then_some(at));
        Some(Self { id, fields: names.iter().map(of_name).collect::<Option<_>>()? })
    }

    /// Returns where a field lies, by its place in the list of names.
    pub(crate) fn field(&self, at: usize) -> Option<Range<usize>> {
        self.fields.get(at).cloned()
    }
}

/// Reads a line like `field:pid_t prev_pid; offset:24; size:4; signed:1;`, with tabs.
fn field(line: &str) -> Option<(String, Range<usize>)> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let declared = parts.next()?;
    let name = declared.rsplit(' ').next()?.split('[').next()?.to_owned();
    let number = |part: Option<&str>, key: &str| part?.strip_prefix(key)?.parse::<usize>().ok();
    let (offset, size) = (number(parts.next(), "offset:")?, number(parts.next(), "size:")?);
    Some((name, offset..offset.checked_add(size)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let text = "name: sched_switch\nID: 372\nformat:\n\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\n\
                    \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\nprint fmt: \"x\"";
        let found = Tracepoint::parse(text, &["prev_pid", "prev_comm"]).unwrap();
        assert_eq!((found.id, found.field(0), found.field(1)), (372, Some(24..28), Some(8..24)));
        assert_eq!((Tracepoint::parse(text, &["next_pid"]), Tracepoint::parse("nothing", &[])), (None, None));
    }
}
