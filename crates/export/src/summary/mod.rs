//! Counts and durations of spans, by name, and counts of typed events.

pub(crate) mod allocations;
pub(crate) mod programs;
pub(crate) mod typed_counts;

use crate::formats::folded::SpanFolder;
use crate::names::Names;
use crate::numbers::time;
use crate::options::View;
use crate::stacks::{KernelNanos, Stacks};
use allocations::{AllocationCounts, AllocationSummary};
use eventring::schema::perf::{Allocated, CallSiteLevel, PerfEvent};
use eventring::tracing::{CallSite, Catalog, RawRecord, Span, SpanInstructions, SpanStep, TimeSpent};
use eventring_capture::recording::{
    CaptureRecording, EntryContent, OverSpan, PayloadLosses, PerDescription, RecordingEntry, ReplayConsumer,
    ReplayCounts, ReplayNeeds, ReplayParts, ReplayState, replay_capture,
};
use eventring_capture::{CaptureError, CaptureFile, SpanTimes, WallTimes};
use programs::ProgramSummary;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::io;
pub use typed_counts::EventSummary;
use typed_counts::TypedCounts;

/// The spans of a capture, by name and target, and its typed events, by type.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Summary {
    /// The programs that recorded the events.
    pub programs: Vec<ProgramSummary>,
    /// The spans with the largest total first.
    pub spans: Vec<SpanSummary>,
    /// The typed events, those types with the most events first.
    pub events: Vec<EventSummary>,
    /// The number of log records.
    pub log_records: u64,
    /// The number of events that were lost, whatever the cause.
    pub lost: u64,
    /// Those of `lost` that had been overwritten before the capture began.
    pub overwritten_before: u64,
    /// Events that the filter of the capture has left out.
    pub filtered: u64,
    /// The number of events that have lost their payload, in all rings together.
    pub lost_payloads: u64,
    /// The events that have lost their payload, counted for each ring that has such events.
    pub payload_losses: Vec<PayloadLosses>,
    /// The number of events in files that a rotated capture removed again while it ran. These events do not count as
    /// lost, but spans may have begun in them.
    pub removed: u64,
    /// What threads have allocated while they were in no span; `None` if allocations were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocated_outside: Option<AllocationSummary>,
    /// The problems of the capture, a line each.
    #[serde(skip)]
    pub problems: Vec<String>,
}

/// The counts and times of all spans that have the same name and target. Times are nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct SpanSummary {
    /// The name.
    pub name: String,
    /// The target.
    pub target: String,
    /// The number of spans that were created and closed. All times below are those of these spans.
    pub count: u64,
    /// The sum of the times from creation to close.
    #[serde(rename = "total_ns")]
    pub total_nanos: u64,
    /// The part of the total in which no child of the span existed. A child whose close was lost counts until the
    /// end of its parent.
    #[serde(rename = "self_ns")]
    pub self_nanos: u64,
    /// The sum of the times that threads were in the spans. If several threads were in a span at the same time, the
    /// time of each counts, so this sum may be more than the total.
    #[serde(rename = "busy_ns")]
    pub busy_nanos: u64,
    /// The sum of the times in which no thread was in the span.
    #[serde(skip)]
    pub idle_nanos: u64,
    /// The median of the durations.
    #[serde(rename = "p50_ns")]
    pub p50_nanos: u64,
    /// The duration that 90 % of the spans did not exceed.
    #[serde(rename = "p90_ns")]
    pub p90_nanos: u64,
    /// The duration that 99 % of the spans did not exceed.
    #[serde(rename = "p99_ns")]
    pub p99_nanos: u64,
    /// The duration that 99.9 % of the spans did not exceed.
    #[serde(skip)]
    pub p999_nanos: u64,
    /// The longest duration.
    #[serde(rename = "max_ns")]
    pub max_nanos: u64,
    /// What these spans are.
    pub kind: SpanKind,
    /// The number of scopes that ended with the span around them, because their guard was not dropped in time.
    pub ended_with_parent: u64,
    /// The number of further spans that were open at the end.
    pub open: u64,
    /// The number of spans whose end was not seen and may have been lost. They are not part of `count`.
    pub end_lost: u64,
    /// The number of spans that were closed, but whose creation was lost, so their duration is not known. They are not
    /// part of `count`.
    pub incomplete: u64,
    /// The number of log records of the level ERROR in all spans of this name.
    #[serde(skip)]
    pub errors: u64,
    /// The medians of 20 blocks of durations, fewer if there are fewer spans. A block has the durations of spans that
    /// were closed one after the other. Blocks are in the order of time.
    #[serde(skip)]
    pub block_medians: Vec<u64>,
    /// The instructions that the program executed in these spans; `None` if they were counted in none of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<InstructionSummary>,
    /// How threads spent the busy time, as they have measured it themselves; `None` if none of it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<TimeSummary>,
    /// What threads have allocated while these were their innermost spans; `None` if it was not counted in this
    /// recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocated: Option<AllocationSummary>,
    /// What the kernel says of the threads in these spans; `None` if no switches were recorded.
    #[serde(flatten)]
    pub kernel: Option<SpanKernelTimes>,
}

