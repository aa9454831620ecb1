//! The selection of a part of a capture.

use crate::condition::{Condition, NamePattern};
use crate::error::{CaptureError, CaptureErrorKind};
use crate::format::ring::{CapturedRing, RingRole};
use crate::select::block_filter::{Choice, RingChoice};
use crate::select::events::EventSelection;
use eventring::internal::ext_words;
use eventring::schema::perf::CallSiteKind;
use eventring::tracing::{CallSite, Catalog, Thread};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// The largest number of names that an error message lists.
const NAMED_MAX: usize = 12;

/// A part of a capture: a time window, threads, rings, spans. A new selection is the whole capture, and each method
/// narrows it. [`CaptureFile::select`](crate::CaptureFile::select) says which events are in the part.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Selection {
    from_nanos: Option<u64>,
    to_nanos: Option<u64>,
    rings: Vec<String>,
    pub(crate) events: EventSelection,
}

impl Selection {
    /// Makes the selection of the whole capture.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Selects the events from this time on, in nanoseconds since the epoch.
    #[must_use]
    pub fn from_epoch_nanos(self, epoch_nanos: u64) -> Self {
        Self { from_nanos: Some(epoch_nanos), ..self }
    }

    /// Selects the events up to this time, in nanoseconds since the epoch. An event of this very time is selected.
    #[must_use]
    pub fn to_epoch_nanos(self, epoch_nanos: u64) -> Self {
        Self { to_nanos: Some(epoch_nanos), ..self }
    }

    /// Returns the first and the last time of the window, in nanoseconds since the epoch.
    pub(crate) fn window_nanos(&self) -> (u64, u64) {
        (self.from_nanos.unwrap_or(0), self.to_nanos.unwrap_or(u64::MAX))
    }

    /// Returns the last time of the window, in nanoseconds since the epoch.
    #[doc(hidden)]
    #[must_use]
    pub fn end_epoch_nanos(&self) -> u64 {
        self.to_nanos.unwrap_or(u64::MAX)
    }

    /// Selects the events of a thread: its name, or the operating system's id of it. Several threads may be named.
    #[must_use]
    pub fn thread(mut self, name: impl Into<String>) -> Self {
        self.events.threads.push(name.into());
        self
    }

    /// Selects the events of a ring. The name of shard 0 stands for all shards of its recorder. Several rings may be
    /// named.
    #[must_use]
    pub fn ring(mut self, name: impl Into<String>) -> Self {
        self.rings.push(name.into());
        self
    }

    /// Selects the spans of this name, and everything in them. The name may begin with the target: `shop::web::query`.
    /// Several spans may be named.
    #[must_use]
    pub fn span(mut self, name: impl Into<String>) -> Self {
        self.events.spans.push(name.into());
        self
    }

    /// Selects the spans of this duration at least, and everything in them. If spans are named, only spans of these
    /// names are measured.
    #[must_use]
    pub fn min_duration(mut self, duration: Duration) -> Self {
        self.events.min_nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self
    }

    /// Selects what fulfils a condition: spans with everything in them, log records, marks and typed events.
    #[must_use]
    pub fn condition(mut self, condition: Condition) -> Self {
        self.events.condition = Some(condition);
        self
    }

    /// Selects events by what they are about, instead of what was selected so before.
    #[doc(hidden)]
    #[must_use]
    pub fn events(self, events: EventSelection) -> Self {
        Self { events, ..self }
    }

    /// Returns the selection of everything in the same window of time.
    #[must_use]
    pub fn window(&self) -> Self {
        Self { from_nanos: self.from_nanos, to_nanos: self.to_nanos, ..Self::new() }
    }

    /// Returns the selection of everything in the same rings and the same window of time.
    #[must_use]
    pub fn rings_and_window(&self) -> Self {
        Self { rings: self.rings.clone(), ..self.window() }
    }

    /// Returns true if a span may be selected without its beginning or its end.
    #[must_use]
    pub fn cuts_spans(&self) -> bool {
        self.window() != Self::new()
            || !self.rings.is_empty()
            || !self.events.each().is_empty()
            || self.events.condition.is_some()
            || !self.events.types.is_empty()
    }

    pub(crate) fn is_whole(&self) -> bool {
        *self == Self::default()
    }

