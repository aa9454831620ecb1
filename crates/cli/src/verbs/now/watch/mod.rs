//! `eventring watch`.

mod captured;
mod columns;
mod json;
pub(crate) mod perf;
mod ring;
mod rings;
mod screen;
pub(crate) mod search;
mod select;
mod start;
mod summary;
mod text;

pub(crate) use json::{EventLine, WatchLine};

use crate::args::limit::{LineLimitArgs, Part};
use crate::args::selection::WindowRest;
use crate::exit::Exit;
use crate::input::names::unknown_names::SeenNames;
use crate::input::patterns::FollowedPatterns;
use crate::input::programs::processes::ProcessArgs;
use crate::input::ring_args::Expect;
use crate::input::saved;
use crate::interrupt::Interrupt;
use crate::output::check_reader;
use crate::output::json_line;
use crate::text::format::{TimeFormat, grouped};
use crate::text::paint::WARNING;
use crate::text::perf::{is_description, is_of_thread};
use crate::text::silence::Silence;
use eventring::reader::Gap;
use eventring::recorder::Clock;
use eventring_capture::condition::Truth;
use eventring_capture::recording::{EntryContent, RecordingEntry};
use ring::Ring;
use rings::{NextItem, Rings};
use select::{EventSelection, Select};
use start::{Start, StartOption};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use summary::WatchSummary;

/// The longest wait for an event or a gap. After this time, the watch flushes the output and checks whether the user
/// has pressed Ctrl-C.
const TIMEOUT: Duration = Duration::from_millis(50);

/// The number of events that are not selected between two looks whether somebody reads the output.
const LOOK_EVENTS: u64 = 1 << 16;

/// The time between two looks whether the terminal has caught up.
const TERMINAL_PAUSE: Duration = Duration::from_millis(5);

/// Show events as they are recorded, or those of a recording
///
/// A live ring is followed from its newest event on, until its writer ends or Ctrl-C. A ring that is not written any
/// more is shown from its oldest event to its last, and so is a capture. Several rings, and the shards of one, are
/// merged by time.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Names or paths of rings, or snapshots; or capture files
    ///
    /// A name without `/` is looked up in the ring directories (`event-rings/` on a hugetlbfs mount and in /dev/shm, or
    /// $EVENTRING_DIR), then in the current directory. A pattern such as 'shop*' means all rings that fit, also those
    /// that come later.
    #[arg(value_name = "RING")]
    names: Vec<PathBuf>,
    #[command(flatten)]
    process: ProcessArgs,
    #[command(flatten)]
    expect: Expect,
    /// Where to start: oldest, newest, block (the start of the current block of execution) or a sequence number; in a
    /// capture, a time, as for --to
    #[arg(long, value_name = "PLACE|TIME", value_parser = start::parse_from, allow_hyphen_values = true)]
    from: Option<StartOption>,
    /// Start N events before the newest event. The N events are the newest of all rings and shards together
    #[arg(long, value_name = "N", conflicts_with = "from")]
    last: Option<u64>,
    /// Stop after this many events
    #[arg(long, value_name = "N", conflicts_with = "limit")]
    count: Option<u64>,
    #[command(flatten)]
    limit: LineLimitArgs,
    #[command(flatten)]
    select: Select,
    #[command(flatten)]
    window: WindowRest,
    /// Wait for the ring if it does not exist; when its writer ends, wait for the next ring of this name, and go on.
    /// The watch looks 500 times a second, and cannot see a ring that is made and removed between two looks
    #[arg(long)]
    reopen: bool,
    /// Exit with code 16 if events were lost; what was overwritten before is no loss
    #[arg(long)]
    strict: bool,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    /// Leave nothing out: show all columns, whole payloads and lines, and the events of perf rings that describe call
    /// sites and threads, or say how long threads ran (JSON lines leave out only the latter)
    #[arg(long)]
    full: bool,
    /// Show times in UTC, not in local time
    #[arg(long)]
    utc: bool,
    /// No summary at the end
    #[arg(short, long)]
    quiet: bool,
}

impl Args {
    /// Makes the printer of events of these rings. Warns of rings whose payloads cannot be decoded.
    fn printer<'l>(&self, rings: &Rings, part: &'l mut Part) -> io::Result<Box<dyn Printer + 'l>> {
        for ring in rings.iter() {
            if let Some(problem) = ring.decoder.problem() {
                say!("{WARNING}warning:{WARNING:#} payloads are shown as hex: {problem}");
            }
        }
        if self.json {
            Ok(Box::new(json::JsonLines::new(rings.has_several(), part)))
        } else {
            text::to_stdout(rings, self.full, TimeFormat::new(self.utc))
        }
    }

    /// Returns true if names are asked for, of which it is said whether anything had them.
    fn asks_for_names(&self) -> bool {
        let events = self.select.events().selection();
        !events.spans.is_empty()
            || !events.threads.is_empty()
            || !events.targets.is_empty()
            || events.condition.is_some()
    }

    /// Returns after how many events the watch ends. JSON ends by itself.
    fn count(&self) -> Option<u64> {
        self.count.or(self.limit.limit.filter(|_| !self.json))
    }

    /// Writes what was cut of the lines, if that is asked for.
    fn end(&self, part: Part, is_early: bool) -> anyhow::Result<()> {
        if self.json && part.is_asked_for {
            let end = part.end(is_early, "no line has this id")?;
            json_line(&WatchLine::Cut(end))?;
        }
        Ok(())
    }

    /// Returns a test of types of events of perf rings: those that are not shown.
    fn hidden(&self) -> fn(u16) -> bool {
        if self.full || self.select.names_types() {
            |_| false
        } else if self.json {
            // A program that reads the lines needs the descriptions. The times of threads may be most of the events.
            is_of_thread
        } else {
            is_description
        }
    }
}

