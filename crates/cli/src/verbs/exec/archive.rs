//! `eventring exec archive`.

use super::blocks::input::{InputArgs, refused};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::output::json_line;
use crate::text::format::{bytes, counted, grouped};
use crate::text::losses::report_problem;
use crate::text::paint::DIM;
use eventring::reader::PayloadRead;
use eventring_capture::{CaptureError, OutputEntry};
use eventring_exec::{Archiver, BlockArchive, ExecEvents, NextEvent};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// The longest time between two looks at Ctrl-C.
const TIMEOUT: Duration = Duration::from_millis(50);

/// Write final blocks into an archive, a file for each
///
/// Those of a ring of execution events, or of captures. The file of block N is DIR/(N / 10000)/N.bcap: EVCAP_01 with
/// the header of January 2026, as the published archiver writes it. Blocks that are there already stay as they are. A
/// block of which events were lost is not written. If a file cannot be written, as on a full disk, the archive ends
/// before it.
#[derive(clap::Args)]
pub(crate) struct ArchiveArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Directory of the archive. It is made if it is not there
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Wait for further blocks, also of the next ring of the name when the node is started again
    #[arg(long)]
    follow: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
}

/// What `exec archive --json` prints.
#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct Written {
    archive: String,
    blocks: u64,
    bytes: u64,
    /// The smallest number of a block that was written.
    first: Option<u64>,
    last: Option<u64>,
    /// Final blocks of which events were lost, or that could not be written.
    not_archived: u64,
}

/// The reason why no more events are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// There are no more in this ring.
    End,
    User,
}

pub(crate) fn run(args: &ArchiveArgs) -> anyhow::Result<Exit> {
    let input = args.input.open()?;
    input.check_follow(args.follow)?;
    input.describe(args.json);
    let mut events = input.events(args.input.name())?;
    let name = args.output.display();
    std::fs::create_dir_all(&args.output)
        .map_err(|error| Failure::io(format_args!("{name}: cannot make the directory"), &error))?;
    if args.output.file_name().is_some() {
        OutputEntry::open(&args.output)?.check_link_owner()?;
    }
    let archive = BlockArchive::open(&args.output)?;
    let interrupt = Interrupt::listen()?;
    let mut written = Written { archive: name.to_string(), ..Written::default() };
    let failed = loop {
        let archiver = Archiver::new(archive.clone(), events.dialect().clone(), events.schema_hash());
        let mut archiver = archiver.all_final(events.is_archive());
        let stop = read(args, &mut events, &mut archiver, &interrupt, &mut written);
        written.not_archived += archiver.forgotten();
        match stop {
            // An archive whose disk is full has no further blocks: later ones would leave a hole before them.
            Err(error) => break Some(error),
            Ok(stop) if !args.follow || stop == Stop::User => break None,
            Ok(_) => {}
        }
        match events.reopen() {
            Some(opened) => opened.map_err(|error| refused(args.input.name(), &error))?,
            None => std::thread::sleep(TIMEOUT),
        }
    };
    if written.not_archived > 0 {
        let blocks = counted(written.not_archived, "final block is", "final blocks are");
        let problem = format!("{blocks} not in the archive: events were lost, or their execution was not seen");
        report_problem(args.json, &problem);
    }
    if args.json {
        written.not_archived += u64::from(failed.is_some());
        json_line(&written)?;
    } else {
        let range = match (written.first, written.last) {
            (Some(first), Some(last)) => format!(", {} to {}", grouped(first), grouped(last)),
            _ => String::new(),
        };
        let blocks = counted(written.blocks, "block", "blocks");
        say!("{DIM}{blocks}{range}, {} written to {name}{DIM:#}", bytes(written.bytes));
    }
    let exit = input.report(&args.input.names, events.problems());
    failed.map_or(Ok(exit), |error| Err(error.into()))
}

/// Reads events until there are no more, and writes blocks.
///
/// # Errors
/// A block cannot be written.
fn read(
    args: &ArchiveArgs,
    events: &mut ExecEvents,
    archiver: &mut Archiver,
    interrupt: &Interrupt,
    written: &mut Written,
) -> Result<Stop, CaptureError> {
    let timeout = if args.follow { TIMEOUT } else { Duration::ZERO };
    let mut count = 0_u64;
    loop {
        let done = match events.next_timeout(timeout) {
            NextEvent::Event(event, payload) => match payload.read() {
                PayloadRead::Valid(payload) => archiver.push(&event, Some(payload)),
                _ => archiver.push(&event, None),
            },
            NextEvent::Gap(gap) => {
                archiver.push_gap(gap);
                Ok(None)
            }
            NextEvent::NewRing => {
                archiver.next_ring();
                Ok(None)
            }
            NextEvent::TimedOut if args.follow => {
                if interrupt.came() {
                    return Ok(Stop::User);
                }
                Ok(None)
            }
            NextEvent::TimedOut | NextEvent::Ended => return Ok(if interrupt.came() { Stop::User } else { Stop::End }),
        };
        if let Some(block) = done? {
            written.blocks += 1;
            written.bytes += block.bytes;
            written.first = Some(written.first.map_or(block.number, |first| first.min(block.number)));
            written.last = written.last.max(Some(block.number));
        }
        count += 1;
        if count.is_multiple_of(1024) && interrupt.came() {
            return Ok(Stop::User);
        }
    }
}
