//! The section of blocks of execution events.

use super::block_bars::BlockBar;
use super::charts;
use super::figures::CaptureFigures;
use eventring_exec::ChainSummary;
use eventring_export::numbers::{counted, grouped, time};
use std::fmt::Write as _;

/// Returns a rate with three significant digits, or all of them.
pub(crate) fn rate(a_second: f64) -> String {
    let decimals = match a_second {
        rate if rate >= 100.0 => return grouped(rate.round() as u64),
        rate if rate >= 10.0 => 1,
        _ => 2,
    };
    format!("{a_second:.decimals$}")
}

impl CaptureFigures<'_> {
    /// Returns the section about blocks. It is empty if there are none.
    pub(super) fn blocks_section(&self) -> String {
        let (chain, outline) = (&self.blocks.summary, &self.outline);
        if chain.blocks == 0 {
            return String::new();
        }
        let mut out = String::from("<section><h2>Blocks</h2>");
        out.push_str(&notes(chain));
        out.push_str(&table(chain));
        let charts = [
            ("Gas", "gas", (|bar| bar.gas) as fn(&BlockBar) -> u64),
            ("Transactions", "transactions", |bar| bar.transactions),
        ];
        for (title, what, value) in charts {
            let chart = charts::blocks(&self.blocks.bars.bars, outline, what, value);
            _ = write!(out, "<h3>{title} per block</h3><div class=\"wide\">{chart}</div>");
        }
        out.push_str("</section>");
        out
    }
}

/// Says which block is the largest, how many transactions conflict, and which blocks are not whole.
fn notes(chain: &ChainSummary) -> String {
    let mut out = String::new();
    if let Some((number, most)) = chain.largest {
        let (most, conflicts) = (counted(most, "transaction", "transactions"), grouped(chain.conflicts));
        _ = write!(
            out,
            "<p class=\"note\">The largest block is {number} with {most}. {conflicts} of all transactions touched a storage \
             slot that an earlier one of their block had changed. The times of blocks are from BLOCK_START to BLOCK_END, \
             those of transactions are times of the EVM.</p>"
        );
    }
    let wrong = [
        (chain.blocks - chain.complete, "not complete"),
        (chain.rejected, "rejected"),
        (chain.reexecuted, "executed again"),
    ];
    for (count, what) in wrong.into_iter().filter(|(count, _)| *count > 0) {
        _ = write!(out, "<p class=\"cut\">{} {what}.</p>", counted(count, "block is", "blocks are"));
    }
    out
}

fn table(chain: &ChainSummary) -> String {
    let mut out = String::from("<div class=\"wide\"><table><thead><tr><th></th>");
    ["count", "a second", "p50", "p90", "p99", "max"].iter().for_each(|head| _ = write!(out, "<th>{head}</th>"));
    out.push_str("</tr></thead><tbody>");
    let rows = [
        ("blocks", chain.blocks, Some((&chain.block_nanos, chain.block_nanos_max))),
        ("transactions", chain.transactions, Some((&chain.txn_nanos, chain.txn_nanos_max))),
        ("gas", chain.gas_used, None),
    ];
    for (name, count, times) in rows {
        let a_second = chain.per_second(count).map_or("–".into(), rate);
        _ = write!(out, "<tr><td>{name}</td><td>{}</td><td>{a_second}</td>", grouped(count));
        let times = times.filter(|(nanos, _)| !nanos.is_empty());
        let quantile = |quantile| times.map(|(nanos, max)| nanos.value_at_quantile(quantile).min(max));
        for nanos in [quantile(0.5), quantile(0.9), quantile(0.99), times.map(|(_, max)| max)] {
            _ = write!(out, "<td>{}</td>", nanos.map_or_else(String::new, time));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits() {
        assert_eq!([0.5, 10.26, 99.96, 1234.5].map(rate), ["0.50", "10.3", "100.0", "1,235"]);
    }
}
