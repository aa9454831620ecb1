//! The typed events by type, as plain data.

use super::stats::TABLE;
use eventring_live::{SeriesKind, SeriesView};
use schemars::JsonSchema;
use serde::Serialize;

/// The typed events of one type in the window of the table.
#[derive(Serialize, JsonSchema)]
pub(super) struct TopEvent {
    pub(super) name: String,
    /// The name of its content type.
    pub(super) content: String,
    pub(super) count: u64,
    #[serde(rename = "per_s")]
    pub(super) per_second: f64,
    /// The bytes of their payloads for each second.
    #[serde(rename = "bytes_per_s")]
    pub(super) bytes_per_second: f64,
}

impl TopEvent {
    /// Returns the types of which there were events in the window, those with the most events first.
    pub(super) fn all<'s>(series: impl Iterator<Item = SeriesView<'s>>) -> Vec<Self> {
        let is_typed = |it: &SeriesView<'_>| matches!(it.kind(), SeriesKind::Events | SeriesKind::OtherEvents);
        let row = |it: SeriesView<'_>| {
            let stats = it.window(TABLE);
            let (count, per_second) = (stats.count(), stats.per_second());
            let bytes_per_second = stats.payload_bytes() as f64 * per_second / (count.max(1) as f64);
            Self { name: it.name().to_owned(), content: it.target().to_owned(), count, per_second, bytes_per_second }
        };
        let mut rows: Vec<Self> = series.filter(is_typed).map(row).filter(|row| row.count > 0).collect();
        rows.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| (&a.name, &a.content).cmp(&(&b.name, &b.content))));
        rows
    }
}
