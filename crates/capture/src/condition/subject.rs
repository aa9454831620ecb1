//! The subjects of conditions.

use super::{NamePattern, TimesPart};
use crate::format::values::operand::Operand;
use eventring::now::TaskPhase;
use eventring::schema::perf::CallSiteLevel;
use std::fmt;
use std::time::Duration;

/// Something that happened, or a state. Each method returns nothing if the subject has no such thing; the default
/// methods do so.
pub trait Subject {
    /// Returns true if a program has died.
    fn is_death(&self) -> bool {
        false
    }

    /// Returns true if the watcher got a signal.
    fn is_signal(&self) -> bool {
        false
    }

    /// Returns true if it is a span whose name and target are not known, because only what happened in it was seen.
    fn is_unnamed(&self) -> bool {
        false
    }

    /// Returns true if `test` holds for the target and the name of the span; the target is empty if it is not known.
    /// For a log record or a typed event, these are those of all spans in which it was recorded.
    fn any_span_name(&self, test: &mut dyn FnMut(&str, &str) -> bool) -> bool {
        let _ = test;
        false
    }

    /// Calls `take` with the name of the log record or of the typed event.
    fn event_name(&self, take: &mut dyn FnMut(&str)) {
        let _ = take;
    }

    /// Returns the code of the typed event.
    fn event_code(&self) -> Option<u16> {
        None
    }

    /// Returns the target of the span or of the log record.
    fn target(&self) -> Option<&str> {
        None
    }

    /// Calls `take` with the name of each of its threads.
    fn each_thread_name(&self, take: &mut dyn FnMut(&str)) {
        let _ = take;
    }

    /// Returns the level of the log record.
    fn level(&self) -> Option<CallSiteLevel> {
        None
    }

    /// Returns the time from the creation of a span to its close, in nanoseconds.
    fn closed_after_nanos(&self) -> Option<u64> {
        None
    }

    /// Returns a part of the time of a closed span, in nanoseconds, if it was measured.
    fn times_nanos(&self, part: TimesPart) -> Option<u64> {
        let _ = part;
        None
    }

    /// Returns the age of an open span, in nanoseconds.
    fn open_nanos(&self) -> Option<u64> {
        None
    }

    /// Calls `take` with the name of the task: of the innermost task among the span and its ancestors.
    fn task_name(&self, take: &mut dyn FnMut(&str)) {
        let _ = take;
    }

    /// Returns what a task does or did, and for how long, in nanoseconds.
    fn task_phase_nanos(&self) -> Option<(TaskPhase, u64)> {
        None
    }

    /// Calls `take` with the value of each field of a name; there are several if the program gives several fields one
    /// name. `path` is the name; the fields of typed events may be structs, whose parts are named by dotted paths.
    fn field(&self, path: &str, take: &mut dyn FnMut(Operand<'_>)) {
        let _ = (path, take);
    }

    /// Returns true if there may be a field of this name, or was one, that nobody knows because a payload was lost.
    fn may_have_lost(&self, path: &str) -> bool {
        let _ = path;
        false
    }

    /// Returns how often this happened in each second of the last `window`. Returns `None` if the watcher does not know
    /// the whole window.
    fn per_second(&self, of: &RateOf, window: Duration) -> Option<f64> {
        let _ = (of, window);
        None
    }

    /// Returns the time, in nanoseconds, that this part (0 to 1) of the spans closed in the last `window` did not
    /// exceed. Returns `None` if no span was closed, or if `of` names no spans.
    fn quantile_nanos(&self, of: &RateOf, window: Duration, part: f64) -> Option<u64> {
        let _ = (of, window, part);
        None
    }
}

/// The spans or events of a rate or percentile.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum RateOf {
    /// The spans of these names, when they are closed.
    Spans(NamePattern),
    /// The log records and typed events of these names.
    Events(NamePattern),
}

impl fmt::Display for RateOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spans(pattern) => write!(f, "span={pattern}"),
            Self::Events(pattern) => write!(f, "event={pattern}"),
        }
    }
}
