//! Forwarding to NATS JetStream: a thread for each ring.

use super::ForwardArgs;
use super::report::Reports;
use crate::cli::capture::{AwaitedRings, report_problem};
use crate::cli::exit::Exit;
use crate::cli::interrupt::Interrupt;
use eventring::__internals::forward::{EventStream, ForwardOptions, ForwardSummary, forward};
use eventring::capture::{CaptureError, EndReason, NextRing};
use eventring::reader::Reader;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// The pause between two looks at the rings and the threads.
const PAUSE: Duration = Duration::from_millis(20);
/// The pause between two looks for the next ring of a name.
const REOPEN_PAUSE: Duration = Duration::from_millis(100);

pub(super) fn run(args: &ForwardArgs, mut rings: AwaitedRings, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let mut stream = args.broker.options(&args.to)?;
    if let Some(time) = args.retention.max_age {
        stream = stream.max_age(time);
    }
    if let Some(bytes) = args.retention.max_bytes {
        stream = stream.max_bytes(bytes);
    }
    let stream = EventStream::open_or_make(&stream)?;
    let mut options =
        ForwardOptions::new().every(args.every).compression_level(args.level).filter(args.filter.filter());
    if let Some(host) = &args.host {
        options = options.host(host);
    }
    let shall_end = AtomicBool::new(false);
    let reports = Reports::default();
    let forwarding = Forwarding { args, stream: &stream, options: &options, shall_end: &shall_end, reports: &reports };
    let results = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut may_come_more = true;
        loop {
            if interrupt.came() {
                shall_end.store(true, Relaxed);
            }
            while may_come_more && !shall_end.load(Relaxed) {
                match rings.next() {
                    NextRing::Ring(ring) => {
                        let forwarding = &forwarding;
                        threads.push(scope.spawn(move || forwarding.all_of_name(ring)));
                    }
                    NextRing::NotYet => break,
                    NextRing::NoMore => may_come_more = false,
                }
            }
            if (!may_come_more || shall_end.load(Relaxed)) && threads.iter().all(|thread| thread.is_finished()) {
                break;
            }
            rings.say_what_is_awaited();
            reports.show();
            std::thread::sleep(PAUSE);
        }
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect::<Vec<_>>()
    });
    reports.finish();
    let mut summaries = Vec::new();
    let mut failure = None;
    for result in results {
        match result {
            Ok(of_name) => summaries.extend(of_name),
            Err(error) => drop(failure.get_or_insert(error)),
        }
    }
    reports.summary(args.json, args.broker.stream.as_deref().unwrap_or_default(), &summaries)?;
    summaries.iter().flat_map(|summary| &summary.problems).for_each(|problem| report_problem(false, problem));
    match (failure, rings.failure("the others were forwarded")) {
        (Some(error), _) => Err(error.into()),
        (None, Some(error)) => Err(error),
        (None, None) => Ok(Exit::Done),
    }
}

struct Forwarding<'f> {
    args: &'f ForwardArgs,
    stream: &'f EventStream,
    options: &'f ForwardOptions,
    shall_end: &'f AtomicBool,
    reports: &'f Reports,
}

impl Forwarding<'_> {
    /// Forwards a ring, and then the next ones of its name, if that is wanted.
    fn all_of_name(&self, mut ring: Reader) -> Result<Vec<ForwardSummary>, CaptureError> {
        let mut summaries = Vec::new();
        loop {
            let report = self.reports.begin();
            let summary = forward(&ring, self.stream, self.options, &mut |progress| {
                self.reports.set(report, progress);
                if self.shall_end.load(Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            self.reports.set(report, &summary.sent);
            let has_ended = summary.reason != EndReason::Interrupted;
            summaries.push(summary);
            if !self.args.reopen || !has_ended {
                return Ok(summaries);
            }
            ring = loop {
                if self.shall_end.load(Relaxed) {
                    return Ok(summaries);
                }
                match ring.reopen() {
                    Ok(Some(next)) => break next,
                    Ok(None) | Err(_) => std::thread::sleep(REOPEN_PAUSE),
                }
            };
        }
    }
}
