//! `eventring check`.

mod absence;
mod left_out;
mod rings;
mod system;

use crate::args::amounts::parse_duration;
use crate::exit::Exit;
use crate::input::now_epoch_nanos;
use crate::input::programs::process;
use crate::input::ring::state::{StateWord, end_in_words};
use crate::output::json_line;
use crate::text::format::{TimeFormat, counted, duration, one_line};
use crate::text::out::stdout;
use crate::text::paint::{DIM, GOOD, Style, WARNING};
use eventring::files::FileId;
use eventring::reader::{ReaderErrorKind, RingState};
use eventring_ask::command_line;
use eventring_capture::foreign::MappedFile;
use left_out::LeftOut;
use rings::CheckedRing;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeSet, HashSet};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;
use system::Allowed;

/// Say whether a program records, since when, what is left out, and if nothing is recorded: why
///
/// The exit code is 0 only if something is being recorded.
#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    /// Name or path of a ring, a pattern such as 'shop*', or pid:N for all rings of a process
    #[arg(value_name = "NAME")]
    name: PathBuf,
    /// Count a program as recording only if its last event is not older than this: 10s
    #[arg(long, value_name = "D", value_parser = parse_duration)]
    within: Option<Duration>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Show times in UTC, not in local time
    #[arg(long)]
    utc: bool,
}

/// What was found out.
#[derive(Default)]
struct Answer {
    rings: Vec<CheckedRing>,
    /// The exit code for a ring that is there and cannot be read.
    unread: Option<Exit>,
    is_recording: bool,
    since_epoch_nanos: Option<u64>,
    last_event_epoch_nanos: Option<u64>,
    past: Option<(f64, String)>,
    left_out: Vec<String>,
    readers: Vec<String>,
    /// The number of processes into which this user may not look, so that readers among them are not known.
    closed_processes: usize,
    problems: Vec<String>,
}

/// What `check --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Checked<'a> {
    recording: bool,
    /// A time, in UTC.
    since: Option<String>,
    last_event: Option<String>,
    /// Sentences.
    left_out: &'a [String],
    past_seconds: Option<f64>,
    problems: &'a [String],
    rings: Vec<RingRow<'a>>,
    /// Processes in words.
    readers: &'a [String],
    directory: &'a Allowed,
    core_files: &'a Allowed,
    perf: &'a Allowed,
    thread_times: &'a Allowed,
}

#[derive(Serialize, JsonSchema)]
struct RingRow<'a> {
    name: &'a str,
    #[serde(with = "StateWord")]
    state: RingState,
    pid: Option<u32>,
}

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<Exit> {
    let mut answer = Answer::default();
    let pid = match args.name.to_str().and_then(|name| name.strip_prefix("pid:")).filter(|pid| !pid.contains('/')) {
        Some(pid) => Some(pid.parse::<u32>().map_err(|_| {
            Exit::Usage.failure(format!("`pid:{pid}` has no number of a process, expected for example pid:1234"))
        })?),
        None => None,
    };
    match pid {
        Some(pid) => {
            let (own, inherited) = rings::of_process(pid);
            if own.is_empty() {
                answer.problems = absence::of_process(pid, &inherited);
            }
            answer.rings = own;
        }
        None => match rings::named(&args.name) {
            Ok((rings, errors)) => {
                answer.problems = errors.iter().flat_map(|error| absence::of_name(&args.name, error)).collect();
                let unread = errors.into_iter().find(|error| error.kind() != ReaderErrorKind::NotFound);
                answer.unread = unread.map(|error| Exit::from_error(&error.into()));
                answer.rings = rings;
            }
            Err(error) => answer.problems.push(one_line(&error.to_string())),
        },
    }
    let time = TimeFormat::new(args.utc);
    answer.look_at_rings(args.within, &time);
    answer.look_for_readers();
    let process = pid.or_else(|| answer.rings.iter().find_map(|ring| ring.writer)).filter(|pid| process::exists(*pid));
    let directory = system::directory();
    if answer.rings.is_empty() && !directory.is_allowed {
        answer.problems.push(directory.text.clone());
    }
    let core_files = system::core_files(process, &answer.rings);
    let allowed = [directory, core_files, system::perf(), rings::thread_times(&answer.rings)];
    let mut out = stdout();
    if args.json {
        json_line(&answer.checked(&allowed))?;
    } else {
        answer.write(&mut out, &args.name.display().to_string(), &allowed, &time)?;
    }
    out.flush()?;
    Ok(match answer.is_recording {
        true => Exit::Done,
        false if answer.rings.is_empty() => answer.unread.unwrap_or(Exit::NotFound),
        false => Exit::Failed,
    })
}

