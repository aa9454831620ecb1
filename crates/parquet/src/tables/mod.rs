//! The second pass over a capture: each span, record, event and loss becomes a row of its table.
//!
//! | file | idea |
//! |---|---|
//! | `chain` | execution events as blocks, transactions, logs, call frames, accesses |
//! | `typed_tables`, `table_names` | the tables of typed events: the types with a table of their own, and its name |
//! | `table` | rows that wait until they are a whole row group |
//! | `table_sink` | the interface of the receiver of rows |

pub(crate) mod chain;
pub(crate) mod table;
pub(crate) mod table_names;
pub(crate) mod table_sink;
pub(crate) mod typed_tables;

use super::field_types::FieldTypes;
use super::seqno_counts::SeqnoCounts;
use crate::columns::row_columns::{RowColumns, TableSetup};
use arrow_schema::Schema;
use eventring::reader::{Descriptor, PayloadRead};
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{Catalog, PerfContent, RawRecord, SpanStep};
use eventring_capture::recording::{
    CaptureRecording, EntryContent, OverSpan, RecordingEntry, ReplayConsumer, ReplayNeeds, ReplayParts, ReplayState,
};
use eventring_export::exec::ring_blocks::RingBlocks;
use eventring_export::rows::{LogRow, LossRow, RingRow, RowFields, SampleKind, SampleRow, SpanRow, TypedRow};
use std::io;
use std::sync::Arc;
use table::{ParquetTable, create_empty};
use table_sink::TableSink;
use typed_tables::{KnownTypes, TIME, TypedTables};

/// The largest size of the rows that wait in all tables together, in bytes.
const WAITING_BYTES_MAX: u64 = 64 << 20;
/// An estimate of the bytes that a column takes beside its values.
const COLUMN_BYTES: u64 = 2048;

/// The tables of an export.
pub(super) struct ParquetTables<'o, 'f> {
    recording: &'o CaptureRecording<'o>,
    out: &'f mut dyn TableSink,
    spans: ParquetTable,
    logs: ParquetTable,
    losses: ParquetTable,
    /// The tables of [`SampleKind::ALL`], as far as the capture has such records.
    samples: [Option<ParquetTable>; SampleKind::ALL.len()],
    typed: TypedTables<'o>,
    /// The time of the last event; `None` before the first one.
    last_nanos: Option<u64>,
    waiting_bytes: u64,
    column_bytes: u64,
    /// The counts of each ring; empty if nobody asks for them.
    pub(super) seqno_counts: Vec<SeqnoCounts>,
}

/// The state that the tables of a batch leave to those of the next batch of the same recording.
#[derive(Default)]
pub(super) struct TailState {
    known: KnownTypes,
    /// The time of the last event so far.
    last_nanos: Option<u64>,
}

/// The parts of spans that have columns.
pub(super) const NEEDS: ReplayNeeds = ReplayNeeds { fields: true, self_times: false, remaining: true, presents: false };
/// The column with the time by which spans, losses and rings are sorted.
const SPAN_TIME: &str = "start_ns";
const LOSS_TIME: &str = "seen_ns";
const RING_TIME: &str = "created_ns";

impl<'o, 'f> ParquetTables<'o, 'f> {
    /// Makes the tables of a capture, or of the next batch of a recording with the state that the batch before has
    /// left. Each table has the same name in all batches.
    pub(super) fn new(
        recording: &'o CaptureRecording<'o>,
        types: &FieldTypes,
        batch: Option<TailState>,
        out: &'f mut dyn TableSink,
    ) -> io::Result<Self> {
        let is_tail = batch.is_some();
        let logs = if is_tail { "logs" } else { chain::names_of_logs(recording.capture).0 };
        let state = batch.unwrap_or_default();
        let rows = TableSetup::default();
        let columns = RowColumns::new(&RingRow::default(), rows);
        let mut rings = ParquetTable::create(columns, "rings", RING_TIME, out)?;
        for ring in recording.capture.rings() {
            rings.push(ring.created_epoch_nanos, &RingRow::new(ring), out)?;
        }
        rings.flush(out)?;
        let spans = RowColumns::new(&SpanRow::default(), TableSetup { fields: &types.spans, ..rows });
        let log_columns = RowColumns::new(&LogRow::default(), TableSetup { fields: &types.logs, ..rows });
        let losses = RowColumns::new(&LossRow::default(), rows);
        Ok(Self {
            recording,
            spans: ParquetTable::create(spans, "spans", SPAN_TIME, out)?,
            logs: ParquetTable::create(log_columns, logs, TIME, out)?,
            losses: ParquetTable::create(losses, "losses", LOSS_TIME, out)?,
            samples: [const { None }; SampleKind::ALL.len()],
            typed: TypedTables::new(recording, state.known, is_tail),
            last_nanos: state.last_nanos,
            waiting_bytes: 0,
            column_bytes: 0,
            seqno_counts: Vec::new(),
            out,
        })
    }

