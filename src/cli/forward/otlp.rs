//! `eventring forward --to otlp://…`.

use super::ForwardArgs;
use crate::cli::advice;
use crate::cli::exit::{Exit, Failure};
use crate::cli::format::{grouped, one_line};
use crate::cli::interrupt::Interrupt;
use crate::cli::paint::WARNING;
use eventring::__internals::otlp::{OtlpEndpoint, OtlpError, OtlpOptions, OtlpSummary, forward_otlp};
use eventring::reader::{Reader, RingSet};
use serde_json::json;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// The options of a forwarding to an OpenTelemetry collector.
#[derive(clap::Args)]
pub(super) struct OtlpArgs {
    /// With otlp://: a header of each request, for authentication for example; may be repeated. Headers in
    /// $OTEL_EXPORTER_OTLP_HEADERS are sent, too
    #[arg(long = "header", value_name = "NAME=VALUE")]
    headers: Vec<String>,
    /// With otlp://: how long to go on trying to reach the collector after the last event, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    patience: u64,
}

pub(super) fn run(args: &ForwardArgs) -> anyhow::Result<Exit> {
    let endpoint = endpoint(args)?;
    let interrupt = Interrupt::listen()?;
    let names = args.process.rings(&args.names)?;
    let _enabled = args.process.enable(&names)?;
    let rings = open(&names)?;
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.map(|host| host.trim().to_owned()).filter(|host| !host.is_empty());
    let to = endpoint.to_string();
    let options = OtlpOptions::new(endpoint).host(host).patience(Duration::from_secs(args.otlp.patience));
    let summary = forward_otlp(rings, &options, || interrupt.came()).map_err(failure)?;
    report(args, &to, &summary)?;
    if let Some(problem) = summary.unreadable {
        return Err(Failure::new(Exit::Unreadable, problem).into());
    }
    let undelivered = summary.rejected.saturating_add(summary.unsent).saturating_add(summary.not_tracked);
    Ok(if undelivered > 0 { Exit::Failed } else { Exit::Done })
}

fn open(names: &[PathBuf]) -> anyhow::Result<RingSet> {
    let mut rings = Vec::new();
    for name in names {
        let ring = Reader::open(name).map_err(|error| advice::on_perf(name, error))?;
        advice::check_not_a_shard(name, &ring)?;
        rings.push(ring);
    }
    Ok(RingSet::options().from_readers(rings))
}

fn failure(error: OtlpError) -> Failure {
    Failure::new(Exit::Usage, error.to_string())
}

fn endpoint(args: &ForwardArgs) -> Result<OtlpEndpoint, Failure> {
    let mut endpoint: OtlpEndpoint = args.to.parse().map_err(failure)?;
    for header in &args.otlp.headers {
        let (name, value) = header
            .split_once('=')
            .ok_or_else(|| Failure::new(Exit::Usage, "--header has no `=`, expected NAME=VALUE".to_owned()))?;
        endpoint = endpoint.header(name, value).map_err(failure)?;
    }
    let of_environment = std::env::var("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
    for header in of_environment.split(',').filter(|header| !header.trim().is_empty()) {
        let (name, value) = header.split_once('=').ok_or_else(|| {
            let message = "an entry of OTEL_EXPORTER_OTLP_HEADERS has no `=`, expected NAME=VALUE,NAME=VALUE";
            Failure::new(Exit::Usage, message.to_owned())
        })?;
        endpoint = endpoint.header(name.trim(), &percent_decoded(value.trim())).map_err(failure)?;
    }
    Ok(endpoint)
}

/// Decodes `%20` and the like, which the values of the variable may have.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let decoded = hex.filter(|_| *first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn report(args: &ForwardArgs, to: &str, summary: &OtlpSummary) -> anyhow::Result<()> {
    if args.json {
        let object = json!({
            "to": to, "spans": summary.spans, "open_spans": summary.open_spans, "log_records": summary.log_records,
            "lost": summary.lost, "not_tracked": summary.not_tracked, "requests": summary.requests,
            "retries": summary.retries, "rejected": summary.rejected, "unsent": summary.unsent,
            "bytes": summary.bytes, "last_error": summary.last_error,
        });
        writeln!(anstream::stdout(), "{object}")?;
        return Ok(());
    }
    anstream::eprintln!(
        "{} spans and {} log records sent to {}",
        grouped(summary.spans),
        grouped(summary.log_records),
        one_line(to)
    );
    let problems = [
        (summary.lost, "events were lost in the rings; the collector was told which"),
        (summary.not_tracked, "open spans found no room, and were not sent"),
        (summary.rejected, "spans and log records were refused by the collector"),
        (summary.unsent, "spans and log records could not be sent"),
    ];
    for (count, problem) in problems.iter().filter(|(count, _)| *count > 0) {
        anstream::eprintln!("{WARNING}{} {problem}{WARNING:#}", grouped(*count));
    }
    if let Some(error) = summary.last_error.as_ref().filter(|_| summary.rejected + summary.unsent > 0) {
        anstream::eprintln!("{WARNING}the last problem: {}{WARNING:#}", one_line(error));
    }
    Ok(())
}
