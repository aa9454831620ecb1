//! The screen of `top` as plain data.

use super::kernel::KernelTimes;
use super::names::TopName;
use super::open_spans::TopOpenSpans;
use super::threads::TopThread;
use super::typed::TopEvent;
use crate::verbs::now::open;
use crate::verbs::now::open::{ProgramRow, program_name};
use eventring::reader::RingEnd;
use eventring_live::{LiveState, OpenList, OpenSpan, SeriesKind, SeriesView, WindowStats};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::time::Duration;

/// The windows in which spans are counted.
pub(super) const WINDOWS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(10), Duration::from_secs(60)];
/// The window of the rates of all spans and errors: one second.
pub(super) const SHORT: usize = 0;
/// The window of the table of names: ten seconds.
pub(super) const TABLE: usize = 1;

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

/// The name and target of spans.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub(super) struct TopKey {
    #[serde(skip)]
    pub(super) kind: SeriesKind,
    pub(super) name: String,
    pub(super) target: String,
}

/// The counts and durations of a name in a window.
#[derive(Clone, Copy, Default, Serialize, JsonSchema)]
pub(super) struct TopStats {
    pub(super) count: u64,
    #[serde(rename = "per_s")]
    pub(super) per_second: f64,
    #[serde(rename = "self_ns")]
    pub(super) self_nanos: u64,
    /// The part of the self times of all names, 0 to 1.
    pub(super) self_share: f64,
    /// The 50th, 90th and 99th percentile, and the longest, in nanoseconds. `None` if no duration is known.
    #[serde(flatten, serialize_with = "wall")]
    #[schemars(with = "Wall")]
    pub(super) wall_nanos: Option<[u64; 4]>,
}

/// The durations of spans in JSON.
#[derive(Serialize, JsonSchema)]
struct Wall {
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: Option<u64>,
}

fn wall<S: Serializer>(nanos: &Option<[u64; 4]>, to: S) -> Result<S::Ok, S::Error> {
    let [p50_ns, p90_ns, p99_ns, max_ns] = nanos.map_or([None; 4], |nanos| nanos.map(Some));
    Wall { p50_ns, p90_ns, p99_ns, max_ns }.serialize(to)
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

impl TopStats {
    pub(super) fn from_window(stats: &WindowStats) -> Self {
        let percentiles = [0.5, 0.9, 0.99].map(|part| stats.quantile_nanos(part));
        let wall_nanos = match percentiles {
            [Some(p50), Some(p90), Some(p99)] => Some([p50, p90, p99, stats.max_nanos()]),
            _ => None,
        };
        let (count, per_second, self_nanos) = (stats.count(), stats.per_second(), stats.self_nanos());
        Self { count, per_second, self_nanos, self_share: 0.0, wall_nanos }
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
