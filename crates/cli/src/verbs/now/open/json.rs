//! The open spans as JSON.

use super::locks::WaitRow;
use super::stacks::ThreadStacks;
use super::tree::may_be_of_age;
use crate::args::limit::LimitArgs;
use crate::input::ring::state::EndTimes;
use crate::text::perf::field_value;
use eventring::reader::RingEnd;
use eventring::tracing::{SpanId, Thread};
use eventring_export::TimeSummary;
use eventring_live::{LiveFields, LiveState, OpenSpan, RecordedProgram};
use eventring_profile::frames::Frame;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;

/// What `open --json` prints.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the spans are written one at a time, because there may be a million")]
pub(crate) struct OpenAnswer<'a> {
    spans: Vec<SpanRow<'a>>,
    #[serde(flatten)]
    rest: Rest<'a>,
}

#[derive(Serialize, JsonSchema)]
struct Rest<'a> {
    programs: Vec<ProgramRow<'a>>,
    /// The number of these spans that may have closed.
    may_have_closed: usize,
    not_tracked: u64,
    at_ns: u64,
    known_since_ns: Option<u64>,
    lost: u64,
    /// The threads that wait for locks of `eventring::sync`, of each program those first that have waited longest.
    lock_waits: Vec<WaitRow<'a>>,
    /// The deadlocks: the places of waits in `lock_waits`, each for a lock that the thread of the next one holds. The
    /// last one is for a lock of the first.
    deadlocks: Vec<Vec<usize>>,
}

/// A program, and what is known of its end.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProgramRow<'a> {
    pid: u32,
    program: Cow<'a, str>,
    /// `died` or `ended`.
    state: Option<&'static str>,
    #[serde(flatten)]
    end: EndTimes,
}

/// An open span.
#[derive(Serialize, JsonSchema)]
struct SpanRow<'a> {
    id: u64,
    name: Cow<'a, str>,
    target: &'a str,
    level: Option<&'static str>,
    /// At least.
    age_ns: u64,
    age_max_ns: Option<u64>,
    /// How threads have spent the time in it; absent if nothing was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<TimeSummary>,
    /// The one that has entered the span last.
    thread: Option<ThreadRow<'a>>,
    /// All that are in it, in the order in which they have entered it.
    threads: Vec<ThreadRow<'a>>,
    #[schemars(with = "BTreeMap<&str, Value>")]
    fields: Fields<'a>,
    /// Ids, nearest first; the first one that is not open is the last one.
    parents: Vec<u64>,
    opened_before_window: bool,
    may_have_closed: bool,
    pid: u32,
    program: &'a str,
    /// That of `thread`, with `--stacks`, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<Vec<FrameRow<'a>>>,
}

#[derive(Serialize, JsonSchema)]
struct ThreadRow<'a> {
    id: u32,
    tid: Option<u32>,
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<Vec<FrameRow<'a>>>,
}

#[derive(Serialize, JsonSchema)]
struct FrameRow<'a> {
    name: &'a str,
    kernel: bool,
}

struct Fields<'a>(LiveFields<'a>);

/// Prints one object on a line.
pub(super) fn print(
    out: &mut impl Write,
    limit: &LimitArgs,
    state: LiveState<'_>,
    min_age_nanos: u64,
    stacks: &ThreadStacks,
) -> anyhow::Result<()> {
    let spans = state.open_spans().list();
    let old = || spans.iter().filter(|span| may_be_of_age(span, min_age_nanos));
    let locks = state.thread_locks();
    let rest = Rest {
        programs: programs(state),
        may_have_closed: old().filter(OpenSpan::may_have_closed).count(),
        not_tracked: state.not_tracked(),
        at_ns: state.now_epoch_nanos(),
        known_since_ns: state.known_since_epoch_nanos(),
        lost: state.lost(),
        lock_waits: locks.waits.iter().map(|wait| WaitRow::new(wait, state)).collect(),
        deadlocks: locks.deadlocks,
    };
    let objects = old().map(|span| SpanObject { span, stacks });
    limit.write(out, &rest, "spans", objects, |it| format!("{}:{}", it.span.program().pid, it.span.id()))
}

/// Returns the programs, and what is known of their ends.
pub(crate) fn programs(state: LiveState<'_>) -> Vec<ProgramRow<'_>> {
    let program = |(index, program)| ProgramRow::new(program, state.end_of(index));
    state.programs().iter().enumerate().map(program).collect()
}

impl<'a> ProgramRow<'a> {
    fn new(program: &'a RecordedProgram, end: Option<RingEnd>) -> Self {
        let state = end.map(|end| if end.has_died { "died" } else { "ended" });
        Self { pid: program.pid, program: (&*program.name).into(), state, end: end.into() }
    }

    pub(crate) fn into_owned(self) -> ProgramRow<'static> {
        ProgramRow { program: self.program.into_owned().into(), ..self }
    }
}

/// An open span, of which a row is made when it is written.
struct SpanObject<'a> {
    span: OpenSpan<'a>,
    stacks: &'a ThreadStacks,
}

impl Serialize for SpanObject<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { span, stacks } = self;
        let (in_it, program) = (span.threads(), span.program());
        let fields = span.fields();
        let stack = |thread: &Thread| Some(stacks.of(span, thread)?.iter().map(FrameRow::from).collect());
        let row = SpanRow {
            id: span.id().get(),
            name: span.name(),
            target: span.target(),
            level: span.level().name(),
            age_ns: span.age_nanos(),
            age_max_ns: span.age_max_nanos(),
            times: span.times().map(TimeSummary::from),
            thread: in_it.last().map(|thread| ThreadRow::new(thread, None)),
            threads: in_it.iter().map(|thread| ThreadRow::new(thread, stack(thread))).collect(),
            fields: Fields(fields.known()),
            parents: span.ancestors().map(SpanId::get).collect(),
            opened_before_window: span.is_opened_before_window(),
            may_have_closed: span.may_have_closed(),
            pid: program.pid,
            program: &program.name,
            stack: in_it.last().and_then(|thread| stack(thread)),
        };
        row.serialize(to)
    }
}

impl<'a> From<&'a Frame> for FrameRow<'a> {
    fn from(frame: &'a Frame) -> Self {
        Self { name: &frame.name, kernel: frame.is_kernel }
    }
}

impl<'a> ThreadRow<'a> {
    fn new(thread: &'a Thread, stack: Option<Vec<FrameRow<'a>>>) -> Self {
        Self { id: thread.id, tid: thread.os_thread_id, name: thread.name.as_deref(), stack }
    }
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, field)| {
            let name = if name.is_empty() { format!("field {}", field.index).into() } else { Cow::Borrowed(name) };
            (name, serde_json::to_value(field_value(&field.to_value())).unwrap_or_default())
        }))
    }
}
