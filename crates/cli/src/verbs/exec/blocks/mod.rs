//! `eventring exec blocks`.

pub(crate) mod input;
mod problem_log;
mod shown;

use crate::args::amounts::parse_duration;
use crate::args::limit::LineLimitArgs;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::check_reader;
use crate::text::format::counted;
use crate::text::out::stdout;
use crate::text::paint::{DIM, WARNING};
use eventring::schema::exec::{Address, Bytes32};
use eventring_exec::{
    BlockArchive, BlockUpdate, Blocks, CommitState, LastStates, NextUpdate, PendingBlocks, Start, Update, Wanted,
};
use input::{Input, InputArgs, refused};
use problem_log::ProblemLog;
use shown::Shown;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// The longest time between two looks at Ctrl-C.
const TIMEOUT: Duration = Duration::from_millis(50);

/// Show blocks, a line for each
///
/// Of a ring of execution events, of captures, of EVCAP_01 files or of an archive. A block of which events are missing
/// is shown, with what is missing, and is not called complete. Without --follow, what is there now is read twice, so
/// that each block has the state that it has at the end.
#[derive(clap::Args)]
pub(crate) struct BlocksArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Wait for further blocks, also of the next ring of the name when the node is started again. A block is shown when
    /// it is executed, or when it reaches --min-stage
    #[arg(long)]
    follow: bool,
    /// Print one JSON object a line for each block
    #[arg(long)]
    json: bool,
    /// Only blocks that come as far as this: voted, finalized, verified
    #[arg(long, value_name = "STATE", value_parser = parse_stage)]
    min_stage: Option<CommitState>,
    /// Only transactions of this address: sender, receiver or contract of a log; several times for several. Blocks
    /// without such transactions are left out
    #[arg(long = "address", value_name = "ADDRESS")]
    addresses: Vec<Address>,
    /// Only transactions with a log that has this topic; several times for several
    #[arg(long = "topic", value_name = "TOPIC")]
    topics: Vec<Bytes32>,
    /// What to read beside transactions, receipts and logs: frames, accesses
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    with: Vec<With>,
    /// Where to begin in a ring: oldest, newest, a block's number, a block's id, or after:N for what follows the final
    /// block N
    #[arg(long, value_name = "WHERE", default_value = "oldest", value_parser = parse_start)]
    from: Start,
    /// An archive of final blocks, beside a ring: blocks that the ring does not have any more, or has lost events of,
    /// are taken from there
    #[arg(long, value_name = "DIR")]
    archive: Option<PathBuf>,
    /// How long to wait for the archive to get a block, while later blocks are kept back
    #[arg(long, value_name = "TIME", requires = "archive", value_parser = parse_duration, default_value = "30s")]
    archive_wait: Duration,
    /// Only headers: transactions are not read, and `transactions` is empty
    #[arg(long, conflicts_with_all = ["addresses", "topics", "with"])]
    headers: bool,
    #[command(flatten)]
    limit: LineLimitArgs,
    /// Exit with code 16 if a block was not complete, or events outside of blocks were lost
    #[arg(long)]
    strict: bool,
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

pub(crate) fn run(args: &BlocksArgs) -> anyhow::Result<Exit> {
    let input = args.input.open()?;
    let is_ring = matches!(input, Input::Ring(_));
    input.check_follow(args.follow)?;
    if !is_ring && (args.archive.is_some() || !(args.from == Start::Oldest || matches!(input, Input::Stored(_)))) {
        return Exit::Usage.fail("--from and --archive need a ring: a capture is read from its beginning to its end");
    }
    input.describe(args.json);
    let interrupt = Interrupt::listen()?;
    let mut shown = Shown::new(args.json, &args.addresses, &args.topics, args.limit.part(0));
    let mut told = ProblemLog::new(args.json, args.follow);
    let blocks = if args.follow {
        args.follow_blocks(&input, &interrupt, &mut shown, &mut told)?
    } else {
        args.show_blocks(&input, &interrupt, &mut shown, &mut told)?
    };
    told.end();
    if args.json {
        shown.end(args.follow)?;
    } else {
        let (all, incomplete) = (shown.written, shown.incomplete);
        let cut = if shown.is_over() { " (there may be more)" } else { "" };
        say!("{DIM}{}{cut}{DIM:#}", counted(all, "block", "blocks"));
        if incomplete > 0 {
            say!("{WARNING}{} not complete{WARNING:#}", counted(incomplete, "is", "are"));
        }
    }
    if let Some(error) = blocks.refused() {
        return Err(refused(args.input.name(), error).into());
    }
    let problems = blocks.file_problems();
    if is_ring {
        told.files(&problems);
    }
    let exit = input.report(&args.input.names, &problems);
    Ok(exit.or_if(args.strict && (shown.incomplete > 0 || told.has_losses), Exit::Lost))
}

