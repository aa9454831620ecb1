//! The second pass: collects everything about the spans that the first pass has found.

use super::find::{SubjectSpans, full_name};
use super::locks::LockWaits;
use super::scheduled::{Scheduled, TaskKey};
use super::shares::Switches;
use crate::line::thread::ThreadLine;
use crate::line::times::Times;
use crate::line::{Changed, Lines};
use crate::schema::Sched;
use eventring::reader::Descriptor;
use eventring::schema::EventType as _;
use eventring::tracing::{Catalog, Span, SpanId, SpanStep, TakenSlice, TimeSpent};
use eventring_capture::numbers::{counted, grouped, time};
use eventring_capture::recording::{
    EntryContent, OverSpan, RecordingEntry, ReplayConsumer, ReplayNeeds, ReplayParts, ReplayState,
};
use eventring_tasks::OpenTasks;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

/// The error of times, in nanoseconds, above which a clock was set.
const CLOCK_ERROR_MAX: u64 = 1_000_000;
/// The largest number of spans inside of the found ones that are looked at.
const INNER_MAX: usize = 200_000;

/// A span that was found, or one inside of it.
#[derive(Clone, Debug, Default)]
pub(super) struct CollectedSpan {
    pub(super) id: u64,
    /// The name behind the target.
    pub(super) full_name: String,
    pub(super) name: String,
    pub(super) start_nanos: u64,
    pub(super) end_nanos: u64,
    pub(super) is_asked_for: bool,
    pub(super) fields: Vec<(String, String)>,
    /// When threads were in it, in order and apart: where several threads were in it, the one that came first.
    pub(super) slices: Vec<Slice>,
    /// The indices of its children among the inner spans.
    pub(super) children: Vec<usize>,
    /// The task in which it is.
    pub(super) task: Option<TaskKey>,
    /// What its threads say of the moments at which they left their processors in it, and in no span inside.
    pub(super) switches: Switches,
}

impl CollectedSpan {
    pub(super) fn nanos(&self) -> u64 {
        self.end_nanos.saturating_sub(self.start_nanos)
    }
}

/// A time in which a thread was in a span.
#[derive(Clone, Debug)]
pub(super) struct Slice {
    /// The thread, as the system numbers it.
    pub(super) thread_id: u32,
    pub(super) from_nanos: u64,
    pub(super) to_nanos: u64,
    /// The span, and its name.
    pub(super) span: u64,
    pub(super) name: Arc<str>,
    /// How the thread spent this time, as its own events say.
    pub(super) times: TimeSpent,
    /// The part in which it was in no span inside.
    pub(super) own_times: TimeSpent,
}

/// What was collected.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) spans: Vec<CollectedSpan>,
    pub(super) inner: Vec<CollectedSpan>,
    /// What each thread did.
    pub(super) lines: Lines,
    /// The outermost slices of each thread, by their end.
    pub(super) outer: HashMap<u32, Vec<Slice>>,
    pub(super) scheduled: Scheduled,
    pub(super) locks: LockWaits,
    /// The processes whose spans these are, as the system numbers them.
    pub(super) process_ids: HashSet<u32>,
}

impl Collected {
    /// Returns true if the capture says when threads left processors.
    pub(super) fn has_sched(&self) -> bool {
        self.lines.session.as_ref().is_some_and(|session| session.has_sched)
    }

    /// Returns what the kernel says of a thread, if it says anything.
    pub(super) fn line(&self, thread_id: u32) -> Option<&ThreadLine> {
        self.lines.of_threads.get(&thread_id).filter(|line| !line.is_empty())
    }

    /// Returns true if the capture has no records of the scheduler, and threads say themselves what they did.
    fn has_own_times(&self) -> bool {
        let mut slices = self.spans.iter().flat_map(|span| &span.slices);
        !self.has_sched() && slices.any(|slice| slice.times.is_measured())
    }
}

/// Where a span is kept.
#[derive(Clone, Copy)]
enum Place {
    Found(usize),
    Inner(usize),
}

/// Collects.
pub(super) struct Collector {
    places: HashMap<(usize, u64), Place>,
    collected: Collected,
    /// The times of the found spans.
    windows: Times,
    names: HashMap<String, Arc<str>>,
}

impl Collector {
    pub(super) fn new(found: &SubjectSpans) -> Self {
        let (mut places, mut collected) = (HashMap::new(), Collected::default());
        let mut windows: Vec<(u64, u64)> = Vec::new();
        for (at, span) in found.slow.iter().chain(&found.normal).enumerate() {
            places.insert((span.process_index, span.id), Place::Found(at));
            collected.spans.push(CollectedSpan {
                id: span.id,
                start_nanos: span.start_nanos,
                end_nanos: span.start_nanos.saturating_add(span.nanos),
                is_asked_for: at < found.asked,
                ..CollectedSpan::default()
            });
            windows.push((span.start_nanos, span.start_nanos.saturating_add(span.nanos)));
        }
        Self { places, collected, windows: Times::joined(windows), names: HashMap::new() }
    }

