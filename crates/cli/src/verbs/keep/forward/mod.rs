//! `eventring forward` and `eventring receive`: sending events to another host, and writing them to captures there.

mod args;
mod broker;
mod nats;
mod otlp;
mod progress;
mod receive;
mod ring_space;
mod rings;

pub(crate) use args::ForwardArgs;
pub(crate) use otlp::Sent;
pub(crate) use progress::Forwarded;
pub(crate) use receive::{ReceiveArgs, Received, run as run_receive};

use crate::exit::{Exit, Failure};
use crate::input::awaited::AwaitedRings;
use crate::input::programs::processes::ProcessArgs;
use crate::interrupt::Interrupt;
use eventring_capture::secret::SecretAddress;

pub(crate) fn run(args: &ForwardArgs) -> anyhow::Result<Exit> {
    let to = AddressKind::parse(args.to.expose())?;
    to.check_options(args)?;
    args.process.check_directive()?;
    let (names, programs) = args.process.followed(&args.names, args.wait, None)?;
    let interrupt = Interrupt::listen()?;
    if args.reopen {
        ProcessArgs::check_lasting(&names)?;
    }
    // A program may live for a moment only, so the broker is asked before its rings are awaited.
    let early_stream = match to {
        AddressKind::Broker if args.wait => Some(nats::open_stream(args, &interrupt)?),
        _ => None,
    };
    let mut rings = AwaitedRings::new(&names, None, programs);
    if args.wait {
        rings.wait_for_first(None, &interrupt)?;
    } else {
        rings.open_all()?;
    }
    args.filter.check()?;
    args.filter.check_types(&rings)?;
    args.filter.check_fields(&rings, false)?;
    // What is switched on stays on as long as this value lives.
    let _enabled = args.process.enable(rings.names())?;
    match to {
        AddressKind::Broker => {
            let stream = early_stream.map_or_else(|| nats::open_stream(args, &interrupt), Ok)?;
            nats::run(args, &stream, rings, &interrupt)
        }
        AddressKind::Collector => otlp::run(args, rings, &interrupt),
    }
}

/// The kinds of addresses to which events go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AddressKind {
    Broker,
    Collector,
}

impl AddressKind {
    fn parse(address: &str) -> Result<Self, Failure> {
        let has = |schemes: &[&str]| schemes.iter().any(|scheme| address.starts_with(scheme));
        match () {
            () if broker::is_broker(address) => Ok(Self::Broker),
            () if has(&["otlp://", "otlps://", "http://", "https://"]) => Ok(Self::Collector),
            () if address.contains('/') && !address.contains("://") => Exit::Usage.fail(format!(
                    "--to {0}: events go to a broker or a collector; `eventring capture RING --resume --reopen --rotate-every \
                 5m -o {0}/RING.evc` writes files",
                    SecretAddress::from(address)
                )),
            () => Exit::Usage.fail(format!(
                    "--to {}: expected nats://HOST:PORT, tls://HOST:PORT or otlp://HOST:PORT",
                    SecretAddress::from(address)
                )),
        }
    }

    /// Returns an error if there are options which such an address does not have.
    fn check_options(self, args: &ForwardArgs) -> Result<(), Failure> {
        let (of_broker, of_collector) = (args.broker.given(), args.otlp.given());
        let is_limited = args.retention.max_age.is_some() || args.retention.max_bytes.is_some();
        let (what, given): (&str, Vec<(bool, &str)>) = match self {
            Self::Broker => ("a broker", of_collector.to_vec()),
            Self::Collector => {
                let more = [
                    (args.every.is_some(), "--every"),
                    (args.compression.is_some(), "--compression"),
                    (is_limited, "--max-age or --max-bytes"),
                    (args.reopen, "--reopen"),
                ];
                ("an OpenTelemetry collector", [&of_broker[..], &more, &args.filter.given()].concat())
            }
        };
        match given.iter().find(|(is_given, _)| *is_given) {
            Some((_, option)) => {
                Exit::Usage.fail(format!("--to {}: {what} has no {option}; leave the option out", args.to))
            }
            None => Ok(()),
        }
    }
}
