//! `eventring ask`.

use crate::exit::Exit;
use crate::text::format::TimeFormat;
use crate::text::out::stdout;
use eventring_ask::BUDGET_MIN_BYTES;
use std::io::Write as _;
use std::path::PathBuf;

/// Take a first look: what was recorded and lost, and red flags
///
/// Each flag has its threshold, and the next command about it. The answer has at most --budget bytes, whatever the
/// recording is; the most important things come first, and what was left out is counted (docs/ANSWERS.md).
#[derive(clap::Args)]
pub(crate) struct AskArgs {
    /// Capture files: one, those of a rotated capture, or captures of different programs; or rings
    #[arg(value_name = "FILE", required = true)]
    names: Vec<PathBuf>,
    /// The largest answer, in bytes; at least 1024
    #[arg(long, value_name = "BYTES", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(BUDGET_MIN_BYTES as i64..))]
    budget: u32,
    /// Print one JSON object
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print Markdown, as without this option
    #[arg(long)]
    markdown: bool,
    /// Show times in UTC, not in local time
    #[arg(long)]
    utc: bool,
}

pub(crate) fn run(args: &AskArgs) -> anyhow::Result<Exit> {
    let saved = crate::input::saved::open(&args.names, false)?;
    let look = eventring_ask::ask(&saved.capture, &args.names)?;
    let budget = args.budget as usize;
    let clock = TimeFormat::new(args.utc);
    let answer = match args.json {
        true => look.to_json(budget),
        false => look.to_markdown(budget, |nanos| clock.date_and_time(nanos)),
    };
    let mut out = stdout();
    out.write_all(answer.as_bytes())?;
    out.flush()?;
    Ok(saved.report(&args.names, look.problems(), &[]))
}
