//! `eventring receive`.

use super::broker::{BrokerArgs, connect, is_broker};
use super::progress::Problems;
use super::rings::LiveRings;
use crate::args::amounts::parse_duration;
use crate::args::rotation::RotationArgs;
use crate::exit::{Exit, Failure};
use crate::input::reading::spinner;
use crate::interrupt::Interrupt;
use crate::output::formats::{Format, export_files};
use crate::output::{self, directory, json_line};
use crate::text::format::{bytes, counted, events, one_line};
use crate::text::losses::{MissingEvents, report_problem};
use crate::text::paint::WARNING;
use crate::text::silence::Silence;
use eventring::reader::GapCause;
use eventring_capture::secret::SecretAddress;
use eventring_capture::{CaptureError, CaptureErrorKind, CaptureFile, ReadFiles};
use eventring_forward::{EventStream, ReceiveProgress, ReceiveSummary, Receiver, ReceiverOptions, Refusal, Share};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

/// The pause between two looks for a stream that does not exist yet.
const STREAM_PAUSE: Duration = Duration::from_millis(200);

/// Write what forwarders have sent to a stream into a capture
///
/// The file remembers how far it has come: with the same file, a receiver goes on where it was, even if it was killed.
#[derive(clap::Args)]
pub(crate) struct ReceiveArgs {
    /// The broker: nats://HOST:PORT or tls://HOST:PORT (several with commas)
    #[arg(value_name = "ADDRESS")]
    from: SecretAddress,
    #[command(flatten)]
    broker: BrokerArgs,
    /// The capture to write, or to go on with
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace a file that exists, or all files of a rotation set
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    rotation: RotationArgs,
    /// Wait for a stream that does not exist yet
    #[arg(long)]
    wait: bool,
    /// End when no batch has come for this time; while the broker or the stream is away, it goes on trying
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    until_idle: Option<Duration>,
    /// End when the programs of all received rings have ended, and the stream has nothing more
    #[arg(long)]
    until_end: bool,
    /// Take the rings of this host only
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Take rings of this name only
    #[arg(long, value_name = "NAME")]
    ring: Option<String>,
    /// Take one of several equal parts of the hosts, 2/3 for example; other receivers take the others
    #[arg(long, value_name = "PART/OF", value_parser = parse_share)]
    share: Option<Share>,
    /// Also record what comes, as it comes, into rings in this directory, which every verb reads live: DIR/HOST.RING
    #[arg(long, value_name = "DIR")]
    rings: Option<PathBuf>,
    /// Also write the whole capture as Parquet tables into this directory, at the end; it is replaced
    #[arg(long, value_name = "DIR")]
    parquet: Option<PathBuf>,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
    /// Exit with code 16 if events were lost, messages were left out, or a ring of --rings was not made
    #[arg(long)]
    strict: bool,
}

/// What `receive --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Received<'a> {
    file: Cow<'a, str>,
    files: Vec<Cow<'a, str>>,
    rings: usize,
    batches: u64,
    events: u64,
    /// Events in files that were removed.
    removed: u64,
    lost: u64,
    overwritten_before: u64,
    #[serde(rename = "given_up")]
    skipped: u64,
    filtered: u64,
    /// Messages that were left out.
    refused: u64,
    /// The first of their subjects.
    refusals: &'a [Refusal],
    /// Rings of `--rings` that were not made.
    rings_without_room: u64,
    bytes: u64,
    /// True if the programs of all received rings have ended, and the stream had nothing more.
    have_all_ended: bool,
}

