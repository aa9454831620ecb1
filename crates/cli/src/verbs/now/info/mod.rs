//! `eventring info`.

mod damage;
mod json;
mod text;

use crate::exit::Exit;
use crate::input::names::decoder::Decoder;
use crate::input::ring::report::RingReport;
use crate::input::ring_args::RingArgs;
use crate::output::json_line;
use crate::text::format::TimeFormat;
use crate::text::out::stdout;
use crate::text::paint::WARNING;
pub(crate) use json::Info;
use std::io::Write as _;

/// Show the properties of a ring or a snapshot, its writer, and the number of events of each type
///
/// For a perf recorder, the report covers all its shards.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Show times in UTC, not in local time
    #[arg(long)]
    utc: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let reader = args.ring.open()?;
    let decoder = Decoder::for_ring(&reader);
    let all = RingReport::new(reader).with_events();
    let mut out = stdout();
    if args.json {
        json_line(&Info::new(&decoder, &all))?;
    } else {
        text::write(&mut out, &decoder, &all, &TimeFormat::new(args.utc))?;
    }
    out.flush()?;
    let mut exit = Exit::Done;
    for ring in all.readers() {
        if let Some(lost) = ring.lost_pages() {
            exit = Exit::from_lost_pages(lost);
        }
        if let Some(problem) = damage::find(ring) {
            let name = ring.path().or(ring.name()).map(|path| path.to_string_lossy()).unwrap_or_default();
            say!(
                "{WARNING}warning:{WARNING:#} the header of the ring {name} is damaged: {problem}; the numbers above may be wrong; \
                 copy the ring again, or record again"
            );
            exit = Exit::Damaged;
        }
    }
    Ok(exit)
}