/// A form of output for events and losses.
trait Printer {
    /// Returns true if the output would take the next event if there was time to wait for it.
    fn is_full(&self) -> bool {
        false
    }
    /// Returns true if the output takes no further event.
    fn is_over(&self) -> bool {
        false
    }
    /// Returns true if the output cannot take the next event, which then counts as not shown.
    fn leaves_out(&mut self) -> io::Result<bool> {
        Ok(false)
    }
    /// Shows an event.
    fn event(&mut self, ring: &Ring, entry: &RecordingEntry<'_>) -> io::Result<()>;
    /// Shows a gap: events that were lost, or seqnos that never had an event.
    fn gap(&mut self, ring: &Ring, gap: Gap) -> io::Result<()>;
    /// Shows that a new ring of the same name is watched from now on. Its seqnos begin with 1 again.
    fn reopened(&mut self, ring: &Ring) -> io::Result<()>;
    /// Flushes the output.
    fn flush(&mut self, rings: &Rings) -> io::Result<()>;
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::listen()?;
    if saved::has_capture(&args.names) {
        args.process.refuse_enable("a capture")?;
        return captured::run(args, &args.names, &interrupt);
    }
    args.process.check_directive()?;
    let begun_nanos = Clock::global().now_epoch_nanos();
    let Some(names) = args.process.rings_or_wait(&args.names, args.reopen, &interrupt)? else { return Ok(Exit::Done) };
    if captured::has_all_of(args, &names) {
        return captured::run(args, &names, &interrupt);
    }
    if let Some(option) = args.window.used_of_captures() {
        return Exit::Usage.fail(format!("{option} selects a part of a capture; name a capture file"));
    }
    let mut silence = Silence::new(args.quiet);
    let from = args.from.as_ref().map(StartOption::in_rings).transpose()?;
    let start = from.or(args.last.map(Start::Last));
    let patterns = FollowedPatterns::new(&args.names).knowing(&names);
    if names != args.names && !args.quiet {
        let rings: Vec<String> = names.iter().map(|name| name.display().to_string()).collect();
        let later = if patterns.is_empty() {
            "that the program makes later are not shown"
        } else {
            "that fit later are shown, too"
        };
        say!("reading {}; rings {later}", rings.join(", "));
    }
    if args.reopen {
        ProcessArgs::check_lasting(&names)?;
    }
    let _enabled = args.process.enable(&names)?;
    let opened = Rings::open(&names, &args.expect, start, (args.reopen, begun_nanos), &interrupt, &mut silence)?;
    let Some(mut rings) = opened else { return Ok(Exit::Done) };
    rings.patterns = (patterns, args.expect.options());
    let mut part = args.limit.part(0);
    let mut printer = args.printer(&rings, &mut part)?;
    let mut summary = WatchSummary::new(Instant::now(), args.reopen);
    if args.last.is_some() {
        summary.earlier = rings.next_seqnos().map(|next| next - 1).sum();
    }
    let mut selection = args.select.on_rings(&rings)?;
    let mut seen = SeenNames::default();
    start.map_or(Ok(()), |start| start.check(&rings))?;
    loop {
        let mut output = WatchOutput {
            selection: &mut selection,
            is_hidden: args.hidden(),
            printer: printer.as_mut(),
            summary: &mut summary,
        };
        follow(&mut rings, &mut output, args.count(), &interrupt, &mut silence)?;
        printer.flush(&rings)?;
        // After a restart there are other rings.
        if !args.quiet && args.asks_for_names() {
            rings.iter().filter_map(|ring| ring.reader.as_ref()).for_each(|ring| seen.add_ring(ring));
        }
        if !rings.go_on() || summary.is_complete() || rings.check_whole().is_err() {
            break;
        }
        let Some((are_others, new)) = rings.wait_for_next(&interrupt, &mut silence)? else { break };
        if !args.quiet {
            let what = if are_others { "another ring fits" } else { "the ring was made anew" };
            say!("── {what} ──");
        }
        for ring in new.filter(|_| !are_others) {
            printer.reopened(ring)?;
        }
        selection = args.select.on_rings(&rings)?;
    }
    // The end of the output comes before the summary.
    drop(printer);
    args.end(part, summary.is_complete())?;
    if !args.quiet {
        summary.print(&rings);
        seen.report_unseen(&args.select.events());
    }
    rings.check_whole()?;
    Ok(if args.strict && summary.lost() > 0 { Exit::Lost } else { Exit::Done })
}

/// The selection of events, and the printer that shows them.
struct WatchOutput<'v> {
    selection: &'v mut EventSelection,
    /// Whether events of perf rings of this type are not shown.
    is_hidden: fn(u16) -> bool,
    printer: &'v mut dyn Printer,
    summary: &'v mut WatchSummary,
}

