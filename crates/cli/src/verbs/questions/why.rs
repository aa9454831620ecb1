//! `eventring why`.

use crate::args::limit::LimitArgs;
use crate::exit::Exit;
use crate::text::format::{TimeFormat, counted, shown_name};
use crate::text::out::stdout;
use crate::text::paint::{BOLD, DIM, WARNING};
use eventring_capture::CaptureErrorKind;
use eventring_capture::numbers::time;
use eventring_profile::why::{Answer, Part, Question, WhySpan, why};
use serde_json::Value;
use std::io::{self, Write};
use std::path::PathBuf;

/// Say why spans were slow, and what is different about them
///
/// Where the time of the slowest went, and what they have more of than others of their name. The shares of a span add
/// up to 100 %: it computed, a child was there, it could have run and another thread did, it was blocked, its executor
/// was busy, it waited to be woken. What threads did, and what they waited for, is known from captures of `eventring
/// profile`. In other captures, threads may say themselves whether they ran, could have run or slept. Locks of
/// `eventring::sync` say who waited for them, and who held them. What is missing is
/// named.
#[derive(clap::Args)]
pub(crate) struct WhyArgs {
    /// Capture files: one, those of a rotated capture, or captures of different programs; or rings
    #[arg(value_name = "FILE", required = true)]
    names: Vec<PathBuf>,
    /// Name of the spans, or target and name: shop::query [default: those whose slow ones took most time]
    #[arg(long, value_name = "NAME")]
    span: Option<String>,
    /// How many of the slowest spans
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    slowest: u16,
    /// Only the span with this id, as `open`, `watch` and JSON lines show it
    #[arg(long, value_name = "ID", conflicts_with = "slowest")]
    id: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limit: LimitArgs,
}

pub(crate) fn run(args: &WhyArgs) -> anyhow::Result<Exit> {
    let saved = crate::input::saved::open(&args.names, true)?;
    let question = Question { span: args.span.clone(), slowest: args.slowest.into(), id: args.id };
    let answer = why(&saved.capture, &question).map_err(|error| match error.kind() {
        CaptureErrorKind::Damaged if saved.capture.is_truncated() => Exit::Truncated.failure(error.to_string()).into(),
        _ => anyhow::Error::from(error),
    })?;
    let mut out = stdout();
    if args.json {
        // Programs of several captures may have spans with the same number.
        let id = |span: &Value| format!("{}:{}", span["id"], span["start_ns"]);
        args.limit.write_whole(&answer, "spans", id)?;
    } else {
        write(&mut out, &answer)?;
    }
    out.flush()?;
    Ok(saved.report(&args.names, &answer.problems, &[]))
}

fn write(out: &mut impl Write, answer: &Answer) -> io::Result<()> {
    for span in &answer.spans {
        write_span(out, span)?;
    }
    let (spans, median) = (counted(answer.count, "span", "spans"), time(answer.median_nanos));
    writeln!(out, "{DIM}of {spans}, of which half take {median} or less{DIM:#}")?;
    for found in &answer.difference {
        let (what, slow, normal, p) = (&found.what, found.slow, found.normal, found.p);
        writeln!(out, "{BOLD}{what}{BOLD:#}: {slow:.0} % of the slow ones, {normal:.0} % of the others (p {p:.0e})")?;
    }
    for missing in &answer.missing {
        writeln!(out, "{WARNING}not known:{WARNING:#} {missing}")?;
    }
    Ok(())
}

/// Writes the name of a span, how long it took and why, and under it where its time went.
fn write_span(out: &mut impl Write, span: &WhySpan) -> io::Result<()> {
    let took = time(span.nanos);
    write!(out, "{BOLD}{}{BOLD:#} took {took}: ", shown_name(&span.name))?;
    match &span.cause {
        Some(cause) => writeln!(out, "{WARNING}{}{WARNING:#}: {}", cause.kind.name(), cause.evidence)?,
        None => writeln!(out, "not slow, or nothing stands out")?,
    }
    let mut parts: Vec<(Part, f64)> = Part::ALL.map(|part| (part, span.shares.percent(part))).to_vec();
    parts.retain(|(_, percent)| *percent >= 0.05);
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let shares: Vec<String> = parts.iter().map(|(part, percent)| format!("{} {percent:.1} %", part.name())).collect();
    let at = TimeFormat::new(false).time(span.start_nanos);
    let about = span.shares.about();
    writeln!(out, "    {about}{}  {DIM}at {at}, id {}{DIM:#}", shares.join(", "), span.id)?;
    span.locks.iter().try_for_each(|lock| writeln!(out, "    {lock}"))
}
