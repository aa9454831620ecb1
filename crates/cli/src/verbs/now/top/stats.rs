//! The windows in which spans and events are counted, and what is counted.

use eventring_export::TimeSummary;
use eventring_live::{SeriesKind, WindowStats};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::time::Duration;

/// The windows in which spans are counted.
pub(super) const WINDOWS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(10), Duration::from_secs(60)];
/// The window of the rates of all spans and errors: one second.
pub(super) const SHORT: usize = 0;
/// The window of the table of names: ten seconds.
pub(super) const TABLE: usize = 1;

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
    /// How threads spent the time in the spans; null if nothing was measured.
    pub(super) times: Option<TimeSummary>,
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

impl TopStats {
    pub(super) fn from_window(stats: &WindowStats) -> Self {
        let percentiles = [0.5, 0.9, 0.99].map(|part| stats.quantile_nanos(part));
        let wall_nanos = match percentiles {
            [Some(p50), Some(p90), Some(p99)] => Some([p50, p90, p99, stats.max_nanos()]),
            _ => None,
        };
        let (count, per_second, self_nanos) = (stats.count(), stats.per_second(), stats.self_nanos());
        let times = stats.times().map(TimeSummary::from);
        Self { count, per_second, self_nanos, self_share: 0.0, times, wall_nanos }
    }
}