/// What spans of one name and target are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// Not all of them are scopes.
    #[default]
    Span,
    /// All of them are scopes: spans of one thread.
    Scope,
}

/// What the kernel says of the threads that were in the spans of one name and target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct SpanKernelTimes {
    /// Also while threads were in spans inside of these, their own threads or others.
    #[serde(flatten)]
    pub all: KernelNanos,
    /// While these were the innermost spans of their threads.
    #[serde(flatten, serialize_with = "own_nanos")]
    #[schemars(with = "OwnNanos")]
    pub own: KernelNanos,
}

/// The times of the innermost spans in JSON.
#[derive(Serialize, JsonSchema)]
struct OwnNanos {
    self_cpu_ns: u64,
    self_runnable_ns: u64,
    self_blocked_ns: u64,
    self_unknown_ns: u64,
}

fn own_nanos<S: Serializer>(own: &KernelNanos, to: S) -> Result<S::Ok, S::Error> {
    let KernelNanos { cpu, runnable, blocked, unknown, .. } = *own;
    OwnNanos { self_cpu_ns: cpu, self_runnable_ns: runnable, self_blocked_ns: blocked, self_unknown_ns: unknown }
        .serialize(to)
}

/// The instructions that the program executed in all spans of one name and target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct InstructionSummary {
    /// The number of spans in which they were counted.
    pub spans: u64,
    /// The sum over these spans.
    pub all: u64,
    /// The part of the sum that was executed while the thread was in no span inside these.
    #[serde(rename = "self")]
    pub own: u64,
    /// The smallest number of one span.
    pub min: u64,
    /// The largest number of one span.
    pub max: u64,
    /// True if some of these spans, or spans inside of them, were entered several times.
    #[serde(rename = "exact", serialize_with = "exact")]
    #[schemars(with = "bool")]
    pub is_entered_again: bool,
}

fn exact<S: Serializer>(is_inexact: &bool, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bool(!is_inexact)
}

impl InstructionSummary {
    /// Returns true if the counts are the same in each run of a program that does the same: each span was entered
    /// once, and so was each inside of it. A span that is entered several times, as that of a future that is polled,
    /// has the instructions of a number of polls that differs from run to run.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.is_entered_again
    }

    fn add(&mut self, span: &SpanInstructions) {
        self.min = if self.spans == 0 { span.all } else { self.min.min(span.all) };
        self.max = self.max.max(span.all);
        self.is_entered_again |= span.slices != 1;
        self.spans += 1;
        self.all = self.all.saturating_add(span.all);
        self.own = self.own.saturating_add(span.own);
    }
}

/// How threads spent the time in all spans of one name and target. The parts add up to the busy time of these spans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct TimeSummary {
    /// The threads ran on a processor.
    #[serde(rename = "cpu_ns")]
    pub cpu_nanos: u64,
    /// The threads could have run, but had no processor.
    #[serde(rename = "queue_ns")]
    pub queue_nanos: u64,
    /// The threads waited for something.
    #[serde(rename = "sleep_ns")]
    pub sleep_nanos: u64,
    /// Not known.
    #[serde(rename = "unmeasured_ns")]
    pub unmeasured_nanos: u64,
    /// True if some of these times are estimates: several moments without a processor were measured together.
    #[serde(rename = "exact", serialize_with = "exact")]
    #[schemars(with = "bool")]
    pub is_estimated: bool,
}

