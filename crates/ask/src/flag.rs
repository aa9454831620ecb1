//! The kinds of red flags, with their thresholds.

use eventring_capture::text::one_line;
use schemars::JsonSchema;
use serde::Serialize;

/// What a red flag is about. The order is that of importance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FlagKind {
    /// The capture is damaged, or its end is missing.
    Damaged,
    /// Events were lost while they were captured.
    Losses,
    /// Events could not be recorded.
    RecordErrors,
    /// The program left without closing its rings.
    Died,
    /// A log record says that a thread has panicked.
    Panic,
    /// A task has panicked.
    TaskPanicked,
    /// Tasks wait for locks that the next one holds.
    TaskDeadlock,
    /// A task was given a lock for which others wait, and does not poll its wait for it.
    Futurelock,
    /// A task waits, and nobody can wake it any more.
    LostWaker,
    /// A span is open far longer than others of its name took.
    HungSpan,
    /// Many errors came in a second.
    ErrorBurst,
    /// A task, or a span, waited for a lock.
    LockWait,
    /// A poll kept a worker from other tasks.
    LongPoll,
    /// A task was woken, and was polled late.
    LatePoll,
    /// A task was woken far more often than it was polled, or wakes itself without end.
    WakeStorm,
    /// The durations of a span have become longer, and stay so.
    LatencyStep,
    /// Some spans were slow because of a child.
    SlowChild,
    /// Some spans could have run, and other threads had the processors.
    ProcessorWait,
    /// Some spans took far longer than others of their name.
    SlowSpan,
    /// Spans of a name are opened, and hardly any is closed.
    OpenSpans,
    /// A program that recorded all the time recorded nothing for a while.
    Silence,
    /// Blocks were rejected, or their execution has failed.
    BlocksRejected,
    /// Blocks of which events are missing.
    BlocksIncomplete,
}

/// The shortest poll that is a long one, in nanoseconds.
pub(crate) const LONG_POLL_NANOS: u64 = 20_000_000;
/// The shortest wait that is a long one, in nanoseconds.
pub(crate) const LOCK_WAIT_NANOS: u64 = 50_000_000;
/// The shortest time from wake to poll that is a long one, in nanoseconds.
pub(crate) const LATE_POLL_NANOS: u64 = 100_000_000;
/// The smallest number of wakes of a storm.
pub(crate) const STORM_WAKES: u64 = 1000;
/// The smallest number of wakes a poll in a storm.
pub(crate) const STORM_WAKES_PER_POLL: u64 = 10;
/// The smallest number of errors of one call site in a second that are a burst.
pub(crate) const BURST_ERRORS: usize = 10;
/// The shortest age of a hung span, in nanoseconds.
pub(crate) const HUNG_NANOS: u64 = 500_000_000;
/// How many times longer than the longest closed span of its name a hung span is open.
pub(crate) const HUNG_TIMES: u64 = 10;
/// The shortest duration that is called slow, in nanoseconds.
pub(crate) const SLOW_NANOS: u64 = 20_000_000;
/// How many times longer than nine in ten of its name a slow span takes.
pub(crate) const SLOW_TIMES: u64 = 10;
/// The smallest difference of a step, in nanoseconds.
pub(crate) const STEP_NANOS: u64 = 1_000_000;
/// The shortest silence, in nanoseconds.
pub(crate) const SILENCE_NANOS: u64 = 1_000_000_000;
/// The smallest number of open spans of a name that is called large.
pub(crate) const OPEN_SPANS: u64 = 1000;