impl Answer {
    fn look_at_rings(&mut self, within: Option<Duration>, time: &TimeFormat) {
        let now = now_epoch_nanos();
        let writers: BTreeSet<u32> = self.rings.iter().filter_map(|ring| ring.writer).collect();
        let mut left_out = LeftOut::default();
        for pid in writers {
            let has_spans = self.rings.iter().any(|ring| ring.writer == Some(pid) && ring.is_perf());
            let by_process = left_out::by_process(pid, has_spans);
            left_out.sentences.extend(by_process.sentences);
            left_out.everything.extend(by_process.everything);
            left_out.has_no_spans |= by_process.has_no_spans;
            left_out.has_no_typed_events |= by_process.has_no_typed_events;
        }
        self.left_out = left_out.sentences.clone();
        for ring in &self.rings {
            self.left_out.extend(left_out::by_ring(ring));
            let last = ring.ring.total.times.filter(|_| ring.has_events()).map(|times| times.1);
            self.last_event_epoch_nanos = self.last_event_epoch_nanos.max(last);
            let is_late =
                within.zip(last).is_some_and(|(within, last)| u128::from(now.saturating_sub(last)) > within.as_nanos());
            if is_late {
                let age = last.map(|last| duration(Duration::from_nanos(now.saturating_sub(last)))).unwrap_or_default();
                self.problems.push(format!("the last event of {} is {age} old, more than --within allows", ring.name));
            }
            if ring.is_recorded() && !left_out.is_all_of(ring) && !is_late {
                self.is_recording = true;
                let created = ring.ring.info.extension.as_ref().map(|extension| extension.created_epoch_nanos);
                self.since_epoch_nanos = self.since_epoch_nanos.into_iter().chain(created).min();
                let history = ring.ring.history();
                if let Some(words) = history.in_words(Some(&ring.ring.reader))
                    && self.past.as_ref().is_none_or(|(seconds, _)| history.seconds < *seconds)
                {
                    self.past = Some((history.seconds, words));
                }
            }
            self.problems.extend(problem(ring, time));
        }
        self.problems.extend(left_out.everything);
    }

    /// Looks for processes that have the rings mapped and do not write them.
    fn look_for_readers(&mut self) {
        let shards = self.rings.iter().flat_map(|ring| ring.ring.readers());
        let files: HashSet<FileId> = shards.map(eventring::reader::Reader::file_id).collect();
        if files.is_empty() {
            return;
        }
        for pid in process::all().filter(|pid| *pid != std::process::id()) {
            match MappedFile::list(pid) {
                None => self.closed_processes += 1,
                Some(mapped) => {
                    // A writer may have its own ring mapped for reading, too.
                    let is_it = |mapped: &&MappedFile| files.contains(&mapped.file);
                    if mapped.iter().any(|it| is_it(&it)) && !mapped.iter().filter(is_it).any(|it| it.is_written) {
                        self.readers.push(process::in_words(pid));
                    }
                }
            }
        }
    }

    fn checked<'a>(&'a self, [directory, core_files, perf, thread_times]: &'a [Allowed; 4]) -> Checked<'a> {
        let time = |nanos: u64| Some(jiff::Timestamp::from_nanosecond(nanos.into()).ok()?.to_string());
        let ring = |ring: &'a CheckedRing| RingRow { name: &ring.name, state: ring.ring.state, pid: ring.writer };
        Checked {
            recording: self.is_recording,
            since: self.since_epoch_nanos.and_then(time),
            last_event: self.last_event_epoch_nanos.and_then(time),
            left_out: &self.left_out,
            past_seconds: self.past.as_ref().map(|(seconds, _)| *seconds),
            problems: &self.problems,
            rings: self.rings.iter().map(ring).collect(),
            readers: &self.readers,
            directory,
            core_files,
            perf,
            thread_times,
        }
    }

