//! The options of `eventring capture` with triggers.

use crate::args::amounts::{parse_bytes, parse_duration, parse_file_bytes, parse_file_time};
use eventring_capture::RollingOptions;
use eventring_live::Condition;
use std::path::PathBuf;
use std::time::Duration;

/// The time for which events are kept beyond what a file needs, so that many files can be written one after the other.
const SLACK: Duration = Duration::from_secs(10);
/// The memory for the kept events if nothing else is asked for.
const MEMORY: u64 = 256 << 20;
/// The least memory for the kept events. Less would hold hardly anything: the events lie in several parts, and each
/// part has the descriptions of the rings and of their call sites.
const MEMORY_MIN: u64 = 1 << 20;
/// The error of a limit of 0 files.
const NO_FILES: &str = "expected at least 1 file: with 0, the watch would never write one";
/// The parts of a command that stand for something.
const PLACEHOLDERS: [&str; 2] = ["file", "manifest"];

/// The options of a capture that writes files when something happens.
#[derive(clap::Args)]
#[command(next_help_heading = "Triggers")]
pub(super) struct TriggerArgs {
    /// Keep the last seconds only, and write a file when this holds: 'span=db.* dur>50ms', 'open>2s', 'level>=ERROR',
    /// 'event=ORDER_REJECTED field.code=7', 'rate(span=request)<10/s', 'p99(span=request)>20ms', 'death', 'signal'; may
    /// be repeated
    #[arg(long = "on", value_name = "EXPR")]
    #[arg(conflicts_with_all = ["now", "only_new", "max_size", "RotationArgs", "resume", "reopen"])]
    pub(super) conditions: Vec<Condition>,
    /// The time before the event that a file holds. The event of a span is its close, or that it reaches an age: take
    /// more than such a span lasts
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s", requires = "conditions")]
    pub(super) before: Duration,
    /// The time after the event that a file holds
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "2s", requires = "conditions")]
    pub(super) after: Duration,
    /// The time after a file in which the same condition writes no other; 0 for none. `death` and `signal` are not held
    /// back
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "5s", requires = "conditions")]
    pub(super) debounce: Duration,
    /// The largest number of files in any time of this length: 10/1h. `death` and `signal` count, too
    #[arg(long, value_name = "FILES/TIME", value_parser = parse_max, requires = "conditions")]
    pub(super) max: Option<MaxInTime>,
    /// The largest number of files; the earlier ones stay
    #[arg(long, value_name = "FILES", value_parser = parse_files, requires = "conditions")]
    pub(super) max_files: Option<u64>,
    /// The largest size of all files together (500k, 100M, 2G); no file is begun beyond it
    #[arg(long, value_name = "SIZE", value_parser = parse_file_bytes, requires = "conditions")]
    pub(super) max_bytes: Option<u64>,
    /// Memory for the kept events, which are compressed; at least 1MiB. 256MiB, the default, is about a minute of a
    /// million span events a second. With conditions about the present alone, such as 'open>2s', events are kept only
    /// with this option or --spool; otherwise a file has what the rings still hold
    #[arg(long, value_name = "SIZE", value_parser = parse_memory, requires = "conditions")]
    memory: Option<u64>,
    /// Keep the events in files without names in this directory, not in memory; --memory is then their size on disk
    #[arg(long, value_name = "DIR", requires = "conditions")]
    spool: Option<PathBuf>,
    /// The files have, too, when threads left processors and came back, and who woke them, as of `profile --sched`
    #[arg(long, requires = "conditions")]
    pub(super) sched: bool,
    /// The files have, too, the stacks of threads, as of `profile --stacks`
    #[arg(long, requires = "conditions")]
    pub(super) stacks: bool,
    /// A shell command to run after each file; {file} and {manifest} stand for the paths, quoted. Four run at a time,
    /// and 1,000 wait; more are left out and counted. Other braces need a space inside: awk '{ print }'
    #[arg(long, value_name = "COMMAND", value_parser = parse_command, requires = "conditions")]
    pub(super) exec: Option<String>,
    /// The longest time for which a command of --exec runs; then SIGTERM ends it and all that it has started, and
    /// SIGKILL two seconds later
    #[arg(long, value_name = "TIME", value_parser = parse_file_time, default_value = "60s", requires = "exec")]
    pub(super) exec_timeout: Duration,
}