impl FlagKind {
    /// Returns the name, as in answers: `long_poll`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.texts().0
    }

    /// Returns from when on there is a flag of this kind, in words.
    #[must_use]
    pub fn threshold(self) -> &'static str {
        self.texts().1
    }

    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Damaged => ("damaged", "any damage"),
            Self::Losses => ("losses", "one lost event or payload"),
            Self::RecordErrors => ("record_errors", "one event that could not be recorded"),
            Self::Died => ("died", "a program that did not close its rings"),
            Self::Panic => ("panic", "one log record with `panicked at`, or of `trigger_on_panic`"),
            Self::TaskPanicked => ("task_panicked", "one task"),
            Self::TaskDeadlock => ("task_deadlock", "one cycle"),
            Self::Futurelock => ("futurelock", "one task"),
            Self::LostWaker => ("lost_waker", "one task"),
            Self::HungSpan => ("hung_span", "500 ms, and 10 times the longest of three or more"),
            Self::ErrorBurst => ("error_burst", "10 errors of one call site in a second"),
            Self::LockWait => ("lock_wait", "50 ms of a task, or what `why` calls `lock`"),
            Self::LongPoll => ("long_poll", "a poll of 20 ms"),
            Self::LatePoll => ("late_poll", "100 ms from wake to poll, in one of 100"),
            Self::WakeStorm => ("wake_storm", "1000 wakes, and 10 for each poll, or by itself"),
            Self::LatencyStep => ("latency_step", "1.5 times and 1 ms more from then on, p < 0.001"),
            Self::SlowChild => ("slow_child", "that of slow_span, and `why` says `child`"),
            Self::ProcessorWait => ("processor_wait", "that of slow_span, and `why` says `processor`"),
            Self::SlowSpan => ("slow_span", "20 ms, and 10 times as long as 90 % of 20 or more"),
            Self::OpenSpans => ("open_spans", "1000 open, and more than closed"),
            Self::Silence => ("silence", "1 s without an event, at most 3 such pauses in 1000 events"),
            Self::BlocksRejected => ("blocks_rejected", "one block"),
            Self::BlocksIncomplete => ("blocks_incomplete", "one block"),
        }
    }
}

/// A red flag.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Flag {
    /// The kind.
    pub kind: FlagKind,
    /// What it is about: the name of a span, task, ring, program or call site.
    pub what: String,
    /// What was measured, in words.
    pub evidence: String,
    /// How often it was so.
    pub count: u64,
    /// When it was so first or worst, in nanoseconds since the epoch, if that is one time.
    pub at_nanos: Option<u64>,
    /// How bad it is, beside others of its kind: nanoseconds, or a number.
    pub(crate) weight: u64,
    /// The id of a span that shows it.
    pub(crate) id: Option<u64>,
    /// False if no span has the name.
    pub(crate) is_of_spans: bool,
}

impl Flag {
    pub(crate) fn new(kind: FlagKind, what: &str, weight: u64, evidence: String) -> Self {
        let (what, evidence) = (cut(what, WHAT_BYTES), cut(&evidence, EVIDENCE_BYTES));
        Self { kind, what, evidence, count: 1, at_nanos: None, weight, id: None, is_of_spans: true }
    }

    pub(crate) fn count(self, count: u64) -> Self {
        Self { count, ..self }
    }

    pub(crate) fn at(self, nanos: u64) -> Self {
        Self { at_nanos: Some(nanos), ..self }
    }

    pub(crate) fn id(self, id: u64) -> Self {
        Self { id: Some(id), ..self }
    }

    pub(crate) fn row<'a>(&'a self, next: Option<&'a str>) -> FlagRow<'a> {
        let (flag, threshold) = (self.kind, self.kind.threshold());
        let (what, evidence, count, at_ns) = (&self.what, &self.evidence, self.count, self.at_nanos);
        FlagRow { flag, what, evidence, threshold, count, at_ns, next }
    }
}

/// A flag as it is printed in JSON.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FlagRow<'a> {
    flag: FlagKind,
    /// What it is about: the name of a span, task, ring, program or call site.
    what: &'a str,
    evidence: &'a str,
    threshold: &'a str,
    count: u64,
    /// When it was so first or worst, if that is one time.
    at_ns: Option<u64>,
    /// The command that shows more; null if there was no room for it.
    next: Option<&'a str>,
}

/// The longest name in a flag.
pub(crate) const WHAT_BYTES: usize = 120;
const EVIDENCE_BYTES: usize = 400;

/// Returns text from a recording as one line of at most so many bytes, with a mark where it was cut, and without
/// control characters and marks of the writing direction.
pub(crate) fn cut(text: &str, bytes_max: usize) -> String {
    let mut out = String::new();
    for c in one_line(text).chars() {
        if out.len() + c.len_utf8() > bytes_max.saturating_sub('…'.len_utf8()) {
            out.push('…');
            break;
        }
        out.push(c);
    }
    out
}
