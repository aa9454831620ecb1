//! `eventring demo`: one process records events, another process reads them, and the counts of both are compared.

mod checksum;
mod child;
mod reader;
mod screen;
mod workload;
mod writer;

use super::exit::{Exit, Failure};
use super::interrupt::Interrupt;
use child::{Child, ChildLine, Role};
use serde_json::json;
use std::io::{IsTerminal as _, Write as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

pub(super) use checksum::Checksum;
pub(super) use reader::{ReaderArgs, checksum, run as run_reader};
pub(super) use workload::Workload;
pub(super) use writer::{DemoWriterArgs, print_line, run as run_writer};

/// Time between two reports of a child.
const INTERVAL: Duration = Duration::from_millis(100);
/// The default sizes of the demo's ring: 2^18 descriptors and 2^27 bytes (128 MiB) of payload.
const SHIFTS: &str = ":18:27";
/// The sizes of the demo's ring if there is no room for the default sizes, as in a container with 64 MiB of /dev/shm:
/// 2^15 descriptors and 2^24 bytes of payload.
const SMALL_SHIFTS: &str = ":15:24";

/// Record events in one process, read them live in another, and count the recorded, read, lost and torn events
///
/// Several threads of the writing process record execution events with payloads of 0 bytes to 70 KiB. The reading
/// process follows the ring and checks each event by a checksum over its type, its other extension words and its
/// payload. Recorded = read + lost, always.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Recording time in seconds
    #[arg(long, value_name = "N", default_value_t = 5.0, value_parser = seconds)]
    seconds: f64,
    /// Number of recording threads
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// Events per second, all threads together; `max` for no limit, which is more than the reader can read
    #[arg(long, value_name = "N|max", default_value = "1000000", value_parser = rate)]
    rate: u64,
    /// Name or path of the ring, and its size: <name-or-path>[:<size>] [default:
    /// eventring-demo-PID:18:27, or a smaller ring if there is no room]
    #[arg(long, value_name = "RING")]
    ring: Option<String>,
    /// Keep the ring file at the end
    #[arg(long)]
    keep: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

/// Parses a number of seconds.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=1e6).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds from 0 to 1000000".into()),
    }
}

/// Parses a rate; 0 stands for `max`.
fn rate(text: &str) -> Result<u64, String> {
    match text {
        "max" => Ok(0),
        number => match number.parse() {
            Ok(rate) if rate > 0 => Ok(rate),
            _ => Err("expected a number of events per second, or max".into()),
        },
    }
}

/// Counts of a whole run.
#[derive(Clone, Debug, Default)]
struct DemoOutcome {
    /// Calls that recorded an event.
    recorded: u64,
    /// Events that the reader got with their payload.
    read: u64,
    /// Events that the reader missed.
    lost: u64,
    /// Events with a wrong checksum; they count as read, too.
    torn: u64,
    /// The number of holes: seqnos that a writing thread gave up, because this thread or another one was stalled.
    holes: u64,
    /// Events that became RECORD_ERROR.
    record_errors: u64,
    payload_bytes: u64,
    seconds: f64,
}

impl DemoOutcome {
    fn is_accounted(&self) -> bool {
        self.recorded == self.read + self.lost
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::listen()?;
    let (sender, lines) = channel();
    let (mut writer, ring) = start_writer(args, &sender, &lines)?;
    let mut reader = Child::start("demo-reader", std::slice::from_ref(&ring), Role::Reader, sender)?;
    wait_for("ready", Role::Reader, &lines, &mut reader)?;

    let shows = !args.quiet && (!args.json || std::io::stderr().is_terminal());
    let mut screen = screen::Screen::new(shows, args.threads, &ring, (writer.pid(), reader.pid()));
    writer.send_line("go")?;
    let outcome = follow(&lines, &mut writer, &mut reader, &mut screen, &interrupt)?;
    screen.end();

    let mut out = anstream::stdout();
    if args.json {
        writeln!(out, "{}", object(args, &ring, &outcome))?;
    } else {
        screen::report(&mut out, &outcome, &ring, args.keep)?;
    }
    Ok(if outcome.torn == 0 && outcome.is_accounted() { Exit::Done } else { Exit::Failed })
}

/// Starts the writing process and waits until its ring exists. Returns the process and the ring's path.
fn start_writer(
    args: &Args,
    sender: &Sender<(Role, ChildLine)>,
    lines: &Receiver<(Role, ChildLine)>,
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
        let mut writer = Child::start("demo-writer", &arguments, Role::Writer, sender.clone())?;
        match wait_for("ring", Role::Writer, lines, &mut writer) {
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
    from: Role,
    lines: &Receiver<(Role, ChildLine)>,
    child: &mut Child,
) -> Result<ChildLine, Failure> {
    loop {
        match lines.recv() {
            Ok((role, line)) if role == from => {
                if line.is_end() {
                    return Err(child.failure());
                }
                if line.has(field) {
                    return Ok(line);
                }
            }
            // The other child's output has ended. The wait for this child's line goes on.
            Ok(_) => {}
            Err(_) => return Err(child.failure()),
        }
    }
}

/// Receives the children's lines until both have ended.
fn follow(
    lines: &Receiver<(Role, ChildLine)>,
    writer: &mut Child,
    reader: &mut Child,
    screen: &mut screen::Screen,
    interrupt: &Interrupt,
) -> anyhow::Result<DemoOutcome> {
    let mut written = None;
    let mut read = None;
    loop {
        if interrupt.came() {
            // When its stdin is closed, the writer ends the ring and exits. The reader exits when it comes to the end
            // of the ring.
            writer.close_stdin();
        }
        let line = match lines.recv_timeout(INTERVAL) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        match line {
            (Role::Writer, line) if line.is_end() => {
                if written.is_none() {
                    return Err(writer.failure().into());
                }
            }
            (Role::Reader, line) if line.is_end() => {
                if read.is_none() {
                    return Err(reader.failure().into());
                }
            }
            (Role::Writer, line) if line.has("done") => written = Some(line),
            (Role::Reader, line) if line.has("done") => read = Some(line),
            (role, line) => screen.progress(role, &line),
        }
    }
    let (Some(written), Some(read)) = (written, read) else { return Err(reader.failure().into()) };
    let holes = written.number("refused_claims") + written.number("lapped_claims");
    Ok(DemoOutcome {
        recorded: written.number("recorded"),
        read: read.number("read"),
        // The reader's count of missing seqnos includes the holes. No event was lost with a hole, so the holes are
        // subtracted.
        lost: (read.number("gaps") + read.number("expired")).saturating_sub(holes),
        torn: read.number("torn"),
        holes,
        record_errors: read.number("record_errors"),
        payload_bytes: written.number("payload_bytes"),
        seconds: written.decimal("seconds"),
    })
}

fn object(args: &Args, ring: &str, outcome: &DemoOutcome) -> serde_json::Value {
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
