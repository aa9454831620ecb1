//! The events that options about spans, threads, levels, targets and fields select. They are tested before anything is
//! formatted.

use super::perf::{self, is_description};
use super::rings::{LazyPayload, Ring, Rings};
use crate::exit::{Exit, Failure};
use crate::fields::{KnownFields, check_fields};
use crate::selection::{WhereArgs, parse_level};
use eventring::reader::{Descriptor, PayloadRead};
use eventring::schema::Value;
use eventring::schema::perf::{CallSiteLevel, FieldValue, PerfExt};
use eventring::tracing::{CallSite, Field, PerfContent, PerfRecord, is_log_record};
use eventring_live::{Condition, NamePattern, Operand, Subject};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The options that select events by what is in them.
#[derive(clap::Args)]
pub(super) struct WantedArgs {
    /// Only spans and log records of this target; `*` stands for any characters. May be repeated
    #[arg(long, help_heading = "Selection", value_name = "TARGET")]
    target: Vec<String>,
    /// Only spans and log records of at most this level: error, warn, info, debug, trace
    #[arg(long, alias = "max-level", help_heading = "Selection", value_name = "LEVEL", value_parser = parse_level)]
    level: Option<CallSiteLevel>,
    #[command(flatten)]
    condition: WhereArgs,
}

/// The largest number of open spans that are remembered. If there are more, all are forgotten.
const SPANS_MAX: usize = 1 << 20;

/// The test of the events.
#[derive(Default)]
pub(super) struct Wanted {
    targets: Vec<NamePattern>,
    level: Option<CallSiteLevel>,
    pub(super) condition: Option<Condition>,
    /// Of rings alone; the reader of a capture knows these.
    pub(super) spans: Vec<String>,
    pub(super) threads: Vec<String>,
    pub(super) min_duration: Option<Duration>,
    known: HashMap<(u64, u64), KnownSpan>,
}

/// An open span.
struct KnownSpan {
    call_site: Arc<CallSite>,
    parent: u64,
    /// The time of its creation; `None` if it was created before the watch began.
    since_nanos: Option<u64>,
    fields: Vec<Field>,
}

impl WantedArgs {
    /// Returns the condition.
    pub(super) fn condition(&self) -> Option<&Condition> {
        self.condition.condition.as_ref()
    }

    /// Makes the test for these rings.
    pub(super) fn on(&self, rings: &Rings) -> Result<Wanted, Failure> {
        if let Some(condition) = &self.condition.condition {
            let refuse = |why: String| Failure::new(Exit::Usage, format!("--where: {why}"));
            let known: Vec<KnownFields> = rings.iter().map(Ring::known_fields).collect();
            check_fields(condition, &known).map_err(refuse)?;
        }
        Ok(Wanted {
            targets: self.target.iter().map(NamePattern::new).collect(),
            level: self.level,
            condition: self.condition.condition.clone(),
            ..Wanted::default()
        })
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

    /// Returns true if an event is wanted.
    pub(super) fn accepts(&mut self, ring: &Ring, event: &Descriptor, payload: &mut LazyPayload<'_>) -> bool {
        if self.is_all() {
            return true;
        }
        let Some(of_ring) = &ring.perf else { return self.accepts_typed(ring, event, payload.read()) };
        let record = of_ring.record(event, payload.read());
        if is_description(event.event_type) {
            return false;
        }
        let span = PerfExt::from_words(event.content_ext).span_id;
        if self.needs_spans() {
            self.learn(ring, event, span, &record);
        }
        let tested =
            Tested { wanted: self, ring, event, span, record: Some(&record), payload: None, value: OnceCell::new() };
        let is_wanted = tested.fits();
        if matches!(record.content, PerfContent::SpanClose { .. }) {
            self.known.remove(&(ring.process, span));
        }
        is_wanted
    }

    fn accepts_typed(&self, ring: &Ring, event: &Descriptor, payload: PayloadRead<'_>) -> bool {
        // Typed events have no thread, level, target or duration.
        if self.min_duration.is_some() || !self.threads.is_empty() || !self.targets.is_empty() || self.level.is_some() {
            return false;
        }
        let span = ring.span_id(event);
        let payload = payload.valid();
        Tested { wanted: self, ring, event, span, record: None, payload, value: OnceCell::new() }.fits()
    }

    /// Takes note of a span that an event creates, changes or is in.
    fn learn(&mut self, ring: &Ring, event: &Descriptor, span: u64, record: &PerfRecord) {
        if self.known.len() >= SPANS_MAX {
            self.known.clear();
        }
        let known = |call_site: &Arc<CallSite>, parent, since_nanos| KnownSpan {
            call_site: call_site.clone(),
            parent,
            since_nanos,
            fields: Vec::new(),
        };
        let key = (ring.process, span);
        match &record.content {
            PerfContent::SpanNew { parent, call_site, fields, .. } => {
                let parent = parent.map_or(0, |parent| parent.get());
                let new = known(call_site, parent, Some(event.record_epoch_nanos));
                self.known.insert(key, KnownSpan { fields: fields.values.clone(), ..new });
            }
            PerfContent::SpanRecord { call_site, fields, .. } => {
                let span = self.known.entry(key).or_insert_with(|| known(call_site, 0, None));
                for field in &fields.values {
                    span.fields.retain(|it| it.name != field.name);
                    span.fields.push(field.clone());
                }
            }
            PerfContent::SpanEnter { call_site, .. } | PerfContent::SpanExit { call_site, .. } => {
                self.known.entry(key).or_insert_with(|| known(call_site, 0, None));
            }
            _ => {}
        }
    }
}

/// An event, for the test.
struct Tested<'a> {
    wanted: &'a Wanted,
    ring: &'a Ring,
    event: &'a Descriptor,
    /// The span that it is about, or in which it was recorded; 0 if there is none.
    span: u64,
    /// The event of a perf ring.
    record: Option<&'a PerfRecord>,
    /// The payload of a typed event.
    payload: Option<&'a [u8]>,
    value: OnceCell<Option<Value<'a>>>,
}

