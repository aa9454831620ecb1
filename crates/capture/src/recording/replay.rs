//! The engine of a replay. It counts events and losses, and calls a consumer with each entry and each ended span. It
//! can read batch after batch, or rings that appear and end.

use super::consumer::{OverSpan, ReplayConsumer, ReplayNeeds, SpanOver};
use super::counts::ReplayCounts;
use super::entry::{EntryContent, RecordingEntry};
use super::looks::Looks;
use super::of_capture::CaptureEntries;
use super::parts::{ReplayPart, ReplayParts, ReplayState};
use super::self_times::SelfTimes;
use super::tables::RecordingTables;
use crate::error::CaptureError;
use eventring::reader::GapCause;
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{GRACE_NANOS, Span, SpanReplay, SpanStep, ThreadKey};
use std::io;

/// The memory is checked whenever this many bytes of events have been read.
pub const CHECK_BYTES: usize = 64 << 10;
/// The pause between two searches for spans whose close was lost, in nanoseconds.
const LOST_PAUSE_NANOS: u64 = 10_000_000_000;

/// The largest number of open spans of a process that a search or a selection remembers.
pub(super) const SPANS_MAX: usize = 1 << 20;

/// The bounds of a replay's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplayBounds {
    /// A capture that needs more than any real one of its size is refused.
    Refuse,
    /// A process keeps at most this many open spans, and forgets others: the recording may have no end.
    Forget {
        /// The number of spans.
        spans_max: usize,
    },
}

/// The replay of a recording: the spans of all its processes.
pub struct RecordingReplay {
    needs: ReplayNeeds,
    bounds: ReplayBounds,
    /// The parts that follow something beside spans.
    pub parts: ReplayParts,
    pub(super) replays: Vec<SpanReplay>,
    /// The self times of each process's spans; empty if nobody needs them.
    self_times: Vec<SelfTimes>,
    /// The counts so far. The time that the stream has reached is that of the last event, or a later one.
    pub(super) counts: ReplayCounts,
    pub(super) looks: Looks,
    /// The bytes of the events since the memory was checked.
    unchecked_bytes: usize,
    /// The time of the last search for spans whose close was lost.
    lost_spans_nanos: u64,
}

impl RecordingReplay {
    /// Begins a replay for a consumer that needs these parts of spans.
    pub fn new(needs: ReplayNeeds, bounds: ReplayBounds) -> Self {
        Self {
            needs,
            bounds,
            parts: ReplayParts::default(),
            replays: Vec::new(),
            self_times: Vec::new(),
            counts: ReplayCounts { first_nanos: u64::MAX, ..ReplayCounts::default() },
            looks: Looks::default(),
            unchecked_bytes: 0,
            lost_spans_nanos: 0,
        }
    }

    /// Begins a replay for a consumer.
    pub fn for_consumer(to: &impl ReplayConsumer, bounds: ReplayBounds) -> Self {
        let mut replay = Self::new(to.needs(), bounds);
        to.follow(&mut replay.parts);
        replay
    }

    /// Returns the state.
    #[inline]
    pub fn state<'r>(&'r self, tables: &'r RecordingTables) -> ReplayState<'r> {
        ReplayState { tables, replays: &self.replays, now_nanos: self.counts.last_nanos, parts: &self.parts }
    }

    /// Makes room for the processes of `tables`.
    pub fn grow(&mut self, tables: &RecordingTables) {
        let (ReplayNeeds { fields, self_times, .. }, bounds) = (self.needs, self.bounds);
        let new = || match bounds {
            ReplayBounds::Forget { spans_max } => SpanReplay::live(spans_max),
            ReplayBounds::Refuse if fields => SpanReplay::new().without_slices(),
            ReplayBounds::Refuse => SpanReplay::new().without_fields().without_slices(),
        };
        self.replays.resize_with(tables.rings.processes().len().max(self.replays.len()), new);
        if self_times {
            self.self_times.resize_with(self.replays.len(), SelfTimes::default);
        }
    }

    /// Takes the next entry.
    ///
    /// # Errors
    /// The consumer fails.
    #[inline]
    pub fn step(&mut self, entry: &RecordingEntry<'_>, to: &mut impl ReplayConsumer) -> io::Result<()> {
        to.seqnos(entry);
        if let EntryContent::Perf { recorder, record, catalog } = &entry.content
            && let Some(parts) = record.parts()
        {
            for record in parts {
                let content = EntryContent::Perf { recorder: *recorder, record, catalog };
                self.step_part(&RecordingEntry { content, ..*entry }, to)?;
            }
            return Ok(());
        }
        self.step_part(entry, to)
    }

