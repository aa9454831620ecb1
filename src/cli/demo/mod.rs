//! `eventring demo`: a writing process, a reading process, and what they say of each other.

mod checksum;
mod child;
mod reader;
mod screen;
mod workload;
mod writer;

use super::exit::{Exit, Failure};
use super::interrupt::Interrupt;
use child::{Child, Line};
use serde_json::json;
use std::io::{IsTerminal as _, Write as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

pub(super) use checksum::Checksum;
pub(super) use reader::{ReaderArgs, checksum, run as run_reader};
pub(super) use workload::Workload;
pub(super) use writer::{WriterArgs, run as run_writer, say};

/// How often the children tell where they are.
const INTERVAL: Duration = Duration::from_millis(100);
/// Sizes of the demo's ring unless told otherwise: 2^18 events, 128 MiB of payload.
const SHIFTS: &str = ":18:27";
/// Sizes where there is no room for that, as in a container with 64 MiB of /dev/shm.
const SMALL_SHIFTS: &str = ":15:24";

/// Record events in one process and read them in another, live, and count what was recorded, read, lost and torn
///
/// Several threads of the writing process record execution events with payloads of 0 bytes to 70 KiB. The reading process follows and
/// checks each: a checksum binds what is in the descriptor to what is in the payload. Recorded = read + lost, always.
#[derive(clap::Args)]
pub(super) struct Args {
    /// How long to record
    #[arg(long, value_name = "N", default_value_t = 5.0, value_parser = seconds)]
    seconds: f64,
    /// How many threads record
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// How many events are recorded a second, all threads together; `max` for as many as they can, which is more than the reader can
    /// read
    #[arg(long, value_name = "N|max", default_value = "1000000", value_parser = rate)]
    rate: u64,
    /// Name or path of the ring, and its size: <name-or-path>[:<descriptor-shift>:<payload-shift>] [default: eventring-demo-PID:18:27,
    /// or a smaller one if there is no room]
    #[arg(long, value_name = "RING")]
    ring: Option<String>,
    /// Keep the ring file at the end, to look at it
    #[arg(long)]
    keep: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

pub(super) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=1e6).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds from 0 to 1000000".into()),
    }
}

/// 0 is `max`.
fn rate(text: &str) -> Result<u64, String> {
    match text {
        "max" => Ok(0),
        number => match number.parse() {
            Ok(rate) if rate > 0 => Ok(rate),
            _ => Err("expected a number of events per second, or max".into()),
        },
    }
}

/// What came out of it.
#[derive(Clone, Debug, Default)]
struct Outcome {
    /// Events whose recording returned to the thread that recorded them.
    recorded: u64,
    /// Events that the reader has, whole.
    read: u64,
    /// Events that the reader missed.
    lost: u64,
    /// Events whose checksum is wrong; they are among those read.
    torn: u64,
    /// Sequence numbers that stand for no event: given up because a writer was stalled.
    holes: u64,
    /// Events that became RECORD_ERROR.
    record_errors: u64,
    payload_bytes: u64,
    seconds: f64,
}

