//! `eventring gateway`.

use super::exit::{Exit, Failure};
use super::format::{counted, grouped};
use super::interrupt::Interrupt;
use super::paint::{DIM, WARNING};
use super::ring_args::RingArgs;
use eventring_exec::{Blocks, Start, Wanted};
use eventring_gateway::Gateway;
use serde_json::json;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// Serve the blocks and logs of a ring of execution events to WebSocket clients: `eth_subscribe`
///
/// Subscriptions: newHeads, logs, monadNewHeads, monadLogs. Their second parameter may have `address`, `topics`, `min_stage`
/// and `resume_from`; docs/EXEC.md explains them. A gap in the ring is announced, and connections stay.
#[derive(clap::Args)]
pub(super) struct GatewayArgs {
    #[command(flatten)]
    ring: RingArgs,
    /// Address to listen at. Nobody is asked who they are
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8545")]
    listen: String,
    /// Begin with the oldest event in the ring, not with the block that is executed next
    #[arg(long)]
    from_oldest: bool,
    /// End this long after the ring has ended and no other one has come [default: never]
    #[arg(long, value_name = "TIME", value_parser = super::amounts::parse_duration)]
    linger: Option<Duration>,
    /// Print one JSON object when the gateway listens, and one at the end
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &GatewayArgs) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::listen()?;
    let ring = args.ring.open()?;
    let mut wanted = Wanted::TRANSACTIONS;
    wanted.input = false;
    let blocks = Blocks::of_ring(&ring, wanted).map_err(|error| super::blocks::refused(&ring, &error))?;
    let mut blocks = blocks.follow_restarts();
    blocks.seek(if args.from_oldest { Start::Oldest } else { Start::Newest });
    let refused = |error: std::io::Error| {
        let message = format!(
            "--listen {}: {error}; name an address of this host that is free, like 127.0.0.1:8545",
            args.listen
        );
        Failure::new(Exit::Failed, message)
    };
    let gateway = Gateway::listen(args.listen.as_str()).map_err(refused)?;
    let address = gateway.local_address()?;
    if args.json {
        writeln!(anstream::stdout(), "{}", json!({ "listening": address.to_string() }))?;
        anstream::stdout().flush()?;
    } else {
        anstream::eprintln!("listening at ws://{address}");
    }
    let ended = std::cell::Cell::new(None);
    let stats = gateway.serve(blocks, || {
        let is_finished = ring.is_finished();
        let since = ended.get().filter(|_| is_finished).or_else(|| is_finished.then(Instant::now));
        ended.set(since);
        let has_lingered = args.linger.zip(since).is_some_and(|(limit, since)| since.elapsed() >= limit);
        has_lingered || interrupt.came()
    });
    if args.json {
        let object =
            json!({ "clients": stats.clients, "refused": stats.refused, "news": stats.news, "lost": stats.lost });
        writeln!(anstream::stdout(), "{object}")?;
        return Ok(Exit::Done);
    }
    let clients = counted(stats.clients, "client", "clients");
    anstream::eprintln!("{DIM}{clients}, {} news of blocks{DIM:#}", grouped(stats.news));
    if stats.lost > 0 {
        anstream::eprintln!("{WARNING}slow clients lost {} news{WARNING:#}", grouped(stats.lost));
    }
    Ok(Exit::Done)
}
