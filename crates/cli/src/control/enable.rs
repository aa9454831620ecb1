//! `eventring enable`, and the option `--enable` of other verbs.

use super::{Target, described};
use crate::args::amounts::parse_duration;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::text::format::duration;
use eventring::control::check_wish;
use eventring::control::{ControlError, Process, WishTime};
use eventring::tracing::TargetFilter;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The pause between two looks for Ctrl-C and for the end of the programs.
const PAUSE: Duration = Duration::from_millis(100);

/// Switch on what a running program records
///
/// The program needs a server: start it with EVENTRING_SERVER=1. What is switched on stays on until Ctrl-C, or as long
/// as --for says, or with --keep until `eventring disable`. Wishes of several users add up.
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

/// A recording that another verb has switched on. It is switched off when this value is dropped.
pub(crate) struct Enabled {
    _processes: Vec<Process>,
}

impl Enabled {
    /// Switches on `directive` in the programs of these rings, as long as the returned value lives.
    pub(crate) fn in_programs_of(rings: &[PathBuf], directive: &str) -> anyhow::Result<Self> {
        let mut processes: Vec<Process> = Vec::new();
        for ring in rings {
            for process in program_of(ring)? {
                // One connection to each program is enough.
                if !processes.iter().any(|known| known.address() == process.address()) {
                    wish(&process, directive, WishTime::Connection)?;
                    processes.push(process);
                }
            }
        }
        Ok(Self { _processes: processes })
    }
}

/// Connects to the program that records to a ring. The ring is written as a file, or as `PROCESS/RING`.
fn program_of(ring: &Path) -> Result<Vec<Process>, ControlError> {
    let process = ring.parent().and_then(Path::to_str).filter(|_| !ring.exists());
    if let Some(found) = process.filter(|process| !process.is_empty()).and_then(|process| Process::find(process).ok()) {
        return Ok(found);
    }
    Process::find(&ring.file_name().unwrap_or_default().to_string_lossy())
}

pub(crate) fn run(args: &EnableArgs) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::listen()?;
    let processes = args.target.find()?;
    let time = match args.time {
        Some(time) => WishTime::For(time),
        None if args.keep => WishTime::Kept,
        None => WishTime::Connection,
    };
    for process in &processes {
        let is_limited = wish(process, &args.directive, time)?;
        let until = match time {
            WishTime::For(time) => format!("for {}", duration(time)),
            WishTime::Kept => "until `eventring disable`".to_owned(),
            _ => "until Ctrl-C".to_owned(),
        };
        match is_limited {
            false => anstream::eprintln!("{} records {} {until}", described(process), args.directive),
            true => anstream::eprintln!("the wish for {} lives {until}", args.directive),
        }
    }
    if time != WishTime::Connection {
        return Ok(Exit::Done);
    }
    while !interrupt.came() {
        if processes.iter().all(Process::is_gone) {
            anstream::eprintln!("the program has ended, or its server");
            break;
        }
        std::thread::sleep(PAUSE);
    }
    Ok(Exit::Done)
}

/// Checks directives before any program is started or asked.
pub(crate) fn check(directives: &str) -> Result<(), Failure> {
    let of_spans = |list: &str| list.split(',').all(|directive| !directive.trim().starts_with("domain:"));
    let checked = check_wish(directives).and_then(|()| match of_spans(directives) {
        true => TargetFilter::parse(directives).map(|_| ()).map_err(|error| error.to_string()),
        // The program checks lists that have domains.
        false => Ok(()),
    });
    checked.map_err(|fault| Failure::new(Exit::Usage, format!("--enable: {fault}")))
}

/// Parses a time greater than 0.
fn parse_life(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("expected a time greater than 0, like 500ms, 10s or 2m".to_owned()),
        time => Ok(time),
    }
}

/// Makes a wish, and shows what the server says about it. Returns true if the server has said something.
fn wish(process: &Process, directive: &str, time: WishTime) -> Result<bool, ControlError> {
    let note = process.wish(directive, time)?;
    if !note.is_empty() {
        anstream::eprintln!("{}: {}", described(process), crate::text::format::one_line(&note));
    }
    Ok(!note.is_empty())
}
