//! One pass over the events: counts, names of spans, errors, pauses.

use crate::errors::Errors;
use crate::names::{Names, name_of};
use crate::pauses::Pauses;
use crate::task_kinds::TaskKinds;
use eventring::files::CONTENT_TYPE_EXEC;
use eventring::reader::GapCause;
use eventring::schema::{EventType as _, RECORD_ERROR_CODE};
use eventring::tracing::{RawRecord, SpanStep};
use eventring_capture::CaptureFile;
use eventring_capture::recording::{EntryContent, OverSpan, RecordingEntry, ReplayConsumer, ReplayNeeds, ReplayState};
use eventring_profile::schema::{Sched, Stacks};
use std::collections::BTreeMap;
use std::io;

/// The largest number of threads of a program whose innermost spans are kept.
const THREADS_MAX: usize = 8;

/// What is known of a ring.
#[derive(Clone, Debug, Default)]
pub(crate) struct RingCounts {
    pub(crate) events: u64,
    /// The events that were lost since the capture began, by cause.
    pub(crate) lost: BTreeMap<GapCause, u64>,
    pub(crate) overwritten_before: u64,
    pub(crate) is_profile: bool,
    /// The events that could not be recorded, and the time of the first, in nanoseconds since the epoch.
    pub(crate) record_errors: (u64, u64),
    /// The time of the last event.
    last_nanos: u64,
    /// The process of the ring, if events were lost since.
    lost_of: Option<usize>,
}

/// What was collected.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) names: Names,
    tasks: TaskKinds,
    pub(crate) errors: Errors,
    /// By the number of the ring in the capture.
    pub(crate) rings: Vec<RingCounts>,
    /// By the number of the process.
    pub(crate) pauses: Vec<Pauses>,
    /// The time until which each process is known to have lived, in nanoseconds since the epoch.
    pub(crate) until_nanos: Vec<u64>,
    /// The innermost spans of threads at the end.
    pub(crate) innermost: Vec<Vec<String>>,
    pub(crate) has_tasks: bool,
    pub(crate) has_blocks: bool,
}

impl Collected {
    pub(crate) fn new(capture: &CaptureFile) -> Self {
        let mut collected = Self::default();
        for ring in capture.rings() {
            let is_profile = [Sched::CONTENT_TYPE, Stacks::CONTENT_TYPE].contains(&ring.content_type);
            collected.rings.push(RingCounts { is_profile, ..RingCounts::default() });
            collected.has_blocks |= ring.content_type == CONTENT_TYPE_EXEC;
        }
        collected
    }
}

impl ReplayConsumer for Collected {
    fn needs(&self) -> ReplayNeeds {
        ReplayNeeds { remaining: true, ..ReplayNeeds::default() }
    }

    #[inline]
    fn entry(&mut self, entry: &RecordingEntry<'_>, _: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        let collected = self;
        let Some(ring) = collected.rings.get_mut(entry.ring as usize) else { return Ok(()) };
        if let EntryContent::Gap(gap) = &entry.content
            && gap.cause.may_hide_events()
        {
            ring.lost_of = Some(entry.process_index);
        }
        match &entry.content {
            EntryContent::Gap(gap) if gap.cause == GapCause::OverwrittenBefore => {
                ring.overwritten_before = ring.overwritten_before.saturating_add(gap.count);
            }
            EntryContent::Gap(gap) => {
                let lost = ring.lost.entry(gap.cause).or_default();
                *lost = lost.saturating_add(gap.count);
            }
            content => {
                ring.events += u64::from(entry.is_next_event());
                let span = |record: &RawRecord<'_>| record.span().and_then(|id| state.span(entry.process_index, id));
                if let Some(nanos) = entry.epoch_nanos().filter(|_| entry.is_next_event() && !ring.is_profile) {
                    if collected.pauses.len() <= entry.process_index {
                        collected.pauses.resize_with(entry.process_index + 1, Pauses::default);
                    }
                    let pauses = &mut collected.pauses[entry.process_index];
                    if ring.lost_of.take().is_some() {
                        pauses.lost(ring.last_nanos, nanos);
                    }
                    ring.last_nanos = nanos;
                    if pauses.event(nanos) {
                        pauses.until = match content {
                            EntryContent::Perf { record, .. } => span(record).map_or_else(String::new, name_of),
                            EntryContent::Typed { descriptor, .. } => {
                                entry.tables.rings.event_name(entry.ring, descriptor.event_type).into_owned()
                            }
                            EntryContent::Gap(_) => String::new(),
                        };
                    }
                }
                match content {
                    EntryContent::Perf { record, catalog, .. } => {
                        collected.tasks.see(entry.process_index, record, catalog, &mut collected.names);
                        collected.errors.add(record, catalog, || span(record).map(name_of).unwrap_or_default());
                    }
                    // Other events have this code in the oldest schema of execution events.
                    EntryContent::Typed { descriptor, .. }
                        if descriptor.event_type == RECORD_ERROR_CODE
                            && entry.tables.rings.event_name(entry.ring, descriptor.event_type) == "RECORD_ERROR" =>
                    {
                        let (count, first_nanos) = ring.record_errors;
                        let first_nanos = if count == 0 { descriptor.record_epoch_nanos } else { first_nanos };
                        ring.record_errors = (count + 1, first_nanos);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn span(&mut self, process: usize, over: &OverSpan<'_>, _: ReplayState<'_>) -> io::Result<()> {
        let is_task = over.span.call_site.as_ref().is_some_and(|site| site.target == eventring_tasks::TARGET);
        self.has_tasks |= is_task;
        let task = if is_task { self.tasks.take(process, over.span.id) } else { None };
        self.names.add(over, task);
        Ok(())
    }

    fn end(&mut self, state: ReplayState<'_>, end_nanos: &[u64]) -> io::Result<()> {
        self.until_nanos = end_nanos.to_vec();
        for ring in &self.rings {
            if let Some(pauses) = ring.lost_of.and_then(|process| self.pauses.get_mut(process)) {
                pauses.lost(ring.last_nanos, u64::MAX);
            }
        }
        for replay in state.replays {
            let mut innermost: BTreeMap<_, _> = BTreeMap::new();
            for slice in replay.open_slices() {
                let key = (slice.thread.recorder, slice.thread.thread_id);
                if innermost.len() < THREADS_MAX || innermost.contains_key(&key) {
                    innermost.insert(key, slice.span);
                }
            }
            let names = innermost.values().filter_map(|id| replay.get(*id)).map(name_of);
            self.innermost.push(names.collect());
        }
        Ok(())
    }

    fn kept_bytes(&self) -> u64 {
        self.names.kept_bytes() + self.tasks.kept_bytes() + self.errors.sites.len() as u64 * 1024
    }
}
