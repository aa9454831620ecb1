//! The options that choose which events are captured or sent.

use crate::args::selection::EventArgs;
use crate::exit::{Exit, Failure};
use crate::input::awaited::AwaitedRings;
use crate::input::names::decoder::{Decoder, check_type};
use crate::input::names::fields::{KnownFields, check_fields};
use crate::input::names::unknown_names::SeenNames;
use crate::text::format::{events, were};
use crate::text::losses::report_problem;
use crate::text::paint::DIM;
use eventring_capture::BatchFilter;
use eventring_capture::condition::{Condition, NameKind};

/// The events that are taken; the others are counted, and are no loss.
#[derive(clap::Args)]
pub(crate) struct FilterArgs {
    #[command(flatten)]
    pub(crate) events: EventArgs,
    /// Take only this part of the span trees, each whole: 0.01, or 1/100. Which ones depends on the id of the root
    /// alone. Typed events, and log records outside of spans, are all taken. The rate is in the data
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    sample: Option<u32>,
}

impl FilterArgs {
    pub(crate) fn is_any(&self) -> bool {
        self.given().iter().any(|(is_given, _)| *is_given)
    }

    /// Returns the options, with true for each that is given.
    pub(crate) fn given(&self) -> [(bool, &'static str); 8] {
        let EventArgs { types, span, min_duration, thread, target, max_level, condition } = &self.events;
        [
            (!types.is_empty(), "--type"),
            (!span.is_empty(), "--span"),
            (min_duration.is_some(), "--min-duration"),
            (!thread.is_empty(), "--thread"),
            (!target.is_empty(), "--target"),
            (max_level.is_some(), "--max-level"),
            (condition.is_some(), "--where"),
            (self.sample.is_some(), "--sample"),
        ]
    }

    /// Checks that the selection can be made while events are recorded.
    ///
    /// # Errors
    /// It depends on how long spans last.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let by_condition = self.events.condition.as_ref().is_some_and(Condition::asks_for_durations);
        let option = match by_condition {
            true => "--where",
            false if self.events.min_duration.is_some() => "--min-duration",
            false => return Ok(()),
        };
        Exit::Usage.fail(format!(
            "{option}: how long a span lasts is known at its end, and what is in it must be taken before: take all and select with \
             `export {option}`, or watch for such spans with `capture --on`"
        ))
    }

    /// Checks that each named type is one of some ring's.
    ///
    /// # Errors
    /// No ring has a type of that name. As long as other rings may come, this is only said.
    pub(crate) fn check_types(&self, rings: &AwaitedRings) -> Result<(), Failure> {
        let decoders: Vec<Decoder> = rings.opened.iter().map(Decoder::for_ring).collect();
        for name in &self.events.types {
            match check_type(name, decoders.iter()) {
                Err(why) if rings.are_all_open() => return Exit::Usage.fail(why),
                Err(why) => report_problem(false, &why),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Checks that each field of the condition is one of some event of the rings. As long as other rings or call sites
    /// may come, this is only said. `is_of_now`: only what has been recorded until now is taken.
    ///
    /// # Errors
    /// No event has such a field.
    pub(crate) fn check_fields(&self, rings: &AwaitedRings, is_of_now: bool) -> Result<(), Failure> {
        let Some(condition) = &self.events.condition else { return Ok(()) };
        let known = rings.opened.iter().map(KnownFields::of_reader);
        let known: Vec<KnownFields> = known.map(|known| if is_of_now { known.until_now() } else { known }).collect();
        if known.is_empty() {
            return Ok(());
        }
        let checked = check_fields(condition, &known).map_err(|why| format!("--where: {why}"));
        match checked {
            Err(message) if !rings.are_all_open() => report_problem(false, &message),
            checked => checked.map_err(|message| Exit::Usage.failure(message))?,
        }
        Ok(())
    }

    /// Says at the end which of the names nothing had.
    pub(crate) fn report_unseen(&self, rings: &AwaitedRings) {
        if self.events.selection().is_all() {
            return;
        }
        let seen = SeenNames::from_rings(rings.opened.iter());
        let is_somewhere = |name: &str| rings.opened.iter().any(|ring| Decoder::for_ring(ring).code_of(name).is_some());
        let types: Vec<String> = self.events.types.iter().filter(|name| !is_somewhere(name)).cloned().collect();
        seen.report("--type", NameKind::Event, &types);
        seen.report_unseen(&self.events);
    }

    pub(crate) fn filter(&self) -> BatchFilter {
        let filter = BatchFilter::new().events(self.events.selection());
        self.sample.into_iter().fold(filter, BatchFilter::sampled_per_million)
    }
}

/// Parses a part, and returns how many of a million it is.
fn parse_rate(text: &str) -> Result<u32, &'static str> {
    let rate: Option<f64> = match text.split_once('/') {
        Some((part, of)) => part.parse().ok().zip(of.parse().ok()).map(|(part, of): (f64, f64)| part / of),
        None => text.parse().ok(),
    };
    let rate = rate.filter(|rate| *rate > 0.0 && *rate <= 1.0);
    let trees = rate.map(|rate| (rate * 1e6).round() as u32).filter(|trees| *trees > 0);
    trees.ok_or("expected a part of the trees above 0 and up to 1, like 0.01 or 1/100, of a millionth at least")
}

/// Prints how many events a filter has left out. A filter that keeps nothing may be a mistake.
pub(crate) fn report_filtered(kept: u64, filtered: u64) {
    match (kept, filtered) {
        (_, 0) => {}
        (0, _) => report_problem(false, &format!("the filter has left out everything: {}", events(filtered))),
        _ => say!("{DIM}{} more {} left out by the filter{DIM:#}", events(filtered), were(filtered)),
    }
}
