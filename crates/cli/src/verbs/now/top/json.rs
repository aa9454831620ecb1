//! The screen as JSON.

use super::model::{TopRing, TopScreen};
use super::names::TopName;
use super::open_spans::TopOpen;
use super::stats::WINDOWS;
use super::threads::TopThread;
use super::typed::TopEvent;
use crate::verbs::now::open::ProgramRow;
use schemars::JsonSchema;
use serde::Serialize;

/// What `top --once --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TopAnswer<'a> {
    at_ns: u64,
    program: &'a str,
    windows: Vec<Window>,
    events_per_s: f64,
    spans_per_s: f64,
    errors_per_s: f64,
    /// Of the last 10 s.
    names: Vec<&'a TopName>,
    /// Typed ones, of the last 10 s.
    events: &'a [TopEvent],
    /// The first 100.
    open: Vec<&'a TopOpen>,
    open_spans: usize,
    may_have_closed: usize,
    threads: &'a [TopThread],
    not_tracked: u64,
    rings: &'a [TopRing],
    lost: u64,
    ended: bool,
    programs: &'a [ProgramRow<'static>],
}

/// A window, and how much of it is known.
#[derive(Serialize, JsonSchema)]
struct Window {
    s: u64,
    covered_s: f64,
}

impl<'a> From<&'a TopScreen> for TopAnswer<'a> {
    fn from(screen: &'a TopScreen) -> Self {
        let mut names: Vec<&TopName> = screen.names.iter().collect();
        names.sort_by_key(|row| std::cmp::Reverse(row.stats.self_nanos));
        let windows = WINDOWS.iter().zip(screen.covered);
        Self {
            at_ns: screen.at_epoch_nanos,
            program: &screen.programs,
            windows: windows
                .map(|(it, covered)| Window { s: it.as_secs(), covered_s: covered.as_secs_f64() })
                .collect(),
            events_per_s: screen.events_per_second,
            spans_per_s: screen.spans_per_second,
            errors_per_s: screen.errors_per_second,
            names,
            events: &screen.events,
            open: screen.open.all().collect(),
            open_spans: screen.open.surely + screen.open.perhaps,
            may_have_closed: screen.open.perhaps,
            threads: &screen.threads,
            not_tracked: screen.not_tracked,
            rings: &screen.rings,
            lost: screen.lost,
            ended: screen.has_ended,
            programs: &screen.program_rows,
        }
    }
}
