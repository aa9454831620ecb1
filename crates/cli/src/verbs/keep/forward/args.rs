//! The options of `eventring forward`.

use super::broker::{BrokerArgs, RetentionArgs};
use crate::args::amounts::parse_duration;
use crate::input::programs::processes::ProcessArgs;
use crate::verbs::keep::capture::filter::FilterArgs;
use eventring_capture::CaptureOptions;
use eventring_capture::secret::SecretAddress;
use std::path::PathBuf;
use std::time::Duration;

/// Send what rings record to another host, until programs end
///
/// To NATS JetStream, events go in compressed batches, each exactly once: a forwarder begins after the last batch that
/// the stream has. While the broker cannot be reached, events wait in their rings. Ctrl-C and SIGTERM end it in good
/// order, and then a batch that the broker does not take is given up after 5 seconds. One ring that fails does not stop
/// the others.
#[derive(clap::Args)]
pub(crate) struct ForwardArgs {
    /// Names or paths of rings, or patterns such as 'shop*'
    #[arg(value_name = "RING")]
    pub(super) names: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) process: ProcessArgs,
    /// Where to: nats://HOST:PORT or tls://HOST:PORT (several with commas); otlp://HOST[:PORT], or otlps:// for TLS,
    /// an OpenTelemetry collector
    #[arg(long, value_name = "ADDRESS")]
    pub(super) to: SecretAddress,
    #[command(flatten)]
    pub(super) otlp: OtlpArgs,
    #[command(flatten)]
    pub(super) broker: BrokerArgs,
    #[command(flatten)]
    pub(super) retention: RetentionArgs,
    /// The name of this host in subjects and batches [default: the system's]
    #[arg(long, value_name = "NAME")]
    pub(super) host: Option<String>,
    /// The longest time from the recording of an event to the sending of its batch [default: 200ms]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(super) every: Option<Duration>,
    /// Compression level of zstd, 1 to 22; 0 for none [default: 1]
    #[arg(long, alias = "level", value_name = "LEVEL", value_parser = clap::value_parser!(i32).range(0..=22))]
    pub(super) compression: Option<i32>,
    #[command(flatten)]
    pub(super) filter: FilterArgs,
    /// Wait for rings that do not exist yet
    #[arg(long)]
    pub(super) wait: bool,
    /// When a ring has ended, go on with the next ring of its name
    #[arg(long)]
    pub(super) reopen: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    pub(super) json: bool,
}

impl ForwardArgs {
    pub(super) fn compression(&self) -> i32 {
        self.compression.unwrap_or(CaptureOptions::DEFAULT_LEVEL)
    }
}

/// The options of a forwarding to an OpenTelemetry collector.
#[derive(clap::Args)]
pub(super) struct OtlpArgs {
    /// With otlp://: a header of each request, for authentication for example; may be repeated. Those in
    /// $OTEL_EXPORTER_OTLP_HEADERS, which other users cannot see, are sent, too, unless one of the same name is given
    /// here
    #[arg(long = "header", value_name = "NAME=VALUE")]
    pub(super) headers: Vec<String>,
    /// With otlp://: how long to go on trying to reach the collector after the last event; a number is seconds
    /// [default: 30s]
    #[arg(long, alias = "patience", value_name = "TIME", value_parser = parse_duration)]
    pub(super) timeout: Option<Duration>,
}

impl OtlpArgs {
    /// Returns which of these options are given, with their names.
    pub(super) fn given(&self) -> [(bool, &'static str); 2] {
        [(!self.headers.is_empty(), "--header"), (self.timeout.is_some(), "--timeout")]
    }
}
