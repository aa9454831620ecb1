//! The screen of `top` as plain data.

use super::kernel::KernelTimes;
use super::names::TopName;
use super::open_spans::TopOpenSpans;
use super::stats::{SHORT, TopKey, TopStats, WINDOWS};
use super::threads::TopThread;
use super::typed::TopEvent;
use crate::verbs::now::open;
use crate::verbs::now::open::{ProgramRow, program_name};
use eventring::reader::RingEnd;
use eventring_live::{LiveState, OpenList, OpenSpan, SeriesKind, SeriesView};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// A screen: what the programs do at a moment.
#[derive(Default)]
pub(super) struct TopScreen {
    /// The program, or the number of programs.
    pub(super) programs: String,
    pub(super) at_epoch_nanos: u64,
    /// The time that each of [`WINDOWS`] covers.
    pub(super) covered: [Duration; WINDOWS.len()],
    /// True for each of [`WINDOWS`] of which events were lost: its counts are what was seen.
    pub(super) has_losses: [bool; WINDOWS.len()],
    pub(super) events_per_second: f64,
    pub(super) spans_per_second: f64,
    /// Log records of the level ERROR.
    pub(super) errors_per_second: f64,
    /// All names of spans that were closed in the window of the table.
    pub(super) names: Vec<TopName>,
    /// All types of typed events of the window of the table.
    pub(super) events: Vec<TopEvent>,
    pub(super) open: TopOpenSpans,
    pub(super) threads: Vec<TopThread>,
    pub(super) not_tracked: u64,
    pub(super) rings: Vec<TopRing>,
    pub(super) lost: u64,
    pub(super) has_ended: bool,
    /// The ends of the programs that died.
    pub(super) deaths: Vec<RingEnd>,
    /// The programs as `eventring open` shows them in JSON.
    pub(super) program_rows: Vec<ProgramRow<'static>>,
    /// True while the engine reads what was recorded before it began.
    pub(super) is_behind: bool,
    /// The name of spans that the user looks into.
    pub(super) detail: Option<TopDetail>,
}

/// A ring, or a recorder with all its shards.
#[derive(Serialize, JsonSchema)]
pub(super) struct TopRing {
    pub(super) name: String,
    pub(super) shards: usize,
    /// The part that is in use, 0 to 1.
    pub(super) fill: f64,
    /// From the oldest event to now.
    #[serde(rename = "past_s")]
    pub(super) past_seconds: f64,
    #[serde(rename = "events_per_s")]
    pub(super) events_per_second: f64,
}

/// The spans of one name in all windows, and the oldest of them that are open.
pub(super) struct TopDetail {
    pub(super) key: TopKey,
    /// In the order of [`WINDOWS`].
    pub(super) windows: Vec<TopStats>,
    pub(super) open: TopOpenSpans,
}

/// The rest of a moment: the state of the engine does not say it.
pub(super) struct TopExtra {
    pub(super) rings: Vec<TopRing>,
    pub(super) has_ended: bool,
    pub(super) is_behind: bool,
    pub(super) detail: Option<TopKey>,
    /// What the kernel says, if that is recorded.
    pub(super) kernel: Option<KernelTimes>,
}

impl TopScreen {
    /// Returns the screen of a state. `present` is the state of tables of the present, if the programs have some: it has
    /// what is open, and no past.
    pub(super) fn new(state: LiveState<'_>, present: Option<LiveState<'_>>, moment: TopExtra) -> Self {
        let is_of_spans = |it: &SeriesView<'_>| matches!(it.kind(), SeriesKind::Spans | SeriesKind::OtherSpans);
        let is_of_errors = |it: &SeriesView<'_>| it.kind() == SeriesKind::LogRecords && it.name() == "ERROR";
        let programs = match state.programs() {
            [program] => program_name(program),
            programs => format!("{} programs", programs.len()),
        };
        let open = present.unwrap_or(state).open_spans().list();
        let detail = moment.detail.map(|key| TopDetail::new(state, key, &open));
        Self {
            programs,
            // Tables of a program that has ended may show nothing, and so no time.
            at_epoch_nanos: present.map_or(0, |present| present.now_epoch_nanos()).max(state.now_epoch_nanos()),
            covered: std::array::from_fn(|window| state.covered(window)),
            has_losses: std::array::from_fn(|window| state.has_losses_in(window)),
            events_per_second: state.events_per_second(SHORT),
            spans_per_second: state.series().filter(is_of_spans).map(|it| it.per_second(SHORT)).sum(),
            errors_per_second: state.series().filter(is_of_errors).map(|it| it.per_second(SHORT)).sum(),
            names: TopName::all(state.series().filter(is_of_spans), moment.kernel.as_ref()),
            events: TopEvent::all(state.series()),
            open: TopOpenSpans::new(open.iter()),
            threads: TopThread::all(state, present),
            not_tracked: present.unwrap_or(state).not_tracked(),
            rings: moment.rings,
            lost: state.lost(),
            has_ended: moment.has_ended,
            deaths: (0..state.programs().len()).filter_map(|it| state.end_of(it)).filter(|end| end.has_died).collect(),
            program_rows: open::programs(state).into_iter().map(ProgramRow::into_owned).collect(),
            is_behind: moment.is_behind,
            detail,
        }
    }
}

impl TopDetail {
    fn new(state: LiveState<'_>, key: TopKey, open: &OpenList<'_>) -> Self {
        let series = state.series_of(key.kind, &key.name, Some(&key.target));
        let stats = |window| series.map(|it| TopStats::from_window(&it.window(window))).unwrap_or_default();
        let is_of_name = |span: &OpenSpan<'_>| span.name() == key.name.as_str() && span.target() == key.target;
        Self {
            windows: (0..WINDOWS.len()).map(stats).collect(),
            open: TopOpenSpans::new(open.iter().filter(is_of_name)),
            key,
        }
    }
}
