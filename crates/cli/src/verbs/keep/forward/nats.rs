//! Forwarding to NATS JetStream: a thread for each ring.

use super::args::ForwardArgs;
use super::broker::connect;
use super::progress::ForwardersProgress;
use crate::exit::Exit;
use crate::input::LOOK_PAUSE;
use crate::input::awaited::AwaitedRings;
use crate::interrupt::Interrupt;
use crate::text::losses::report_problem;
use eventring::reader::Reader;
use eventring_capture::{EndReason, NextRing};
use eventring_forward::{
    EventStream, ForwardOptions, ForwardProgress, ForwardSummary, Programs, SpanRings, StreamOptions, forward,
};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// The pause between two looks at the threads.
const PAUSE: Duration = Duration::from_millis(20);
/// The pause between two looks for the next ring of a name.
const REOPEN_PAUSE: Duration = Duration::from_millis(20);

/// Opens the stream, or makes it.
pub(super) fn open_stream(args: &ForwardArgs, interrupt: &Interrupt) -> anyhow::Result<EventStream> {
    let stream = args.broker.options(&args.to)?;
    let stream = args.retention.max_age.into_iter().fold(stream, StreamOptions::max_age);
    let stream = args.retention.max_bytes.into_iter().fold(stream, StreamOptions::max_bytes);
    options_of(args).host_name()?;
    let stream = connect(interrupt, move || EventStream::open_or_make(&stream))?;
    stream.other_limits().iter().for_each(|problem| report_problem(false, problem));
    Ok(stream)
}

/// Returns the options of one forwarder. What its filter remembers of spans is its own: it forgets them in its own
/// time.
fn options_of(args: &ForwardArgs) -> ForwardOptions {
    let options = ForwardOptions::new().compression_level(args.compression()).filter(args.filter.filter());
    let options = args.every.into_iter().fold(options, ForwardOptions::every);
    args.host.iter().fold(options, ForwardOptions::host)
}

pub(super) fn run(
    args: &ForwardArgs,
    stream: &EventStream,
    mut rings: AwaitedRings,
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    let shall_end = AtomicBool::new(false);
    let (progress, programs) = (ForwardersProgress::default(), Programs::default());
    let forwarding = Forwarding { args, stream, programs: &programs, shall_end: &shall_end, progress: &progress };
    let outcomes = thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut outcomes = Outcomes::default();
        let mut may_come_more = true;
        let mut next_look = Instant::now();
        loop {
            if interrupt.came() {
                shall_end.store(true, Relaxed);
            }
            let mut found = Vec::new();
            while may_come_more && !shall_end.load(Relaxed) {
                match rings.next() {
                    NextRing::Ring(ring) => found.push((programs.add(&ring), ring)),
                    NextRing::NotYet => break,
                    NextRing::NoMore => may_come_more = false,
                }
            }
            if !may_come_more && !args.reopen {
                programs.are_complete();
            }
            // All that are found together know of each other before the first begins.
            for (spans, ring) in found {
                let (forwarding, number) = (&forwarding, outcomes.begin(&ring));
                threads.push((number, scope.spawn(move || forwarding.all_of_name(ring, spans))));
            }
            if may_come_more && Instant::now() < next_look {
                // A ring may be there for a moment only.
                thread::sleep(LOOK_PAUSE);
                continue;
            }
            next_look = Instant::now() + PAUSE;
            for (number, thread) in threads.extract_if(.., |(_, thread)| thread.is_finished()) {
                if let Some(problem) = outcomes.end(number, thread.join()) {
                    progress.problem(&problem);
                }
            }
            if (!may_come_more || shall_end.load(Relaxed)) && threads.is_empty() {
                break outcomes;
            }
            rings.say_what_is_awaited();
            progress.show();
            if !may_come_more {
                thread::sleep(PAUSE);
            }
        }
    });
    progress.finish();
    let Outcomes { of_names, failed, exit } = outcomes;
    let summaries: Vec<ForwardSummary> = of_names.into_iter().flat_map(|(_, summaries)| summaries).collect();
    progress.summary(args.json, args.broker.stream.as_deref().unwrap_or_default(), &summaries, &failed)?;
    summaries.iter().flat_map(|summary| &summary.problems).for_each(|problem| report_problem(false, problem));
    let mut lost_pages = summaries.iter().flat_map(|summary| &summary.lost_pages);
    let exit = exit.or(lost_pages.next().map(|(_, lost)| Exit::from_lost_pages(*lost)));
    args.filter.report_unseen(&rings);
    rings.say_late_rings();
    match (exit, rings.failure("the others were forwarded")) {
        (Some(exit), missing) => {
            missing.iter().for_each(|error| report_problem(true, &error.to_string()));
            Ok(exit)
        }
        (None, Some(error)) => Err(error),
        (None, None) => Ok(Exit::Done),
    }
}