    #[inline]
    fn step_part(&mut self, entry: &RecordingEntry<'_>, to: &mut impl ReplayConsumer) -> io::Result<()> {
        let process = entry.process_index;
        if process >= self.replays.len() {
            self.grow(entry.tables);
        }
        let replay = &mut self.replays[process];
        let mut step = SpanStep::None;
        let (nanos, payload) = match &entry.content {
            EntryContent::Perf { recorder, record, catalog } => {
                step = replay.push_raw(*recorder, record, catalog);
                if let Some(self_times) = self.self_times.get_mut(process) {
                    self_times.record(record, &step, replay);
                }
                match record.event {
                    Some(PerfEvent::SpanEnter) => self.counts.slices += 1,
                    Some(PerfEvent::Event) => self.counts.events += 1,
                    Some(PerfEvent::Counter) => self.counts.counters += 1,
                    Some(PerfEvent::Marker) => self.counts.markers += 1,
                    _ => {}
                }
                (record.epoch_nanos(), record.payload)
            }
            EntryContent::Typed { descriptor, payload } => {
                self.counts.typed_events += 1;
                let rings = &entry.tables.rings;
                let of_span = || rings.span(entry.ring, descriptor).filter(|_| rings.has_spans(process));
                if let Some(span) = of_span() {
                    replay.push_typed_event(span, descriptor.record_epoch_nanos);
                }
                (descriptor.record_epoch_nanos, *payload)
            }
            // A seqno that was skipped never had an event, so it is not shown as a loss.
            EntryContent::Gap(gap) if !gap.is_loss() => {
                if gap.cause == GapCause::Filtered {
                    self.counts.filtered = self.counts.filtered.saturating_add(gap.count);
                }
                return Ok(());
            }
            EntryContent::Gap(gap) => {
                let losing = entry.tables.rings.losing_shard(entry.ring, gap.cause);
                replay.gap(losing);
                if let Some((ring, nanos)) = losing.zip(entry.gap_until_nanos) {
                    replay.end_loss(ring, nanos);
                }
                self.counts.lost = self.counts.lost.saturating_add(gap.count);
                if gap.cause == GapCause::OverwrittenBefore {
                    self.counts.overwritten_before = self.counts.overwritten_before.saturating_add(gap.count);
                }
                self.follow(entry, &step);
                return to.entry(entry, &step, self.state(entry.tables));
            }
        };
        if self.looks.next_nanos.is_some_and(|next| next <= nanos) {
            self.looks.take(nanos, &mut self.replays, &mut self.parts, to);
        }
        let ReplayCounts { first_nanos, last_nanos, .. } = &mut self.counts;
        (*first_nanos, *last_nanos) = (nanos.min(*first_nanos), nanos.max(*last_nanos));
        self.unchecked_bytes += size_of::<RecordingEntry<'_>>() + payload.valid().map_or(0, <[u8]>::len);
        self.follow(entry, &step);
        to.entry(entry, &step, self.state(entry.tables))?;
        self.take_closed(process, entry.tables, to)
    }

    /// Gives an entry to the parts.
    #[inline]
    fn follow(&mut self, entry: &RecordingEntry<'_>, step: &SpanStep) {
        if !self.parts.is_empty() {
            self.each_part(entry.tables, |part, state| part.entry(entry, step, state));
        }
    }