    /// Returns what was not recorded, and would say more.
    pub(super) fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        let mut lacks = |is_there: bool, what: &str| {
            if !is_there {
                missing.push(what.to_owned());
            }
        };
        lacks(
            !self.collected.has_own_times(),
            "what threads waited for, who ran instead and who woke them (`eventring profile`)",
        );
        lacks(
            self.collected.has_sched() || self.collected.has_own_times(),
            "the scheduler: whether a thread computed, waited for a processor or was blocked (`eventring profile --sched`)",
        );
        if let Some(session) = self.collected.lines.session.as_ref().filter(|session| session.has_sched) {
            lacks(
                session.has_others,
                "other threads: who ran instead, and who woke (needs a right, see docs/PROFILE.md)",
            );
            lacks(
                session.has_syscalls,
                "system calls: in which one a thread was blocked (`eventring profile --syscalls`)",
            );
        }
        if let Some(begin) = self.collected.lines.begin_nanos.filter(|_| self.collected.has_sched()) {
            let asked = || self.collected.spans.iter().filter(|span| span.is_asked_for && span.start_nanos < begin);
            if let Some(first) = asked().map(|span| span.start_nanos).min() {
                let spans = counted(asked().count() as u64, "span", "spans");
                missing.push(format!(
                    "what threads did before the scheduler was recorded: {spans} began earlier, by up to {}",
                    time(begin - first)
                ));
            }
        }
        if let Some(error) = self.collected.lines.session.as_ref().map(|session| session.clock_error_nanos)
            && error > CLOCK_ERROR_MAX
        {
            missing.push(format!(
                "exact times: some are wrong by up to {}, because a clock was set while the profile was recorded",
                time(error)
            ));
        }
        if self.collected.lines.kernel_lost > 0 {
            let lost = grouped(self.collected.lines.kernel_lost);
            missing.push(format!("{lost} records that the kernel has left out"));
        }
        missing
    }

    pub(super) fn finish(mut self) -> Collected {
        let collected = &mut self.collected;
        for span in collected.spans.iter_mut().chain(&mut collected.inner) {
            span.slices.sort_by_key(|slice| slice.from_nanos);
            let mut end = 0;
            span.slices.retain_mut(|slice| {
                slice.from_nanos = slice.from_nanos.max(end);
                end = end.max(slice.to_nanos);
                slice.from_nanos <= slice.to_nanos
            });
        }
        for slices in collected.outer.values_mut() {
            slices.sort_by_key(|slice| slice.to_nanos);
        }
        self.collected
    }

    fn get(&mut self, process: usize, id: u64) -> Option<&mut CollectedSpan> {
        Some(match self.places.get(&(process, id))? {
            Place::Found(at) => &mut self.collected.spans[*at],
            Place::Inner(at) => &mut self.collected.inner[*at],
        })
    }

    /// Notes a span that was made inside of one that is kept.
    fn made(&mut self, process: usize, span: &Span) {
        let Some(parent) = span.parent else { return };
        let key = (process, span.id.get());
        if self.places.contains_key(&key) || self.collected.inner.len() >= INNER_MAX {
            return;
        }
        let index = self.collected.inner.len();
        let Some(parent) = self.get(process, parent.get()) else { return };
        parent.children.push(index);
        self.places.insert(key, Place::Inner(index));
        let start_nanos = span.start_epoch_nanos();
        self.collected.inner.push(CollectedSpan {
            id: key.1,
            full_name: full_name(span),
            name: span.name(),
            start_nanos,
            // Until its end is seen.
            end_nanos: u64::MAX,
            ..CollectedSpan::default()
        });
    }

    fn slice(
        &mut self,
        process: usize,
        taken: &TakenSlice,
        to_nanos: u64,
        catalog: &Catalog,
        state: ReplayState<'_>,
        is_outermost: bool,
    ) {
        let slice = &taken.slice;
        let from_nanos = slice.entered_epoch_nanos;
        let id = slice.span.get();
        let is_kept = self.places.contains_key(&(process, id));
        let is_outer = is_outermost && self.windows.overlap(from_nanos, to_nanos);
        if !is_kept && !is_outer {
            return;
        }
        let thread = catalog.thread(slice.thread.thread_id);
        let Some(thread_id) = thread.os_thread_id else { return };
        let name = self.name(state.span(process, slice.span));
        let (times, own_times) = (taken.times, taken.own_times);
        let slice = Slice { thread_id, from_nanos, to_nanos, span: id, name, times, own_times };
        if is_outer {
            self.collected.outer.entry(thread_id).or_default().push(slice.clone());
        }
        if let Some(span) = self.get(process, id) {
            span.slices.push(slice);
        }
    }

    fn name(&mut self, span: Option<&Span>) -> Arc<str> {
        let name = span.map_or_else(|| "a span".to_owned(), Span::name);
        self.names.entry(name.clone()).or_insert_with(|| name.as_str().into()).clone()
    }

    fn sched(&mut self, descriptor: &Descriptor, payload: &[u8]) {
        let nanos = descriptor.record_epoch_nanos;
        let lines = &mut self.collected.lines;
        // Between the spans, only the last change counts.
        if let Changed::Thread(thread) = lines.event(descriptor, payload)
            && !self.windows.overlap(nanos, nanos)
            && let Some(line) = lines.of_threads.get_mut(&thread)
        {
            line.forget_between(&self.windows);
        }
    }
}

