//! The changes that exceed limits, and the limits that cannot be checked.

use super::comparison::{ComparedSpan, Comparison, NAMES_SHOWN};
use super::limit::ChangeLimit;
use super::measure::{Measure, SpanFigures};
use crate::page::html::shortened;
use eventring_export::numbers::counted;
use std::fmt;

/// What became of limits.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LimitResults {
    /// The changes that the limits forbid.
    pub exceeded: Vec<ExceededLimit>,
    /// The limits that cannot be judged, once for each span, or once for all spans.
    pub incomplete: Vec<IncompleteLimit>,
}

/// A limit that cannot be judged, because the numbers do not hold all spans.
#[derive(Clone, PartialEq, Debug)]
pub struct IncompleteLimit {
    /// The limit.
    pub limit: ChangeLimit,
    /// The span; `None` if this is so for all spans.
    pub span: Option<ComparedSpan>,
    /// What the numbers do not hold.
    pub reason: String,
}

/// A change that a limit forbids.
#[derive(Clone, PartialEq, Debug)]
pub struct ExceededLimit {
    /// The limit.
    pub limit: ChangeLimit,
    /// The span.
    pub span: ComparedSpan,
    /// The value on side A.
    pub a: u64,
    /// The value on side B.
    pub b: u64,
}

/// An error: a limit cannot be checked.
#[derive(Clone, PartialEq, Debug)]
pub enum LimitError {
    /// No span has the name that the limit names.
    NoSuchSpan {
        /// The limit.
        limit: ChangeLimit,
        /// The names of some spans of the captures.
        known: Vec<String>,
    },
    /// The instructions of the spans are not exact: they differ from run to run.
    NotExact {
        /// The limit.
        limit: ChangeLimit,
    },
    /// The instructions of the spans were not counted on both sides, or the times of threads not measured.
    NotCounted {
        /// The limit.
        limit: ChangeLimit,
    },
}

impl Comparison {
    /// Checks limits. With `only_significant`, limits of times forbid only changes that are significant.
    ///
    /// # Errors
    /// A limit names no span of either side, or what was not counted or measured on both sides.
    pub fn check_limits(&self, limits: &[ChangeLimit], only_significant: bool) -> Result<LimitResults, LimitError> {
        let mut results = LimitResults::default();
        for limit in limits {
            let is_named = |span: &&ComparedSpan| limit.span.fits_span(&span.target, &span.name);
            let named: Vec<&ComparedSpan> = self.spans.iter().filter(is_named).collect();
            if named.is_empty() {
                let known = self.spans.iter().take(NAMES_SHOWN).map(ComparedSpan::full_name).collect();
                return Err(LimitError::NoSuchSpan { limit: limit.clone(), known });
            }
            let valued = |span: &&ComparedSpan| Some(((*span).clone(), span.seen(limit.measure)?));
            let values: Vec<(ComparedSpan, (u64, u64))> = named.iter().filter_map(valued).collect();
            // Several spans of a pattern may be spans of tasks, which are not counted. One that is named is checked.
            if values.is_empty() || values.len() < named.len() && limit.span.exact().is_some() {
                return Err(LimitError::NotCounted { limit: limit.clone() });
            }
            let is_inexact = |span: &ComparedSpan| limit.measure.is_of_instructions() && !span.is_exact;
            if values.iter().all(|(span, _)| is_inexact(span)) {
                return Err(LimitError::NotExact { limit: limit.clone() });
            }
            let incomplete = |span, reason| IncompleteLimit { limit: limit.clone(), span, reason };
            if let Some(reason) = self.lack(limit.measure) {
                results.incomplete.push(incomplete(None, reason.to_owned()));
                continue;
            }
            for (span, (a, b)) in values.into_iter().filter(|(span, _)| !is_inexact(span)) {
                let is_asked =
                    !(only_significant && limit.measure.is_time()) || span.is_significant(self.alpha).unwrap_or(false);
                if let Some(reason) = span.lack(limit.measure) {
                    results.incomplete.push(incomplete(Some(span), reason));
                } else if is_asked && limit.forbids(a, b) {
                    results.exceeded.push(ExceededLimit { limit: limit.clone(), span, a, b });
                }
            }
        }
        Ok(results)
    }

    /// Says why no span can be judged by a measure. Returns `None` if it can.
    fn lack(&self, measure: Measure) -> Option<&'static str> {
        match () {
            () if self.has_different_filters => {
                Some("A and B were captured with different filters, so their numbers are not of the same events")
            }
            // An instruction that is not counted would pass for one that is saved.
            () if self.has_losses && measure.is_of_instructions() => {
                Some("events were lost or overwritten, or files of a capture are missing, so not all is counted")
            }
            () => None,
        }
    }
}

impl ComparedSpan {
    /// Says how many spans a number of a side does not hold, so that it cannot be judged. Returns `None` if it can.
    fn lack(&self, measure: Measure) -> Option<String> {
        let number = |figures: Option<SpanFigures>, not_whole: u64| match figures {
            None => not_whole,
            // A few durations more hardly change a percentile. They may change all else by any amount.
            Some(_) if measure.is_percentile() => 0,
            Some(figures) if measure.is_of_instructions() => not_whole.saturating_add(figures.not_counted()),
            Some(_) => not_whole,
        };
        let sides = [("A", number(self.a, self.not_whole[0])), ("B", number(self.b, self.not_whole[1]))];
        let sides = sides.into_iter().filter(|(_, number)| *number > 0);
        let sides: Vec<String> =
            sides.map(|(side, number)| format!("{} of {side}", counted(number, "span", "spans"))).collect();
        (!sides.is_empty())
            .then(|| format!("{} not counted: open at the end, never entered, or not seen whole", sides.join(" and ")))
    }
}

impl fmt::Display for IncompleteLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", shortened(&self.limit.to_string()))?;
        if let Some(span) = &self.span {
            write!(f, "{}: ", shortened(&span.full_name()))?;
        }
        f.write_str(&self.reason)
    }
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::NoSuchSpan { limit, .. } | Self::NotExact { limit } | Self::NotCounted { limit }) = self;
        let (limit, span) = (limit.to_string(), limit.span.to_string());
        let (limit, span) = (shortened(&limit), shortened(&span));
        match self {
            Self::NoSuchSpan { known, .. } => {
                let known: Vec<_> = known.iter().map(|name| shortened(name)).collect();
                let known = if known.is_empty() { "no spans".to_owned() } else { known.join(", ") };
                write!(f, "{limit}: no capture has a closed span {span}, expected one of those that they have: {known}")
            }
            Self::NotExact { .. } => write!(
                f,
                "{limit}: the instructions of {span} are not exact, because the spans, or some inside of them, were entered several times, as those \
                 of futures are: they differ from run to run; name a span that is entered once and has no such span inside, and that waits for no \
                 other thread"
            ),
            Self::NotCounted { limit: of } if of.measure.is_of_threads() => write!(
                f,
                "{limit}: how threads spent the time in {span} was not measured on both sides, expected a time; record both sides without \
                 EVENTRING_THREAD_TIME=off, or name another measure, such as busy"
            ),
            Self::NotCounted { limit: of } if of.measure.is_of_allocator() => write!(
                f,
                "{limit}: the allocations of {span} were not counted on both sides, expected counts; give both programs the allocator \
                 eventring::alloc::Counted, or name another measure, such as busy"
            ),
            Self::NotCounted { .. } => write!(
                f,
                "{limit}: the instructions of {span} were not counted on both sides, expected counts; record both sides with \
                 `eventring icount`, or name another measure, such as busy"
            ),
        }
    }
}

impl std::error::Error for LimitError {}
