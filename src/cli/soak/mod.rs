//! `eventring soak`: everything at once, for as long as you like, and what became of it.

mod follow;
mod perf_follow;
mod room;
mod spans;
mod visitors;
mod workload;
mod writer;

use super::exit::Exit;
use super::interrupt::Interrupt;
use follow::Followed;
use room::Room;
use serde_json::json;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};
use visitors::Visitors;
use writer::WriterProcess;

pub(super) use writer::{WriterArgs, run as run_writer};

/// The ring: small, so that it goes round often, with room for payloads of some MiB.
const SHIFTS: &str = ":15:24";

/// The perf ring's file is called as the exec ring's, with this behind it.
const PERF_SUFFIX: &str = ".perf";

/// Torture small rings, exec and perf: threads that record and stall, huge payloads, readers that come and go and are killed, a writer that is stopped,
/// killed and started again; then say what was tried, lost and torn
///
/// Every event carries a checksum over descriptor and payload. A reader follows each ring from its first event to its end and must
/// account for every sequence number.
#[derive(clap::Args)]
pub(super) struct Args {
    /// How long
    #[arg(long, value_name = "N", default_value_t = 60.0, value_parser = super::demo::seconds)]
    seconds: f64,
    /// How many threads record
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
}

/// What was tried and found.
#[derive(Clone, Debug, Default)]
struct Outcome {
    /// Sequence numbers handed out.
    events: u64,
    laps: u64,
    /// Writers and readers killed.
    kills: u64,
    /// Reservations held open while the others went on, and processes stopped.
    stalls: u64,
    /// Readers that came and went.
    readers: u64,
    /// Sequence numbers that the followers missed: overwritten, or never committed.
    lost: u64,
    /// Events whose payload had been overwritten when the followers came for it.
    expired: u64,
    /// Events that nobody recorded so.
    torn: u64,
    /// Readers that did not come to an end.
    hung: u64,
    /// Sequence numbers that were neither returned nor counted as lost.
    unaccounted: u64,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::listen()?;
    let room = Room::make()?;
    let ring = room.ring();
    let start = Instant::now();
    let end = start + Duration::from_secs_f64(args.seconds);
    let mut outcome = Outcome::default();
    let mut life = 0u64;
    while Instant::now() < end && !interrupt.came() {
        life += 1;
        one_life(args, &ring, life, end, &mut outcome)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let mut out = anstream::stdout();
    if args.json {
        let Outcome { events, laps, kills, stalls, readers, lost, expired, torn, hung, unaccounted } = outcome;
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

impl Outcome {
    /// Counted losses are none of the promises; everything else is.
    fn exit(&self) -> Exit {
        if self.torn + self.hung + self.unaccounted == 0 { Exit::Done } else { Exit::Failed }
    }

    /// Adds what a follower found, `None` if it never ended.
    fn follower(&mut self, found: Option<Followed>) {
        let Some(Followed { last_seqno, laps, read: _, lost, expired, torn, unaccounted }) = found else {
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

/// One writer's life, from the making of its ring to its death, or its end if the time is over.
fn one_life(args: &Args, ring: &Path, life: u64, end: Instant, outcome: &mut Outcome) -> anyhow::Result<()> {
    let mut writer = WriterProcess::start(ring, args.threads)?;
    let follower = follow::start(ring)?;
    let perf_follower = perf_follow::start(&perf_ring(ring))?;
    let visitors = Visitors::start(ring, life);
    // Some lives are short.
    let lifetime = Duration::from_millis(100 + life.wrapping_mul(0x9e37_79b9) % 2900);
    let death = (Instant::now() + lifetime).min(end);
    while Instant::now() < death {
        std::thread::sleep(Duration::from_millis(150).min(death.saturating_duration_since(Instant::now())));
        if writer.stop_for(Duration::from_millis(20)).is_ok() {
            outcome.stalls += 1;
        }
    }
    if death < end || life.is_multiple_of(2) {
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
    outcome.follower(follower.end());
    outcome.follower(perf_follower.end());
    Ok(())
}

/// Where the perf ring of the soak whose exec ring is at `ring` is.
fn perf_ring(ring: &Path) -> std::path::PathBuf {
    let mut path = ring.as_os_str().to_owned();
    path.push(PERF_SUFFIX);
    path.into()
}

#[cfg(test)]
mod tests;