impl From<TimeSpent> for TimeSummary {
    fn from(times: TimeSpent) -> Self {
        Self {
            cpu_nanos: times.cpu_nanos,
            queue_nanos: times.queue_nanos,
            sleep_nanos: times.sleep_nanos,
            unmeasured_nanos: times.unmeasured_nanos,
            is_estimated: !times.is_exact,
        }
    }
}

impl TimeSummary {
    /// Returns the parts with their names, in the order in which they are shown.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, u64); 4] {
        [
            ("cpu", self.cpu_nanos),
            ("queue", self.queue_nanos),
            ("sleep", self.sleep_nanos),
            ("unmeasured", self.unmeasured_nanos),
        ]
    }

    /// Returns the parts for people, each with its share in the busy time: `~1.20 ms 45.0 %`. A `~` says "about".
    #[must_use]
    pub fn in_words(&self) -> [String; 4] {
        let about = if self.is_estimated || self.unmeasured_nanos > 0 { "~" } else { "" };
        let busy = self.parts().into_iter().map(|(_, nanos)| nanos).fold(0, u64::saturating_add);
        self.parts().map(|(_, nanos)| match nanos {
            0 => "–".to_owned(),
            _ => format!("{about}{} {:.1} %", time(nanos), 100.0 * nanos as f64 / busy as f64),
        })
    }
}

/// Counts the spans of a capture and measures their times. All numbers are exact, percentiles too. The capture is read
/// once. In memory are the open spans, and four bytes for each closed span.
///
/// # Errors
/// All rings are perf rings with a schema of another version, or the capture would take too much memory.
pub fn summarize(capture: &CaptureFile) -> Result<Summary, CaptureError> {
    let recording = CaptureRecording::new(capture)?;
    let folder = SpanFolder::new(&recording, View::Thread, Names::Name).with_kernel(&recording, false);
    let mut counter = SpanCounter { folder: folder.has_kernel().then_some(folder), ..SpanCounter::default() };
    let counts = replay_capture(&recording, &mut counter)?;
    let folder = counter.folder.take();
    let (mut summary, _) = counter.finish(capture, &counts, 0);
    if let Some(folder) = folder {
        summary.add_kernel(&folder.finish());
    }
    Ok(summary)
}

impl Summary {
    /// Adds what the kernel says, if switches were recorded.
    #[doc(hidden)]
    pub fn add_kernel(&mut self, stacks: &Stacks) {
        let by_name = stacks.kernel_by_name();
        let has_switches = by_name.values().any(|[_, all]| (all.cpu, all.runnable, all.blocked) != (0, 0, 0));
        for span in self.spans.iter_mut().filter(|_| has_switches) {
            let [own, all] = by_name.get(&(span.name.as_str(), span.target.as_str())).copied().unwrap_or_default();
            span.kernel = Some(SpanKernelTimes { own, all });
        }
    }

    /// Returns the number of events that were lost while they were captured, or later.
    #[must_use]
    pub fn lost_since(&self) -> u64 {
        self.lost.saturating_sub(self.overwritten_before)
    }
}

#[cfg(any(test, feature = "fixtures"))]
impl SpanSummary {
    /// Returns the summary of spans with these durations, in which a thread was all the time.
    #[doc(hidden)]
    pub fn of_durations(name: &str, durations: &[u64]) -> Self {
        let mut group = SpanGroup::default();
        durations.iter().for_each(|wall| _ = group.add(*wall, *wall, *wall, 0));
        group.finish(name.into(), "shop".into()).0
    }
}

/// Counts spans by name and target.
#[derive(Default)]
pub struct SpanCounter {
    groups: Vec<SpanGroup>,
    by_name: BTreeMap<(String, String), usize>,
    /// The group of each known call site.
    by_call_site: PerDescription<CallSite, usize>,
    typed: TypedCounts,
    /// An estimate of the bytes that all groups take.
    kept_bytes: u64,
    /// What the kernel says, by stack; `None` if it says nothing.
    folder: Option<SpanFolder>,
    allocations: AllocationCounts,
}

