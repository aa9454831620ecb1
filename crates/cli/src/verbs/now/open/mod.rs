//! `eventring open`.

mod json;
mod locks;
pub(crate) mod screen;
mod shape;
mod stacks;
mod tree;

use crate::args::amounts::parse_duration;
use crate::args::limit::LimitArgs;
use crate::args::selection::Time;
use crate::exit::{Exit, Failure};
use crate::input::programs::processes::ProcessArgs;
use crate::input::{advice, saved};
use crate::interrupt::Interrupt;
use crate::text::format::{TimeFormat, columns, terminal_size};
use crate::text::losses::report_problem;
use crate::text::out::{Out, stdout};
use eventring::files::CONTENT_TYPE_PERF;
use eventring::now::NowReader;
use eventring::reader::{Reader, RingSet, SetRing};
use eventring_capture::{CaptureFile, CapturedRing};
use eventring_live::{Live, LiveOptions, LiveProgress, LiveState};
use eventring_profile::frames::last_stacks;
pub(crate) use json::{OpenAnswer, ProgramRow, programs};
use screen::OpenScreen;
pub(crate) use screen::{age, program_name, threads};
use stacks::ThreadStacks;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, IsTerminal as _, Stdout, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tree::OpenTree;

/// The longest time between two looks at Ctrl-C.
const TIMEOUT: Duration = Duration::from_millis(50);

/// Show the spans that are open now, or were at the end
///
/// Of a program that has died: those that were open then. Of a capture: those at its end, or at another time.
#[derive(clap::Args, Default)]
pub(crate) struct OpenArgs {
    /// Names or paths of rings, or snapshots; or capture files
    #[arg(value_name = "NAME")]
    names: Vec<PathBuf>,
    #[command(flatten)]
    process: ProcessArgs,
    /// In a capture: what was open at this time, as for --to of `export` [default: its end]
    #[arg(long, value_name = "TIME", value_parser = Time::parse, allow_hyphen_values = true)]
    at: Option<Time>,
    /// Only spans that have been open this long at least: 1s
    #[arg(long, value_name = "D", value_parser = parse_duration, default_value = "0", hide_default_value = true)]
    min_age: Duration,
    /// Show the open spans again and again, with this pause: 1s
    #[arg(long, value_name = "D", value_parser = parse_duration)]
    watch: Option<Duration>,
    /// Show each span on a line of its own, however many look the same
    #[arg(long)]
    all: bool,
    /// Show also the spans that may have been closed, because events were lost; otherwise they are one line
    #[arg(long)]
    perhaps: bool,
    /// Show the stack of each thread that is in a span: of a program that runs, where it is now, for which the thread
    /// is stopped for a moment; of a capture of `profile`, its last sample
    #[arg(long)]
    stacks: bool,
    /// Keep at most this many open spans of each program; further ones are counted
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    max_spans: usize,
    /// Print one JSON object; with --watch, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limit: LimitArgs,
    /// Show the time in UTC, not in local time
    #[arg(long)]
    utc: bool,
}

impl OpenArgs {
    /// Shows what was open at the end of a capture.
    pub(crate) fn of_capture(capture: PathBuf) -> Self {
        Self { names: vec![capture], max_spans: 1_000_000, ..Self::default() }
    }
}

pub(crate) fn run(args: &OpenArgs) -> anyhow::Result<Exit> {
    if saved::has_capture(&args.names) {
        return of_capture(args);
    }
    if args.at.is_some() {
        return Exit::Usage.fail("--at needs a capture; of rings, `open` shows the present");
    }
    of_rings(args)
}

/// The number of lines that other verbs show of what is open.
const LINES_MAX: usize = 20;

/// Returns what was open at a time of a capture, in a few lines.
pub(crate) fn lines_at(capture: &CaptureFile, epoch_nanos: u64) -> anyhow::Result<Vec<String>> {
    let options = LiveOptions::new().windows([]).without_self_times();
    let live = Live::of_capture(capture, Some(epoch_nanos), &options)?;
    let screen = OpenScreen {
        state: live.state(),
        tree: &OpenTree::new(live.state(), 0),
        stacks: &ThreadStacks::default(),
        columns: columns(&io::stderr()),
        rows: Some(LINES_MAX),
        shows_all: false,
        shows_perhaps: false,
        time: &TimeFormat::new(false),
    };
    Ok(screen.draw())
}

