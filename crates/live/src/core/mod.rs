//! The engine's data about programs, except for the spans of the replay.
//!
//! | file | idea |
//! |---|---|
//! | `order` | the open spans in the order in which they began |
//! | `series`, `window` | counts and durations by name, and those of the last seconds |
//! | `tables` | the tables of the present of all programs |
//! | `tabled` | the open spans in tables of the present, instead of those of a replay |

pub(crate) mod order;
pub(crate) mod series;
pub(crate) mod tabled;
pub(crate) mod tables;
pub(crate) mod window;

use super::options::LiveOptions;
use eventring::now::LockCell;
use eventring::reader::RingEnd;
use eventring::tracing::Span;
use eventring_capture::recording::RecordingTables;
use eventring_capture::recording::TabledSpans;
use order::SpanOrder;
use series::SeriesTable;
use tabled::{Tabled, TabledLocks};
use tables::PresentTables;

/// The present, as far as the events show it. The spans are in the replay.
pub(super) struct LiveCore {
    pub(super) processes: Vec<LiveProcess>,
    pub(super) series: SeriesTable,
    /// For each ring, true if its first events were overwritten and none of the others was seen yet.
    pub(crate) has_lost_first: Vec<bool>,
    /// The time from which on all events are known; `None` if nothing was overwritten before.
    pub(super) known_since_nanos: Option<u64>,
    pub(super) counts: LiveCounts,
    /// The tables of the present, if somebody asks for them.
    pub(super) tables: PresentTables,
    /// The locks of threads that tables of the present show.
    pub(super) locks: Vec<TabledLocks>,
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
            locks: Vec::new(),
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

    /// Takes the open spans of a recorder. `last_nanos` is the time of its last event.
    pub(crate) fn show(&mut self, recorder: u32, tables: &RecordingTables, (spans, last_nanos): (TabledSpans, u64)) {
        let origin = tables.rings.origin(recorder);
        let Some(shard) = origin.shard else { return };
        let process = &mut self.processes[origin.process_index];
        process.last_nanos = process.last_nanos.max(last_nanos).max(spans.last_epoch_nanos());
        self.show_locks(recorder, tables, spans.locks().to_vec());
        let tabled = Tabled { recorder, index: shard.recorder_index, process: origin.process_index, spans };
        self.tabled.get_or_insert_default().push(tabled);
    }

    /// Takes the waits for locks and the guards of a recorder.
    pub(crate) fn show_locks(&mut self, recorder: u32, tables: &RecordingTables, cells: Vec<LockCell>) {
        let origin = tables.rings.origin(recorder);
        self.locks.retain(|locks| locks.recorder != recorder);
        if let Some(shard) = origin.shard {
            let (catalog, process) = (shard.recorder_index, origin.process_index);
            self.locks.push(TabledLocks { recorder, catalog, process, cells });
        }
    }

    /// Returns the place of an open span of a process that tables show: the index of the tables, and the place there.
    #[inline]
    pub(crate) fn place_of(&self, process: usize, id: u64) -> Option<(u32, u32)> {
        let mut all = (0..).zip(self.tabled.iter().flatten()).filter(|(_, tabled)| tabled.process == process);
        all.find_map(|(index, tabled)| Some((index, tabled.spans.place_of(id)? as u32)))
    }

    pub(crate) fn count_span(&mut self, span: &Span, self_nanos: Option<u64>) {
        let tally = self.series.span(span.call_site.as_ref());
        tally.count += 1;
        tally.self_nanos = tally.self_nanos.saturating_add(self_nanos.unwrap_or(0));
        tally.busy_nanos = tally.busy_nanos.saturating_add(span.counted_busy_nanos());
        tally.add_times(span.times());
        if let Some(wall) = span.wall_nanos() {
            tally.add_wall(wall);
        }
    }
}