impl ReplayConsumer for Collector {
    fn needs(&self) -> ReplayNeeds {
        ReplayNeeds { fields: true, remaining: true, ..ReplayNeeds::default() }
    }

    fn follow(&self, parts: &mut ReplayParts) {
        parts.ask(OpenTasks::default);
    }

    fn entry(&mut self, entry: &RecordingEntry<'_>, step: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        let process = entry.process_index;
        let id_of = |id: SpanId| state.span(process, id);
        self.collected.scheduled.entry(entry, state, &self.windows);
        // It comes before the event that has ended the time: the thread is still in the span in which it left its
        // processor.
        if let EntryContent::Perf { record, .. } = &entry.content
            && let Some((times, _)) = record.thread_time()
            && let Some(kept) = record.span().and_then(|span| self.get(process, span.get()))
        {
            kept.switches.add(&times);
        }
        if let EntryContent::Perf { recorder, record, catalog } = &entry.content {
            self.collected.locks.record(record, (process, *recorder), catalog, state, &self.windows);
        }
        match (&entry.content, step) {
            (EntryContent::Perf { .. }, SpanStep::Updated(id)) => {
                if let Some(span) = id_of(*id) {
                    self.made(process, span);
                }
                if let Some(kept) = self.get(process, id.get()).filter(|kept| kept.task.is_none()) {
                    kept.task = Scheduled::task_of(process, *id, state);
                }
            }
            (EntryContent::Perf { record, catalog, .. }, SpanStep::SliceEnded(taken)) => {
                let is_outermost = state.replays[process].stack(taken.slice.thread).is_empty();
                self.slice(process, taken, record.epoch_nanos(), catalog, state, is_outermost);
            }
            (EntryContent::Perf { record, catalog, .. }, SpanStep::Closed { cut, .. }) => {
                for taken in cut {
                    self.slice(process, taken, record.epoch_nanos(), catalog, state, false);
                }
            }
            (EntryContent::Typed { descriptor, payload }, _) => {
                let model = entry.tables.rings.model(entry.ring);
                if model.is_some_and(|model| model.content_type() == Sched::CONTENT_TYPE)
                    && let Some(payload) = payload.valid()
                {
                    self.sched(descriptor, payload);
                }
            }
            (EntryContent::Gap(gap), _) if gap.is_loss() => {
                let model = entry.tables.rings.model(entry.ring);
                if model.is_some_and(|model| model.content_type() == Sched::CONTENT_TYPE) {
                    self.collected.lines.lose(state.now_nanos);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn span(&mut self, process: usize, over: &OverSpan<'_>, state: ReplayState<'_>) -> io::Result<()> {
        let span = over.span;
        if let Some(program) = state.tables.rings.programs().get(process) {
            self.collected.process_ids.insert(program.pid);
        }
        if self.windows.overlap(state.now_nanos, state.now_nanos) {
            let name = self.name(Some(span));
            self.collected.locks.closed(process, span.id.get(), name);
        }
        let Some(kept) = self.get(process, span.id.get()) else { return Ok(()) };
        (kept.full_name, kept.name) = (full_name(span), span.name());
        kept.end_nanos = match &span.closed {
            Some(closed) => closed.epoch_nanos,
            None => over.end_nanos,
        };
        kept.fields =
            span.fields.values.iter().map(|field| (field.name.to_string(), field.value.to_string())).collect();
        Ok(())
    }

    fn end(&mut self, state: ReplayState<'_>, end_nanos: &[u64]) -> io::Result<()> {
        self.collected.scheduled.end(state, end_nanos, &self.windows);
        Ok(())
    }

    fn kept_bytes(&self) -> u64 {
        let lines = self.collected.lines.of_threads.values().map(ThreadLine::len).sum::<usize>() * 64;
        let outer = self.collected.outer.values().map(Vec::len).sum::<usize>() * size_of::<Slice>();
        (lines + outer + self.collected.inner.len() * 256) as u64
            + self.collected.scheduled.kept_bytes()
            + self.collected.locks.kept_bytes()
    }
}