/// The estimated size of a group in bytes, beside its name and its durations.
const GROUP_BYTES: u64 = 768;
/// The number of blocks whose medians a summary has.
const BLOCKS: usize = 20;
/// The number of spans around a span that are looked at.
const PARENTS_MAX: usize = 64;

impl ReplayConsumer for SpanCounter {
    fn needs(&self) -> ReplayNeeds {
        ReplayNeeds { self_times: true, remaining: true, ..ReplayNeeds::default() }
    }

    fn follow(&self, parts: &mut ReplayParts) {
        self.folder.iter().for_each(|folder| folder.follow(parts));
    }

    fn entry(&mut self, entry: &RecordingEntry<'_>, step: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        if let Some(folder) = &mut self.folder {
            folder.entry(entry, step, state)?;
        }
        if let SpanStep::SliceEnded(taken) = step
            && let Some(span) = state.span(entry.process_index, taken.slice.span)
            && span.instructions.is_some_and(|counted| counted.slices == 2)
        {
            self.mark_outer(entry.process_index, span, state);
        }
        if let EntryContent::Perf { recorder, record, catalog } = &entry.content {
            self.allocations.add((entry.process_index, *recorder), record, catalog, state);
        }
        match &entry.content {
            EntryContent::Perf { record, catalog, .. } if is_error(record, catalog) => {
                if let Some(span) = record.span().and_then(|span| state.span(entry.process_index, span)) {
                    self.group_of(span).0.summary.errors += 1;
                }
            }
            EntryContent::Typed { descriptor, .. } => {
                self.kept_bytes += self.typed.add(&entry.tables.rings, entry.ring, descriptor);
            }
            EntryContent::Perf { .. } | EntryContent::Gap(_) => {}
        }
        Ok(())
    }

    fn span(&mut self, process: usize, over: &OverSpan<'_>, state: ReplayState<'_>) -> io::Result<()> {
        if let Some(folder) = &mut self.folder {
            folder.span(process, over, state)?;
        }
        let OverSpan { span, self_nanos, .. } = over;
        let busy_nanos = span.counted_busy_nanos();
        let (group, kept_bytes) = self.group_of(span);
        group.scopes += u64::from(span.is_scope());
        group.summary.ended_with_parent += u64::from(span.has_ended_with_parent());
        match (span.wall_nanos(), span.is_open()) {
            (Some(wall), _) => {
                *kept_bytes += group.add(wall, self_nanos.unwrap_or(0), busy_nanos, span.idle_nanos().unwrap_or(0));
                if let Some(instructions) = &span.instructions {
                    group.summary.instructions.get_or_insert_default().add(instructions);
                }
                group.allocated = group.allocated.plus(span.allocated.unwrap_or_default());
                group.times = group.times.into_iter().chain(span.times()).reduce(TimeSpent::plus);
            }
            (None, true) if span.is_end_lost => group.summary.end_lost += 1,
            (None, true) => group.summary.open += 1,
            (None, false) => group.summary.incomplete += 1,
        }
        Ok(())
    }

    fn end(&mut self, state: ReplayState<'_>, end_nanos: &[u64]) -> io::Result<()> {
        self.folder.as_mut().map_or(Ok(()), |folder| folder.end(state, end_nanos))
    }

    fn kept_bytes(&self) -> u64 {
        self.kept_bytes.saturating_add(self.folder.as_ref().map_or(0, ReplayConsumer::kept_bytes))
    }
}

/// Returns true if the record is a log record of the level ERROR.
pub fn is_error(record: &RawRecord<'_>, catalog: &Catalog) -> bool {
    record.event == Some(PerfEvent::Event) && catalog.call_site(record.ext.call_site_id).level == CallSiteLevel::Error
}

