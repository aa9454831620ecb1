//! The names of spans that were closed, as plain data.

use super::kernel::KernelTimes;
use super::list::{ListOrder, ListRow};
use super::stats::{TABLE, TopKey, TopStats};
use eventring_live::SeriesView;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::cmp::Ordering;

/// A row of the table: the spans of one name.
#[derive(Serialize, JsonSchema)]
pub(super) struct TopName {
    #[serde(flatten)]
    pub(super) key: TopKey,
    #[serde(flatten)]
    pub(super) stats: TopStats,
    /// How long threads ran, could have run, and were blocked in the spans themselves, in nanoseconds; `None` if
    /// nothing records it.
    #[serde(flatten, serialize_with = "kernel")]
    #[schemars(with = "Kernel")]
    pub(super) kernel_nanos: Option<[u64; 3]>,
}

/// What the kernel says, in JSON: null unless a profile is recorded beside, and its ring is named, too.
#[derive(Serialize, JsonSchema)]
struct Kernel {
    cpu_ns: Option<u64>,
    runnable_ns: Option<u64>,
    blocked_ns: Option<u64>,
}

fn kernel<S: Serializer>(nanos: &Option<[u64; 3]>, to: S) -> Result<S::Ok, S::Error> {
    let [cpu_ns, runnable_ns, blocked_ns] = nanos.map_or([None; 3], |nanos| nanos.map(Some));
    Kernel { cpu_ns, runnable_ns, blocked_ns }.serialize(to)
}

impl TopName {
    /// Returns the names of which spans were closed in the window of the table.
    pub(super) fn all<'s>(series: impl Iterator<Item = SeriesView<'s>>, kernel: Option<&KernelTimes>) -> Vec<Self> {
        let times = |it: &SeriesView<'_>| {
            let times = kernel?.get(&(it.name().to_owned(), it.target().to_owned()));
            Some(times.copied().unwrap_or_default())
        };
        let row = |it: SeriesView<'_>| Self {
            key: TopKey { kind: it.kind(), name: it.name().to_owned(), target: it.target().to_owned() },
            kernel_nanos: times(&it),
            stats: TopStats::from_window(&it.window(TABLE)),
        };
        let mut rows: Vec<Self> = series.map(row).filter(|row| row.stats.count > 0).collect();
        let all = rows.iter().map(|row| row.stats.self_nanos as f64).sum::<f64>().max(1.0);
        rows.iter_mut().for_each(|row| row.stats.self_share = row.stats.self_nanos as f64 / all);
        rows
    }
}

/// The order of the names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum NameOrder {
    #[default]
    SelfTime,
    Rate,
    P99,
    Name,
}

impl ListOrder for NameOrder {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::SelfTime, "self time"), (Self::Rate, "rate"), (Self::P99, "p99"), (Self::Name, "name")];
}

impl ListRow for TopName {
    type Key = TopKey;
    type Order = NameOrder;

    fn key(&self) -> TopKey {
        self.key.clone()
    }

    fn compare(&self, other: &Self, order: NameOrder) -> Ordering {
        let p99 = |row: &Self| row.stats.wall_nanos.map(|nanos| nanos[2]);
        let larger_first = match order {
            NameOrder::SelfTime => other.stats.self_nanos.cmp(&self.stats.self_nanos),
            NameOrder::Rate => other.stats.count.cmp(&self.stats.count),
            NameOrder::P99 => p99(other).cmp(&p99(self)),
            NameOrder::Name => Ordering::Equal,
        };
        larger_first.then_with(|| (&self.key.name, &self.key.target).cmp(&(&other.key.name, &other.key.target)))
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        [self.key.name.as_str(), self.key.target.as_str()].into_iter()
    }
}
