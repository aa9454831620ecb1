//! `eventring soak`: stalled, stopped and killed writers and readers, all at the same time, with every event checked.

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

/// Sizes of the exec ring: small, so that it has many laps, and large enough for payloads of some MiB.
const SHIFTS: &str = ":15:24";

/// The suffix that makes the perf ring's file name from the exec ring's.
const PERF_SUFFIX: &str = ".perf";

/// Test small exec and perf rings under stress, and count the lost and torn events
///
/// Threads record and stall, with payloads of up to some MiB. Readers come and go and are killed. The writer is
/// stopped, killed and started again. Every event carries a checksum over descriptor and payload. A reader follows each
/// ring from its first event to its end and must account for every sequence number.
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
    /// Reservations that were held open while other threads recorded, and processes that were stopped.
    stalls: u64,
    /// Readers that were started.
    readers: u64,
    /// Seqnos that the followers missed: overwritten, or never committed.
    lost: u64,
    /// Events whose payload had been overwritten before the followers read it.
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
    /// Returns the exit code. Counted losses are allowed; torn events, hung readers and unaccounted seqnos are not.
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

/// Runs one writer process from the creation of its ring to its death, or to its normal end if the time is over.
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

/// Returns the path of the perf ring for the exec ring at `ring`.
fn perf_ring(ring: &Path) -> std::path::PathBuf {
    let mut path = ring.as_os_str().to_owned();
    path.push(PERF_SUFFIX);
    path.into()
}

#[cfg(test)]
mod tests;
