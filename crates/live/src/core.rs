//! The effect of each event on the state.

use super::options::LiveOptions;
use super::order::SpanOrder;
use super::series::SeriesTable;
use super::sight::{ClosedSpan, SeenEvent, SeenLoss, SeenMark, SeenOther, SeenRecord, Sight};
use super::state::LiveState;
use super::tables::LiveTables;
use eventring::reader::{Descriptor, Gap, GapCause, PayloadRead, RingEnd};
use eventring::schema::perf::{CallSiteLevel, PerfEvent};
use eventring::tracing::{GRACE_NANOS, RawRecord, Span, SpanReplay, SpanStep, ThreadKey};
use eventring_capture::recording::{EntryContent, RecordingEntry, SelfTimes, ShardOrigin};

/// The pause between two searches for spans whose close was lost, in nanoseconds.
const LOST_PAUSE_NANOS: u64 = 10_000_000_000;

/// The present, as far as the events show it.
pub(super) struct LiveCore {
    pub(super) processes: Vec<ProcessSpans>,
    pub(super) series: SeriesTable,
    open_spans_max: usize,
    has_self_times: bool,
    /// The time that the stream has reached.
    pub(super) now_nanos: u64,
    /// For each ring, true if its first events were overwritten and none of the others was seen yet.
    has_lost_first: Vec<bool>,
    /// The time from which on all events are known; `None` if nothing was overwritten before.
    pub(super) known_since_nanos: Option<u64>,
    pub(super) counts: LiveCounts,
    lost_spans_nanos: u64,
    /// The events of each ring that were overwritten before the engine began, until somebody takes them.
    pub(super) lost_before: Vec<(u32, Gap)>,
}

/// Counts since the engine began.
#[derive(Default)]
pub(super) struct LiveCounts {
    /// Events of all rings that were read.
    pub(super) events: u64,
    /// Events that were lost.
    pub(super) lost: u64,
    /// Spans that were given up to make room, because their close may have been lost.
    pub(super) given_up: u64,
}

/// The spans of one process.
pub(super) struct ProcessSpans {
    pub(super) replay: SpanReplay,
    pub(super) order: SpanOrder,
    /// `None` if self times are left out.
    pub(super) self_times: Option<SelfTimes>,
    /// The time of the last event, in nanoseconds since the epoch.
    pub(super) last_nanos: u64,
    pub(super) has_ended: bool,
    /// The end of the program, if it has ended and anything is known of when.
    pub(super) end: Option<RingEnd>,
}

impl ProcessSpans {
    /// Returns the time to which the ages of the spans count at least. A program that has ended was certainly alive
    /// until its last sign of life.
    pub(super) fn now_nanos(&self, now_nanos: u64) -> u64 {
        match self.end() {
            Some(end) => end.after_epoch_nanos,
            None if self.has_ended => self.last_nanos,
            None => now_nanos,
        }
    }

    /// Returns the end of the program. Its last event may have been read after the end was noticed.
    pub(super) fn end(&self) -> Option<RingEnd> {
        Some(self.end?.seen_at(self.last_nanos))
    }
}

impl LiveCore {
    pub(super) fn new(options: &LiveOptions) -> Self {
        Self {
            processes: Vec::new(),
            series: SeriesTable::new(options),
            open_spans_max: options.open_spans_max,
            has_self_times: options.has_self_times,
            now_nanos: 0,
            has_lost_first: Vec::new(),
            known_since_nanos: None,
            counts: LiveCounts::default(),
            lost_spans_nanos: 0,
            lost_before: Vec::new(),
        }
    }

    /// Makes room for the rings and processes of `tables`.
    pub(super) fn grow(&mut self, tables: &LiveTables) {
        let (open_spans_max, has_self_times) = (self.open_spans_max, self.has_self_times);
        let new = || ProcessSpans {
            replay: SpanReplay::live(open_spans_max),
            order: SpanOrder::default(),
            self_times: has_self_times.then(SelfTimes::default),
            last_nanos: 0,
            has_ended: false,
            end: None,
        };
        self.processes.resize_with(tables.programs.len().max(self.processes.len()), new);
        self.has_lost_first.resize(tables.len().max(self.has_lost_first.len()), false);
    }