pub(crate) fn run(args: &ReceiveArgs) -> anyhow::Result<Exit> {
    if !is_broker(args.from.expose()) {
        return Exit::Usage.fail(format!("{}: expected nats://HOST:PORT or tls://HOST:PORT", args.from));
    }
    if output::is_stdout(&args.output) {
        return Exit::Usage.fail("a receiver goes on with its file, and cannot with stdout; name a file");
    }
    if args.parquet.is_some() {
        Format::Parquet.check_built()?;
    }
    let interrupt = Interrupt::listen()?;
    let stream = open(args, &interrupt)?;
    let options = ReceiverOptions::new().overwrite(args.force).rotation(args.rotation.options()?);
    let options = args.host.iter().fold(options, ReceiverOptions::host);
    let options = args.ring.iter().fold(options, ReceiverOptions::ring);
    let options = args.share.into_iter().fold(options, ReceiverOptions::share);
    let receiver = Receiver::open(stream, &args.output, &options)?;
    let rings = RefCell::new(args.rings.as_deref().map(LiveRings::in_directory).transpose()?);
    let mut not_recorded = None;
    let bar = spinner();
    let mut added = |batch: &CaptureFile| {
        let Some(rings) = &mut *rings.borrow_mut() else { return };
        let recorded = rings.record(batch);
        for ring in rings.unsaid.drain(..) {
            bar.suspend(|| report_problem(false, &ring));
        }
        if let Err(error) = recorded
            && not_recorded.is_none()
        {
            bar.suspend(|| report_problem(true, &format!("{error:#}; the capture goes on")));
            not_recorded = Some(Exit::from_error(&error));
        }
    };
    let mut problems = Problems::with("the broker");
    let (mut silence, mut refusals_said) = (Silence::new(false), 0);
    let bytes_at_begin = receiver.bytes();
    let mut progress = |state: &ReceiveProgress| {
        bar.set_message(format!("{}, {}; Ctrl-C ends it", events(state.events), bytes(state.bytes)));
        bar.tick();
        problems.note(&bar, state.problem.as_deref());
        for refusal in &state.refusals[refusals_said..] {
            bar.suspend(|| report_problem(false, &format!("left out: {}", in_words(refusal))));
        }
        refusals_said = state.refusals.len();
        rings.borrow_mut().iter_mut().for_each(LiveRings::record_what_is_idle);
        if state.problem.is_none() && state.bytes == bytes_at_begin {
            bar.suspend(|| silence.say(|| awaited(args)));
        }
        let is_idle = args.until_idle.is_some_and(|time| state.problem.is_none() && state.idle >= time);
        let is_over = args.until_end && state.have_all_ended;
        if interrupt.came() || is_idle || is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let result = receiver.run(&mut added, &mut progress);
    bar.finish_and_clear();
    rings.borrow_mut().iter_mut().for_each(LiveRings::record_all);
    let without_room = rings.borrow().as_ref().map_or(0, |rings| rings.room.count_without());
    let ReceiveSummary { state, stats, files, .. } = result.map_err(|error| match error.path() {
        Some(_) => anyhow::Error::new(error),
        None => Failure::about(args.output.display(), error).into(),
    })?;
    if let Some(directory) = &args.parquet {
        directory::look(directory, Format::Parquet, true, &ReadFiles::default())?;
        let capture = CaptureFile::open_all(&files)?;
        directory::write_whole(directory, Format::Parquet, true, &ReadFiles::default(), |files| {
            Ok(export_files(&capture, Format::Parquet, files)?)
        })?;
    }
    if args.json {
        let received = Received {
            file: args.output.to_string_lossy(),
            files: files.iter().map(|file| file.to_string_lossy()).collect(),
            rings: stats.rings.len(),
            batches: state.batches,
            events: stats.events(),
            removed: stats.removed(),
            lost: stats.lost(),
            overwritten_before: stats.missing_by(GapCause::OverwrittenBefore),
            skipped: stats.skipped(),
            filtered: stats.filtered(),
            refused: state.refused,
            refusals: &state.refusals,
            rings_without_room: without_room,
            bytes: state.bytes,
            have_all_ended: state.have_all_ended,
        };
        json_line(&received)?;
    } else {
        let rings = counted(stats.rings.len() as u64, "ring", "rings");
        say!(
            "{} of {rings} ({}) in {}",
            events(stats.events()),
            bytes(state.bytes),
            match files.as_slice() {
                [first, .., last] => format!("{} files, {} to {}", files.len(), first.display(), last.display()),
                [only] => only.display().to_string(),
                [] => args.output.display().to_string(),
            }
        );
        if let Some(words) = MissingEvents::of_capture(&stats).in_words("; the capture says which") {
            say!("{words}");
        }
        if state.refused > 0 {
            say!(
                "{WARNING}{} left out; the stream still has them{WARNING:#}",
                counted(state.refused, "message was", "messages were")
            );
        }
        if without_room > 0 {
            say!(
                "{WARNING}{} not made (--rings): there was no room; the capture has their events{WARNING:#}",
                counted(without_room, "ring was", "rings were")
            );
        }
    }
    Ok(match not_recorded {
        Some(exit) => exit,
        None if args.strict && (stats.lost_since() > 0 || state.refused > 0 || without_room > 0) => Exit::Lost,
        None => Exit::Done,
    })
}

/// Returns a line about a subject with messages that were left out. A subject may be long.
fn in_words(refusal: &Refusal) -> String {
    const SUBJECT_CHARS_MAX: usize = 300;
    let subject: String = refusal.subject.chars().take(SUBJECT_CHARS_MAX).collect();
    one_line(&format!("a message with the subject {subject}: {}", refusal.why))
}

/// Returns what a receiver waits for, to which nothing has come.
fn awaited(args: &ReceiveArgs) -> String {
    let of = |what: &str, name: &Option<String>| {
        name.as_ref().map_or(String::new(), |name| format!(" of the {what} {name}"))
    };
    let stream = args.broker.stream.as_deref().unwrap_or_default();
    format!("waiting for batches{}{} in the stream {stream}", of("ring", &args.ring), of("host", &args.host))
}

/// Opens the stream, and waits for it if that is wanted.
fn open(args: &ReceiveArgs, interrupt: &Interrupt) -> anyhow::Result<EventStream> {
    let options = args.broker.options(&args.from)?;
    loop {
        let options = options.clone();
        match connect(interrupt, move || EventStream::open(&options)) {
            Err(error) if args.wait && is_not_there(&error) && !interrupt.came() => std::thread::sleep(STREAM_PAUSE),
            stream => return stream,
        }
    }
}

fn is_not_there(error: &anyhow::Error) -> bool {
    error.downcast_ref::<CaptureError>().is_some_and(|error| error.kind() == CaptureErrorKind::NotFound)
}

fn parse_share(text: &str) -> Result<Share, &'static str> {
    let numbers = text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
    numbers
        .and_then(|(part, of)| Share::new(part, of))
        .ok_or("expected a part, from 1, and how many there are, like 2/3")
}