fn options(args: &OpenArgs, have_spans: bool) -> LiveOptions {
    // Programs without spans are shown by what they have recorded last. Otherwise counts are not shown.
    let window = Some(Duration::from_secs(10)).filter(|_| !have_spans);
    LiveOptions::new().open_spans_max(args.max_spans).windows(window).without_self_times()
}

fn of_capture(args: &OpenArgs) -> anyhow::Result<Exit> {
    if args.watch.is_some() {
        return Exit::Usage.fail("--watch needs rings: a capture does not change; use --at");
    }
    let saved = saved::open(&args.names, false)?;
    let at = args.at.map(|at| at.as_seen(args.utc).look_nanos(&saved.capture));
    let have_spans = saved.capture.rings().iter().any(CapturedRing::is_perf);
    let options = options(args, have_spans);
    let present = if at.is_none() { Live::of_captured_present(&saved.capture, &options)? } else { None };
    let live = present.map_or_else(|| Live::of_capture(&saved.capture, at, &options), Ok)?;
    let stacks = match args.stacks {
        true => last_stacks(&saved.capture, at.unwrap_or(u64::MAX))?,
        false => BTreeMap::new(),
    };
    let stacks = ThreadStacks(stacks.into_iter().map(|(thread, last)| ((None, thread), last.frames)).collect());
    OpenOutput::new(args).show(live.state(), &stacks)?;
    Ok(saved.report(&args.names, live.problems(), &[]))
}

fn of_rings(args: &OpenArgs) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::listen()?;
    let names = args.process.rings(&args.names)?;
    let _enabled = args.process.enable(&names)?;
    let rings = open_rings(&names)?;
    let have_spans = rings.iter().any(|ring| ring.info().content_type == CONTENT_TYPE_PERF);
    let mut output = OpenOutput::new(args);
    let options = options(args, have_spans);
    // Where the programs keep tables of what is open, nothing needs to be read of the rings.
    if let Some(mut live) = Live::of_present(set_of(rings.clone()), &options) {
        while !interrupt.came() {
            output.show_now(&live)?;
            let Some(pause) = args.watch.filter(|_| !live.state().have_ended()) else { break };
            let next = Instant::now() + pause;
            while Instant::now() < next {
                if interrupt.came() {
                    return Ok(Exit::Done);
                }
                std::thread::sleep(next.saturating_duration_since(Instant::now()).min(TIMEOUT));
            }
            let Some(next) = live.present_again(&options) else { return Ok(Exit::Done) };
            live = next;
        }
        check_whole(live.rings())?;
        return Ok(Exit::Done);
    }
    report_unreadable_tables(&rings);
    let mut live = Live::new(set_of(rings), &options);
    let mut progress = LiveProgress::Behind;
    while !live.has_reached_present() && progress != LiveProgress::Ended {
        if interrupt.came() {
            return Ok(Exit::Done);
        }
        progress = live.read(Duration::from_millis(10), |_, _| ());
    }
    loop {
        live.look_at_locks();
        output.show_now(&live)?;
        let Some(pause) = args.watch.filter(|_| progress != LiveProgress::Ended) else { break };
        let next = Instant::now() + pause;
        while Instant::now() < next && progress != LiveProgress::Ended {
            if interrupt.came() {
                return Ok(Exit::Done);
            }
            progress = live.read(next.saturating_duration_since(Instant::now()).min(TIMEOUT), |_, _| ());
        }
    }
    check_whole(live.rings())?;
    Ok(Exit::Done)
}

