//! The answer, with its parts in order of importance.

use crate::collect::Collected;
use crate::fit::{Fitted, Part, fit};
use crate::flag::{Flag, FlagRow, WHAT_BYTES, cut};
use crate::next_command;
use eventring_capture::CaptureFile;
use eventring_capture::recording::ReplayCounts;
use eventring_export::ProgramSummary;
use eventring_export::numbers::{counted, grouped, time};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use std::cmp::Reverse;
use std::ffi::OsString;
use std::fmt::Write as _;

/// The smallest budget of an answer, in bytes.
pub const BUDGET_MIN_BYTES: usize = 1024;

/// The largest part of the budget, in per cent, that flags take before everything else.
const FLAGS_PERCENT: usize = 70;
/// The largest number of flags in an answer, whatever its budget is.
const FLAGS_MAX: usize = 10_000;
/// The titles of the sections of an answer: flags, programs, rings and names.
const TITLES: [&str; 4] = ["Red flags", "Programs", "Rings", "Spans with the largest total time"];

/// What a recording has, at a first look.
pub struct FirstLook {
    inputs: Vec<OsString>,
    counts: ReplayCounts,
    errors: u64,
    flags: Vec<Flag>,
    /// Programs, rings and names.
    others: [Vec<Row>; 3],
    names_without_room: u64,
}

/// A first look as it is printed in JSON.
#[derive(Serialize, JsonSchema)]
pub struct LookAnswer<'a> {
    version: u32,
    recorded: Recorded,
    /// The most important first.
    #[schemars(with = "Vec<FlagRow<'a>>")]
    flags: &'a [Box<RawValue>],
    #[schemars(with = "Vec<ProgramRow>")]
    programs: &'a [Box<RawValue>],
    /// Those with most events first.
    #[schemars(with = "Vec<RingRow>")]
    rings: &'a [Box<RawValue>],
    /// Those of spans, with the largest total time first.
    #[schemars(with = "Vec<NameRow>")]
    names: &'a [Box<RawValue>],
    left_out: LeftOut,
}

#[derive(Serialize, JsonSchema)]
struct Recorded {
    from_ns: u64,
    to_ns: u64,
    spans: u64,
    open_spans: u64,
    log_records: u64,
    /// Log records of the level ERROR.
    errors: u64,
    typed_events: u64,
    lost: u64,
    overwritten_before: u64,
    filtered: u64,
    /// Spans whose names had no room.
    spans_of_further_names: u64,
}

/// How many of each list had no room.
#[derive(Serialize, JsonSchema)]
struct LeftOut {
    flags: u64,
    programs: u64,
    rings: u64,
    names: u64,
}

/// One of a list beside flags.
#[derive(Serialize)]
#[serde(untagged)]
enum Row {
    Program(ProgramRow),
    Ring(RingRow),
    Name(NameRow),
}

#[derive(Serialize, JsonSchema)]
struct ProgramRow {
    #[serde(flatten)]
    program: ProgramSummary,
    host: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct RingRow {
    name: String,
    content: String,
    events: u64,
    lost: u64,
    overwritten_before: u64,
}

#[derive(Serialize, JsonSchema)]
struct NameRow {
    name: String,
    count: u64,
    open: u64,
    total_ns: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
}

impl FirstLook {
    pub(crate) fn new(
        capture: &CaptureFile,
        inputs: Vec<OsString>,
        mut collected: Collected,
        counts: ReplayCounts,
        flags: Vec<Flag>,
    ) -> Self {
        let hosts = capture.rings().iter().map(|ring| ring.host.as_str()).find(|host| !host.is_empty());
        let program = |mut program: ProgramSummary| {
            program.name = cut(&program.name, WHAT_BYTES);
            Row::Program(ProgramRow { program, host: hosts.map(|host| cut(host, WHAT_BYTES)) })
        };
        let programs = ProgramSummary::all(capture).into_iter().map(program).collect();
        let mut rings: Vec<_> = capture.rings().iter().zip(&collected.rings).collect();
        rings.sort_by_key(|(_, counts)| Reverse(counts.events));
        let ring = |(ring, counts): &(&eventring_capture::CapturedRing, &crate::collect::RingCounts)| {
            Row::Ring(RingRow {
                name: cut(&ring.name, WHAT_BYTES),
                content: cut(&ring.content_name, WHAT_BYTES),
                events: counts.events,
                lost: counts.lost.values().fold(0_u64, |sum, lost| sum.saturating_add(*lost)),
                overwritten_before: counts.overwritten_before,
            })
        };
        let rings = rings.iter().map(ring).collect();
        collected.names.all.sort_by_key(|stats| Reverse(stats.times.total_nanos));
        let name = |stats: &crate::names::NameStats| {
            Row::Name(NameRow {
                name: cut(&stats.name, WHAT_BYTES),
                count: stats.times.count,
                open: stats.open,
                total_ns: stats.times.total_nanos,
                p50_ns: stats.times.p50_nanos,
                p99_ns: stats.times.p99_nanos,
                max_ns: stats.times.max_nanos,
            })
        };
        let names = collected.names.all.iter().map(name).collect();
        let (errors, names_without_room) = (collected.errors.all, collected.names.without_room);
        Self { inputs, counts, errors, flags, others: [programs, rings, names], names_without_room }
    }

