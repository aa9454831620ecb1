//! The changes that are too large.

use super::comparison::{ComparedSpan, Comparison};
use super::limit::ChangeLimit;
use crate::page::text::shortened;
use std::fmt;

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
    /// The instructions of the spans were not counted on both sides.
    NotCounted {
        /// The limit.
        limit: ChangeLimit,
    },
}

/// The number of names that an error shows.
const NAMES_SHOWN: usize = 5;

impl Comparison {
    /// Returns the changes that the limits forbid. With `only_significant`, limits of times forbid only changes that
    /// are significant.
    ///
    /// # Errors
    /// A limit names no span of either side, or instructions that were not counted on both sides.
    pub fn exceeded(&self, limits: &[ChangeLimit], only_significant: bool) -> Result<Vec<ExceededLimit>, LimitError> {
        let mut exceeded = Vec::new();
        for limit in limits {
            let is_named = |span: &&ComparedSpan| limit.span.fits_span(&span.target, &span.name);
            let named: Vec<&ComparedSpan> = self.spans.iter().filter(is_named).collect();
            if named.is_empty() {
                let known = self.spans.iter().take(NAMES_SHOWN).map(ComparedSpan::full_name).collect();
                return Err(LimitError::NoSuchSpan { limit: limit.clone(), known });
            }
            let valued = |span: &&ComparedSpan| Some(((*span).clone(), span.values(limit.measure)?));
            let values: Vec<(ComparedSpan, (u64, u64))> = named.iter().filter_map(valued).collect();
            // Several spans of a pattern may be spans of tasks, which are not counted. One that is named is checked.
            if values.is_empty() || values.len() < named.len() && limit.span.exact().is_some() {
                return Err(LimitError::NotCounted { limit: limit.clone() });
            }
            let is_inexact = |span: &ComparedSpan| limit.measure.is_of_instructions() && !span.is_exact;
            if values.iter().all(|(span, _)| is_inexact(span)) {
                return Err(LimitError::NotExact { limit: limit.clone() });
            }
            for (span, (a, b)) in values.into_iter().filter(|(span, _)| !is_inexact(span)) {
                let is_asked =
                    !(only_significant && limit.measure.is_time()) || span.is_significant(self.alpha).unwrap_or(false);
                if is_asked && limit.forbids(a, b) {
                    exceeded.push(ExceededLimit { limit: limit.clone(), span, a, b });
                }
            }
        }
        Ok(exceeded)
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
                "{limit}: the instructions of {span} are not exact, because the spans were entered several times, as those of futures are: they \
                 differ from run to run; name a span that is entered once, inside of them or around them, and that waits for no other thread"
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
