//! Names in a query that no recorded event has: a mistake of the user, or something that has not happened.

use crate::args::selection::EventArgs;
use crate::input::names::decoder::Decoder;
use crate::input::names::fields::{KnownFields, check_fields};
use crate::text::losses::report_problem;
use crate::text::table::shortened_name;
use eventring::files::CONTENT_TYPE_PERF;
use eventring::reader::Reader;
use eventring::schema::perf::CallSiteKind;
use eventring::tracing::{Catalog, is_log_record};
use eventring_capture::CaptureFile;
use eventring_live::{Condition, NameKind, NamePattern};
use std::collections::{BTreeSet, HashMap};

/// The largest number of names that a message lists.
const NAMES_MAX: usize = 12;

/// The names of what rings have recorded: of spans, log records and marks, targets and threads, and of the types of
/// typed events.
#[derive(Default)]
pub(crate) struct SeenNames {
    names: HashMap<NameKind, BTreeSet<String>>,
    /// The codes of typed events.
    codes: BTreeSet<u16>,
    /// True if there are typed events whose names are not known.
    has_unnamed_events: bool,
    /// True if there are records of the crate `log`: each has a target of its own.
    has_other_targets: bool,
    /// The fields that events of each ring may have; empty for captures.
    fields: Vec<KnownFields>,
}

impl SeenNames {
    pub(crate) fn from_rings<'r>(rings: impl Iterator<Item = &'r Reader>) -> Self {
        let mut seen = Self::default();
        rings.for_each(|ring| seen.add_ring(ring));
        seen
    }

    pub(crate) fn of_capture(capture: &CaptureFile) -> Self {
        let mut seen = Self::default();
        for (ring, index) in capture.rings().iter().zip(0..) {
            if ring.is_perf() {
                seen.add_catalog(&capture.catalog(index));
            } else {
                seen.add_decoder(&Decoder::for_captured(ring));
            }
        }
        seen
    }

    pub(crate) fn add_ring(&mut self, ring: &Reader) {
        self.fields.push(KnownFields::of_reader(ring).until_now());
        if ring.info().content_type == CONTENT_TYPE_PERF {
            let mut catalog = Catalog::new();
            catalog.update(ring);
            self.add_catalog(&catalog);
        } else {
            self.add_decoder(&Decoder::for_ring(ring));
        }
    }

    fn add_decoder(&mut self, decoder: &Decoder) {
        self.has_unnamed_events |= decoder.model().is_none();
        for (code, name) in decoder.events() {
            self.codes.insert(code);
            self.add(NameKind::Event, name);
        }
    }

    fn add_catalog(&mut self, catalog: &Catalog) {
        for site in catalog.call_sites() {
            let kind = if site.kind == Some(CallSiteKind::Span) { NameKind::Span } else { NameKind::Event };
            self.has_other_targets |= is_log_record(site);
            self.add(kind, &site.name);
            self.add(NameKind::Target, &site.target);
            if kind == NameKind::Span {
                self.add(kind, &format!("{}::{}", site.target, site.name));
            }
        }
        for thread in catalog.threads() {
            let tid = thread.os_thread_id.map(|tid| tid.to_string());
            thread.name.iter().chain(&tid).for_each(|name| self.add(NameKind::Thread, name));
        }
    }

    fn add(&mut self, kind: NameKind, name: &str) {
        self.names.entry(kind).or_default().insert(name.to_owned());
    }

    /// Says which of the names or patterns of an option nothing had.
    pub(crate) fn report(&self, option: &str, kind: NameKind, names: &[String]) {
        for name in names {
            let pattern = NamePattern::new(name);
            self.report_unless(&format!("{option} {name}"), kind, name, |seen| pattern.fits(seen));
        }
    }

    /// Says which of the names in a condition nothing had, and the first of its fields that no event has.
    pub(crate) fn report_condition(&self, option: &str, condition: &Condition) {
        // A condition on a capture with such a field is refused before.
        if !self.fields.is_empty()
            && let Err(why) = check_fields(condition, &self.fields)
        {
            report_problem(false, &format!("{}: {why}", shortened_name(&format!("{option} '{condition}'"))));
        }
        for (kind, pattern) in condition.names() {
            if kind == NameKind::Event && pattern.code().is_some_and(|code| self.codes.contains(&code)) {
                continue;
            }
            let fits = |seen: &str| match kind {
                NameKind::Event => pattern.fits_typed(seen, None),
                _ => pattern.fits(seen),
            };
            self.report_unless(&format!("{option} '{condition}'"), kind, pattern.as_str(), fits);
        }
    }

    fn report_unless(&self, option: &str, kind: NameKind, name: &str, fits: impl Fn(&str) -> bool) {
        let none = BTreeSet::new();
        let seen = self.names.get(&kind).unwrap_or(&none);
        let may_have_others = match kind {
            NameKind::Event => self.has_unnamed_events,
            NameKind::Target => self.has_other_targets,
            NameKind::Span | NameKind::Thread => false,
        };
        if may_have_others || seen.iter().any(|seen| fits(seen)) {
            return;
        }
        let what = match kind {
            NameKind::Span => "span",
            NameKind::Event => "event",
            NameKind::Target => "target",
            NameKind::Thread => "thread",
        };
        // Spans are listed without their targets.
        let is_short = |name: &&str| kind != NameKind::Span || !name.contains("::");
        let short: Vec<&str> = seen.iter().map(String::as_str).filter(is_short).collect();
        let listed = short.iter().take(NAMES_MAX).map(|name| shortened_name(name)).collect::<Vec<_>>().join(", ");
        let more = if short.len() > NAMES_MAX { ", …" } else { "" };
        let there_are = if listed.is_empty() { String::new() } else { format!("; there are {listed}{more}") };
        let (option, name) = (shortened_name(option), shortened_name(name));
        report_problem(false, &format!("{option}: no {what} `{name}` was seen{there_are}"));
    }

    /// Says which of the names that were asked for nothing had.
    pub(crate) fn report_unseen(&self, asked: &EventArgs) {
        self.report("--span", NameKind::Span, &asked.span);
        self.report("--thread", NameKind::Thread, &asked.thread);
        self.report("--target", NameKind::Target, &asked.target);
        asked.condition.iter().for_each(|condition| self.report_condition("--where", condition));
    }
}