    /// Returns the red flags, the most important first.
    #[must_use]
    pub fn flags(&self) -> &[Flag] {
        &self.flags
    }

    /// Returns what was wrong with the capture, a line each.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.counts.problems
    }

    /// Returns one line of JSON with at most so many bytes, its end of line included: `version`, `recorded`, `flags`,
    /// `programs`, `rings`, `names`, `left_out`. A budget below [`BUDGET_MIN_BYTES`] is taken as that.
    #[must_use]
    pub fn to_json(&self, budget_bytes: usize) -> String {
        let whole = |kept: [Vec<String>; 4], [flags, programs, rings, names]: [u64; 4]| {
            let left_out = LeftOut { flags, programs, rings, names };
            let raw = kept.map(|parts| parts.into_iter().filter_map(|part| RawValue::from_string(part).ok()).collect());
            let [flags, programs, rings, names]: &[Vec<_>; 4] = &raw;
            let recorded = self.recorded();
            json(&LookAnswer { version: 1, recorded, flags, programs, rings, names, left_out }) + "\n"
        };
        // Counts with as many digits as they may have.
        let room = budget_bytes.max(BUDGET_MIN_BYTES) - whole(Default::default(), [u64::MAX; 4]).len();
        let flag = |flag: &Flag| {
            let next = next_command::next(flag, &self.inputs);
            (json(&flag.row(Some(&next))), Some(json(&flag.row(None))))
        };
        let Fitted { kept, mut left_out } = fit(self.parts(room, flag, json), room, 1);
        left_out[0] += self.flags.len().saturating_sub(FLAGS_MAX) as u64;
        whole(kept, left_out)
    }

    /// Returns Markdown with at most so many bytes. A budget below [`BUDGET_MIN_BYTES`] is taken as that. `moment`
    /// shows a time in nanoseconds since the epoch to people.
    #[must_use]
    pub fn to_markdown(&self, budget_bytes: usize, moment: impl Fn(u64) -> String) -> String {
        let whole = |kept: &[Vec<String>; 4], left_out: [u64; 4]| {
            let mut out = self.recorded_in_words(&moment);
            for (at, parts) in kept.iter().enumerate() {
                let more = left_out[at];
                if at == 0 && parts.is_empty() && more == 0 {
                    out.push_str("\nNo red flags.\n");
                } else if !parts.is_empty() || more > 0 {
                    let _ = write!(out, "\n## {}\n\n{}", TITLES[at], parts.concat());
                    if more > 0 {
                        let _ = writeln!(out, "- and {} more, left out for the budget", grouped(more));
                    }
                }
            }
            out
        };
        let room = budget_bytes.max(BUDGET_MIN_BYTES) - whole(&Default::default(), [u64::MAX; 4]).len();
        let flag = |flag: &Flag| {
            let times = if flag.count > 1 { format!(" ×{}", grouped(flag.count)) } else { String::new() };
            let threshold = flag.kind.threshold();
            let at = flag.at_nanos.map(|nanos| format!(", at {}", moment(nanos))).unwrap_or_default();
            let (name, what, evidence) = (flag.kind.name(), &flag.what, &flag.evidence);
            let shorter = format!("- **{name}** {what}{times}: {evidence}{at} [{threshold}]\n");
            let next = next_command::next(flag, &self.inputs);
            // More backticks than the command line has.
            let fence = if next.contains('`') { "``" } else { "`" };
            (format!("{shorter}  {fence}{next}{fence}\n"), Some(shorter))
        };
        let Fitted { kept, mut left_out } = fit(self.parts(room, flag, line), room, 0);
        left_out[0] += self.flags.len().saturating_sub(FLAGS_MAX) as u64;
        whole(&kept, left_out)
    }