impl Outcome {
    fn is_accounted(&self) -> bool {
        self.recorded == self.read + self.lost
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::listen()?;
    let (tell, told) = channel();
    let (mut writer, ring) = start_writer(args, &tell, &told)?;
    let mut reader = Child::start("demo-reader", std::slice::from_ref(&ring), child::Role::Reader, tell)?;
    wait_for("ready", child::Role::Reader, &told, &mut reader)?;

    let shows = !args.quiet && (!args.json || std::io::stderr().is_terminal());
    let mut screen = screen::Screen::new(shows, args.threads, &ring, (writer.pid(), reader.pid()));
    writer.say("go")?;
    let outcome = follow(&told, &mut writer, &mut reader, &mut screen, &interrupt)?;
    screen.end();

    let mut out = anstream::stdout();
    if args.json {
        writeln!(out, "{}", object(args, &ring, &outcome))?;
    } else {
        screen::report(&mut out, &outcome, &ring, args.keep)?;
    }
    Ok(if outcome.torn == 0 && outcome.is_accounted() { Exit::Done } else { Exit::Failed })
}

/// Starts the writer; gives it, and the ring's path, once the ring is there.
fn start_writer(
    args: &Args,
    tell: &std::sync::mpsc::Sender<(child::Role, Line)>,
    told: &Receiver<(child::Role, Line)>,
) -> anyhow::Result<(Child, String)> {
    let own = format!("eventring-demo-{}", std::process::id());
    let attempts = match &args.ring {
        Some(ring) if ring.contains(':') => vec![(ring.clone(), false)],
        Some(ring) => vec![(format!("{ring}{SHIFTS}"), false)],
        None => vec![(format!("{own}{SHIFTS}"), false), (format!("{own}{SMALL_SHIFTS}"), true)],
    };
    let last = attempts.len() - 1;
    for (index, (config, compact)) in attempts.into_iter().enumerate() {
        let mut arguments = vec![
            config,
            format!("--seconds={}", args.seconds),
            format!("--threads={}", args.threads),
            format!("--rate={}", if args.rate == 0 { "max".to_owned() } else { args.rate.to_string() }),
        ];
        arguments.extend(compact.then(|| "--compact".to_owned()));
        arguments.extend(args.keep.then(|| "--keep".to_owned()));
        let mut writer = Child::start("demo-writer", &arguments, child::Role::Writer, tell.clone())?;
        match wait_for("ring", child::Role::Writer, told, &mut writer) {
            Ok(line) => return Ok((writer, line.text("ring"))),
            Err(failure) if failure.exit() == Exit::NoSpace && index < last => {}
            Err(failure) => return Err(failure.into()),
        }
    }
    Err(Failure::new(Exit::Failed, "the writing process could not be started").into())
}

/// Waits for a child's line that has the field `field`.
fn wait_for(
    field: &str,
    from: child::Role,
    told: &Receiver<(child::Role, Line)>,
    child: &mut Child,
) -> Result<Line, Failure> {
    loop {
        match told.recv() {
            Ok((role, line)) if role == from => {
                if line.is_end() {
                    return Err(child.failure());
                }
                if line.has(field) {
                    return Ok(line);
                }
            }
            // The end of an earlier child.
            Ok(_) => {}
            Err(_) => return Err(child.failure()),
        }
    }
}

/// Listens to the children until both have ended.
fn follow(
    told: &Receiver<(child::Role, Line)>,
    writer: &mut Child,
    reader: &mut Child,
    screen: &mut screen::Screen,
    interrupt: &Interrupt,
) -> anyhow::Result<Outcome> {
    let mut written = None;
    let mut read = None;
    loop {
        if interrupt.came() {
            // The end of its stdin is the sign for the writer; the reader ends with the ring.
            writer.hush();
        }
        let line = match told.recv_timeout(INTERVAL) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        match line {
            (child::Role::Writer, line) if line.is_end() => {
                if written.is_none() {
                    return Err(writer.failure().into());
                }
            }
            (child::Role::Reader, line) if line.is_end() => {
                if read.is_none() {
                    return Err(reader.failure().into());
                }
            }
            (child::Role::Writer, line) if line.has("done") => written = Some(line),
            (child::Role::Reader, line) if line.has("done") => read = Some(line),
            (role, line) => screen.progress(role, &line),
        }
    }
    let (Some(written), Some(read)) = (written, read) else { return Err(reader.failure().into()) };
    let holes = written.number("refused_claims") + written.number("lapped_claims");
    Ok(Outcome {
        recorded: written.number("recorded"),
        read: read.number("read"),
        // A hole is a gap to a reader, but no event.
        lost: (read.number("gaps") + read.number("expired")).saturating_sub(holes),
        torn: read.number("torn"),
        holes,
        record_errors: read.number("record_errors"),
        payload_bytes: written.number("payload_bytes"),
        seconds: written.decimal("seconds"),
    })
}

fn object(args: &Args, ring: &str, outcome: &Outcome) -> serde_json::Value {
    json!({
        "recorded": outcome.recorded,
        "read": outcome.read,
        "lost": outcome.lost,
        "torn": outcome.torn,
        "seconds": outcome.seconds,
        "accounted": outcome.is_accounted(),
        "holes": outcome.holes,
        "record_errors": outcome.record_errors,
        "payload_bytes": outcome.payload_bytes,
        "events_per_second": if outcome.seconds > 0.0 { outcome.recorded as f64 / outcome.seconds } else { 0.0 },
        "threads": args.threads,
        "rate": (args.rate > 0).then_some(args.rate),
        "ring": ring,
    })
}
