//! The divisor of the sums of a side. After the division, captures of different length can be compared.

use crate::page::CaptureFigures;
use eventring_export::full_name;
use eventring_export::numbers::{counted, time};
use std::fmt;

/// The number of names that an error lists.
const NAMES_MAX: usize = 8;

/// The amount of work for which a report shows times and instructions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Basis {
    /// A call of each span itself, as in `eventring diff`. Flame graphs, which have no such basis, are for a second.
    #[default]
    OwnCall,
    /// A second of the capture.
    Second,
    /// A call of the spans with this name, or with this target and name: `request`, `shop::request`.
    Call(String),
}

/// The error that a side has no closed span of the name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BasisError {
    side: char,
    span: String,
    /// The names of spans that the capture has.
    known: Vec<String>,
}

impl Basis {
    /// Returns how much of this work the capture of a side has.
    pub(super) fn divisor(&self, side: char, figures: &CaptureFigures<'_>) -> Result<f64, BasisError> {
        match self {
            // A capture of one event has no length.
            Self::OwnCall | Self::Second => Ok(figures.length_nanos().max(1) as f64 / 1e9),
            Self::Call(name) => match self.calls(figures) {
                0 => {
                    let spans = figures.summary.spans.iter().filter(|span| span.count > 0);
                    let known = spans.take(NAMES_MAX).map(|span| full_name(&span.name, &span.target)).collect();
                    Err(BasisError { side, span: name.clone(), known })
                }
                calls => Ok(calls as f64),
            },
        }
    }

    /// Returns the words behind a number: `per second`.
    pub(super) fn unit(&self) -> String {
        match self {
            Self::OwnCall => "per call".into(),
            Self::Second => "per second".into(),
            Self::Call(name) => format!("per call of {name}"),
        }
    }

    /// Returns the words behind a number of a flame graph.
    pub(super) fn flame_unit(&self) -> String {
        match self {
            Self::OwnCall => Self::Second.unit(),
            other => other.unit(),
        }
    }

    /// Says how much of this work a capture has: `lasted 1.25 s`.
    pub(super) fn amount(&self, figures: &CaptureFigures<'_>) -> String {
        match self {
            Self::OwnCall | Self::Second => format!("lasted {}", time(figures.length_nanos())),
            Self::Call(_) => format!("has {}", counted(self.calls(figures), "call", "calls")),
        }
    }

    fn calls(&self, figures: &CaptureFigures<'_>) -> u64 {
        let Self::Call(name) = self else { return 0 };
        let is_meant =
            |span: &&eventring_export::SpanSummary| span.name == *name || full_name(&span.name, &span.target) == *name;
        figures.summary.spans.iter().filter(is_meant).fold(0, |sum: u64, span| sum.saturating_add(span.count))
    }
}

impl fmt::Display for BasisError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "capture {} has no closed span {}, expected one on both sides", self.side, self.span)?;
        match &self.known[..] {
            [] => write!(f, "; the capture has no closed spans"),
            known => write!(f, "; it has {}", known.join(", ")),
        }
    }
}

impl std::error::Error for BasisError {}