    /// Returns the parts, the most important first: the first program, flags, then the others in turns, then the flags
    /// for which there was no room before.
    fn parts(
        &self,
        room_bytes: usize,
        flag: impl Fn(&Flag) -> (String, Option<String>),
        other: impl Fn(&Row) -> String,
    ) -> Vec<Part> {
        let part = |section: usize, value| Part { section, text: other(value), shorter: None };
        let [programs, ..] = &self.others;
        let mut parts: Vec<Part> = programs.first().map(|value| part(1, value)).into_iter().collect();
        let (mut for_flags, mut later) = (room_bytes * FLAGS_PERCENT / 100, Vec::new());
        for (text, shorter) in self.flags.iter().take(FLAGS_MAX).map(flag) {
            let bytes = [Some(&text), shorter.as_ref()]
                .into_iter()
                .flatten()
                .map(String::len)
                .find(|bytes| *bytes <= for_flags);
            for_flags -= bytes.unwrap_or(0);
            let to = if bytes.is_some() { &mut parts } else { &mut later };
            to.push(Part { section: 0, text, shorter });
        }
        let longest = self.others.iter().map(Vec::len).max().unwrap_or(0);
        for turn in 0..longest {
            for (section, values) in (1..).zip(&self.others) {
                parts.extend(values.get(turn).filter(|_| (section, turn) != (1, 0)).map(|value| part(section, value)));
            }
        }
        parts.extend(later);
        parts
    }

    fn recorded(&self) -> Recorded {
        let counts = &self.counts;
        Recorded {
            from_ns: counts.first_nanos,
            to_ns: counts.last_nanos,
            spans: counts.spans,
            open_spans: counts.open_spans,
            log_records: counts.events,
            errors: self.errors,
            typed_events: counts.typed_events,
            lost: counts.lost,
            overwritten_before: counts.overwritten_before,
            filtered: counts.filtered,
            spans_of_further_names: self.names_without_room,
        }
    }

    fn recorded_in_words(&self, moment: &impl Fn(u64) -> String) -> String {
        let counts = &self.counts;
        let mut out = format!(
            "# Recording\n\n{} from {} on: {} ({} open), {} ({}), {}\n\n{} lost since the capture began, {} overwritten before\n",
            time(counts.last_nanos.saturating_sub(counts.first_nanos)),
            moment(counts.first_nanos),
            counted(counts.spans, "span", "spans"),
            grouped(counts.open_spans),
            counted(counts.events, "log record", "log records"),
            counted(self.errors, "error", "errors"),
            counted(counts.typed_events, "typed event", "typed events"),
            grouped(counts.lost_since()),
            grouped(counts.overwritten_before),
        );
        if counts.filtered > 0 {
            let _ = writeln!(out, "{} left out by the filter of the capture", grouped(counts.filtered));
        }
        if self.names_without_room > 0 {
            let _ = writeln!(out, "{} spans of further names are counted together", grouped(self.names_without_room));
        }
        out
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns a line of Markdown.
fn line(row: &Row) -> String {
    match row {
        Row::Program(ProgramRow { program, host }) => {
            let host = host.as_ref().map(|host| format!(" on {host}")).unwrap_or_default();
            format!("- {} ({}){host}: {}\n", program.name, program.pid, program.state)
        }
        Row::Ring(RingRow { name, content, events, lost, .. }) => {
            format!("- {name} ({content}): {}, {} lost\n", counted(*events, "event", "events"), grouped(*lost))
        }
        Row::Name(row) => format!(
            "- {}: {} and {} open, total {}, p50 {}, p99 {}, max {}\n",
            row.name,
            grouped(row.count),
            grouped(row.open),
            time(row.total_ns),
            time(row.p50_ns),
            time(row.p99_ns),
            time(row.max_ns)
        ),
    }
}