    /// Looks the names of rings and threads up in a capture.
    ///
    /// # Errors
    /// A name is not there.
    pub(crate) fn choose(&self, rings: &[CapturedRing], catalogs: &[Catalog]) -> Result<Choice, CaptureError> {
        let (from_nanos, to_nanos) = self.window_nanos();
        let names_of_ring = |ring: &'_ CapturedRing| match ring.role {
            RingRole::Shard { recorder, .. } => [ring.name.clone(), rings[recorder as usize].name.clone()],
            RingRole::Single => [ring.name.clone(), ring.name.clone()],
        };
        check_names("ring", &self.rings, rings.iter().map(|ring| names_of_ring(ring).into_iter()))?;
        let all_threads = catalogs.iter().flat_map(Catalog::threads);
        check_names("thread", &self.events.threads, all_threads.map(|thread| names_of_thread(thread)))?;
        let spans =
            || catalogs.iter().flat_map(Catalog::call_sites).filter(|site| site.kind == Some(CallSiteKind::Span));
        check_names("span", &self.events.spans, spans().map(|site| names_of_span(site)))?;
        let each = self.events.each();
        let threads: Vec<_> = catalogs.iter().map(|catalog| Arc::new(self.threads_in(catalog))).collect();
        let choices = rings.iter().enumerate().map(|(index, ring)| {
            let shard0 = ring.shard0(index as u32) as usize;
            let is_named = self.rings.is_empty() || names_of_ring(ring).iter().any(|name| self.rings.contains(name));
            let has_spans = ring.is_perf() && !ring.has_other_perf_schema();
            let model = ring.schema().ok();
            RingChoice {
                is_wanted: is_named && (has_spans || each.is_empty()),
                is_perf: has_spans,
                process: ring.process,
                words: ext_words(ring.content_type, model.as_deref()),
                threads: (!self.events.threads.is_empty()).then(|| threads[shard0].clone()),
                codes: self.events.codes(model.as_deref()),
                model,
                recorder: shard0,
            }
        });
        Ok(Choice {
            from_nanos,
            to_nanos,
            shown_from_nanos: from_nanos,
            rings: choices.collect(),
            each,
            found: Vec::new(),
            spans_max: 0,
        })
    }

    /// Returns the ids of the named threads of a recorder.
    fn threads_in(&self, catalog: &Catalog) -> HashSet<u32> {
        let is_named = |thread: &&Arc<Thread>| names_of_thread(thread).any(|name| self.events.threads.contains(&name));
        catalog.threads().filter(is_named).map(|thread| thread.id).collect()
    }
}

/// Returns the name of a thread, and the operating system's id of it.
fn names_of_thread(thread: &Thread) -> impl Iterator<Item = String> + use<> {
    thread.name.clone().into_iter().chain(thread.os_thread_id.map(|id| id.to_string()))
}

/// Returns the name of a span, and the name after its target: what [`names_span`](crate::names_span) accepts.
fn names_of_span(site: &CallSite) -> impl Iterator<Item = String> + use<> {
    [site.name.clone(), format!("{}::{}", site.target, site.name)].into_iter()
}

/// Checks that each wanted name is there. `there` has the names of each thing, and the first of them is shown.
fn check_names<N: Iterator<Item = String>>(
    what: &str,
    wanted: &[String],
    there: impl Iterator<Item = N>,
) -> Result<(), CaptureError> {
    if wanted.is_empty() {
        return Ok(());
    }
    let (mut known, mut shown) = (HashSet::new(), BTreeSet::new());
    for mut names in there {
        if let Some(name) = names.next() {
            known.insert(name.clone());
            if !name.is_empty() {
                shown.insert(name);
            }
        }
        known.extend(names);
    }
    let is_there = |name: &&String| known.contains(*name) || known.iter().any(|it| NamePattern::new(*name).fits(it));
    let Some(missing) = wanted.iter().find(|name| !is_there(name)) else { return Ok(()) };
    let more = match shown.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let are = match shown.len() {
        0 => format!("there is no {what}"),
        1 => "there is only ".to_owned(),
        _ => "there are ".to_owned(),
    };
    let shown: Vec<String> = shown.into_iter().take(NAMED_MAX).collect();
    let message = format!("the capture has no {what} {missing}: {are}{}{more}", shown.join(", "));
    Err(CaptureError::new(CaptureErrorKind::BadOptions, message))
}