    fn write(&self, out: &mut impl Write, name: &str, allowed: &[Allowed; 4], time: &TimeFormat) -> io::Result<()> {
        const YES: (Style, char) = (GOOD, '✓');
        const NO: (Style, char) = (WARNING, '✗');
        const NOTE: (Style, char) = (DIM, '·');
        let mut line = |(style, mark): (Style, char), label: &str, text: &str| {
            writeln!(out, "{style}{mark}{style:#} {DIM}{label:<11}{DIM:#} {text}")
        };
        let ago = |nanos: u64| {
            let age = Duration::from_nanos(now_epoch_nanos().saturating_sub(nanos));
            format!("{} ({} ago)", time.date_and_time(nanos), duration(age))
        };
        if self.rings.is_empty() {
            let what = if self.unread.is_some() { "cannot be read" } else { "has no ring" };
            line(NO, "recording", &format!("{name} {what}"))?;
        }
        for ring in &self.rings {
            let unseen = if ring.is_live() { "a process that is not to be seen here" } else { "nobody" };
            let by = ring.writer.map_or_else(|| unseen.to_owned(), process::in_words);
            let is_recorded = self.is_recording && ring.is_recorded();
            line(if is_recorded { YES } else { NO }, "recording", &format!("{}, by {by}", ring.name))?;
        }
        if let Some(since) = self.since_epoch_nanos {
            line(YES, "since", &ago(since))?;
        }
        match self.last_event_epoch_nanos {
            Some(last) => line(if self.is_recording { YES } else { NOTE }, "last event", &ago(last))?,
            None if self.rings.is_empty() => {}
            None => line(NO, "last event", "none")?,
        }
        for sentence in &self.left_out {
            line(NOTE, "left out", sentence)?;
        }
        if let Some((_, words)) = &self.past {
            line(YES, "past", words)?;
        }
        if !self.rings.is_empty() {
            let closed = match self.closed_processes {
                0 => String::new(),
                count => format!("; {} cannot be looked into", counted(count as u64, "process", "processes")),
            };
            let readers = if self.readers.is_empty() { "none".to_owned() } else { self.readers.join(", ") };
            line(NOTE, "readers", &format!("{readers}{closed}"))?;
        }
        for (label, allowed) in ["directory", "core files", "perf", "thread times"].iter().zip(allowed) {
            line(if allowed.is_allowed { YES } else { NOTE }, label, &allowed.text)?;
        }
        self.problems.iter().try_for_each(|problem| line(NO, "problem", problem))
    }
}

/// Returns why nothing is recorded in the ring, or what is wrong with it.
fn problem(ring: &CheckedRing, time: &TimeFormat) -> Option<String> {
    let name = &ring.name;
    let end = || ring.ring.end().map(|end| end_in_words(end, time)).unwrap_or_default();
    match ring.ring.state {
        RingState::Live if ring.is_recorded() => {
            let was_at = ring.ring.removed_from()?.display();
            let why = crate::input::programs::open_files::WHY_REMOVED;
            Some(format!("the file {was_at} was removed while its program runs ({why}): after a crash nothing is left"))
        }
        RingState::Live if ring.is_perf() => Some(format!(
            "nothing was recorded in {name} yet: the program has made no span or log record that its filter lets through, \
             or its subscriber or layer is not installed where they are made (a scoped subscriber of another library takes \
             them), or recording is switched off"
        )),
        RingState::Live => Some(format!(
            "nothing was recorded in {name} yet: no `record!` of its events was reached, or its recorder or their domains \
             are switched off"
        )),
        RingState::Ended => Some(format!("the ring {name} has ended: its program {}", end())),
        RingState::WriterDied => Some(format!(
            "the program of {name} {}, or has replaced itself by `exec`; its last events are there: `{}`",
            end(),
            command_line("open", &[name], &[])
        )),
        RingState::Saved => Some(format!("{name} is a snapshot: nobody writes to it")),
        RingState::Truncated => Some(format!("the file of {name} was cut by somebody: later events are lost")),
        RingState::NoMemory => Some(format!("the system has no memory for {name}: later events are lost")),
        RingState::Unreadable => Some(format!("the file of {name} cannot be read: an I/O error")),
        RingState::Unknown => Some(format!(
            "it is not known whether the program of {name} lives: it is in another container; look from inside, or by \
             pid:N from outside"
        )),
    }
}