impl WatchOutput<'_> {
    /// Shows an entry that is selected.
    fn show(&mut self, ring: &Ring, entry: &RecordingEntry<'_>) -> io::Result<()> {
        if let EntryContent::Gap(gap) = entry.content {
            self.summary.gap(gap);
            return self.printer.gap(ring, gap);
        }
        let Some((event, payload)) = entry.event() else { return Ok(()) };
        if ring.is_perf && (self.is_hidden)(event.event_type) {
            self.summary.description();
            return Ok(());
        }
        if self.printer.leaves_out()? {
            self.summary.not_shown();
            return Ok(());
        }
        self.summary.event(&payload);
        self.printer.event(ring, entry)
    }
}

/// Shows events until all rings have ended, `count` events were shown, or the user stops the watch.
fn follow(
    rings: &mut Rings,
    output: &mut WatchOutput<'_>,
    count: Option<u64>,
    interrupt: &Interrupt,
    silence: &mut Silence,
) -> anyhow::Result<()> {
    let mut timeout = Duration::ZERO;
    loop {
        if count.is_some_and(|count| output.summary.shown >= count) || output.printer.is_over() {
            output.summary.complete("as many as asked for");
            return Ok(());
        }
        if interrupt.came() {
            output.summary.complete(summary::STOPPED);
            return Ok(());
        }
        // A ring without a writer loses nothing while the watch waits for the terminal.
        if output.printer.is_full() && rings.are_written_no_more() {
            std::thread::sleep(TERMINAL_PAUSE);
            continue;
        }
        let selection = &mut *output.selection;
        let Some(next) = rings.next(timeout, |ring, event| selection.needs(ring, event)) else {
            if rings.have_ended() {
                return Ok(());
            }
            output.printer.flush(rings)?;
            check_reader()?;
            timeout = TIMEOUT;
            silence.say(|| waits_for(rings, output.summary));
            continue;
        };
        let accepted = match &next {
            NextItem::Entry(ring, entry) => selection.accepts(ring, entry),
            NextItem::NotNeeded => Truth::No,
        };
        if !matches!(&next, NextItem::Entry(_, entry) if entry.event().is_none()) {
            timeout = Duration::ZERO;
            silence.ends();
        }
        output.summary.untested((accepted == Truth::Indeterminate).into());
        match next {
            NextItem::Entry(ring, entry) if accepted == Truth::Yes => output.show(ring, &entry)?,
            _ if output.summary.not_selected().is_multiple_of(LOOK_EVENTS) => {
                // Events that come without a pause may all be others.
                output.printer.flush(rings)?;
                check_reader()?;
            }
            _ => {}
        }
    }
}

/// Returns a notice about the event that the watch waits for, or an empty text if there is nothing to say.
fn waits_for(rings: &Rings, summary: &WatchSummary) -> String {
    match rings.waits_for() {
        Some((next, last)) if next <= last => format!("event {} is still being written", grouped(next)),
        Some((next, last)) if next > last + 1 => {
            format!("waiting for event {}; the newest is {}", grouped(next), grouped(last))
        }
        // The user has seen that the watch works, because events have come. So silence needs no notice.
        _ if summary.has_seen_events() => String::new(),
        Some((_, 0)) => "waiting for the first event".to_owned(),
        Some((_, 1)) => "waiting for events; 1 was recorded before".to_owned(),
        Some((_, last)) => format!("waiting for events; {} were recorded before", grouped(last)),
        None => "waiting for events".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;
    use eventring::schema::EventType as _;
    use eventring::schema::perf::PerfEvent::{CallSite, Event, ThreadStarted, ThreadSwitched, ThreadTime};

    #[derive(clap::Parser)]
    struct Watch {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn lines_leave_out_the_times_of_threads_unless_somebody_asks_for_them() {
        let hidden = |options: &[&str]| {
            let watch = Watch::try_parse_from([&["watch", "shop"], options].concat()).unwrap();
            let is_hidden = watch.args.hidden();
            [Event, ThreadStarted, CallSite, ThreadSwitched, ThreadTime].map(|event| is_hidden(event.code()))
        };
        assert_eq!(hidden(&[]), [false, true, true, true, true]);
        assert_eq!(hidden(&["--json"]), [false, false, false, true, true]);
        for asked in [&["--full"][..], &["--full", "--json"], &["--type", "THREAD_TIME"]] {
            assert_eq!(hidden(asked), [false; 5], "{asked:?}");
        }
    }
}
