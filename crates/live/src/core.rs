//! The effect of each event on the state.

use super::observation::{ClosedSpan, Observation, SeenEvent, SeenLoss, SeenMark, SeenRecord};
use super::options::LiveOptions;
use super::order::SpanOrder;
use super::rings::See;
use super::series::SeriesTable;
use super::state::LiveState;
use super::tabled::Tabled;
use super::tables::PresentTables;
use super::task_phases::TaskPhase;
use eventring::reader::{Descriptor, Gap, GapCause, PayloadRead, RingEnd};
use eventring::schema::perf::{CallSiteLevel, PerfEvent};
use eventring::tracing::{RawRecord, Span, SpanStep};
use eventring_capture::recording::{
    EntryContent, OverSpan, RecordingEntry, RecordingReplay, RecordingTables, ReplayBounds, ReplayConsumer,
    ReplayState, SpanOver, SpanParts,
};
use eventring_tasks::OpenTasks;
use std::io;

/// The present, as far as the events show it. The spans are in the replay.
pub(super) struct LiveCore {
    pub(super) processes: Vec<LiveProcess>,
    pub(super) series: SeriesTable,
    /// For each ring, true if its first events were overwritten and none of the others was seen yet.
    has_lost_first: Vec<bool>,
    /// The time from which on all events are known; `None` if nothing was overwritten before.
    pub(super) known_since_nanos: Option<u64>,
    pub(super) counts: LiveCounts,
    /// The tables of the present, if somebody asks for them.
    pub(super) tables: PresentTables,
    /// The open spans of tables of the present, if they are shown instead of those of the replay.
    pub(super) tabled: Option<Vec<Tabled>>,
}

/// Counts since the engine began.
#[derive(Default)]
pub(super) struct LiveCounts {
    /// Events of all rings that were read.
    pub(super) events: u64,
    /// Events that were lost.
    pub(super) lost: u64,
    /// The time of the last loss, in nanoseconds since the epoch; `None` without any.
    pub(super) last_loss_nanos: Option<u64>,
    /// Spans that were given up to make room, because their close may have been lost.
    pub(super) given_up: u64,
}

/// What is known of one process beside its spans.
#[derive(Default)]
pub(super) struct LiveProcess {
    pub(super) order: SpanOrder,
    /// The time of the last event, in nanoseconds since the epoch.
    pub(super) last_nanos: u64,
    pub(super) has_ended: bool,
    /// The end of the program, if it has ended and anything is known of when.
    pub(super) end: Option<RingEnd>,
}

impl LiveProcess {
    /// Returns the time to which the ages of the spans count at least. A program that has ended was certainly alive
    /// until its last sign of life.
    #[inline]
    pub(super) fn now_nanos(&self, now_nanos: u64) -> u64 {
        match self.end() {
            Some(end) => end.after_epoch_nanos,
            None if self.has_ended => self.last_nanos,
            None => now_nanos,
        }
    }

    /// Returns the end of the program. Its last event may have been read after the end was noticed.
    #[inline]
    pub(super) fn end(&self) -> Option<RingEnd> {
        Some(self.end?.seen_at(self.last_nanos))
    }
}

impl LiveCore {
    pub(super) fn new(options: &LiveOptions) -> Self {
        Self {
            processes: Vec::new(),
            series: SeriesTable::new(options),
            has_lost_first: Vec::new(),
            known_since_nanos: None,
            counts: LiveCounts::default(),
            tables: PresentTables::default(),
            tabled: None,
        }
    }

    /// Makes room for the rings and processes of `tables`.
    pub(super) fn grow(&mut self, tables: &RecordingTables) {
        let (processes, rings) = (tables.rings.processes().len(), tables.rings.count());
        self.processes.resize_with(processes.max(self.processes.len()), LiveProcess::default);
        self.has_lost_first.resize(rings.max(self.has_lost_first.len()), false);
    }

    /// Notes that the stream has reached the time of the state.
    pub(super) fn advance(&mut self, now_nanos: u64) {
        self.series.advance(now_nanos, self.counts.events);
    }

    fn count_span(&mut self, span: &Span, self_nanos: Option<u64>) {
        let tally = self.series.span(span.call_site.as_ref());
        tally.count += 1;
        tally.self_nanos = tally.self_nanos.saturating_add(self_nanos.unwrap_or(0));
        tally.busy_nanos = tally.busy_nanos.saturating_add(span.counted_busy_nanos());
        if let Some(wall) = span.wall_nanos() {
            tally.add_wall(wall);
        }
    }
}

/// Begins the replay of a stream without end.
pub(super) fn replay(options: &LiveOptions) -> RecordingReplay {
    let parts = SpanParts { self_times: options.has_self_times, ..SpanParts::default() };
    let mut replay = RecordingReplay::new(parts, ReplayBounds::Forget { spans_max: options.open_spans_max });
    if options.has_tasks {
        replay.parts.ask(OpenTasks::default);
    }
    replay
}

/// The consumer that keeps the state. It calls `see` with what an entry shows, and passes everything on to `also`.
pub(super) struct LiveConsumer<'c, S, C> {
    pub(super) core: &'c mut LiveCore,
    pub(super) see: &'c mut S,
    pub(super) also: &'c mut C,
}

