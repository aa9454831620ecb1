//! `eventring exec gateway`.

use crate::exit::{Exit, Failure};
use crate::input::ring_args::RingArgs;
use crate::interrupt::Interrupt;
use crate::output::json_line;
use crate::text::format::{counted, grouped};
use crate::text::losses::report_problem;
use crate::text::out::stdout;
use crate::text::paint::{DIM, WARNING};
use eventring_exec::{BlockArchive, Blocks, Start, Wanted};
use eventring_gateway::Gateway;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// Serve blocks and logs to WebSocket clients: `eth_subscribe`
///
/// Those of a ring of execution events. Subscriptions: newHeads, logs, monadNewHeads, monadLogs. Their second parameter
/// may have `address`, `topics`, `min_stage` and `resume_from`; docs/EXEC.md explains them. A gap in the ring is
/// announced, and connections stay.
#[derive(clap::Args)]
pub(crate) struct GatewayArgs {
    #[command(flatten)]
    ring: RingArgs,
    /// Address to listen at. Nobody is asked who they are
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8545")]
    listen: String,
    /// Begin with the oldest event in the ring, not with the block that is executed next
    #[arg(long)]
    from_oldest: bool,
    /// Origin of web pages that may connect, like https://example.org; several times for several; * for all. Without it
    /// no page may, because a browser lets every page connect to this host
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    allow_origins: Vec<String>,
    /// An archive of final blocks: blocks of which the ring has lost events are taken from there
    #[arg(long, value_name = "DIR")]
    archive: Option<PathBuf>,
    /// How long to wait for the archive to get a block, while later blocks are kept back
    #[arg(long, value_name = "TIME", requires = "archive", value_parser = crate::args::amounts::parse_duration, default_value = "30s")]
    archive_wait: Duration,
    /// End this long after the ring has ended and no other one has come [default: never]
    #[arg(long, value_name = "TIME", value_parser = crate::args::amounts::parse_duration)]
    linger: Option<Duration>,
    /// Print one JSON object when the gateway listens, and one at the end
    #[arg(long)]
    json: bool,
}

/// What `exec gateway --json` prints when it listens.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Listening {
    /// The address.
    listening: String,
}

pub(crate) fn run(args: &GatewayArgs) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::listen()?;
    let ring = args.ring.open()?;
    let mut wanted = Wanted::TRANSACTIONS;
    wanted.input = false;
    let blocks =
        Blocks::of_ring(&ring, wanted).map_err(|error| super::blocks::input::refused(args.ring.name(), &error))?;
    let mut blocks = blocks.follow_restarts();
    if let Some(directory) = &args.archive {
        blocks = blocks.with_archive(BlockArchive::open(directory)?, args.archive_wait);
    }
    blocks.seek(if args.from_oldest { Start::Oldest } else { Start::Newest });
    let refused = |error: std::io::Error| {
        let message = format!(
            "--listen {}: {error}; name an address of this host that is free, like 127.0.0.1:8545",
            args.listen
        );
        let is_no_address = error.kind() == std::io::ErrorKind::InvalidInput;
        (if is_no_address { Exit::Usage } else { Exit::Failed }).failure(message)
    };
    let gateway = Gateway::listen(args.listen.as_str()).map_err(refused)?;
    let gateway = gateway.allow_origins(args.allow_origins.clone());
    let gateway = args.linger.into_iter().fold(gateway, Gateway::linger);
    let address = gateway.local_address()?;
    if args.json {
        json_line(&Listening { listening: address.to_string() })?;
        stdout().flush()?;
    } else {
        say!("listening at ws://{address}");
    }
    let stats =
        gateway.serve(&mut blocks, || interrupt.came()).map_err(|error| Failure::io("cannot serve clients", &error))?;
    blocks.file_problems().iter().for_each(|problem| report_problem(true, problem));
    // The node's next ring has events of another kind.
    if let Some(error) = blocks.refused() {
        return Err(super::blocks::input::refused(args.ring.name(), error).into());
    }
    if args.json {
        json_line(&stats)?;
        return Ok(Exit::Done);
    }
    let clients = counted(stats.clients, "client", "clients");
    say!("{DIM}{clients}, {} notifications of blocks{DIM:#}", grouped(stats.notifications));
    if stats.lost > 0 {
        say!("{WARNING}slow clients lost {} news{WARNING:#}", grouped(stats.lost));
    }
    Ok(Exit::Done)
}
