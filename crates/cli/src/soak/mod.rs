//! `eventring soak`: a stress test. Writers and readers stall, are stopped and are killed, all at the same time, and
//! every event is checked.

mod directory;
mod follow;
mod perf_follow;
mod spans;
mod visitors;
mod workload;
mod writer;

use super::exit::Exit;
use super::interrupt::Interrupt;
use directory::SoakDirectory;
use follow::FollowCounts;
use serde_json::json;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};
use visitors::Visitors;
use writer::WriterProcess;

pub(super) use writer::{SoakWriterArgs, run as run_writer};

/// The sizes of the exec ring. It is small, so that it goes through many laps. But it is large enough for payloads of
/// several MiB.
const SHIFTS: &str = ":15:24";

/// The suffix that turns the file name of the exec ring into the file name of the perf ring.
const PERF_SUFFIX: &str = ".perf";

/// Test small exec and perf rings under stress, and count the lost and torn events
///
/// Threads record and stall, with payloads of up to some MiB. Readers come and go and are killed. The writer is
/// stopped, killed and started again. Checksums show whether events are torn. A reader follows each ring from its first
/// event to its end and must account for every sequence number.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Duration in seconds
    #[arg(long, value_name = "N", default_value_t = 60.0, value_parser = super::demo::seconds)]
    seconds: f64,
    /// Number of recording threads
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
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

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::listen()?;
    let directory = SoakDirectory::create()?;
    let ring = directory.ring();
    let start = Instant::now();
    let end = start + Duration::from_secs_f64(args.seconds);
    let mut outcome = SoakOutcome::default();
    let mut round = 0u64;
    while Instant::now() < end && !interrupt.came() {
        round += 1;
        run_round(args, &ring, round, end, &mut outcome)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let mut out = anstream::stdout();
    if args.json {
        let SoakOutcome { events, laps, kills, stalls, readers, lost, expired, torn, hung, unaccounted } = outcome;
        writeln!(
            out,
            "{}",
            json!({
                "seconds": seconds, "events": events, "laps": laps, "kills": kills, "stalls": stalls, "readers": readers,
                "lost": lost, "expired": expired, "torn": torn, "hung": hung, "unaccounted": unaccounted,
            })
        )?;
    } else {
        writeln!(
            out,
            "{seconds:.0} seconds: {} events in {} laps of the ring, {} kills, {} stalls, {} readers\n\
             lost (counted): {}, payload expired: {}, torn: {}, hung: {}, unaccounted: {}",
            outcome.events,
            outcome.laps,
            outcome.kills,
            outcome.stalls,
            outcome.readers,
            outcome.lost,
            outcome.expired,
            outcome.torn,
            outcome.hung,
            outcome.unaccounted
        )?;
    }
    Ok(outcome.exit())
}

impl SoakOutcome {
    /// Returns the exit code. Losses are allowed if they were counted. Torn events, hung readers and unaccounted
    /// seqnos are failures.
    fn exit(&self) -> Exit {
        if self.torn + self.hung + self.unaccounted == 0 { Exit::Done } else { Exit::Failed }
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
fn run_round(args: &Args, ring: &Path, round: u64, end: Instant, outcome: &mut SoakOutcome) -> anyhow::Result<()> {
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
fn perf_ring(ring: &Path) -> std::path::PathBuf {
    let mut path = ring.as_os_str().to_owned();
    path.push(PERF_SUFFIX);
    path.into()
}

#[cfg(test)]
mod tests;
