//! `eventring info`.

mod json;
mod survey;
mod text;

pub(super) use json::state as state_name;

use super::decoder::Decoder;
use super::exit::Exit;
use super::format::Clock;
use super::open::RingArgs;
use eventring::reader::{Reader, RingState};
use std::io::Write as _;
use survey::Survey;

/// Show what a ring or a snapshot is, who writes it, and which events are in it
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    ring: RingArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Show times in UTC, not in local time
    #[arg(long)]
    utc: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let reader = args.ring.open()?;
    let decoder = Decoder::of(&reader);
    let survey = Survey::of(&reader);
    let mut out = anstream::stdout().lock();
    if args.json {
        writeln!(out, "{}", json::object(&reader, &decoder, &survey))?;
    } else {
        text::write(&mut out, &reader, &decoder, &survey, &Clock::new(args.utc))?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Who writes the ring, or wrote it: pid, and whether it lives, where that is known.
pub(super) fn writer(reader: &Reader) -> Option<(u32, Option<bool>)> {
    let by_header = reader.info().extension.map(|extension| extension.writer.pid).filter(|pid| *pid != 0);
    let pid = by_header.or_else(|| reader.lock_owner_pid())?;
    Some((pid, is_alive(reader.state())))
}

fn is_alive(state: RingState) -> Option<bool> {
    match state {
        RingState::Live => Some(true),
        RingState::Unknown | RingState::Truncated => None,
        RingState::Ended | RingState::WriterDied | RingState::Saved => Some(false),
    }
}
