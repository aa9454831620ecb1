//! `eventring enable`, and the option `--enable` of other verbs.

use super::{Target, described};
use crate::args::amounts::parse_duration;
use crate::exit::Exit;
use crate::input::programs::filter_overrides::add_override;
use crate::interrupt::Interrupt;
use crate::text::format::duration;
use eventring::control::{OverrideTime, Process};
use std::time::Duration;

/// The pause between two looks for Ctrl-C and for the end of the programs.
const PAUSE: Duration = Duration::from_millis(100);

/// Switch on what a running program records
///
/// The program needs a server: start it with EVENTRING_SERVER=1. What is switched on stays on until Ctrl-C, or as long
/// as --for says, or with --keep until `eventring disable`. Filter overrides of several users add up.
#[derive(clap::Args)]
pub(crate) struct EnableArgs {
    #[command(flatten)]
    target: Target,
    /// Directives to switch on, as in RUST_LOG, with spans and fields, or domains:
    /// `my_crate=debug,my_crate::db[query{user=7}]=trace`, `domain:orderbook`
    #[arg(value_name = "DIRECTIVE")]
    directive: String,
    /// Switch it off again after this time (500ms, 10s, 2m, 1h30m), and do not wait for it
    #[arg(long = "for", value_name = "TIME", value_parser = parse_life)]
    time: Option<Duration>,
    /// Leave it on until `eventring disable`, or until the program ends
    #[arg(long, conflicts_with = "time")]
    keep: bool,
}

pub(crate) fn run(args: &EnableArgs) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::listen()?;
    let processes = args.target.find()?;
    let time = match args.time {
        Some(time) => OverrideTime::For(time),
        None if args.keep => OverrideTime::Kept,
        None => OverrideTime::Connection,
    };
    for process in &processes {
        let is_limited = add_override(process, &args.directive, time)?;
        let until = match time {
            OverrideTime::For(time) => format!("for {}", duration(time)),
            OverrideTime::Kept => "until `eventring disable`".to_owned(),
            _ => "until Ctrl-C".to_owned(),
        };
        match is_limited {
            false => say!("{} records {} {until}", described(process), args.directive),
            true => say!("the filter override for {} lives {until}", args.directive),
        }
    }
    if time != OverrideTime::Connection {
        return Ok(Exit::Done);
    }
    while !interrupt.came() {
        if processes.iter().all(Process::is_gone) {
            say!("the program has ended, or its server");
            break;
        }
        std::thread::sleep(PAUSE);
    }
    Ok(Exit::Done)
}

/// Parses a time greater than 0.
fn parse_life(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("expected a time greater than 0, like 500ms, 10s or 2m".to_owned()),
        time => Ok(time),
    }
}