impl SpanCounter {
    /// Returns the summary. Also returns the durations of its first spans, at most so many as `durations_max`.
    pub fn finish(
        self,
        capture: &CaptureFile,
        counts: &ReplayCounts,
        durations_max: usize,
    ) -> (Summary, Vec<WallTimes>) {
        let (mut groups, allocations) = (self.groups, self.allocations);
        let finished = |((name, target), index): ((String, String), usize)| {
            let group: SpanGroup = std::mem::take(&mut groups[index]);
            let allocated = allocations.of_name(&name, group.allocated);
            let (summary, wall_times) = group.finish(name, target);
            (SpanSummary { allocated, ..summary }, wall_times)
        };
        let mut spans: Vec<(SpanSummary, WallTimes)> = self.by_name.into_iter().map(finished).collect();
        spans.sort_by_key(|(span, _)| std::cmp::Reverse(span.total_nanos));
        let (spans, mut wall_times): (Vec<SpanSummary>, Vec<WallTimes>) = spans.into_iter().unzip();
        wall_times.truncate(durations_max);
        let problems = counts.problems.clone();
        let removed = capture.end().map_or(0, |end| end.stats.removed());
        let payload_losses = counts.payload_losses.clone();
        let events = self.typed.finish();
        let ReplayCounts { events: log_records, lost, overwritten_before, filtered, .. } = *counts;
        let programs = ProgramSummary::all(capture);
        let summary = Summary {
            programs,
            spans,
            events,
            log_records,
            lost,
            overwritten_before,
            filtered,
            lost_payloads: counts.lost_payloads(),
            payload_losses,
            removed,
            allocated_outside: allocations.outside(),
            problems,
        };
        (summary, wall_times)
    }

    /// Notes for the spans around a span that it was entered a second time.
    #[cold]
    fn mark_outer(&mut self, process: usize, span: &Span, state: ReplayState<'_>) {
        // In a damaged file, a span can be its own ancestor.
        let parent = |span: &Span| span.parent.and_then(|parent| state.span(process, parent));
        for outer in std::iter::successors(parent(span), |span| parent(span)).take(PARENTS_MAX) {
            self.group_of(outer).0.has_polls_inside = true;
        }
    }

    /// Returns the group of the span, and the counter of bytes.
    fn group_of(&mut self, span: &Span) -> (&mut SpanGroup, &mut u64) {
        let index = self.by_call_site.of_span(span, || {
            let target = span.call_site.as_ref().map(|call_site| call_site.target.clone());
            let key = (span.name(), target.unwrap_or_default());
            let name_bytes = (key.0.len() + key.1.len()) as u64;
            *self.by_name.entry(key).or_insert_with(|| {
                self.kept_bytes += GROUP_BYTES + name_bytes;
                self.groups.push(SpanGroup::default());
                self.groups.len() - 1
            })
        });
        (&mut self.groups[index], &mut self.kept_bytes)
    }
}

#[derive(Default)]
struct SpanGroup {
    summary: SpanSummary,
    /// The number of spans, closed or open, that are scopes.
    scopes: u64,
    /// True if spans inside of these were entered several times.
    has_polls_inside: bool,
    times: Option<TimeSpent>,
    allocated: Allocated,
    wall_times: WallTimes,
}

impl SpanGroup {
    /// Adds a closed span. Returns the bytes that it takes.
    fn add(&mut self, wall: u64, self_nanos: u64, busy: u64, idle: u64) -> u64 {
        let summary = &mut self.summary;
        summary.self_nanos = summary.self_nanos.saturating_add(self_nanos);
        summary.busy_nanos = summary.busy_nanos.saturating_add(busy);
        summary.idle_nanos = summary.idle_nanos.saturating_add(idle);
        self.wall_times.add(wall)
    }

    fn finish(mut self, name: String, target: String) -> (SpanSummary, WallTimes) {
        if let Some(counted) = &mut self.summary.instructions {
            counted.is_entered_again |= self.has_polls_inside;
        }
        self.summary.times = self.times.map(|times| times.of_busy(self.summary.busy_nanos).into());
        let block_medians = self.wall_times.block_medians(BLOCKS);
        let SpanTimes { count, total_nanos, p50_nanos, p90_nanos, p99_nanos, p999_nanos, max_nanos, .. } =
            self.wall_times.statistics();
        let SpanSummary { open, end_lost, incomplete, .. } = self.summary;
        if self.scopes > 0 && self.scopes == count + open + end_lost + incomplete {
            self.summary.kind = SpanKind::Scope;
        }
        let counted = SpanSummary { count, total_nanos, p50_nanos, p90_nanos, p99_nanos, p999_nanos, ..self.summary };
        (SpanSummary { name, target, max_nanos, block_medians, ..counted }, self.wall_times)
    }
}