    /// Passes all waiting rows on.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush()
    }

    /// Passes all waiting rows on, and creates the tables that other batches of the recording have or may have.
    pub(super) fn finish_batch(mut self) -> io::Result<TailState> {
        self.flush()?;
        let schema = Arc::new(Schema::new(sample_columns().fields()));
        for (kind, _) in SampleKind::ALL.iter().zip(&self.samples).filter(|(_, table)| table.is_none()) {
            create_empty(kind.names().0, &schema, TIME, self.out)?;
        }
        Ok(TailState { known: self.typed.hand_on(self.out)?, last_nanos: self.last_nanos })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush_untyped()?;
        self.typed.iter_mut().try_for_each(|table| table.flush(self.out))
    }

    /// Passes the rows of all tables on but those of typed events.
    fn flush_untyped(&mut self) -> io::Result<()> {
        let out = &mut *self.out;
        self.spans.flush(out)?;
        self.logs.flush(out)?;
        self.losses.flush(out)?;
        self.samples.iter_mut().flatten().try_for_each(|table| table.flush(out))
    }

    fn record(&mut self, process: u32, record: &RawRecord<'_>, catalog: &Catalog) -> io::Result<()> {
        let nanos = record.epoch_nanos();
        let bytes = if let Some(kind) = SampleKind::from_event(record.event) {
            let decoded = record.decode(catalog);
            let row = SampleRow::new(process, record, &decoded.thread, &decoded.content).in_table();
            let table = match &mut self.samples[kind as usize] {
                Some(table) => table,
                empty => empty.insert(ParquetTable::create(sample_columns(), kind.names().0, TIME, self.out)?),
            };
            table.push(nanos, &row, self.out)?
        } else if record.event == Some(PerfEvent::Event) {
            let decoded = record.decode(catalog);
            let PerfContent::Event { call_site, fields, .. } = &decoded.content else { return Ok(()) };
            let row = LogRow::new(process, record, &decoded.thread, call_site, RowFields::Decoded(fields));
            self.logs.push(nanos, &row, self.out)?
        } else {
            return Ok(());
        };
        self.limit(bytes)
    }

    fn typed_event(
        &mut self,
        entry: &RecordingEntry<'_>,
        descriptor: &Descriptor,
        payload: PayloadRead<'_>,
        block_number: Option<u64>,
    ) -> io::Result<()> {
        let (table, new_columns) = self.typed.of_event(entry.ring, descriptor.event_type, self.out)?;
        self.column_bytes += new_columns as u64 * COLUMN_BYTES;
        let row = TypedRow::new(self.recording, (entry.process, entry.ring), descriptor, payload, block_number);
        let bytes = table.push(descriptor.record_epoch_nanos, &row, self.out)?;
        self.limit(bytes)
    }

    /// Notes that rows of this size wait, too. If too many rows wait, passes on those of the largest table.
    fn limit(&mut self, bytes: u64) -> io::Result<()> {
        self.waiting_bytes += bytes;
        if self.waiting_bytes < WAITING_BYTES_MAX {
            return Ok(());
        }
        // Since the last sum, tables may have passed on their rows.
        self.waiting_bytes = self.sum();
        if self.waiting_bytes < WAITING_BYTES_MAX {
            return Ok(());
        }
        let of_others = [self.spans.waiting_bytes(), self.logs.waiting_bytes(), self.losses.waiting_bytes()];
        let of_others = of_others.into_iter().max().unwrap_or_default();
        match self.typed.iter_mut().max_by_key(|table| table.waiting_bytes()) {
            Some(table) if of_others <= table.waiting_bytes() => table.flush(self.out)?,
            _ => self.flush_untyped()?,
        }
        self.waiting_bytes = self.sum();
        Ok(())
    }

    fn sum(&self) -> u64 {
        let of_samples = self.samples.iter().flatten().map(ParquetTable::waiting_bytes);
        let of_typed = self.typed.iter().map(ParquetTable::waiting_bytes);
        let others = [self.spans.waiting_bytes(), self.logs.waiting_bytes(), self.losses.waiting_bytes()];
        of_samples.chain(of_typed).chain(others).fold(0, u64::saturating_add)
    }
}

impl ReplayConsumer for ParquetTables<'_, '_> {
    fn needs(&self) -> ReplayNeeds {
        NEEDS
    }

    fn seqnos(&mut self, entry: &RecordingEntry<'_>) {
        if let Some(ring) = self.seqno_counts.get_mut(entry.ring as usize) {
            ring.count(&entry.content);
        }
    }

    fn follow(&self, parts: &mut ReplayParts) {
        RingBlocks::follow(self.recording.capture, parts);
    }

    fn entry(&mut self, entry: &RecordingEntry<'_>, _: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        match &entry.content {
            EntryContent::Perf { record, catalog, .. } => {
                self.last_nanos = Some(record.epoch_nanos());
                self.record(entry.process, record, catalog)
            }
            EntryContent::Typed { descriptor, payload } => {
                self.last_nanos = Some(descriptor.record_epoch_nanos);
                self.typed_event(entry, descriptor, *payload, state.part().and_then(RingBlocks::last_number))
            }
            EntryContent::Gap(gap) => {
                let ring_name = &self.recording.ring(entry.ring).name;
                let row = LossRow::new(entry.process, ring_name, *gap, self.last_nanos);
                // A loss before the first event has no time, and comes first.
                let bytes = self.losses.push(self.last_nanos.unwrap_or_default(), &row, self.out)?;
                self.limit(bytes)
            }
        }
    }

    fn span(&mut self, process: usize, OverSpan { span, .. }: &OverSpan<'_>, _: ReplayState<'_>) -> io::Result<()> {
        let ids = self.recording.rings().ids(process);
        let row = SpanRow::new(self.recording.processes()[process], span, ids);
        // A span without a beginning is null in the column, and comes first.
        let bytes = self.spans.push(row.start_ns.unwrap_or_default(), &row, self.out)?;
        self.limit(bytes)
    }

    fn kept_bytes(&self) -> u64 {
        let of_typed = self.typed.iter().map(ParquetTable::described_bytes);
        let others = [self.spans.described_bytes(), self.logs.described_bytes(), self.losses.described_bytes()];
        let of_samples = self.samples.iter().flatten().map(ParquetTable::described_bytes);
        let described = of_typed.chain(others).chain(of_samples).fold(0, u64::saturating_add);
        described.saturating_add(self.column_bytes)
    }
}

fn sample_columns() -> RowColumns {
    RowColumns::new(&SampleRow::default(), TableSetup::default())
}