    /// Calls `f` with each part, and with the state, which has no parts meanwhile.
    #[inline]
    fn each_part(&mut self, tables: &RecordingTables, mut f: impl FnMut(&mut dyn ReplayPart, ReplayState<'_>)) {
        let (replays, now_nanos, parts) = (&*self.replays, self.counts.last_nanos, ReplayParts::NONE);
        self.parts.each(|part| f(&mut **part, ReplayState { tables, replays, now_nanos, parts }));
    }

    /// Takes the begin of a span, of which the consumer is not told.
    pub(super) fn learn(&mut self, process: usize, entry: &RecordingEntry<'_>) {
        let EntryContent::Perf { recorder, record, catalog } = &entry.content else { return };
        if let (Some(PerfEvent::SpanNew), Some(replay)) = (record.event, self.replays.get_mut(process)) {
            let step = replay.push_raw(*recorder, record, catalog);
            let self_times = self.self_times.get_mut(process);
            self_times.into_iter().for_each(|it| it.record(record, &step, replay));
        }
    }

    /// Takes the entries of a capture. What was kept before does not count against the memory that they may take.
    ///
    /// # Errors
    /// The consumer fails, or the capture would take more memory than any capture of its size from a real program.
    pub fn drive(&mut self, entries: &mut CaptureEntries, to: &mut impl ReplayConsumer) -> Result<(), CaptureError> {
        self.grow(entries.tables());
        let kept_before = self.kept_bytes();
        while let Some(entry) = entries.next_entry() {
            self.step(&entry, to).map_err(write_error)?;
            if self.unchecked_bytes >= CHECK_BYTES {
                self.unchecked_bytes = 0;
                let kept = self.kept_bytes().saturating_sub(kept_before);
                entries.check_kept(kept.saturating_add(to.kept_bytes()))?;
            }
        }
        Ok(())
    }

    /// Returns an estimate of the bytes that the replay keeps in memory at present.
    pub fn kept_bytes(&self) -> u64 {
        let of_replays = self.replays.iter().map(SpanReplay::kept_bytes);
        let of_self_times = self.self_times.iter().map(SelfTimes::kept_bytes);
        of_replays.chain(of_self_times).fold(self.parts.kept_bytes(), u64::saturating_add)
    }

    /// Gives the spans of a process that are over to the consumer.
    #[inline]
    fn take_closed(
        &mut self,
        process: usize,
        tables: &RecordingTables,
        to: &mut impl ReplayConsumer,
    ) -> io::Result<()> {
        while let Some(span) = self.replays[process].take_closed_boxed() {
            self.tell(process, (&span, SpanOver::Closed, self.counts.last_nanos), tables, to)?;
            self.replays[process].recycle(span);
        }
        Ok(())
    }

    /// Gives a span that is over to the consumer. If it has no end, it lasts until `end_nanos`.
    #[inline]
    fn tell(
        &mut self,
        process: usize,
        (span, over, end_nanos): (&Span, SpanOver, u64),
        tables: &RecordingTables,
        to: &mut impl ReplayConsumer,
    ) -> io::Result<()> {
        let self_nanos = self.self_times.get_mut(process).and_then(|self_times| self_times.take(span, end_nanos));
        to.span(process, &OverSpan { span, over, self_nanos, end_nanos }, self.state(tables))
    }

    /// Notes that the stream has reached this time, in nanoseconds since the epoch, even if it has no event then.
    ///
    /// # Errors
    /// The consumer fails.
    pub fn advance(&mut self, nanos: u64, tables: &RecordingTables, to: &mut impl ReplayConsumer) -> io::Result<()> {
        self.counts.last_nanos = self.counts.last_nanos.max(nanos);
        self.close_until(self.counts.last_nanos, tables, to)
    }

    /// Takes the spans that are over at the end of the stream, however late they were closed.
    ///
    /// # Errors
    /// The consumer fails.
    pub fn close_all(&mut self, tables: &RecordingTables, to: &mut impl ReplayConsumer) -> io::Result<()> {
        self.close_until(self.counts.last_nanos.saturating_add(GRACE_NANOS), tables, to)
    }

    fn close_until(&mut self, nanos: u64, tables: &RecordingTables, to: &mut impl ReplayConsumer) -> io::Result<()> {
        for process in 0..self.replays.len() {
            self.replays[process].advance(nanos);
            self.take_closed(process, tables, to)?;
        }
        Ok(())
    }

    /// Returns the thread that an entry ends, if it is in no span any more: then nobody will ask for its name.
    #[inline]
    pub fn ended_thread(&self, entry: &RecordingEntry<'_>) -> Option<ThreadKey> {
        entry.ended_thread().filter(|thread| self.replays[entry.process_index].stack(*thread).is_empty())
    }

    /// Forgets what nobody will ask for. If there is little room left for open spans, gives up those whose close may
    /// have been lost.
    ///
    /// # Errors
    /// The consumer fails.
    pub fn make_room(&mut self, tables: &RecordingTables, to: &mut impl ReplayConsumer) -> io::Result<()> {
        let ReplayBounds::Forget { spans_max } = self.bounds else { return Ok(()) };
        let now_nanos = self.counts.last_nanos;
        let is_due = now_nanos >= self.lost_spans_nanos.saturating_add(LOST_PAUSE_NANOS);
        for process in 0..self.replays.len() {
            let replay = &mut self.replays[process];
            replay.forget_old();
            if let Some(self_times) = self.self_times.get_mut(process) {
                self_times.forget_old(replay);
            }
            if is_due && replay.len() >= spans_max / 10 * 9 {
                self.lost_spans_nanos = now_nanos;
                for span in replay.take_lost(now_nanos) {
                    self.tell(process, (&span, SpanOver::GivenUp, now_nanos), tables, to)?;
                }
            }
        }
        self.each_part(tables, |part, state| part.tidy(state));
        to.tidy(self.state(tables))
    }

    /// Gives the spans that are open at the end of a process to the consumer, in the order of their ids. They stay in
    /// the replay: the process may make another ring.
    ///
    /// # Errors
    /// The consumer fails.
    pub fn end_process(
        &self,
        process: usize,
        end_nanos: u64,
        tables: &RecordingTables,
        to: &mut impl ReplayConsumer,
    ) -> io::Result<()> {
        if to.needs().remaining {
            let replay = &self.replays[process];
            let entered = replay.stacks_at(end_nanos);
            let mut open: Vec<&Span> = replay.spans().filter(|span| is_certainly_open(replay, span)).collect();
            open.sort_unstable_by_key(|span| span.id);
            for span in open {
                let span = &mut span.clone();
                replay.end_with(span, &entered);
                let over = OverSpan { span, over: SpanOver::Remaining, self_nanos: None, end_nanos };
                to.span(process, &over, self.state(tables))?;
            }
        }
        to.process_end(process)
    }

    /// Begins a batch. `complete_until` has for each process the time until which all of its records have come, this
    /// batch included, in nanoseconds since the epoch.
    pub fn begin_batch(&mut self, complete_until: &[u64]) {
        self.replays.iter_mut().zip(complete_until).for_each(|(replay, until)| replay.begin_batch(*until));
    }

    /// Ends a batch: gives the spans that are complete to the consumer. Beyond `bytes_max`, gives up spans whose close
    /// may have been lost, and then the oldest open spans.
    ///
    /// # Errors
    /// The consumer fails.
    pub fn end_batch(
        &mut self,
        bytes_max: u64,
        tables: &RecordingTables,
        to: &mut impl ReplayConsumer,
    ) -> io::Result<()> {
        for process in 0..self.replays.len() {
            self.replays[process].end_batch();
            self.take_closed(process, tables, to)?;
        }
        let of_process_max = bytes_max / self.replays.len().max(1) as u64;
        let is_over = self.kept_bytes() > bytes_max;
        for process in (0..self.replays.len()).filter(|_| is_over) {
            for span in self.replays[process].make_room(of_process_max) {
                self.tell(process, (&span, SpanOver::GivenUp, self.counts.last_nanos), tables, to)?;
            }
        }
        Ok(())
    }

    /// Ends the replay: gives the remaining spans of each process to the consumer, in the order of their ids.
    /// `end_nanos` has for each process the time until which its open spans last. Returns the counts.
    ///
    /// # Errors
    /// The consumer fails.
    pub fn finish(
        mut self,
        end_nanos: &[u64],
        tables: &RecordingTables,
        to: &mut impl ReplayConsumer,
    ) -> io::Result<ReplayCounts> {
        self.each_part(tables, |part, state| part.end(state));
        to.end(self.state(tables), end_nanos)?;
        let replays = std::mem::take(&mut self.replays);
        let (processes, ReplayNeeds { remaining, .. }) = (replays.len(), self.needs);
        for (process, replay) in replays.into_iter().enumerate().filter(|_| remaining) {
            let end_nanos = end_nanos.get(process).copied().unwrap_or(self.counts.last_nanos);
            self.counts.spans += replay.spans_seen();
            for span in &replay.finish(end_nanos) {
                self.counts.open_spans += u64::from(span.is_open() && !span.is_end_lost);
                self.counts.lost_ends += u64::from(span.is_end_lost);
                self.tell(process, (span, SpanOver::Remaining, end_nanos), tables, to)?;
            }
        }
        (0..processes).try_for_each(|process| to.process_end(process))?;
        self.counts.first_nanos = self.counts.first_nanos.min(self.counts.last_nanos);
        Ok(self.counts)
    }
}

/// Returns true if a span of a process that goes on is open, as far as is known. Without losses, a span without a
/// creation is one that was closed long ago: a thread has recorded something of it far too late.
pub fn is_certainly_open(replay: &SpanReplay, span: &Span) -> bool {
    span.is_open() && (span.created.is_some() || replay.has_losses())
}

/// Returns the error that an export cannot be written.
pub fn write_error(error: io::Error) -> CaptureError {
    CaptureError::io_writing("write the export", error)
}
