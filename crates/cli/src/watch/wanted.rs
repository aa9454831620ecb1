//! The selection by options about spans, threads, levels, targets and fields. An event is tested before anything of it
//! is formatted.

use super::known_spans::KnownSpans;
use super::perf::is_description;
use super::ring::Ring;
use super::rings::{LazyPayload, Rings};
use super::tested::Tested;
use crate::args::selection::{SelectionRest, WhereArgs, parse_level};
use crate::exit::{Exit, Failure};
use crate::input::fields::{KnownFields, check_fields};
use eventring::reader::Descriptor;
use eventring::schema::perf::{CallSiteLevel, PerfEvent};
use eventring_capture::names_span;
use eventring_live::{Condition, NamePattern, Subject as _, Truth};
use std::time::Duration;

/// The options that select events by what is in them.
#[derive(clap::Args)]
pub(super) struct WantedArgs {
    /// Only spans and log records of this target; `*` stands for any characters. May be repeated
    #[arg(long, help_heading = "Selection", value_name = "TARGET")]
    pub(super) target: Vec<String>,
    /// Only spans and log records of at most this level: error, warn, info, debug, trace
    #[arg(long, alias = "max-level", help_heading = "Selection", value_name = "LEVEL", value_parser = parse_level)]
    level: Option<CallSiteLevel>,
    #[command(flatten)]
    condition: WhereArgs,
}

/// The test of the events.
#[derive(Default)]
pub(super) struct Wanted {
    targets: Vec<NamePattern>,
    level: Option<CallSiteLevel>,
    condition: Option<Condition>,
    spans: Vec<String>,
    threads: Vec<String>,
    min_duration: Option<Duration>,
    known: KnownSpans,
}

impl WantedArgs {
    /// Returns the condition.
    pub(super) fn condition(&self) -> Option<&Condition> {
        self.condition.condition.as_ref()
    }

    /// Makes the test for rings. The wanted spans and `rest` are those of the other options.
    ///
    /// # Errors
    /// The condition names a field that no event has.
    pub(super) fn of_rings(&self, rings: &Rings, spans: Vec<String>, rest: &SelectionRest) -> Result<Wanted, Failure> {
        if let Some(condition) = &self.condition.condition {
            let refuse = |why: String| Exit::Usage.failure(format!("--where: {why}"));
            let known: Vec<KnownFields> = rings.iter().map(Ring::known_fields).collect();
            check_fields(condition, &known).map_err(refuse)?;
        }
        Ok(Wanted {
            condition: self.condition.condition.clone(),
            spans,
            threads: rest.thread.clone(),
            min_duration: rest.min_duration,
            ..self.of_capture()
        })
    }

    /// Makes the test for a capture. Its reader has selected by the condition and the other options.
    pub(super) fn of_capture(&self) -> Wanted {
        Wanted { targets: self.target.iter().map(NamePattern::new).collect(), level: self.level, ..Wanted::default() }
    }
}

impl Wanted {
    /// Returns true if all events are wanted.
    fn is_all(&self) -> bool {
        self.targets.is_empty()
            && self.level.is_none()
            && self.condition.is_none()
            && self.spans.is_empty()
            && self.threads.is_empty()
            && self.min_duration.is_none()
    }

    fn needs_spans(&self) -> bool {
        self.condition.is_some() || !self.spans.is_empty() || self.min_duration.is_some()
    }

    /// Returns whether an event is wanted; unknown if that depends on a lost payload. What a span has lost is told
    /// once.
    pub(super) fn accepts(&mut self, ring: &Ring, event: &Descriptor, payload: &mut LazyPayload<'_>) -> Truth {
        if self.is_all() {
            return Truth::Yes;
        }
        let payload = payload.read();
        let record = ring.perf.as_ref().map(|perf| perf.record(event, payload));
        if record.is_some() && is_description(event.event_type) {
            return Truth::No;
        }
        if let Some(record) = record.as_ref().filter(|_| self.needs_spans()) {
            self.known.learn(ring, event, record);
        }
        let tested = Tested::new(&self.known, ring, event, record.as_ref(), payload.valid());
        let (mut is_wanted, has_lost_fields) = (self.fits(&tested), tested.has_lost_fields());
        if is_wanted == Truth::Unknown && record.is_some() {
            let is_of_record = has_lost_fields && event.event_type == PerfEvent::Event as u16;
            // All other events ask for what the span has lost.
            if !is_of_record && !self.known.counts_loss(ring, ring.span_id(event)) && !has_lost_fields {
                is_wanted = Truth::No;
            }
        }
        if record.is_some_and(|record| record.content.closes_span()) {
            self.known.close(ring, ring.span_id(event));
        }
        is_wanted
    }

    /// Returns whether the event fulfils all options. Typed events have no thread, level, target or duration.
    fn fits(&self, event: &Tested<'_>) -> Truth {
        let is_span = |target: &str, name: &str| self.spans.iter().any(|wanted| names_span(wanted, target, name));
        let is_target = || event.target().is_some_and(|target| self.targets.iter().any(|wanted| wanted.fits(target)));
        let has_level = |level| event.call_site().is_some_and(|site| site.level <= level);
        let lasted = || event.closed_after_nanos().map(Duration::from_nanos);
        let fits = (self.spans.is_empty() || event.any_span_name(&mut |target, name| is_span(target, name)))
            && (self.targets.is_empty() || is_target())
            && self.level.is_none_or(has_level)
            && (self.threads.is_empty() || event.is_of_thread(&self.threads))
            && self.min_duration.is_none_or(|least| lasted().is_some_and(|lasted| lasted >= least));
        match &self.condition {
            Some(condition) if fits => condition.truth(event),
            _ => fits.into(),
        }
    }
}
