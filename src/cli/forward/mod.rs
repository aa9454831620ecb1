//! `eventring forward`.

mod otlp;

use super::exit::Exit;
use super::processes::ProcessArgs;
use std::path::PathBuf;

/// Send spans and events away while they are recorded
#[derive(clap::Args)]
pub(super) struct ForwardArgs {
    /// Names or paths of rings
    #[arg(value_name = "RING")]
    names: Vec<PathBuf>,
    #[command(flatten)]
    process: ProcessArgs,
    /// Where to send: otlp://HOST[:PORT], or otlps:// for TLS, is an OpenTelemetry collector
    #[arg(long, value_name = "URL")]
    to: String,
    #[command(flatten)]
    otlp: otlp::OtlpArgs,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ForwardArgs) -> anyhow::Result<Exit> {
    otlp::run(args)
}
