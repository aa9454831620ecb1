//! The consumer of the replay. It applies each event to the state, and reports observations.

use crate::core::LiveCore;
use crate::observation::{ClosedSpan, Observation, SeenEvent, SeenLoss, SeenMark, SeenRecord};
use crate::options::LiveOptions;
use crate::state::LiveState;
use crate::state::task_phase::TaskPhase;
use eventring::reader::{Descriptor, Gap, GapCause, PayloadRead};
use eventring::schema::perf::{CallSiteLevel, PerfEvent};
use eventring::tracing::{RawRecord, SpanStep};
use eventring_capture::recording::{
    EntryContent, OverSpan, PresentRecord, RecordingEntry, RecordingReplay, ReplayBounds, ReplayConsumer, ReplayNeeds,
    ReplayState, RingEntries, SpanOver,
};
use eventring_tasks::OpenTasks;
use std::io;

/// A function that is called with everything that the engine sees.
pub(crate) trait See: FnMut(&Observation<'_>, LiveState<'_>) {}
impl<F: FnMut(&Observation<'_>, LiveState<'_>)> See for F {}

/// Begins the replay of a stream without end.
pub(crate) fn replay(options: &LiveOptions) -> RecordingReplay {
    let needs = ReplayNeeds { self_times: options.has_self_times, ..ReplayNeeds::default() };
    let mut replay = RecordingReplay::new(needs, ReplayBounds::Forget { spans_max: options.open_spans_max });
    if options.has_tasks {
        replay.parts.ask(OpenTasks::default);
    }
    replay
}

/// The consumer that keeps the state. It calls `see` with what an entry shows, and passes everything on to `also`.
pub(crate) struct LiveConsumer<'c, S, C> {
    pub(crate) core: &'c mut LiveCore,
    pub(crate) see: &'c mut S,
    pub(crate) also: &'c mut C,
}

impl<S: See, C: ReplayConsumer> ReplayConsumer for LiveConsumer<'_, S, C> {
    fn needs(&self) -> ReplayNeeds {
        self.also.needs()
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

/// Has a replay take records that tables have made.
pub(crate) fn show_records<'r>(
    entries: &mut RingEntries,
    records: impl Iterator<Item = (u32, &'r PresentRecord)>,
    replay: &mut RecordingReplay,
    core: &mut LiveCore,
) {
    for (recorder, record) in records {
        let Some(entry) = entries.present_entry(recorder, record) else { continue };
        let nobody = &mut |_: &Observation<'_>, _: LiveState<'_>| ();
        // Nobody writes, so nothing fails.
        let _ = replay.step(&entry, &mut LiveConsumer { core, see: nobody, also: &mut () });
    }
}