impl BlocksArgs {
    fn wanted(&self) -> Wanted {
        if self.headers {
            return Wanted::HEADERS;
        }
        let mut wanted = Wanted::TRANSACTIONS;
        wanted.call_frames = self.with.contains(&With::Frames);
        wanted.accesses = self.with.contains(&With::Accesses);
        wanted
    }

    /// Returns the blocks from the wanted place on.
    fn blocks(&self, input: &Input, wanted: Wanted) -> anyhow::Result<Blocks> {
        let mut blocks = Blocks::of_events(input.events(self.input.name())?, wanted);
        if let Some(directory) = &self.archive {
            blocks = blocks.with_archive(BlockArchive::open(directory)?, self.archive_wait);
        }
        if !blocks.seek(self.from) {
            let message = "--from: there is no such block, or not any more; `eventring exec blocks` without it shows which there are";
            return Exit::NotFound.fail(message);
        }
        Ok(blocks)
    }

    /// Shows what is there now, each block with its last state.
    fn show_blocks(
        &self,
        input: &Input,
        interrupt: &Interrupt,
        shown: &mut Shown<'_>,
        told: &mut ProblemLog,
    ) -> anyhow::Result<Blocks> {
        let mut out = stdout();
        // A live ring is left at its present end, both times.
        let end = match input {
            Input::Ring(ring) => ring.info().last_seqno,
            _ => u64::MAX,
        };
        let mut states = LastStates::default();
        let mut headers = self.blocks(input, Wanted::HEADERS)?.until(end);
        while let Some(update) = next_that_is_there(&mut headers, interrupt) {
            states.learn(&update);
        }
        if interrupt.came() {
            return Ok(headers);
        }
        let mut blocks = self.blocks(input, self.wanted())?.until(end);
        while let Some(update) = next_that_is_there(&mut blocks, interrupt) {
            if let BlockUpdate::Problem(problem) = &update {
                told.problem(problem);
            }
            if let Some((block, state)) = states.take(update).filter(|(_, state)| self.is_far_enough(*state)) {
                shown.write(&mut out, &block, state)?;
            }
        }
        out.flush()?;
        Ok(blocks)
    }

    fn is_far_enough(&self, state: CommitState) -> bool {
        self.min_stage.is_none_or(|stage| state >= stage && state != CommitState::Abandoned)
    }

    /// Shows blocks as they come.
    fn follow_blocks(
        &self,
        input: &Input,
        interrupt: &Interrupt,
        shown: &mut Shown<'_>,
        told: &mut ProblemLog,
    ) -> anyhow::Result<Blocks> {
        let mut out = stdout();
        let mut blocks = self.blocks(input, self.wanted())?.follow_restarts();
        let mut pending = PendingBlocks::new(self.min_stage);
        while !interrupt.came() && !shown.is_over() {
            match blocks.next_timeout(TIMEOUT) {
                NextUpdate::Update(BlockUpdate::Problem(problem)) => told.problem(&problem),
                NextUpdate::Update(BlockUpdate::Changed(Update { state, block: Some(block), .. })) => {
                    pending.change(block, state);
                    while let Some((block, state)) = pending.pop() {
                        shown.write(&mut out, &block, state)?;
                    }
                }
                NextUpdate::Update(_) => {}
                NextUpdate::TimedOut => {
                    out.flush()?;
                    check_reader()?;
                    told.files(&blocks.file_problems());
                    told.pause();
                }
                NextUpdate::Ended => break,
            }
        }
        out.flush()?;
        Ok(blocks)
    }
}

/// Returns the next news of what is there now. Only the archive is waited for. Returns `None` after Ctrl-C, too.
fn next_that_is_there(blocks: &mut Blocks, interrupt: &Interrupt) -> Option<BlockUpdate> {
    loop {
        let timeout = if blocks.waits_for_archive() { TIMEOUT } else { Duration::ZERO };
        match blocks.next_timeout(timeout) {
            _ if interrupt.came() => return None,
            NextUpdate::Update(update) => return Some(update),
            NextUpdate::TimedOut if blocks.waits_for_archive() => {}
            NextUpdate::TimedOut | NextUpdate::Ended => return None,
        }
    }
}
