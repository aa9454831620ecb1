//! A stress test of small exec and perf rings. It counts the lost and the torn events.
//!
//! ```console
//! $ cargo run -p eventring-stress --bin soak -- --seconds 600 --json
//! ```
//!
//! Threads record and stall. Readers start, end and are killed. The writer is stopped, killed and started again.
//! Checksums show torn events. One reader follows each ring from its first event to its end, and must count every
//! sequence number as read or as lost.
//!
//! The exit code is 1 if an event is torn, a reader hangs, or a sequence number was not counted.
#![allow(missing_docs, reason = "a program")]

mod blocks;
mod checksum;
mod directory;
mod follow;
mod perf_follow;
mod spans;
mod visitors;
mod workload;
mod writer;

use directory::SoakDirectory;
use eventring::reader::Reader;
use follow::FollowCounts;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use visitors::Visitors;
use writer::WriterProcess;

/// Any error ends the soak with its message.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "usage: soak [--seconds N] [--threads N] [--json]";

/// The sizes of the exec ring. It is small, so that it goes through many laps. But it is large enough for payloads of
/// several MiB.
const SHIFTS: &str = ":15:24";

/// The suffix that turns the file name of the exec ring into the file name of the perf ring.
const PERF_SUFFIX: &str = ".perf";

/// The command line.
struct Args {
    time: Duration,
    /// Number of recording threads.
    threads: u16,
    /// Print one JSON object at the end.
    json: bool,
}

impl Args {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut args = Self { time: Duration::from_secs(60), threads: 4, json: false };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(USAGE);
            match argument.as_str() {
                "--seconds" => args.time = Duration::try_from_secs_f64(value()?.parse()?)?,
                "--threads" => args.threads = value()?.parse()?,
                "--json" => args.json = true,
                _ => return Err(USAGE.into()),
            }
        }
        Ok(args)
    }
}

/// Counts of the whole run.
#[derive(Clone, Debug, Default)]
struct SoakOutcome {
    /// Seqnos that were handed out.
    events: u64,
    laps: u64,
    /// Writers and readers that were killed.
    kills: u64,
    /// The number of stalls: reservations that a thread held open while other threads recorded, and times that the
    /// writing process was stopped.
    stalls: u64,
    /// Readers that were started.
    readers: u64,
    /// The number of seqnos that the followers missed, because the event was overwritten or never committed.
    lost: u64,
    /// The number of events that the followers read after the payload had been overwritten.
    expired: u64,
    /// Events with a wrong checksum.
    torn: u64,
    /// Readers that did not end.
    hung: u64,
    /// Seqnos that were neither read nor counted as lost.
    unaccounted: u64,
}

/// Runs the soak, or plays a part in one: the soak starts this program again as its writer, and as readers that it
/// kills.
fn main() -> Result<ExitCode> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["writer", ring, threads] => writer::run(Path::new(ring), threads.parse()?).map(|()| ExitCode::SUCCESS),
        ["reader", ring] => {
            follow::follow(&Reader::open(ring)?);
            Ok(ExitCode::SUCCESS)
        }
        _ => run(&Args::parse(arguments.drain(..))?),
    }
}

fn run(args: &Args) -> Result<ExitCode> {
    let directory = SoakDirectory::create()?;
    let ring = directory.ring();
    let start = Instant::now();
    let end = start + args.time;
    let mut outcome = SoakOutcome::default();
    let mut round = 0u64;
    while Instant::now() < end {
        round += 1;
        run_round(args, &ring, round, end, &mut outcome)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let is_good = outcome.is_good();
    let SoakOutcome { events, laps, kills, stalls, readers, lost, expired, torn, hung, unaccounted } = outcome;
    if args.json {
        println!(
            r#"{{"seconds":{seconds},"events":{events},"laps":{laps},"kills":{kills},"stalls":{stalls},"readers":{readers},"lost":{lost},"expired":{expired},"torn":{torn},"hung":{hung},"unaccounted":{unaccounted}}}"#
        );
    } else {
        println!(
            "{seconds:.0} seconds: {events} events in {laps} laps of the ring, {kills} kills, {stalls} stalls, {readers} \
             readers
lost (counted): {lost}, payload expired: {expired}, torn: {torn}, hung: {hung}, unaccounted: \
             {unaccounted}"
        );
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl SoakOutcome {
    /// Returns true unless events were torn, readers hung or seqnos are unaccounted. Losses are allowed if they were
    /// counted.
    fn is_good(&self) -> bool {
        self.torn + self.hung + self.unaccounted == 0
    }

    /// Adds the counts of a follower, or `None` if it hangs.
    fn add_follower(&mut self, counts: Option<FollowCounts>) {
        let Some(FollowCounts { last_seqno, laps, read: _, lost, expired, torn, unaccounted }) = counts else {
            self.hung += 1;
            return;
        };
        self.events += last_seqno;
        self.laps += laps;
        self.lost += lost;
        self.expired += expired;
        self.torn += torn;
        self.unaccounted += unaccounted;
    }
}

/// Runs one writing process, from the creation of its rings to its end. Usually the process is killed after a while.
/// In the last round, it may end normally instead.
fn run_round(args: &Args, ring: &Path, round: u64, end: Instant, outcome: &mut SoakOutcome) -> Result<()> {
    let mut writer = WriterProcess::start(ring, args.threads)?;
    let follower = follow::start(ring)?;
    let perf_follower = perf_follow::start(&perf_ring(ring))?;
    let visitors = Visitors::start(ring, round);
    let lifetime = Duration::from_millis(100 + round.wrapping_mul(0x9e37_79b9) % 2900);
    let death = (Instant::now() + lifetime).min(end);
    while Instant::now() < death {
        std::thread::sleep(Duration::from_millis(150).min(death.saturating_duration_since(Instant::now())));
        if writer.stop_for(Duration::from_millis(20)).is_ok() {
            outcome.stalls += 1;
        }
    }
    if death < end || round.is_multiple_of(2) {
        writer.kill()?;
        outcome.kills += 1;
    }
    outcome.stalls += writer.end()?;
    let visited = visitors.end();
    outcome.readers += visited.readers + 2;
    outcome.kills += visited.kills;
    outcome.torn += visited.torn;
    outcome.hung += visited.hung;
    outcome.unaccounted += visited.unaccounted;
    outcome.add_follower(follower.end());
    outcome.add_follower(perf_follower.end());
    Ok(())
}

/// Returns the path of the perf ring that belongs to the exec ring at `ring`.
fn perf_ring(ring: &Path) -> PathBuf {
    let mut path = ring.as_os_str().to_owned();
    path.push(PERF_SUFFIX);
    path.into()
}

#[cfg(test)]
mod tests;
