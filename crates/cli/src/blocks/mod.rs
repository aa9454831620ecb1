//! `eventring blocks`.

mod shown;

use super::exit::{Exit, Failure};
use super::format::{counted, grouped};
use super::interrupt::Interrupt;
use super::losses::report_problem;
use super::paint::{DIM, WARNING};
use super::ring_args::RingArgs;
use super::saved;
use eventring::reader::Reader;
use eventring::schema::exec::{Address, Bytes32};
use eventring_exec::{
    BlockUpdate, Blocks, CommitState, NextUpdate, PendingBlocks, Start, UnknownSchema, Update, Wanted,
};
use shown::Shown;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

/// The longest time between two looks at Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(50);

/// Show the blocks of a ring of execution events, a snapshot or a capture: a line for each
///
/// A block of which events are missing is shown, with what is missing, and is not called complete. Without --follow, each
/// block has the state that it has at the end.
#[derive(clap::Args)]
pub(super) struct BlocksArgs {
    #[command(flatten)]
    ring: RingArgs,
    /// Wait for further blocks, also of the next ring of the name when the node is started again. A block is shown when it
    /// is executed, or when it reaches --min-stage
    #[arg(long)]
    follow: bool,
    /// Print one JSON object a line for each block
    #[arg(long)]
    json: bool,
    /// Only blocks that come as far as this: voted, finalized, verified
    #[arg(long, value_name = "STATE", value_parser = parse_stage)]
    min_stage: Option<CommitState>,
    /// Only transactions of this address: sender, receiver or contract of a log; several times for several. Blocks without
    /// such transactions are left out
    #[arg(long = "address", value_name = "ADDRESS")]
    addresses: Vec<Address>,
    /// Only transactions with a log that has this topic; several times for several
    #[arg(long = "topic", value_name = "TOPIC")]
    topics: Vec<Bytes32>,
    /// What to read beside transactions, receipts and logs: frames, accesses
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    with: Vec<With>,
    /// Where to begin in a ring: oldest, newest, a block's number, a block's id, or after:N for what follows the final block
    /// N
    #[arg(long, value_name = "WHERE", default_value = "oldest", value_parser = parse_start)]
    from: Start,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
enum With {
    /// Call frames.
    Frames,
    /// Accounts and storage slots that were accessed.
    Accesses,
}

fn parse_stage(text: &str) -> Result<CommitState, &'static str> {
    match text.parse() {
        Ok(CommitState::Abandoned) | Err(_) => Err("expected proposed, voted, finalized or verified"),
        Ok(state) => Ok(state),
    }
}

fn parse_start(text: &str) -> Result<Start, &'static str> {
    let number = |text: &str| text.parse().ok();
    match text {
        "oldest" => Some(Start::Oldest),
        "newest" => Some(Start::Newest),
        text if text.starts_with("0x") => text.parse().ok().map(Start::Id),
        text => match text.strip_prefix("after:") {
            Some(finalized) => number(finalized).map(Start::AfterFinalized),
            None => number(text).map(Start::Number),
        },
    }
    .ok_or("expected oldest, newest, a block's number, an id of 0x and 64 digits, or after:N")
}

pub(super) fn run(args: &BlocksArgs) -> anyhow::Result<Exit> {
    let names = [args.ring.name().to_path_buf()];
    if !saved::has_capture(&names) {
        let ring = args.ring.open()?;
        let blocks = Blocks::of_ring(&ring, args.wanted()).map_err(|error| refused(&ring, &error))?;
        return show(args, if args.follow { blocks.follow_restarts() } else { blocks });
    }
    if args.follow || args.from != Start::Oldest {
        let message = "--follow and --from need a ring: a capture is read from its beginning to its end";
        return Err(Failure::new(Exit::Usage, message).into());
    }
    let saved = saved::open(&names, false)?;
    let blocks = Blocks::of_capture(&saved.capture, args.wanted());
    let name = names[0].display();
    show(args, blocks.map_err(|error| Failure::new(Exit::WrongContentType, format!("{name}: {error}")))?)
}

pub(super) fn refused(ring: &Reader, error: &UnknownSchema) -> Failure {
    let is_other_content = ring.info().content_type != eventring::files::CONTENT_TYPE_EXEC;
    let exit = if is_other_content { Exit::WrongContentType } else { Exit::WrongSchema };
    let name = ring.path().map_or_else(String::new, |path| format!("{}: ", path.display()));
    Failure::new(exit, format!("{name}{error}"))
}

impl BlocksArgs {
    fn wanted(&self) -> Wanted {
        let mut wanted = Wanted::TRANSACTIONS;
        wanted.call_frames = self.with.contains(&With::Frames);
        wanted.accesses = self.with.contains(&With::Accesses);
        wanted
    }
}

fn show(args: &BlocksArgs, mut blocks: Blocks) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::listen()?;
    if !blocks.seek(args.from) {
        let message =
            "--from: the ring has no such block, or not any more; `eventring blocks` without it shows which it has";
        return Err(Failure::new(Exit::NotFound, message).into());
    }
    let mut pending = PendingBlocks::new(args.min_stage, args.follow);
    let mut shown = Shown::new(args.json, &args.addresses, &args.topics);
    let mut problems: BTreeMap<&'static str, (u64, String)> = BTreeMap::new();
    let mut out = anstream::stdout();
    // What the ring has is read without waiting. A live ring is left at its present end.
    let patience = if args.follow { PATIENCE } else { Duration::ZERO };
    loop {
        match blocks.next_timeout(patience) {
            NextUpdate::Update(BlockUpdate::Problem(problem)) => {
                let (count, _) = problems.entry(problem.kind()).or_insert_with(|| (0, problem.to_string()));
                *count += 1;
            }
            NextUpdate::Update(BlockUpdate::Changed(Update { state, block: Some(block), .. })) => {
                pending.change(block, state);
                while let Some((block, state)) = pending.pop() {
                    shown.write(&mut out, &block, state)?;
                }
            }
            NextUpdate::Update(_) => {}
            NextUpdate::TimedOut if args.follow => out.flush()?,
            NextUpdate::TimedOut | NextUpdate::Ended => break,
        }
        if interrupt.came() {
            break;
        }
    }
    for (block, state) in pending.rest() {
        shown.write(&mut out, &block, state)?;
    }
    out.flush()?;
    for (count, first) in problems.values() {
        let more = if *count > 1 { format!(" (and {} more like this)", grouped(count - 1)) } else { String::new() };
        report_problem(args.json, &format!("outside of any block that was read: {first}{more}"));
    }
    if !args.json {
        let (all, incomplete) = (shown.written, shown.incomplete);
        anstream::eprintln!("{DIM}{}{DIM:#}", counted(all, "block", "blocks"));
        if incomplete > 0 {
            anstream::eprintln!("{WARNING}{} not complete{WARNING:#}", counted(incomplete, "is", "are"));
        }
    }
    Ok(Exit::Done)
}
