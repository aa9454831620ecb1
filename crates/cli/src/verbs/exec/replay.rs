//! `eventring exec replay`.

use super::blocks::input::{Input, InputArgs};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::json_line;
use crate::text::format::{counted, events};
use crate::text::losses::report_problem;
use crate::text::paint::DIM;
use eventring::files::CONTENT_TYPE_EXEC;
use eventring::reader::PayloadRead;
use eventring::recorder::{ContentDescription, Recorder};
use eventring_exec::{ExecEvents, NextEvent, Replay};
use schemars::JsonSchema;
use serde::Serialize;
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// The longest time between two looks at Ctrl-C.
const TIMEOUT: Duration = Duration::from_millis(50);

/// Record a file's events again, into a live ring
///
/// The execution events of a snapshot, capture, EVCAP_01 file or archive: a stand-in for a node. The events have their
/// own times, words and payloads, and their own sequence numbers if the file begins with number 1 and has no gap.
/// Programs that read a node's ring read this one. The ring stays when this program ends, until another one takes the
/// name or `eventring clean --ended` removes it.
#[derive(clap::Args)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Name or path of the ring to make, and its size if it is not to have that of the recorded one: `node`,
    /// `node:256MiB`
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

pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<Exit> {
    let input = args.input.open()?;
    input.describe(args.json);
    // A ring that is still written is replayed up to its present end.
    let end = match &input {
        Input::Ring(ring) => ring.info().last_seqno,
        _ => u64::MAX,
    };
    let mut events_read = input.events(args.input.name())?;
    let recorder = recorder(args, &input, &events_read)?;
    let interrupt = Interrupt::listen()?;
    let ring = recorder.path().map(|path| path.display().to_string());
    let mut done = Done { ring, ..Done::default() };
    let began = Instant::now();
    while play(args.rate, &mut events_read, end, &recorder, &interrupt, &mut done) && args.again {
        events_read = input.events(args.input.name())?;
    }
    done.seconds = began.elapsed().as_secs_f64();
    if done.left_out > 0 {
        let text = format!("{} had no payload in the file, and are left out", events(done.left_out));
        report_problem(args.json, &text);
    }
    if args.json {
        json_line(&done)?;
    } else {
        let rounds = counted(done.rounds, "round", "rounds");
        say!("{DIM}{} in {rounds}, {:.1} s{DIM:#}", events(done.recorded), done.seconds);
    }
    Ok(input.report(&args.input.names, events_read.problems()))
}

/// Makes the ring, with the size of the recorded one unless the name says another.
fn recorder(args: &ReplayArgs, input: &Input, events: &ExecEvents) -> anyhow::Result<Recorder> {
    let description = ContentDescription::new(CONTENT_TYPE_EXEC, "EXEC")
        .schema_hash(events.schema_hash())
        .schema_text(events.schema_text());
    let builder = Recorder::builder(description).config(&args.ring).keep(true).prefault(false);
    let shift = |size: u64| size.max(1).ilog2();
    let sizes = match input {
        Input::Ring(ring) => {
            let geometry = ring.info().geometry;
            Some((geometry.descriptor_capacity(), geometry.payload_buf_bytes()))
        }
        Input::Saved(saved) => {
            let recorded = saved.capture.rings().iter().find(|ring| ring.is_exec());
            recorded.map(|ring| (ring.descriptor_capacity, ring.payload_buf_bytes))
        }
        Input::Stored(_) => None,
    };
    let builder = match sizes.filter(|_| !args.ring.to_string_lossy().contains(':')) {
        // The recorded ring may be smaller than the published ones are.
        Some((descriptors, bytes)) => builder.compact(true).shifts(shift(descriptors), shift(bytes)),
        None => builder,
    };
    Ok(builder.build()?)
}

/// What `exec replay --json` prints.
#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct Done {
    ring: Option<String>,
    recorded: u64,
    /// Events that had no payload in the file.
    left_out: u64,
    gaps: u64,
    rounds: u64,
    seconds: f64,
}

/// Replays the events once. Returns false if the user has ended it.
fn play(
    rate: Rate,
    events: &mut ExecEvents,
    end: u64,
    recorder: &Recorder,
    interrupt: &Interrupt,
    done: &mut Done,
) -> bool {
    let mut replay = Replay::new(recorder);
    let began = Instant::now();
    let mut first_nanos = None;
    done.rounds += 1;
    loop {
        let (descriptor, payload) = match events.next_timeout(Duration::ZERO) {
            NextEvent::Event(descriptor, _) if descriptor.seqno > end => return true,
            NextEvent::Event(descriptor, payload) => match payload.read() {
                PayloadRead::Valid(payload) => (descriptor, payload),
                _ => {
                    done.left_out += 1;
                    continue;
                }
            },
            NextEvent::Gap(gap) => {
                done.gaps += u64::from(gap.is_loss());
                continue;
            }
            NextEvent::NewRing => continue,
            NextEvent::TimedOut | NextEvent::Ended => return true,
        };
        if let Rate::Times(times) = rate {
            let first = *first_nanos.get_or_insert(descriptor.record_epoch_nanos);
            let recorded = Duration::from_nanos(descriptor.record_epoch_nanos.saturating_sub(first));
            let due = began + recorded.div_f64(times);
            while let Some(left) = due.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
                std::thread::sleep(left.min(TIMEOUT));
                if interrupt.came() {
                    return false;
                }
            }
        }
        replay.record(&descriptor, payload);
        done.recorded += 1;
        if done.recorded.is_multiple_of(1024) && interrupt.came() {
            return false;
        }
    }
}
