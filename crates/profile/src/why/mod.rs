//! The reasons why a span was slow: the parts of its time, and the differences from spans of the same name that were
//! not slow.
//!
//! | file | idea |
//! |---|---|
//! | `find` | the slowest spans of a name, and some that are not slow |
//! | `collect` | all data about these spans: slices, children, the states of their threads |
//! | `scheduled` | the times at which tasks were woken, and for which they waited for a worker |
//! | `locks` | the waits for locks, which threads have recorded themselves |
//! | `shares` | the time of a span, divided into parts |
//! | `cause` | the part of the time that is longer than in other spans |
//! | `difference` | the features that slow spans have in common |

mod cause;
mod collect;
mod difference;
mod find;
mod locks;
mod scheduled;
mod shares;

pub use cause::Cause;
pub use difference::Difference;
pub use find::Question;
pub use locks::LockShare;
pub use shares::{Part, Shares, Source};

use collect::Collector;
use eventring_capture::numbers::counted;
use eventring_capture::recording::{CaptureRecording, replay_capture};
use eventring_capture::{CaptureError, CaptureErrorKind, CaptureFile};
use find::Finder;
use schemars::JsonSchema;
use serde::Serialize;

/// The largest number of spans that are not slow, and that slow ones are compared with.
const NORMAL_MAX: usize = 200;
/// The number of slow spans that are compared with them, even if fewer are asked for.
const SLOW_MIN: usize = 30;

/// The answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Answer {
    /// The spans, the slowest first.
    pub spans: Vec<WhySpan>,
    /// What is different from spans of the name that are not slow: only what chance explains in less than
    /// [`Self::ALPHA`] of all answers.
    pub difference: Vec<Difference>,
    /// What was not recorded, and would say more.
    pub missing: Vec<String>,
    /// The rate of answers that name a difference where there is none.
    pub alpha: f64,
    /// The number of spans of the name.
    pub count: u64,
    /// About half of the spans of the name are not longer than this, in nanoseconds: the median of up to 2,048 of them.
    #[serde(rename = "median_ns")]
    pub median_nanos: u64,
    /// What was wrong with the capture, a line each.
    #[serde(skip)]
    pub problems: Vec<String>,
}

/// A span, and where its time went.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct WhySpan {
    /// The id of the span.
    pub id: u64,
    /// Its name, with its target.
    pub name: String,
    /// When it began, in nanoseconds since the epoch.
    #[serde(rename = "start_ns")]
    pub start_nanos: u64,
    /// How long it took, in nanoseconds.
    #[serde(rename = "duration_ns")]
    pub nanos: u64,
    /// Its time line, divided, in per cent.
    #[serde(serialize_with = "shares::in_per_cent")]
    #[schemars(with = "shares::Percent")]
    pub shares: Shares,
    /// The locks of `eventring::sync` for which its threads have waited in it, also in spans inside: those for which they
    /// have waited longest, at most ten.
    pub locks: Vec<LockShare>,
    /// Who says what its threads did. Null if nobody does, or if no thread was in it without a child.
    pub source: Option<Source>,
    /// What it has more of than spans of the name that are not slow; `None` if it is not slow.
    #[serde(flatten, serialize_with = "cause::or_nulls")]
    #[schemars(with = "cause::CauseOrNulls<'_>")]
    pub cause: Option<Cause>,
}

impl Answer {
    /// The rate of answers that name a difference where there is none.
    pub const ALPHA: f64 = difference::ALPHA;
}

/// Says why spans of a capture were slow. Reads the capture twice.
///
/// # Errors
/// The capture has no such spans, or is damaged.
pub fn why(capture: &CaptureFile, question: &Question) -> Result<Answer, CaptureError> {
    let recording = CaptureRecording::new(capture)?;
    let slow_max = question.slowest.max(1);
    let mut finder = Finder::new(question, slow_max.max(SLOW_MIN), NORMAL_MAX);
    let counts = replay_capture(&recording, &mut finder)?;
    let found = finder.finish(question).map_err(|error| match counts.problems.first() {
        None => error,
        Some(problem) => CaptureError::new(CaptureErrorKind::Damaged, format!("{error}; {problem}")),
    })?;
    let mut collector = Collector::new(&found);
    replay_capture(&recording, &mut collector)?;
    let mut missing = collector.missing();
    let events = |count| counted(count, "event", "events");
    if counts.lost_since() > 0 {
        missing.push(format!("what happened when {} got lost", events(counts.lost_since())));
    }
    if counts.overwritten_before > 0 {
        missing.push(format!(
            "the past: {} had been overwritten before the capture began",
            events(counts.overwritten_before)
        ));
    }
    let collected = collector.finish();
    let shares: Vec<Shares> = collected.spans.iter().map(|span| shares::divide(span, &collected)).collect();
    let (slow, normal): (Vec<usize>, Vec<usize>) =
        (0..collected.spans.len()).partition(|at| found.is_slow(collected.spans[*at].nanos()));
    let usual = cause::Usual::from_spans(normal.iter().map(|at| (&collected.spans[*at], &shares[*at])));
    let difference = difference::compare(&slow, &normal, &collected);
    let mut by_length: Vec<usize> = (0..collected.spans.len()).filter(|at| collected.spans[*at].is_asked_for).collect();
    by_length.sort_by_key(|at| std::cmp::Reverse(collected.spans[*at].nanos()));
    let spans = by_length.into_iter().take(slow_max).map(|at| {
        let span = &collected.spans[at];
        let is_slow = found.is_slow(span.nanos());
        WhySpan {
            id: span.id,
            name: span.full_name.clone(),
            start_nanos: span.start_nanos,
            nanos: span.nanos(),
            cause: is_slow.then(|| cause::find(span, &shares[at], &usual, &collected)).flatten(),
            locks: collected.locks.shares(&span.slices),
            source: shares[at].source(),
            shares: shares[at].clone(),
        }
    });
    Ok(Answer {
        spans: spans.collect(),
        difference,
        missing,
        alpha: Answer::ALPHA,
        count: found.count,
        median_nanos: found.median_nanos,
        problems: counts.problems,
    })
}