    /// Takes the next event of a perf ring. Calls `see` with what it shows.
    #[inline]
    pub(super) fn take_perf<S>(
        &mut self,
        tables: &mut LiveTables,
        ring: u32,
        shard: ShardOrigin,
        event: (&Descriptor, PayloadRead<'_>),
        see: &mut S,
    ) where
        S: FnMut(&Sight<'_>, LiveState<'_>),
    {
        let record = RawRecord::new(&mut tables.catalogs[shard.recorder_index], shard.shard, event.0, event.1);
        let catalog = &tables.catalogs[shard.recorder_index];
        let content = EntryContent::Perf { recorder: shard.recorder, record, catalog };
        let entry = tables.entry(ring, content);
        self.take(tables, &entry, see);
        if record.event == Some(PerfEvent::ThreadEnded) {
            let thread = ThreadKey { recorder: shard.recorder, thread_id: record.ext.thread_id };
            if self.processes[entry.process_index].replay.stack(thread).is_empty() {
                tables.catalogs[shard.recorder_index].forget_thread(thread.thread_id);
            }
        }
    }

    /// Takes the next event or loss. Calls `see` with what it shows.
    #[inline]
    pub(super) fn take<S>(&mut self, tables: &LiveTables, entry: &RecordingEntry<'_>, see: &mut S)
    where
        S: FnMut(&Sight<'_>, LiveState<'_>),
    {
        let nanos = match &entry.content {
            EntryContent::Perf { record, .. } => record.epoch_nanos(),
            EntryContent::Typed { descriptor, .. } => descriptor.record_epoch_nanos,
            EntryContent::Gap { first_seqno, count, cause } => {
                let gap = Gap { first_seqno: *first_seqno, count: *count, cause: *cause };
                return self.lose(tables, entry, gap, see);
            }
        };
        self.counts.events += 1;
        if nanos > self.now_nanos {
            self.now_nanos = nanos;
            self.series.advance(nanos, self.counts.events);
        }
        let process = &mut self.processes[entry.process_index];
        process.last_nanos = process.last_nanos.max(nanos);
        if self.has_lost_first[entry.ring as usize] {
            self.has_lost_first[entry.ring as usize] = false;
            self.known_since_nanos = self.known_since_nanos.max(Some(nanos));
            self.series.restart(self.now_nanos, self.counts.events - 1);
        }
        match &entry.content {
            EntryContent::Perf { recorder, record, .. } => self.record(tables, entry, *recorder, record, see),
            EntryContent::Typed { descriptor, payload } => self.typed_event(tables, entry, descriptor, *payload, see),
            EntryContent::Gap { .. } => {}
        }
        self.closings(tables, entry.process_index, see);
    }

    #[inline]
    fn record<S>(
        &mut self,
        tables: &LiveTables,
        entry: &RecordingEntry<'_>,
        recorder: u32,
        record: &RawRecord<'_>,
        see: &mut S,
    ) where
        S: FnMut(&Sight<'_>, LiveState<'_>),
    {
        let EntryContent::Perf { catalog, .. } = &entry.content else { return };
        let ProcessSpans { replay, order, self_times, .. } = &mut self.processes[entry.process_index];
        let step = replay.push_raw(recorder, record, catalog);
        order.look(replay, [record.related(), record.span()]);
        match (&step, self_times) {
            (SpanStep::None, _) | (_, None) => {}
            (_, Some(self_times)) => self_times.record(record, &step, replay),
        }
        let span = || record.span().and_then(|id| self.processes[entry.process_index].replay.get(id));
        let program = &tables.programs[entry.process_index];
        match record.event {
            Some(PerfEvent::Event) => {
                let call_site = catalog.known_call_site(record.ext.call_site_id);
                let level = call_site.map_or(CallSiteLevel::None, |call_site| call_site.level);
                self.series.log_record(level).count += 1;
                let seen = SeenRecord { record, call_site, catalog, span: span(), program };
                see(&Sight::LogRecord(seen), LiveState { tables, core: self });
            }
            Some(PerfEvent::Marker) => {
                let call_site = catalog.known_call_site(record.ext.call_site_id);
                let seen = SeenMark { record, call_site, catalog, span: span(), program };
                see(&Sight::Marker(seen), LiveState { tables, core: self });
            }
            Some(PerfEvent::SpanFollowsFrom | PerfEvent::RecordError) => {
                let seen = SeenOther { record, catalog, span: span(), program };
                see(&Sight::Other(seen), LiveState { tables, core: self });
            }
            _ => {}
        }
    }

    fn typed_event<S>(
        &mut self,
        tables: &LiveTables,
        entry: &RecordingEntry<'_>,
        descriptor: &Descriptor,
        payload: PayloadRead<'_>,
        see: &mut S,
    ) where
        S: FnMut(&Sight<'_>, LiveState<'_>),
    {
        let (ring, code) = (entry.ring, descriptor.event_type);
        let id = tables.rings.span(ring, descriptor);
        let ProcessSpans { replay, order, .. } = &mut self.processes[entry.process_index];
        if let Some(id) = id {
            replay.push_typed_event(id, descriptor.record_epoch_nanos);
            order.look(replay, [id.into(), None]);
        }
        self.series.event(ring, code, || tables.rings.event_name(ring, code)).count += 1;
        let span = id.and_then(|id| self.processes[entry.process_index].replay.get(id));
        let program = &tables.programs[entry.process_index];
        let seen = SeenEvent { tables, ring, descriptor, payload, span, program };
        see(&Sight::TypedEvent(seen), LiveState { tables, core: self });
    }

    #[cold]
    fn lose<S>(&mut self, tables: &LiveTables, entry: &RecordingEntry<'_>, gap: Gap, see: &mut S)
    where
        S: FnMut(&Sight<'_>, LiveState<'_>),
    {
        // A seqno that was given up never had an event.
        if !gap.is_loss() {
            return;
        }
        self.processes[entry.process_index].replay.gap(tables.rings.losing_shard(entry.ring, gap.cause));
        if gap.cause == GapCause::OverwrittenBefore {
            self.has_lost_first[entry.ring as usize] = true;
            // A ring has one such loss.
            self.lost_before.push((entry.ring, gap));
            return;
        }
        self.counts.lost = self.counts.lost.saturating_add(gap.count);
        let program = &tables.programs[entry.process_index];
        let seen = SeenLoss { ring_name: tables.ring_name(entry.ring), gap, epoch_nanos: self.now_nanos, program };
        see(&Sight::Lost(seen), LiveState { tables, core: self });
    }

    /// Takes the spans of a process that are over.
    #[inline]
    fn closings<S>(&mut self, tables: &LiveTables, process_index: usize, see: &mut S)
    where
        S: FnMut(&Sight<'_>, LiveState<'_>),
    {
        while let Some(span) = self.processes[process_index].replay.take_closed_boxed() {
            let self_times = self.processes[process_index].self_times.as_mut();
            let self_nanos = self_times.and_then(|self_times| self_times.take(&span, 0));
            self.count(&span, self_nanos);
            let program = &tables.programs[process_index];
            let seen = ClosedSpan { span: &span, self_nanos, program, process_index };
            see(&Sight::SpanClosed(seen), LiveState { tables, core: self });
            self.processes[process_index].replay.recycle(span);
        }
    }

    fn count(&mut self, span: &Span, self_nanos: Option<u64>) {
        let tally = self.series.span(span.call_site.as_ref());
        tally.count += 1;
        tally.self_nanos = tally.self_nanos.saturating_add(self_nanos.unwrap_or(0));
        tally.busy_nanos = tally.busy_nanos.saturating_add(span.counted_busy_nanos());
        if let Some(wall) = span.wall_nanos() {
            tally.add_wall(wall);
        }
    }

    /// Notes that the stream has reached this time, even if it has no event then.
    pub(super) fn advance<S>(&mut self, tables: &LiveTables, now_nanos: u64, see: &mut S)
    where
        S: FnMut(&Sight<'_>, LiveState<'_>),
    {
        if now_nanos > self.now_nanos {
            self.now_nanos = now_nanos;
            self.series.advance(now_nanos, self.counts.events);
        }
        for process_index in 0..self.processes.len() {
            self.processes[process_index].replay.advance(self.now_nanos);
            self.closings(tables, process_index, see);
        }
    }

    /// Takes the spans that are over at the end of the stream, however late they were closed.
    pub(super) fn close_at_end<S>(&mut self, tables: &LiveTables, see: &mut S)
    where
        S: FnMut(&Sight<'_>, LiveState<'_>),
    {
        for process_index in 0..self.processes.len() {
            self.processes[process_index].replay.advance(self.now_nanos.saturating_add(GRACE_NANOS));
            self.closings(tables, process_index, see);
        }
    }

    /// Forgets what nobody will ask for. If there is little room left for open spans, gives up those whose close may
    /// have been lost, and calls `see` with each.
    pub(super) fn make_room<S>(&mut self, tables: &LiveTables, see: &mut S)
    where
        S: FnMut(&Sight<'_>, LiveState<'_>),
    {
        let is_due = self.now_nanos >= self.lost_spans_nanos.saturating_add(LOST_PAUSE_NANOS);
        for process_index in 0..self.processes.len() {
            let ProcessSpans { replay, self_times, .. } = &mut self.processes[process_index];
            replay.forget_old();
            if let Some(self_times) = self_times {
                self_times.forget_old(replay);
            }
            if is_due && replay.len() >= self.open_spans_max / 10 * 9 {
                self.lost_spans_nanos = self.now_nanos;
                let given_up = replay.take_lost(self.now_nanos);
                for span in given_up {
                    let self_times = self.processes[process_index].self_times.as_mut();
                    let self_nanos = self_times.and_then(|self_times| self_times.take(&span, 0));
                    self.counts.given_up += 1;
                    let program = &tables.programs[process_index];
                    let seen = ClosedSpan { span: &span, self_nanos, program, process_index };
                    see(&Sight::SpanGivenUp(seen), LiveState { tables, core: self });
                }
            }
        }
    }
}
