//! `eventring info`.

mod damage;
mod json;
mod survey;
mod text;
mod whole;

pub(super) use json::state as state_name;

use super::decoder::Decoder;
use super::exit::Exit;
use super::format::{Clock, one_line};
use super::open::RingArgs;
use super::paint::WARNING;
use eventring::reader::{Reader, RingState};
use std::io::Write as _;
use whole::Whole;

/// Show what a ring or a snapshot is, who writes it, and which events are in it
///
/// Of a perf recorder: of all its shards.
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
    let whole = Whole::of(&reader);
    let mut out = anstream::stdout().lock();
    if args.json {
        writeln!(out, "{}", json::object(&reader, &decoder, &whole))?;
    } else {
        text::write(&mut out, &reader, &decoder, &whole, &Clock::new(args.utc))?;
    }
    out.flush()?;
    let mut exit = Exit::Done;
    for ring in whole.readers(&reader) {
        if let Some(lost) = ring.lost_pages() {
            exit = Exit::of_lost_pages(lost);
        }
        if let Some(problem) = damage::of(ring) {
            let name = ring.path().map(|path| one_line(&path.to_string_lossy())).unwrap_or_default();
            anstream::eprintln!(
                "{WARNING}warning:{WARNING:#} the header of the ring {name} is damaged: {problem}; what is said of its events cannot be \
                 relied on; copy it again, or record anew"
            );
            exit = Exit::Damaged;
        }
    }
    Ok(exit)
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
        RingState::Unknown | RingState::Truncated | RingState::NoMemory | RingState::Unreadable => None,
        RingState::Ended | RingState::WriterDied | RingState::Saved => Some(false),
    }
}
