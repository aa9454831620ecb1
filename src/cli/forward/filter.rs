//! The options that choose which events leave the host.

use eventring::__internals::forward::BatchFilter;
use eventring::schema::perf::CallSiteLevel;

/// The events that are sent; the others are counted, and are no loss.
#[derive(clap::Args)]
pub(super) struct FilterArgs {
    /// Send only typed events of this type; several times for several types. Spans are no typed events
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Send spans and log records of at most this level: error, warn, info, debug, trace
    #[arg(long, value_name = "LEVEL", value_parser = parse_level)]
    max_level: Option<CallSiteLevel>,
    /// Send only spans of this name and everything inside them; several times for several names
    #[arg(long = "span", value_name = "NAME")]
    spans: Vec<String>,
    /// Send only this part of the span trees, each whole: 0.01, or 1/100. The rate is in the data
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    sample: Option<u32>,
}

impl FilterArgs {
    pub(super) fn is_any(&self) -> bool {
        !self.types.is_empty() || !self.spans.is_empty() || self.max_level.is_some() || self.sample.is_some()
    }

    pub(super) fn filter(&self) -> BatchFilter {
        let mut filter = BatchFilter::new();
        for name in &self.types {
            filter = filter.event_type(name);
        }
        for name in &self.spans {
            filter = filter.span(name);
        }
        if let Some(level) = self.max_level {
            filter = filter.level(level);
        }
        if let Some(trees) = self.sample {
            filter = filter.sampled_per_million(trees);
        }
        filter
    }
}

fn parse_level(text: &str) -> Result<CallSiteLevel, &'static str> {
    use CallSiteLevel::{Debug, Error, Info, Trace, Warn};
    let named = |level: &CallSiteLevel| level.name().is_some_and(|name| name.eq_ignore_ascii_case(text));
    [Error, Warn, Info, Debug, Trace].into_iter().find(named).ok_or("expected error, warn, info, debug or trace")
}

/// Parses a part, and returns how many of a million it is.
fn parse_rate(text: &str) -> Result<u32, &'static str> {
    let rate: Option<f64> = match text.split_once('/') {
        Some((part, of)) => part.parse().ok().zip(of.parse().ok()).map(|(part, of): (f64, f64)| part / of),
        None => text.parse().ok(),
    };
    let rate = rate.filter(|rate| *rate > 0.0 && *rate <= 1.0);
    let trees = rate.map(|rate| (rate * 1e6).round() as u32).filter(|trees| *trees > 0);
    trees.ok_or("expected a part of the trees above 0 and up to 1, like 0.01 or 1/100, of a millionth at least")
}