impl<'a> Tested<'a> {
    fn fits(&self) -> bool {
        let wanted = self.wanted;
        let site = self.call_site();
        (wanted.spans.is_empty() || self.any_span_name(&mut |name| wanted.spans.iter().any(|wanted| wanted == name)))
            && (wanted.targets.is_empty()
                || self.target().is_some_and(|target| wanted.targets.iter().any(|wanted| wanted.fits(target))))
            && wanted.level.is_none_or(|level| site.is_some_and(|site| site.level <= level))
            && (wanted.threads.is_empty() || self.is_of_thread())
            && wanted.min_duration.is_none_or(|least| {
                self.closed_after_nanos().is_some_and(|nanos| u128::from(nanos) >= least.as_nanos())
            })
            && wanted.condition.as_ref().is_none_or(|condition| condition.holds(self))
    }

    fn call_site(&self) -> Option<&'a CallSite> {
        perf::site(&self.record?.content)
    }

    fn is_of_thread(&self) -> bool {
        let Some(record) = self.record else { return false };
        let tid = record.thread.os_thread_id.map(|tid| tid.to_string());
        let is_it = |wanted: &String| record.thread.name.as_ref() == Some(wanted) || tid.as_ref() == Some(wanted);
        self.wanted.threads.iter().any(is_it)
    }

    fn known(&self, span: u64) -> Option<&'a KnownSpan> {
        self.wanted.known.get(&(self.ring.process, span))
    }

    fn fields(&self) -> &'a [Field] {
        match self.record.map(|record| &record.content) {
            Some(
                PerfContent::SpanNew { fields, .. }
                | PerfContent::SpanRecord { fields, .. }
                | PerfContent::Event { fields, .. },
            ) => &fields.values,
            _ => &[],
        }
    }
}

impl Subject for Tested<'_> {
    fn any_span_name(&self, test: &mut dyn FnMut(&str) -> bool) -> bool {
        let mut fits = |site: &CallSite| test(&site.name) || test(&format!("{}::{}", site.target, site.name));
        let (mut span, mut rest) = (self.span, 1000);
        while let Some(known) = self.known(span).filter(|_| rest > 0) {
            if fits(&known.call_site) {
                return true;
            }
            // In a damaged ring a span can be its own ancestor.
            (span, rest) = (known.parent, rest - 1);
        }
        false
    }

    fn event_name(&self, take: &mut dyn FnMut(&str)) {
        match self.record.map(|record| &record.content) {
            None => take(self.ring.decoder.name(self.event.event_type).unwrap_or_default()),
            Some(PerfContent::Event { call_site, .. } | PerfContent::Marker { call_site, .. }) => take(&call_site.name),
            Some(_) => {}
        }
    }

    fn target(&self) -> Option<&str> {
        let site = self.call_site()?;
        if is_log_record(site)
            && let Some(FieldValue::Str(target)) =
                self.fields().iter().find(|it| &*it.name == "log.target").map(|it| &it.value)
        {
            return Some(target);
        }
        Some(&site.target)
    }

    fn thread_name(&self, take: &mut dyn FnMut(&str)) {
        if let Some(name) = self.record.and_then(|record| record.thread.name.as_deref()) {
            take(name);
        }
    }

    fn level(&self) -> Option<CallSiteLevel> {
        match &self.record?.content {
            PerfContent::Event { call_site, .. } => Some(call_site.level),
            _ => None,
        }
    }

    fn closed_after_nanos(&self) -> Option<u64> {
        let PerfContent::SpanClose { .. } = self.record?.content else { return None };
        Some(self.event.record_epoch_nanos.saturating_sub(self.known(self.span)?.since_nanos?))
    }

    fn field(&self, path: &str, take: &mut dyn FnMut(Operand<'_>)) {
        if self.record.is_some() {
            let of_span = || self.known(self.span).map_or(&[][..], |known| &known.fields).iter();
            let field = self.fields().iter().chain(of_span()).find(|field| &*field.name == path);
            return field.into_iter().for_each(|field| Operand::with_field(&field.value, take));
        }
        let (decoder, code) = (&self.ring.decoder, self.event.event_type);
        let value = self.value.get_or_init(|| self.payload.map(|payload| decoder.decode(code, payload)));
        if let Some(value) = value.as_ref().and_then(|value| value.get(path)) {
            return Operand::with_value(value, take);
        }
        if let Some(word) = self.ring.words.value_of(path, self.event.content_ext) {
            take(Operand::Integer(word.into()));
        }
    }
}
