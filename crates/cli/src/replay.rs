//! `eventring replay`.

use super::exit::{Exit, Failure};
use super::format::{counted, events};
use super::interrupt::Interrupt;
use super::losses::report_problem;
use super::paint::DIM;
use super::saved;
use eventring::files::CONTENT_TYPE_EXEC;
use eventring::recorder::{ContentDescription, Recorder};
use eventring_capture::{CaptureFile, CapturedContent, CapturedPayload, CapturedRing};
use eventring_exec::Replay;
use serde_json::json;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The longest time between two looks at Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(50);

/// Record the execution events of a snapshot or capture again, into a live ring: a stand-in for a node
///
/// The events have their own times, words and payloads, and their own sequence numbers if the file begins with number 1
/// and has no gap. Programs that read a node's ring read this one. The ring stays when this program ends, until another one
/// takes the name or `eventring clean --ended` removes it.
#[derive(clap::Args)]
pub(super) struct ReplayArgs {
    /// A snapshot or a capture; or a ring
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Name or path of the ring to make, and its size if it is not to have that of the recorded one: `node`, `node:256MiB`
    #[arg(long, value_name = "NAME")]
    ring: OsString,
    /// How fast: 1x as it was recorded, 10x ten times as fast, max without waiting
    #[arg(long, value_name = "RATE", default_value = "max", value_parser = parse_rate)]
    rate: Rate,
    /// Begin again at the end, until Ctrl-C
    #[arg(long = "loop")]
    again: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy)]
enum Rate {
    Max,
    Times(f64),
}

fn parse_rate(text: &str) -> Result<Rate, &'static str> {
    if text == "max" {
        return Ok(Rate::Max);
    }
    let times = text.strip_suffix('x').and_then(|times| times.parse().ok());
    let times = times.filter(|times: &f64| times.is_finite() && *times > 0.0);
    times.map(Rate::Times).ok_or("expected max, or a factor like 1x, 0.5x or 10x")
}

pub(super) fn run(args: &ReplayArgs) -> anyhow::Result<Exit> {
    let saved = saved::open(std::slice::from_ref(&args.file), false)?;
    let rings = saved.capture.rings();
    let Some((ring, recorded)) = (0..).zip(rings).find(|(_, ring)| ring.is_exec()) else {
        let message = format!("{}: there are no execution events, and only these can be replayed", args.file.display());
        return Err(Failure::new(Exit::WrongContentType, message).into());
    };
    let recorder = recorder(args, recorded)?;
    let interrupt = Interrupt::listen()?;
    let mut done = Done::default();
    let began = Instant::now();
    while play(args.rate, &saved.capture, ring, &recorder, &interrupt, &mut done) && args.again {}
    let seconds = began.elapsed().as_secs_f64();
    if done.left_out > 0 {
        let text = format!("{} had no payload in the file, and are left out", events(done.left_out));
        report_problem(args.json, &text);
    }
    if args.json {
        let object = json!({
            "ring": recorder.path().map(|path| path.display().to_string()), "recorded": done.recorded,
            "left_out": done.left_out, "gaps": done.gaps, "rounds": done.rounds, "seconds": seconds,
        });
        writeln!(anstream::stdout(), "{object}")?;
    } else {
        let rounds = counted(done.rounds, "round", "rounds");
        anstream::eprintln!("{DIM}{} in {rounds}, {seconds:.1} s{DIM:#}", events(done.recorded));
    }
    Ok(Exit::Done)
}

/// Makes the ring, with the size of the recorded one unless the name says another.
fn recorder(args: &ReplayArgs, recorded: &CapturedRing) -> anyhow::Result<Recorder> {
    let description = ContentDescription::new(CONTENT_TYPE_EXEC, recorded.content_name.clone())
        .schema_hash(recorded.schema_hash)
        .schema_text(recorded.schema_text.clone());
    let builder = Recorder::builder(description).config(&args.ring).keep(true).prefault(false);
    let shift = |size: u64| size.max(1).ilog2();
    let builder = match args.ring.to_string_lossy().contains(':') {
        true => builder,
        false => builder.shifts(shift(recorded.descriptor_capacity), shift(recorded.payload_buf_bytes)),
    };
    Ok(builder.build()?)
}

/// The counts of a replay.
#[derive(Default)]
struct Done {
    recorded: u64,
    left_out: u64,
    gaps: u64,
    rounds: u64,
}

/// Replays the ring of the capture once. Returns false if the user has ended it.
fn play(
    rate: Rate,
    capture: &CaptureFile,
    ring: u32,
    recorder: &Recorder,
    interrupt: &Interrupt,
    done: &mut Done,
) -> bool {
    let mut replay = Replay::new(recorder);
    let began = Instant::now();
    let mut first_nanos = None;
    done.rounds += 1;
    for record in capture.events().filter(|record| record.ring == ring) {
        let (descriptor, payload) = match record.content {
            CapturedContent::Event { descriptor, payload: CapturedPayload::Valid(payload) } => (descriptor, payload),
            CapturedContent::Event { .. } => {
                done.left_out += 1;
                continue;
            }
            CapturedContent::Gap { .. } => {
                done.gaps += 1;
                continue;
            }
        };
        if let Rate::Times(times) = rate {
            let first = *first_nanos.get_or_insert(descriptor.record_epoch_nanos);
            let recorded = Duration::from_nanos(descriptor.record_epoch_nanos.saturating_sub(first));
            let due = began + recorded.div_f64(times);
            while let Some(left) = due.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
                std::thread::sleep(left.min(PATIENCE));
                if interrupt.came() {
                    return false;
                }
            }
        }
        replay.record(&descriptor, &payload);
        done.recorded += 1;
        if done.recorded.is_multiple_of(1024) && interrupt.came() {
            return false;
        }
    }
    true
}