impl<S: See, C: ReplayConsumer> ReplayConsumer for LiveConsumer<'_, S, C> {
    fn parts(&self) -> SpanParts {
        self.also.parts()
    }

    #[inline]
    fn entry(&mut self, entry: &RecordingEntry<'_>, step: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        if self.core.has_lost_first.len() < state.tables.rings.count() {
            self.core.grow(state.tables);
        }
        if let Some(nanos) = entry.epoch_nanos() {
            let core = &mut *self.core;
            core.counts.events += u64::from(entry.is_next_event());
            core.series.advance(state.now_nanos, core.counts.events);
            let process = &mut core.processes[entry.process_index];
            process.last_nanos = process.last_nanos.max(nanos);
            if core.has_lost_first[entry.ring as usize] {
                core.has_lost_first[entry.ring as usize] = false;
                core.known_since_nanos = core.known_since_nanos.max(Some(nanos));
                core.series.restart(state.now_nanos, core.counts.events - 1);
            }
        }
        match &entry.content {
            EntryContent::Perf { record, .. } => self.record(entry, record, state),
            EntryContent::Typed { descriptor, payload } => self.typed_event(entry, descriptor, *payload, state),
            EntryContent::Gap(gap) => self.lose(entry, *gap, state),
        }
        let change = state.part().and_then(OpenTasks::last_change);
        if let Some(phase) = change.and_then(|change| TaskPhase::ended(&change, entry.process_index, state)) {
            self.see(&Observation::TaskPhaseEnded(phase), state);
        }
        self.also.entry(entry, step, state)
    }

    #[inline]
    fn span(&mut self, process: usize, over: &OverSpan<'_>, state: ReplayState<'_>) -> io::Result<()> {
        match over.over {
            SpanOver::Closed => {
                let OverSpan { span, self_nanos, .. } = *over;
                self.core.count_span(span, self_nanos);
                let program = &state.tables.rings.programs()[process];
                self.see(
                    &Observation::SpanClosed(ClosedSpan { span, self_nanos, program, process_index: process }),
                    state,
                );
            }
            SpanOver::GivenUp => self.core.counts.given_up += 1,
            SpanOver::Remaining => {}
        }
        self.also.span(process, over, state)
    }

    fn process_end(&mut self, process: usize) -> io::Result<()> {
        self.also.process_end(process)
    }

    fn tidy(&mut self, state: ReplayState<'_>) -> io::Result<()> {
        self.also.tidy(state)
    }
}

impl<S: See, C> LiveConsumer<'_, S, C> {
    #[inline]
    fn see(&mut self, observation: &Observation<'_>, replayed: ReplayState<'_>) {
        (self.see)(observation, LiveState { replayed, core: self.core });
    }

    #[inline]
    fn record(&mut self, entry: &RecordingEntry<'_>, record: &RawRecord<'_>, state: ReplayState<'_>) {
        let EntryContent::Perf { catalog, .. } = &entry.content else { return };
        let process = entry.process_index;
        self.core.processes[process].order.look(&state.replays[process], [record.related(), record.span()]);
        let span = || record.span().and_then(|id| state.span(process, id));
        let program = &state.tables.rings.programs()[process];
        match record.event {
            Some(PerfEvent::Event) => {
                let call_site = catalog.known_call_site(record.ext.call_site_id);
                let level = call_site.map_or(CallSiteLevel::None, |call_site| call_site.level);
                self.core.series.log_record(level).count += 1;
                self.see(
                    &Observation::LogRecord(SeenRecord {
                        ring: entry.ring,
                        record,
                        call_site,
                        catalog,
                        span: span(),
                        program,
                    }),
                    state,
                );
            }
            Some(PerfEvent::Marker) => {
                let call_site = catalog.known_call_site(record.ext.call_site_id);
                self.see(
                    &Observation::Marker(SeenMark {
                        ring: entry.ring,
                        record,
                        catalog,
                        call_site,
                        span: span(),
                        program,
                    }),
                    state,
                );
            }
            _ => {}
        }
    }

    fn typed_event(
        &mut self,
        entry: &RecordingEntry<'_>,
        descriptor: &Descriptor,
        payload: PayloadRead<'_>,
        state: ReplayState<'_>,
    ) {
        let (process, ring, code) = (entry.process_index, entry.ring, descriptor.event_type);
        let rings = &*state.tables.rings;
        let id = rings.span(ring, descriptor);
        if id.is_some() {
            self.core.processes[process].order.look(&state.replays[process], [id, None]);
        }
        let tally = self.core.series.event(ring, code, || (rings.event_name(ring, code), rings.content_name(ring)));
        tally.count += 1;
        tally.payload_bytes = tally.payload_bytes.saturating_add(descriptor.payload_size.into());
        let span = id.and_then(|id| state.span(process, id));
        let seen = SeenEvent { rings, ring, descriptor, payload, span, program: &rings.programs()[process] };
        self.see(&Observation::TypedEvent(seen), state);
    }

    #[cold]
    fn lose(&mut self, entry: &RecordingEntry<'_>, gap: Gap, state: ReplayState<'_>) {
        if gap.cause == GapCause::OverwrittenBefore {
            // Nobody waits for what was overwritten before the engine began.
            self.core.has_lost_first[entry.ring as usize] = true;
            return;
        }
        self.core.counts.lost = self.core.counts.lost.saturating_add(gap.count);
        self.core.counts.last_loss_nanos = Some(state.now_nanos);
        let rings = &state.tables.rings;
        let (ring_name, program) = (rings.name(entry.ring), &rings.programs()[entry.process_index]);
        self.see(&Observation::Lost(SeenLoss { ring_name, gap, epoch_nanos: state.now_nanos, program }), state);
    }
}