/// The fate of the rings of each name.
#[derive(Debug, Default)]
struct Outcomes {
    /// The names, in the order in which their first rings came, with what was sent.
    of_names: Vec<(String, Vec<ForwardSummary>)>,
    /// The names whose forwarding has failed, with what was sent of the last ring until then.
    failed: Vec<(String, ForwardProgress)>,
    /// The exit code of the first failure.
    exit: Option<Exit>,
}

impl Outcomes {
    /// Takes note of a forwarding that begins. Returns its number.
    fn begin(&mut self, ring: &Reader) -> usize {
        let name = ring.path().unwrap_or(Path::new("a ring")).display().to_string();
        self.of_names.push((name, Vec::new()));
        self.of_names.len() - 1
    }

    /// Takes the end of a forwarding. Returns what went wrong.
    fn end(&mut self, number: usize, joined: thread::Result<OfName>) -> Option<String> {
        let (name, summaries) = self.of_names.get_mut(number)?;
        let (exit, problem) = match joined {
            Ok(OfName { sent, last, failure }) => {
                *summaries = sent;
                let failure = failure?;
                self.failed.extend(last.map(|last| (name.clone(), last)));
                (Exit::from_error(&failure), failure.to_string())
            }
            Err(_) => {
                (Exit::Failed, "its forwarder has failed, which is a fault of this program; start it again".into())
            }
        };
        self.exit.get_or_insert(exit);
        Some(format!("{name}: {problem}"))
    }
}

/// The end of the forwarding of a name: what was sent of all its rings, and why there is no more.
#[derive(Debug, Default)]
struct OfName {
    sent: Vec<ForwardSummary>,
    /// The counts of the ring whose forwarding has failed.
    last: Option<ForwardProgress>,
    failure: Option<anyhow::Error>,
}

struct Forwarding<'f> {
    args: &'f ForwardArgs,
    stream: &'f EventStream,
    programs: &'f Programs,
    shall_end: &'f AtomicBool,
    progress: &'f ForwardersProgress,
}

impl Forwarding<'_> {
    /// Forwards a ring, and then the next ones of its name, if that is wanted.
    fn all_of_name(&self, ring: Reader, spans: SpanRings) -> OfName {
        let mut sent = Vec::new();
        let mut last = None;
        let failure = self.send_all_of_name(ring, spans, &mut sent, &mut last).err();
        OfName { sent, last, failure }
    }

    fn send_all_of_name(
        &self,
        mut ring: Reader,
        mut spans: SpanRings,
        summaries: &mut Vec<ForwardSummary>,
        last: &mut Option<ForwardProgress>,
    ) -> anyhow::Result<()> {
        loop {
            let forwarder = self.progress.begin();
            let options = options_of(self.args).spans(spans);
            let summary = forward(&ring, self.stream, &options, &mut |progress| {
                self.progress.set(forwarder, progress);
                if self.shall_end.load(Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            let summary = summary.inspect_err(|_| *last = Some(self.progress.sent(forwarder)))?;
            self.progress.set(forwarder, &summary.sent);
            let has_ended = summary.reason != EndReason::Interrupted;
            summaries.push(summary);
            if !self.args.reopen || !has_ended {
                return Ok(());
            }
            ring = loop {
                if self.shall_end.load(Relaxed) {
                    return Ok(());
                }
                match ring.reopen()? {
                    Some(next) => break next,
                    None => thread::sleep(REOPEN_PAUSE),
                }
            };
            spans = self.programs.add(&ring);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forwarder_that_panics_is_a_failure_and_the_first_failure_decides() {
        let of_names = ["a", "b", "c"].map(|name| (name.to_owned(), Vec::new())).into();
        let mut outcomes = Outcomes { of_names, ..Outcomes::default() };
        assert_eq!(outcomes.end(0, Ok(OfName::default())), None);
        assert_eq!(outcomes.exit, None);
        let problem = outcomes.end(1, Err(Box::new("a panic"))).unwrap();
        assert!(problem.starts_with("b: its forwarder has failed"), "{problem}");
        let failure = Some(crate::exit::Exit::Damaged.failure("it is damaged").into());
        let problem = outcomes.end(2, Ok(OfName { failure, ..OfName::default() }));
        assert_eq!(problem.as_deref(), Some("c: it is damaged"));
        assert_eq!(outcomes.exit, Some(Exit::Failed));
    }
}