impl TriggerArgs {
    /// Returns true if events are to be kept whatever the conditions need.
    pub(super) fn keeps_events(&self) -> bool {
        self.memory.is_some() || self.spool.is_some()
    }

    pub(super) fn rolling(&self, compression: i32) -> RollingOptions {
        let keep = self.before.saturating_add(self.after).saturating_add(SLACK);
        let options =
            RollingOptions::new().keep(keep).memory(self.memory.unwrap_or(MEMORY)).compression_level(compression);
        self.spool.iter().fold(options, RollingOptions::spool)
    }
}

/// A number of files, and a time: `10/1h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MaxInTime {
    pub(super) files: u64,
    pub(super) time: Duration,
}

fn parse_memory(text: &str) -> Result<u64, &'static str> {
    parse_bytes(text).and_then(|bytes| match bytes {
        MEMORY_MIN.. => Ok(bytes),
        _ => Err("expected at least 1MiB: less would hold hardly any events"),
    })
}

/// Parses `10/1h`.
fn parse_max(text: &str) -> Result<MaxInTime, String> {
    let expected = || "expected a number of files and a time, like 10/1h".to_owned();
    let (files, time) = text.split_once('/').ok_or_else(expected)?;
    let files = files.trim().parse().map_err(|_| expected())?;
    let time = parse_duration(time.trim()).map_err(|_| expected())?;
    match (files, time) {
        (0, _) => Err(NO_FILES.to_owned()),
        (_, Duration::ZERO) => Err("expected a time greater than 0, like 10/1h".to_owned()),
        (files, time) => Ok(MaxInTime { files, time }),
    }
}

/// Parses a largest number of files.
fn parse_files(text: &str) -> Result<u64, &'static str> {
    match text.parse() {
        Ok(0) => Err(NO_FILES),
        Ok(files) => Ok(files),
        Err(_) => Err("expected a number of files, like 10"),
    }
}

/// Parses the command of `--exec`. A word in braces that stands for nothing is probably a mistake.
fn parse_command(text: &str) -> Result<String, String> {
    for (at, _) in text.match_indices('{') {
        let rest = &text[at + 1..];
        let name = &rest[..rest.find(|c: char| !(c.is_ascii_alphabetic() || c == '_')).unwrap_or(rest.len())];
        let is_closed = !name.is_empty() && rest[name.len()..].starts_with('}');
        // `${name}` is a variable of the shell.
        if is_closed && !text[..at].ends_with('$') && !PLACEHOLDERS.contains(&name) {
            return Err(format!(
                "found `{{{name}}}`, expected {{file}} or {{manifest}}; if the braces are for the command, write `{{ {name} }}`"
            ));
        }
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_files_in_a_time_is_read_as_people_write_it() {
        assert_eq!(parse_max("10/1h"), Ok(MaxInTime { files: 10, time: Duration::from_secs(3600) }));
        assert_eq!((parse_files("7"), parse_files("0")), (Ok(7), Err(NO_FILES)));
        assert_eq!(parse_max("0/1h"), Err(NO_FILES.to_owned()));
        assert!(parse_files("-1").is_err() && parse_files("many").is_err());
        assert!(["", "10", "x/1h", "10/", "10/0s", "/1h"].iter().all(|text| parse_max(text).is_err()));
    }

    #[test]
    fn unknown_words_in_braces_are_refused_and_the_braces_of_the_shell_are_not() {
        for command in
            ["cp {file} x", "gzip -k {file} {manifest}", "echo ${HOME} {a,b} {} { true; }", "awk '{ print }'"]
        {
            assert_eq!(parse_command(command).as_deref(), Ok(command));
        }
        let refused = parse_command("cp {fil} x").unwrap_err();
        assert!(refused.starts_with("found `{fil}`, expected {file} or {manifest}"), "{refused}");
        assert!(parse_command("{file} {manifes_t}").is_err());
    }
}