/// Opens the rings. Perf rings of another schema are left out, unless all rings are such.
pub(crate) fn open_rings(names: &[PathBuf]) -> anyhow::Result<Vec<Reader>> {
    let (rings, others) = saved::open_rings(names, advice::check_not_a_shard)?;
    if rings.is_empty() {
        let none = || Exit::NotFound.failure("the program has no rings").into();
        let other = others.into_iter().next();
        return Err(other.map_or_else(none, |error| advice::on_perf(&names[0], error)));
    }
    others.iter().for_each(|error| report_problem(false, &format!("left out: {error}")));
    Ok(rings)
}

/// Names the tables of the present that cannot be read. Then events tell what is open, as far as the rings have them.
pub(crate) fn report_unreadable_tables(rings: &[Reader]) {
    let unreadable = rings.iter().filter_map(|ring| NowReader::open_beside(ring).err());
    unreadable.for_each(|error| report_problem(false, &error.to_string()));
}

/// Returns a set of these rings, with all their shards.
pub(crate) fn set_of(rings: Vec<Reader>) -> RingSet {
    RingSet::options().from_readers(rings)
}

/// Returns an error if a page of a ring's file could not be read, for example because the file was truncated.
pub(crate) fn check_whole(rings: &RingSet) -> Result<(), Failure> {
    let lost = rings.rings().iter().filter_map(SetRing::reader).find_map(|ring| Some((ring, ring.lost_pages()?)));
    let Some((ring, lost)) = lost else { return Ok(()) };
    let name = ring.name().unwrap_or("ring".as_ref()).display().to_string();
    Exit::from_lost_pages(lost).fail(format!("{name}: {}", lost.advice()))
}

/// Where the open spans are shown.
struct OpenOutput<'a> {
    args: &'a OpenArgs,
    out: Out<Stdout>,
    time: TimeFormat,
    is_first: bool,
}

impl<'a> OpenOutput<'a> {
    fn new(args: &'a OpenArgs) -> Self {
        Self { args, out: stdout(), time: TimeFormat::new(args.utc), is_first: true }
    }

    fn show_now(&mut self, live: &Live) -> anyhow::Result<()> {
        let stacks = if self.args.stacks { ThreadStacks::now(live) } else { ThreadStacks::default() };
        self.show(live.state(), &stacks)
    }

    fn show(&mut self, state: LiveState<'_>, stacks: &ThreadStacks) -> anyhow::Result<()> {
        let min_age_nanos = u64::try_from(self.args.min_age.as_nanos()).unwrap_or(u64::MAX);
        if self.args.json {
            // No colours are looked for in what may be hundreds of megabytes.
            let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
            json::print(&mut out, &self.args.limit, state, min_age_nanos, stacks)?;
            return Ok(out.flush()?);
        }
        let redraws = self.args.watch.is_some() && io::stdout().is_terminal();
        let columns = columns(&io::stdout());
        let tree = OpenTree::new(state, min_age_nanos);
        let screen = OpenScreen {
            state,
            tree: &tree,
            stacks,
            columns,
            // The last line of the terminal stays free for the cursor.
            rows: rows().filter(|_| redraws).map(|rows| rows.saturating_sub(1)),
            shows_all: self.args.all,
            shows_perhaps: self.args.perhaps,
            time: &self.time,
        };
        let lines = screen.draw();
        if redraws {
            // The cursor goes to the upper left corner. Each line removes the rest of the one that it replaces. These
            // sequences go around `self.out`, which removes them with the colours if there are to be no colours.
            let cursor = |sequence: &str| io::stdout().write_all(sequence.as_bytes());
            cursor("\u{1b}[H")?;
            for line in &lines {
                write!(self.out, "{line}")?;
                cursor("\u{1b}[K\n")?;
            }
            cursor("\u{1b}[J")?;
        } else {
            if !self.is_first {
                writeln!(self.out)?;
            }
            for line in &lines {
                writeln!(self.out, "{line}")?;
            }
        }
        self.is_first = false;
        Ok(self.out.flush()?)
    }
}

/// Returns the height of the terminal.
pub(crate) fn rows() -> Option<usize> {
    terminal_size(&io::stdout()).map(|(_, rows)| rows).filter(|rows| *rows > 0)
}
