//! The figures of a capture, which budgets limit.

use eventring_report::compare::{Measure, SpanFigures};
use std::collections::{BTreeMap, BTreeSet};

/// The measures that an update writes for a new span if none are named.
pub(super) const USUAL_MEASURES: [Measure; 2] = [Measure::Instructions, Measure::SelfInstructions];

/// The figures of spans by their full names.
pub(super) type FiguresByName = BTreeMap<String, SpanFigures>;

/// The figures of a capture, and what they do not hold.
pub(super) struct CapturedFigures {
    pub(super) spans: FiguresByName,
    /// The spans of which some were not counted, with the number of these.
    pub(super) not_counted: BTreeMap<String, u64>,
    /// True if events were lost, or files of the capture are missing.
    pub(super) has_losses: bool,
    /// True if a filter has left events out.
    pub(super) is_filtered: bool,
    /// The spans of which some were open, or their beginning or end was not seen.
    pub(super) not_whole: BTreeSet<String>,
    /// The spans whose instructions differ from run to run.
    pub(super) inexact: BTreeSet<String>,
}
