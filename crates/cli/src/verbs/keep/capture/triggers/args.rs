//! The options of triggers.

use super::action::parse_command;
use super::names::NameTemplate;
use super::policy::{Limits, MaxInTime, parse_files, parse_max};
use crate::args::amounts::{parse_bytes, parse_duration, parse_file_bytes, parse_file_time};
use crate::exit::{Exit, Failure};
use eventring_capture::RollingOptions;
use eventring_live::Condition;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time for which events are kept beyond what a file needs, so that many files can be written one after the other.
const SLACK: Duration = Duration::from_secs(10);

/// The options of a capture that writes files when something happens.
#[derive(clap::Args)]
#[command(next_help_heading = "Triggers")]
pub(in crate::verbs::keep::capture) struct TriggerArgs {
    /// Keep the last seconds only, and write a file when this holds: 'span=db.* dur>50ms', 'open>2s', 'level>=ERROR',
    /// 'event=ORDER_REJECTED field.code=7', 'rate(span=request)<10/s', 'p99(span=request)>20ms', 'death', 'signal'; may
    /// be repeated
    #[arg(long = "on", value_name = "EXPR")]
    #[arg(conflicts_with_all = ["now", "only_new", "max_size", "RotationArgs", "resume", "reopen"])]
    pub(in crate::verbs::keep::capture) conditions: Vec<Condition>,
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
    debounce: Duration,
    /// The largest number of files in any time of this length: 10/1h. `death` and `signal` count, too
    #[arg(long, value_name = "FILES/TIME", value_parser = parse_max, requires = "conditions")]
    max: Option<MaxInTime>,
    /// The largest number of files; the earlier ones stay
    #[arg(long, value_name = "FILES", value_parser = parse_files, requires = "conditions")]
    max_files: Option<u64>,
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

/// The memory for the kept events if nothing else is asked for.
const MEMORY: u64 = 256 << 20;
/// The least memory for the kept events. Less would hold hardly anything: the events lie in several parts, and each
/// part has the descriptions of the rings and of their call sites.
const MEMORY_MIN: u64 = 1 << 20;

fn parse_memory(text: &str) -> Result<u64, &'static str> {
    parse_bytes(text).and_then(|bytes| match bytes {
        MEMORY_MIN.. => Ok(bytes),
        _ => Err("expected at least 1MiB: less would hold hardly any events"),
    })
}

impl TriggerArgs {
    pub(super) fn limits(&self) -> Limits {
        Limits { debounce: self.debounce, max: self.max, files_max: self.max_files, bytes_max: self.max_bytes }
    }

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

    /// Returns the names of the files: those of `output`, or else names that begin with that of the ring.
    pub(super) fn names(&self, output: Option<&Path>, ring: &Path) -> Result<NameTemplate, Failure> {
        let text = match output {
            Some(output) => output.to_str().map(str::to_owned),
            // A name of a ring may have braces.
            None => ring.file_name().and_then(|name| name.to_str()).map(|name| {
                let plain: String = name.chars().map(|c| if "{}/".contains(c) { '_' } else { c }).collect();
                format!("{plain}-{{n}}-{{span}}.evc")
            }),
        };
        let parsed = text.ok_or_else(|| "the name is no UTF-8".to_owned()).and_then(|text| NameTemplate::parse(&text));
        parsed.map_err(|problem| Exit::Usage.failure(format!("--output with --on: {problem}")))
    }
}
