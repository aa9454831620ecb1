//! The table of the figures of blocks: A, B, and the change.

use super::ComparisonReport;
use super::table::class;
use crate::page::blocks::rate;
use eventring_exec::ChainSummary;
use eventring_export::numbers::{grouped, percent_change, time};
use std::fmt::Write as _;

/// A figure of blocks.
struct Figure {
    name: &'static str,
    /// The value, unless it is not known.
    value: fn(&ChainSummary) -> Option<f64>,
    show: fn(f64) -> String,
}

fn whole(value: f64) -> String {
    grouped(value.round() as u64)
}

fn nanos(value: f64) -> String {
    time(value.round() as u64)
}

/// Returns a quantile of times, if there are any.
macro_rules! quantile {
    ($times:ident, $quantile:expr) => {
        |chain| {
            let times = Some(&chain.$times).filter(|times| !times.is_empty())?;
            Some(times.value_at_quantile($quantile) as f64)
        }
    };
}

const FIGURES: [Figure; 14] = [
    Figure { name: "blocks", value: |chain| Some(chain.blocks as f64), show: whole },
    Figure { name: "transactions", value: |chain| Some(chain.transactions as f64), show: whole },
    Figure { name: "gas", value: |chain| Some(chain.gas_used as f64), show: whole },
    Figure { name: "blocks a second", value: |chain| chain.per_second(chain.blocks), show: rate },
    Figure { name: "transactions a second", value: |chain| chain.per_second(chain.transactions), show: rate },
    Figure { name: "gas a second", value: |chain| chain.per_second(chain.gas_used), show: rate },
    Figure { name: "time of a block, p50", value: quantile!(block_nanos, 0.5), show: nanos },
    Figure { name: "time of a block, p99", value: quantile!(block_nanos, 0.99), show: nanos },
    Figure { name: "time of a transaction, p50", value: quantile!(txn_nanos, 0.5), show: nanos },
    Figure { name: "time of a transaction, p90", value: quantile!(txn_nanos, 0.9), show: nanos },
    Figure { name: "time of a transaction, p99", value: quantile!(txn_nanos, 0.99), show: nanos },
    Figure { name: "conflicts", value: |chain| Some(chain.conflicts as f64), show: whole },
    Figure { name: "blocks not complete", value: |chain| Some((chain.blocks - chain.complete) as f64), show: whole },
    Figure { name: "blocks rejected", value: |chain| Some(chain.rejected as f64), show: whole },
];

impl ComparisonReport<'_> {
    /// Returns the section about blocks. It is empty if no side has blocks.
    pub(super) fn blocks(&self) -> String {
        let chains = self.sides.each_ref().map(|side| Some(&side.figures.blocks.summary).filter(|it| it.blocks > 0));
        if chains.iter().flatten().next().is_none() {
            return String::new();
        }
        let mut out = String::from(
            "<section><h2>Blocks</h2><div class=\"wide\"><table class=\"changes\"><thead><tr><th></th><th>A</th><th>B</th>\
             <th>change</th></tr></thead><tbody>",
        );
        for Figure { name, value, show } in &FIGURES {
            let [a, b] = chains.map(|chain| chain.and_then(value));
            let cell = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), show);
            let change = a.zip(b).filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a - 1.0);
            let class = class(change);
            let change = change.map_or_else(String::new, percent_change);
            let (a, b) = (cell(a), cell(b));
            _ = write!(out, "<tr><td>{name}</td><td>{a}</td><td>{b}</td><td class=\"{class}\">{change}</td></tr>");
        }
        out.push_str("</tbody></table></div></section>");
        out
    }
}
