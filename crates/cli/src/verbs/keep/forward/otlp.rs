//! `eventring forward --to otlp://…`.

use super::args::ForwardArgs;
use super::progress::Problems;
use crate::exit::{Exit, Failure};
use crate::input::advice;
use crate::input::awaited::AwaitedRings;
use crate::input::reading::spinner;
use crate::interrupt::Interrupt;
use crate::output::json_line;
use crate::text::format::counted;
use crate::text::losses::report_problem;
use crate::text::paint::{DIM, WARNING};
use eventring::reader::Reader;
use eventring_capture::NextRing;
use eventring_forward::host_name;
use eventring_otlp::{OtlpEndpoint, OtlpError, OtlpOptions, OtlpSummary, forward_otlp};
use percent_encoding::percent_decode_str;
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::RefCell;

pub(super) fn run(args: &ForwardArgs, rings: AwaitedRings, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let mut endpoint = endpoint(args)?;
    if let Some((_, option)) = args.broker.tls_given().iter().find(|(is_given, _)| *is_given && !endpoint.is_tls()) {
        let message = format!("--to {endpoint}: it has no TLS, so it has no {option}; expected otlps://HOST[:PORT]");
        return Exit::Usage.fail(message);
    }
    endpoint = args.broker.with_certificates(endpoint)?;
    rings.opened.iter().try_for_each(check_not_a_shard)?;
    let host = args.host.clone().unwrap_or_else(host_name);
    let to = endpoint.to_string();
    let timeout = args.otlp.timeout.unwrap_or(OtlpOptions::TIMEOUT);
    let options = OtlpOptions::new(endpoint).host(Some(host)).timeout(timeout);
    let (bar, mut problems) = (spinner(), Problems::with("the collector"));
    let (rings, mut refused) = (RefCell::new(rings), None);
    let next_ring = || {
        loop {
            let next = rings.borrow_mut().next();
            match &next {
                NextRing::Ring(ring) => match check_not_a_shard(ring) {
                    Ok(()) => return next,
                    // The others go on.
                    Err(error) => _ = refused.get_or_insert(error),
                },
                NextRing::NotYet | NextRing::NoMore => return next,
            }
        }
    };
    let summary = forward_otlp(&options, next_ring, |problem| {
        problems.note(&bar, problem);
        bar.suspend(|| {
            rings.borrow_mut().say_what_is_awaited();
            rings.borrow_mut().say_what_has_failed();
        });
        let is_to_end = interrupt.came();
        if is_to_end && problem.is_some() {
            bar.suspend(|| {
                say!(
                    "{DIM}ends when the collector has taken the rest, or after {timeout:?}; Ctrl-C again ends at once{DIM:#}"
                );
            });
        }
        is_to_end
    });
    bar.finish_and_clear();
    let summary = summary.map_err(failure)?;
    report(args, &to, &summary)?;
    if let Some(problem) = summary.unreadable {
        return Exit::Unreadable.fail(problem);
    }
    if let Some(error) = summary.last_error.as_ref().filter(|_| summary.rejected > 0 || summary.unsent > 0) {
        let problem = format!(
            "the collector did not take everything; the last problem: {}; check the address, and that a collector \
             which takes OTLP over HTTP is there",
            error
        );
        report_problem(true, &problem);
    }
    let mut rings = rings.into_inner();
    rings.say_late_rings();
    let failure = refused.map(Into::into).or_else(|| rings.failure("the others were sent"));
    if let Some(error) = failure {
        return Err(error);
    }
    let undelivered = summary.rejected.saturating_add(summary.unsent).saturating_add(summary.not_tracked);
    Ok(if undelivered > 0 { Exit::Failed } else { Exit::Done })
}

fn check_not_a_shard(ring: &Reader) -> Result<(), Failure> {
    advice::check_not_a_shard(ring.name().unwrap_or("ring".as_ref()), ring)
}

fn failure(error: OtlpError) -> Failure {
    Exit::Usage.failure(error.to_string())
}

fn endpoint(args: &ForwardArgs) -> Result<OtlpEndpoint, Failure> {
    let mut endpoint: OtlpEndpoint = args.to.expose().parse().map_err(failure)?;
    let of_environment = std::env::var("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
    for header in of_environment.split(',').filter(|header| !header.trim().is_empty()) {
        let (name, value) = header.split_once('=').ok_or_else(|| {
            let message = "an entry of OTEL_EXPORTER_OTLP_HEADERS has no `=`, expected NAME=VALUE,NAME=VALUE";
            Exit::Usage.failure(message.to_owned())
        })?;
        endpoint =
            endpoint.header(name.trim(), &percent_decode_str(value.trim()).decode_utf8_lossy()).map_err(failure)?;
    }
    // Those of the command line replace those of the environment.
    for header in &args.otlp.headers {
        let (name, value) = header
            .split_once('=')
            .ok_or_else(|| Exit::Usage.failure("--header has no `=`, expected NAME=VALUE".to_owned()))?;
        endpoint = endpoint.header(name, value).map_err(failure)?;
    }
    Ok(endpoint)
}

/// What `forward --json` prints of a collector.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Sent<'a> {
    to: &'a str,
    #[serde(flatten)]
    summary: &'a OtlpSummary,
}

fn report(args: &ForwardArgs, to: &str, summary: &OtlpSummary) -> anyhow::Result<()> {
    if args.json {
        return Ok(json_line(&Sent { to, summary })?);
    }
    say!(
        "{} and {} sent to {}",
        counted(summary.spans, "span", "spans"),
        counted(summary.log_records, "log record", "log records"),
        to
    );
    let lost = summary.lost.saturating_sub(summary.overwritten_before);
    let problems = [
        (lost, ["event was lost in the rings", "events were lost in the rings"]),
        (summary.not_tracked, ["span found no room, and was not sent", "spans found no room, and were not sent"]),
        (
            summary.dropped_links,
            ["link was dropped: its span has more than 128", "links were dropped: their spans have more than 128"],
        ),
        (
            summary.apart,
            [
                "event or link of a span was sent as a log record only: its span does not show it",
                "events and links of spans were sent as log records only: their spans do not show them",
            ],
        ),
        (
            summary.rejected,
            ["span or log record was refused by the collector", "spans and log records were refused by the collector"],
        ),
        (summary.unsent, ["span or log record could not be sent", "spans and log records could not be sent"]),
    ];
    for (count, [one, many]) in problems.into_iter().filter(|(count, _)| *count > 0) {
        say!("{WARNING}{}{WARNING:#}", counted(count, one, many));
    }
    Ok(())
}
