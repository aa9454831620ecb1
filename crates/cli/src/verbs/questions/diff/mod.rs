//! `eventring diff`.
//!
//! | file | idea |
//! |---|---|
//! | `tables` | the comparison for people |

pub(crate) mod tables;
#[cfg(test)]
mod tests;

use crate::args::limit::{self, LimitArgs};
use crate::exit::Exit;
use crate::input::measured::Measured;
use crate::text::format;
use crate::text::losses::report_problem;
use crate::text::out::stdout;
use eventring_report::compare::{ChangeLimit, Comparison};
use std::io::Write as _;
use std::path::PathBuf;

/// Compare the spans of two captures
///
/// Their instructions, their times and their numbers. The tables have what one span of a name takes in A, and how much
/// more or less it takes in B. `p50` and `p99` are the changes of percentiles of the durations. `sure` says whether the
/// durations differ significantly; it is empty if there are too few. Spans that only one side has are `new` or `gone`.
#[derive(clap::Args)]
pub(crate) struct DiffArgs {
    /// The captures A and B; with --with, all captures of side A
    #[arg(value_name = "CAPTURE", required = true)]
    captures: Vec<PathBuf>,
    /// The captures of side B, if a side has several, or the files of a rotated one: each number of a side is the
    /// median of its captures
    #[arg(long, value_name = "CAPTURE", num_args = 1..)]
    with: Vec<PathBuf>,
    /// Exit with code 18 if a span has changed so: `instructions(request)>+0.5%`. May be repeated
    ///
    /// A limit is MEASURE(SPAN) COMPARISON CHANGE. MEASURE: `count`, `total`, `self`, `busy`, `cpu`, `queue`, `sleep`,
    /// `p50`, `p90`, `p99`, `max`, `instructions`, `self_instructions`, `min_instructions`, `max_instructions`,
    /// `counted_spans`. SPAN: a name, also with its target; `*` stands for any characters. CHANGE: with its sign,
    /// percent of A (`+0.5%`), a time (`-1us`), a number (`+100`); or `0`. All is counted in whole numbers. A limit that
    /// names no span, or what was not counted or measured, is an error. One that cannot be judged, because spans of the
    /// name were not closed, is `incomplete`, and the exit code is 16
    #[arg(long = "fail-if", value_name = "LIMIT")]
    fail_if: Vec<ChangeLimit>,
    /// Limits of times forbid only changes that are significant
    #[arg(long)]
    significant: bool,
    /// The rate of false alarms: the probability that a span is called significant though no span has changed
    #[arg(long, value_name = "RATE", default_value = "0.01", value_parser = parse_rate)]
    alpha: f64,
    /// Show also the table of times if instructions were counted: under QEMU, times say little
    #[arg(long)]
    times: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limit: LimitArgs,
    /// Exit with code 16 if events were lost, or their payloads; what was overwritten before is no loss
    #[arg(long)]
    strict: bool,
}

/// Parses a rate of false alarms.
pub(crate) fn parse_rate(text: &str) -> Result<f64, &'static str> {
    let rate = text.parse().ok().filter(|rate| *rate > 0.0 && *rate < 1.0);
    rate.ok_or("expected a number between 0 and 1, like 0.01")
}

pub(crate) fn run(args: &DiffArgs) -> anyhow::Result<Exit> {
    let (a, b) = match (&*args.captures, &*args.with) {
        ([a, b], []) => (std::slice::from_ref(a), std::slice::from_ref(b)),
        (a, [_, ..]) => (a, &*args.with),
        (captures, []) => {
            return Exit::Usage.fail(format!(
                "{} given, expected two, A and B; if a side has several, or the files of a rotated capture, name those of B after --with",
                format::counted(captures.len() as u64, "capture is", "captures are")
            ));
        }
    };
    let [a, b] = [Measured::read(a, args.json)?, Measured::read(b, args.json)?];
    if a.filters != b.filters {
        let problem = "A and B were captured with different filters, so their numbers are not of the same events";
        report_problem(false, problem);
    }
    let mut comparison = Comparison::new(&a.summaries, &b.summaries, args.alpha);
    comparison.has_losses |= a.has_missing_files || b.has_missing_files;
    comparison.has_different_filters = a.filters != b.filters;
    let results = comparison.check_limits(&args.fail_if, args.significant);
    let results = results.map_err(|error| Exit::Usage.failure(error.to_string()))?;
    let mut out = stdout();
    if args.json {
        args.limit.write_whole(&comparison.answer(&results), "spans", limit::full_name)?;
    } else {
        tables::write(&mut out, &comparison, &results, args.times, format::columns(&std::io::stdout()))?;
    }
    out.flush()?;
    let is_incomplete = !results.incomplete.is_empty();
    let of_b = match b.exit_code(args.strict, is_incomplete || !results.exceeded.is_empty()) {
        Exit::Exceeded if is_incomplete => Exit::Lost,
        exit => exit,
    };
    Ok(a.exit_code(args.strict, false).or(of_b))
}
